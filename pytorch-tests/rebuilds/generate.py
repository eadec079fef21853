"""Every function that pickles of any torch version name for building a tensor, called as they call it."""
import collections
import io
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import numpy
import torch
from fixture import Case, TORCH2, expectation, load, module, ramp


class Call:
    """Pickles as a call of function with arguments, which is how torch.load finds it."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


class Pair(torch.Tensor):
    """A wrapper subclass: a shape without a storage, around two tensors."""

    @staticmethod
    def __new__(cls, left, right):
        return torch.Tensor._make_wrapper_subclass(cls, left.shape, dtype=left.dtype)

    def __init__(self, left, right):
        self.left, self.right = left, right

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError(func)


module("mytraining.wrappers", Pair)
case = Case(__file__)
utils = torch._utils
storage = ramp(12).storage()
hooks = collections.OrderedDict()
case.save("functions", {
    "v1": Call(utils._rebuild_tensor, storage, 2, (2, 3), (3, 1)),
    "v2": Call(utils._rebuild_tensor_v2, storage, 1, (3, 2), (1, 3), True, hooks),
    "v2_none": Call(utils._rebuild_tensor_v2, storage, 0, (12,), (1,), False, None),
    "parameter": Call(utils._rebuild_parameter, ramp(2), True, hooks),
    "class_parameter": Call(torch.nn.Parameter, ramp(3), False),
    "from_numpy": Call(utils._rebuild_device_tensor_from_numpy, numpy.arange(6, dtype=numpy.float32).reshape(2, 3), torch.float32, "cpu", False),
    "xla": Call(utils._rebuild_xla_tensor, numpy.arange(4, dtype=numpy.int64), torch.int64, "cpu", False),
    "meta": Call(utils._rebuild_meta_tensor_no_storage, torch.float32, (2, 3), (3, 1), False),
    "tensor_class": Call(utils._rebuild_tensor_v2, ramp(4, dtype=torch.float16).storage(), 0, (), (), False, hooks)})


def saved(value, **options):
    """The bytes of torch.save."""
    out = io.BytesIO()
    torch.save(value, out, **options)
    return out.getvalue()


from_bytes = torch.storage._load_from_bytes
case.save("load_from_bytes", {
    "legacy": Call(from_bytes, saved(ramp(2, 3).t(), _use_new_zipfile_serialization=False)), "zip": Call(from_bytes, saved(ramp(4))),
    "tree": Call(from_bytes, saved({"a": ramp(2), "n": [1, "x"]}, _use_new_zipfile_serialization=False)),
    "inside": Call(from_bytes, saved([Call(from_bytes, saved(ramp(3, dtype=torch.float16)))]))})
# As the standard pickle module writes a tensor: its storage by itself.
storage = Call(from_bytes, saved(ramp(6).storage(), _use_new_zipfile_serialization=False))
case.save("pickled_storage", {"w": Call(utils._rebuild_tensor_v2, storage, 0, (2, 3), (3, 1), False, hooks)})
if TORCH2:
    bytes_ = torch.arange(16, dtype=torch.uint8).untyped_storage()
    case.save("functions2", {
        "v2_metadata": Call(utils._rebuild_tensor_v2, torch.view_as_complex(ramp(2, 2)).storage(), 0, (2,), (1,), False, hooks, {"conj": True}),
        "v3": Call(utils._rebuild_tensor_v3, bytes_, 1, (3,), (2,), False, hooks, torch.uint16),
        "v3_float": Call(utils._rebuild_tensor_v3, bytes_, 1, (3,), (1,), False, hooks, torch.float32),
        "from_cpu_tensor": Call(utils._rebuild_device_tensor_from_cpu_tensor, ramp(3), torch.float32, "cpu", False),
        "cast": Call(utils._rebuild_device_tensor_from_cpu_tensor, ramp(3), torch.float16, "cpu", False)},
        flags={"more_values": True, "more_opaque": True, "more_tensors": True})
    path = case.path("wrapper")
    value = {"pair": Pair(ramp(2, 2), ramp(2, 2, start=5)), "w": ramp(2)}
    torch.save(value, str(path))
    read = load(path)
    inner = [dict(row, inside="pair") for row in expectation({"left": read["pair"].left, "right": read["pair"].right})["tensors"]]
    case.expect(path, {"w": read["w"]}, "zip", more_tensors=True, more_values=True, more_opaque=True)
    for row in inner:
        row.pop("path")
        row.pop("storage")
    case.files[path.name]["tensors"] += inner
case.finish()
