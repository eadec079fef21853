"""Plain Python values beside the weights: wide integers, floats, complex, bytes, sets, dtypes, devices, layouts."""
import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, ramp

case = Case(__file__)
case.save("numbers", {
    "ints": [0, 1, -1, 255, 256, 65535, 65536, 2**31 - 1, 2**31, -2**31, -2**31 - 1, 2**53 + 1, 2**63 - 1, -2**63],
    "wide": [2**63, -2**63 - 1, 2**64, 2**64 - 1, 10**40, -(10**40), 2**2100], "bools": [True, False],
    "floats": [0.0, -0.0, 0.1, 1e-320, 1.7976931348623157e308, 5e-324, 1e16, 123456789.125, 2.0**70, float("inf"), -float("inf"), float("nan")],
    "complex": [1.5 - 2j, 2j, complex(-0.0, 1), complex(float("inf"), float("nan")), 1 + 0j, 1e20 + 1e-5j]})
case.save("texts", {
    "ascii": "text", "empty": "", "unicode": "重み ✓ 🐍", "nul": "a\x00b", "escape": "\x1b[31mred", "lone": "\ud800", "nan": "nan",
    "number": "12", "long": "z" * 1000, "quotes": "'\"\\"})
case.save("bytes", {"bytes": b"\x00\x80\xffok", "empty": b"", "array": bytearray(b"\x01\xfe"), "empty_array": bytearray(),
                    "long": bytes(range(256)) * 2, "w": ramp(2)})
for protocol in (2, 3, 4, 5):
    case.save("sets_protocol%d" % protocol, {
        "ints": {3, 1, 2}, "texts": {"a", "b"}, "mixed": {1, "x", None, 2.5}, "empty": set(), "frozen": frozenset({7, 8}),
        "empty_frozen": frozenset(), "tuples": {(1, 2)}, "b": b"\xff", "a": bytearray(b"\xfe"), "c": 1 - 2j,
        "w": ramp(1)}, pickle_protocol=protocol)
case.save("torch_values", {
    "dtypes": [torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.complex64, torch.quint8],
    "devices": [torch.device("cuda:0"), torch.device("cpu"), torch.device("cuda"), torch.device("meta")],
    "layouts": [torch.strided, torch.sparse_coo, torch.sparse_csr], "sizes": [torch.Size([2, 3]), torch.Size([])],
    "shapes": collections.OrderedDict(w=torch.Size([4]))})
case.save("version", {"torch_version": torch.__version__, "epoch": 1, "w": ramp(1)})
for protocol in (4, 5):  # torch cannot save them in lower ones
    case.save("memory_formats_protocol%d" % protocol, {"formats": [
        torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d], "w": ramp(1)}, pickle_protocol=protocol)
# Every name that torch.load(weights_only=True) knows by itself, as a value.
names = torch._weights_only_unpickler._get_allowed_globals()
case.save("globals", {name: value for name, value in names.items()
                      if isinstance(value, (type, torch.dtype, torch.qscheme)) and not name.endswith("Storage")})
case.save("generator_states", {"torch": torch.get_rng_state()[:64], "python": (3, (1, 2, 2**32 - 1, 624), None)})
case.finish()
