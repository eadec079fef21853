"""Saves fixtures with the torch that runs it and writes what that torch reads back to expected.json.

A generator makes objects and calls Case.save (or save_with, wrap, refuse); Case.finish merges the answers into the
expected.json beside it, so that the runs of two torch versions end up in one file. The name of a file says which
version wrote it: state_dict-torch1.13.pt. README.md in the folder above describes expected.json.
"""
import collections
import copy
import enum
import hashlib
import json
import math
import pathlib
import sys
import types
import warnings

import numpy
import torch

warnings.filterwarnings("ignore")
assert sys.byteorder == "little", "expectations are taken on a little-endian machine"

MAJOR, MINOR = (int(part) for part in torch.__version__.split(".")[:2])
VERSION = "%d.%d" % (MAJOR, MINOR)
TORCH2 = MAJOR >= 2

LAYOUTS = {
    "sparse_csr": ("crow_indices", "col_indices", "values"),
    "sparse_csc": ("ccol_indices", "row_indices", "values"),
    "sparse_bsr": ("crow_indices", "col_indices", "values"),
    "sparse_bsc": ("ccol_indices", "row_indices", "values"),
}
PLAIN_MAPS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
PLAIN_LISTS = (list, tuple, torch.Size)
NUMPY_DTYPES = {
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
    "complex64", "complex128",
}


def load(path, **options):
    """Reads a file as torch does in its full mode, where the classes met are built."""
    if TORCH2 or MINOR >= 13:
        options.setdefault("weights_only", False)
    return torch.load(str(path), map_location=options.pop("map_location", "cpu"), **options)


def untyped(tensor):
    if hasattr(tensor, "untyped_storage"):
        return tensor.untyped_storage()
    storage = tensor.storage()
    return storage.untyped() if hasattr(storage, "untyped") else storage._storage


def storage_bytes(tensor):
    storage = untyped(tensor)
    view = torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,))
    return view.numpy().tobytes()


def strided_bytes(tensor):
    """The packed bytes of a tensor of a dtype that torch cannot copy (float4) or not without a change (bool)."""
    if not tensor.numel():
        return b""
    raw = numpy.frombuffer(storage_bytes(tensor), dtype=numpy.uint8)[tensor.storage_offset() * tensor.element_size():]
    strides = [stride * tensor.element_size() for stride in tensor.stride()] + [1]
    shape = list(tensor.shape) + [tensor.element_size()]
    return numpy.lib.stride_tricks.as_strided(raw, shape, strides).tobytes()


def packed(tensor):
    """The contiguous row-major little-endian bytes of a tensor's values, conjugation and negation applied."""
    tensor = tensor.detach().as_subclass(torch.Tensor)
    if tensor.is_quantized:
        return packed(tensor.int_repr())  # quint4x2 and quint2x4: the bytes that hold the elements, packed over all dimensions
    if tensor.is_conj():
        tensor = tensor.resolve_conj()
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    if tensor.dtype == torch.bool:
        return strided_bytes(tensor)  # as the file has them: a copy by torch turns other bytes into 1, or does not
    try:
        return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    except (RuntimeError, NotImplementedError, TypeError):
        return strided_bytes(tensor)


def digest(data):
    return hashlib.sha256(data).hexdigest()


def dtype_name(dtype):
    return str(dtype).replace("torch.", "")


def key_text(key):
    """A key's part of a flat name: text and numbers as they are, classes as module.Name, else Python's spelling."""
    if isinstance(key, enum.Enum):  # some versions of Python pickle a member by its name, others by its value
        by_name = key.__reduce_ex__(2)[0] is getattr
        return key_text(type(key)) + (".%s" % key.name if by_name else "(%r)" % key.value)
    if isinstance(key, str):
        return key
    if isinstance(key, type):
        return key.__module__ + "." + key.__qualname__
    return repr(key)


def flat(keys):
    return ".".join(key_text(key) for key in keys)


def typed(keys):
    """Keys for JSON: text and 64-bit numbers as such, all others as an object with type and text."""
    return [typed_key(key) for key in keys]


def typed_key(key):
    if isinstance(key, str):
        return key
    if isinstance(key, int) and not isinstance(key, bool) and -2**63 <= key < 2**63:
        return key
    return {"type": "class" if isinstance(key, type) else type(key).__name__, "text": key_text(key)}


def number(value):
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def scalar(value):
    """A plain value as (JSON, type), or None for a value that has no agreed spelling."""
    kind = type(value)
    if value is None or kind in (bool, str):
        return value, "none" if value is None else kind.__name__
    if kind is int:
        return (value if -2**63 <= value < 2**63 else str(value)), "int"
    if kind is float:
        return number(value), "float"
    if kind in (bytes, bytearray):
        return "hex:" + value.hex(), kind.__name__
    if kind is complex:
        return str(value), "complex"
    if kind in (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.torch_version.TorchVersion):
        return str(value), kind.__name__
    if isinstance(value, numpy.generic) and value.dtype.name in NUMPY_DTYPES:
        return scalar(value.item())
    return None


class Walk:
    """Collects the rows of a loaded object: tensors, plain values, containers, opaque objects."""

    def __init__(self):
        self.tensors, self.values, self.types, self.collisions = [], {}, {}, {}
        self.containers, self.sets, self.opaque, self.odd, self.nested = {}, {}, [], {}, []
        self.inside, self.storages = [], {}
        self.open = []  # names of the opaque objects around, whose values may be listed or not
        self.maybe = {}

    def visit(self, value, keys=()):
        if isinstance(value, torch.Tensor):
            return self.tensor(value, keys)
        if isinstance(value, numpy.ndarray):
            return self.array(value, keys)
        if isinstance(value, torch.nn.Module):
            return self.module(value, keys)
        plain = scalar(value)
        if plain is not None:
            return self.scalar(plain, keys)
        if id(value) in self.inside:
            return None
        self.inside.append(id(value))
        self.compound(value, keys)
        self.inside.pop()
        return None

    def scalar(self, plain, keys):
        name, (value, kind) = flat(keys), plain
        if self.open:
            self.maybe[name] = value
        elif name in self.collisions:
            self.collisions[name].append(value)
        elif name in self.values:
            self.collisions[name] = [self.values.pop(name), value]
        else:
            self.values[name] = value
            if isinstance(value, str) and kind != "str":
                self.types[name] = kind

    def compound(self, value, keys):
        if type(value) in PLAIN_MAPS:
            self.container(value, keys)
            self.each(value.items(), keys)
        elif type(value) in PLAIN_LISTS or isinstance(value, tuple):
            self.container(value, keys, "namedtuple" if type(value) not in PLAIN_LISTS else None)
            self.each(enumerate(value), keys)
        elif type(value) in (set, frozenset):
            self.set(value, keys)
        elif isinstance(value, (torch.storage.UntypedStorage, torch.storage.TypedStorage)):
            self.odd_value(value, keys, "storage")
        elif isinstance(value, enum.Enum):
            self.odd_value(value, keys)
        elif hasattr(value, "__dict__") and vars(value) and not isinstance(value, (type, types.FunctionType)):
            self.object(value, keys)
        else:
            self.odd_value(value, keys)

    def each(self, items, keys):
        for key, child in items:
            self.visit(child, keys + (key,))

    def container(self, value, keys, kind=None):
        if not self.open:
            self.containers[flat(keys)] = kind or type(value).__name__

    def set(self, value, keys):
        # The order of a set is that of its pickle, which the loaded set no longer tells.
        self.container(value, keys)
        inner = Walk()
        inner.visit(list(value))
        plain = sorted((json.dumps(v), v) for v in inner.values.values())
        if not self.open and len(inner.containers) == 1:
            self.sets[flat(keys)] = [v for _, v in plain]

    def object(self, value, keys):
        """An object of a class that a reader need not know: opaque, its tensors reachable by attribute."""
        cls = type(value)
        self.opaque.append({"path": flat(keys), "class": cls.__module__ + "." + cls.__qualname__})
        self.within(vars(value).items(), keys)
        self.within(contents(value), keys)

    def within(self, items, keys):
        """Visits what an opaque object holds; its tensors must be reachable, behind whatever names."""
        self.open.append(flat(keys))
        self.each(items, keys)
        self.open.pop()

    def odd_value(self, value, keys, text=None):
        cls = type(value)
        text = text if text is not None else str(value)
        if " at 0x" in text:  # an address says nothing and changes from run to run
            text = text.split(" at 0x")[0]
        entry = {"class": cls.__module__ + "." + cls.__qualname__, "str": text}
        if not self.open:
            self.odd[flat(keys)] = entry
        self.within(contents(value), keys)

    def module(self, module, keys):
        """A whole pickled module: what counts is its state dict."""
        for name, tensor in module.state_dict().items():
            parts = {name: tensor}
            if isinstance(tensor, tuple):  # the packed weights of a quantized module
                parts = {"%s.%d" % (name, i): part for i, part in enumerate(tensor)}
            for part, value in parts.items():
                if isinstance(value, torch.Tensor):
                    self.tensor(value, keys + (part,), path=False)
        self.modules = True

    def array(self, value, keys):
        if value.dtype.fields or value.dtype.newbyteorder("=").name not in NUMPY_DTYPES:
            self.opaque.append({"path": flat(keys), "class": "numpy.ndarray"})
            return
        data = numpy.ascontiguousarray(value).astype(value.dtype.newbyteorder("<")).tobytes()
        row = {"name": flat(keys)}
        row.update({"inside": self.open[0]} if self.open else {"path": typed(keys)})
        self.tensors.append(dict(row, dtype=value.dtype.newbyteorder("=").name, shape=list(value.shape), bytes=len(data),
                                 sha256=digest(data), numpy=True))

    def tensor(self, value, keys, path=True):
        layout = str(value.layout).replace("torch.", "")
        if value.is_nested:
            self.nested_tensor(value, keys)
        elif layout != "strided":
            self.sparse(value, layout, keys)
        else:
            self.tensors.append(self.strided(value, keys, path))

    def strided(self, value, keys, path=True):
        row = {"name": flat(keys)}
        if self.open:
            row["inside"] = self.open[0]
        elif path:
            row["path"] = typed(keys)
        row.update(dtype=dtype_name(value.dtype), shape=list(value.shape))
        if value.device.type == "meta":
            return dict(row, no_data=True)
        data = packed(value)
        row.update(bytes=len(data), sha256=digest(data))
        if type(value) in (torch.Tensor, torch.nn.Parameter):
            row.update(strides=list(value.stride()), offset=value.storage_offset(), contiguous=value.is_contiguous())
            if untyped(value).data_ptr() and value.numel():  # an empty tensor may lie on the border of another's storage
                row["storage"] = self.storages.setdefault(untyped(value).data_ptr(), len(self.storages))
        if value.is_quantized:
            row.update(quantization(value))
        return row

    def sparse(self, value, layout, keys):
        name = flat(keys)
        self.opaque.append({"path": name, "class": layout, "dense": self.dense(value)})
        parts = LAYOUTS.get(layout, ("indices", "values"))
        for part in parts:
            tensor = getattr(value, ("_" if layout == "sparse_coo" else "") + part)()
            self.component(tensor, name + "#" + part)

    def dense(self, value):
        data = packed(value.to_dense())
        return {"dtype": dtype_name(value.dtype), "shape": list(value.shape), "sha256": digest(data)}

    def component(self, tensor, name):
        data = packed(tensor)
        self.tensors.append({"name": name, "dtype": dtype_name(tensor.dtype), "shape": list(tensor.shape),
                             "bytes": len(data), "sha256": digest(data)})

    def nested_tensor(self, value, keys):
        parts = [{"shape": list(part.shape), "sha256": digest(packed(part))} for part in value.unbind()]
        self.opaque.append({"path": flat(keys), "class": "nested"})
        self.nested.append({"name": flat(keys), "dtype": dtype_name(value.dtype), "parts": parts})
        jagged = value.layout != torch.strided
        for part in ("values", "offsets") if jagged else ("values", "_nested_tensor_size", "_nested_tensor_strides", "_nested_tensor_storage_offsets"):
            name = part.replace("_nested_tensor_", "").replace("size", "sizes")
            self.component(getattr(value, part)(), flat(keys) + "#" + name)

    def rows(self):
        """The walk as the JSON of one file; empty parts are left out."""
        out = {"tensors": self.tensors, "values": self.values}
        extra = {"types": self.types, "collisions": self.collisions, "containers": self.containers, "sets": self.sets,
                 "opaque": self.opaque, "odd": self.odd, "nested": self.nested, "maybe_values": self.maybe}
        out.update((key, value) for key, value in extra.items() if value)
        if getattr(self, "modules", False):
            out["more_values"] = out["more_opaque"] = True
        return out


def contents(value):
    """What an object holds besides its attributes: items of list and dict subclasses and deques, slots."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, (list, collections.deque)):
        return list(enumerate(value))
    slots = getattr(type(value), "__slots__", ())
    return [(name, getattr(value, name)) for name in slots if hasattr(value, name)] if isinstance(slots, tuple) else []


def quantization(value):
    scheme = str(value.qscheme()).replace("torch.", "")
    if scheme.startswith("per_channel"):
        quant = {"scheme": scheme, "scale": value.q_per_channel_scales().tolist(),
                 "zero_point": value.q_per_channel_zero_points().tolist(), "axis": value.q_per_channel_axis()}
    else:
        quant = {"scheme": scheme, "scale": value.q_scale(), "zero_point": value.q_zero_point()}
    row = {"quant": quant}
    try:
        row["dequantized_sha256"] = digest(packed(value.dequantize()))
    except RuntimeError:
        pass  # torch itself cannot dequantize this kind
    return row


def expectation(value, **flags):
    walk = Walk()
    walk.visit(value)
    return dict(walk.rows(), **flags)


def class_source(cls, known=torch.serialization.get_source_lines_and_file):
    """What a legacy file keeps of a module's class, without torch's own text and the path of whoever saves."""
    if cls.__module__.startswith("torch."):
        return ["class %s:\n" % cls.__name__, "    ...\n"], 1, cls.__module__.replace(".", "/") + ".py"
    return known(cls)


torch.serialization.get_source_lines_and_file = class_source


class Case:
    """One folder of fixtures: saves files and gathers what torch reads back from them."""

    def __init__(self, script, out=None):
        self.dir = pathlib.Path(out or pathlib.Path(script).resolve().parent)
        self.files = {}
        torch.manual_seed(0)
        numpy.random.seed(0)

    def path(self, stem, suffix=".pt"):
        return self.dir / ("%s-torch%s%s" % (stem, VERSION, suffix))

    def save(self, stem, value, suffix=".pt", form="zip", flags=None, **options):
        """Saves value by torch.save and expects what torch.load returns."""
        path = self.path(stem, suffix)
        if form == "legacy":
            options["_use_new_zipfile_serialization"] = False
        torch.save(value, str(path), **options)
        flags = flags or {}
        try:
            return self.expect(path, load(path), form, **flags)
        except AssertionError:  # torch writes protocol 0 and cannot read its text ids: the saved object speaks
            if options.get("pickle_protocol") != 0:
                raise
            return self.expect(path, value, form, torch_load="AssertionError", **flags)

    def expect(self, path, value, form, **flags):
        """Notes that path holds value, an object that torch has just loaded."""
        self.files[path.relative_to(self.dir).as_posix()] = dict(
            format=form, torch=torch.__version__.split("+")[0], **expectation(value, **flags))
        return path

    def same(self, path, model, form=None):
        """Notes that path (made from the file model without torch) reads as model does."""
        like = copy.deepcopy(self.files[model.relative_to(self.dir).as_posix()])
        if form:
            like["format"] = form
        said = self.torch_says(path)
        if said != "loads":
            like["torch_load"] = said
        self.files[path.relative_to(self.dir).as_posix()] = like
        return path

    def refuse(self, path, kind, code, *words):
        """Notes that path must be refused with this kind, exit code and these words (regular expressions)."""
        self.files[path.relative_to(self.dir).as_posix()] = {
            "torch": torch.__version__.split("+")[0],
            "error": {"kind": kind, "exit": code, "has": list(words)}, "torch_load": self.torch_says(path)}
        return path

    def torch_says(self, path):
        try:
            load(path)
        except Exception as error:
            return type(error).__name__
        return "loads"

    def finish(self):
        """Merges this run into expected.json and checks the size of every file."""
        target = self.dir / "expected.json"
        known = json.loads(target.read_text())["files"] if target.exists() else {}
        mark = "torch%s" % VERSION
        known = {name: row for name, row in known.items() if mark not in name and (self.dir / name).exists()}
        known.update(self.files)
        for name in self.files:
            size = weight(self.dir / name)
            assert size < 100 * 1024, "%s has %d bytes" % (name, size)
        lines = ",\n".join("%s: %s" % (json.dumps(name), entry(known[name])) for name in sorted(known))
        target.write_text('{"files": {\n%s\n}}\n' % lines)
        print("%-28s torch %s: %d files" % (self.dir.name, VERSION, len(self.files)))


def entry(row):
    """One file's JSON, a line for each tensor so that differences read well."""
    parts = []
    for key, value in row.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            text = "[\n" + ",\n".join("  " + json.dumps(item) for item in value) + "]"
        else:
            text = json.dumps(value)
        parts.append(" %s: %s" % (json.dumps(key), text))
    return "{\n" + ",\n".join(parts) + "}"


def weight(path):
    """The size of the largest file at path in bytes."""
    if path.is_dir():
        return max((item.stat().st_size for item in path.rglob("*") if item.is_file()), default=0)
    return path.stat().st_size


def module(name, *classes):
    """Registers a module of this name that holds the classes, as if a package of that name were installed."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        full = ".".join(parts[:end])
        if full not in sys.modules:
            sys.modules[full] = types.ModuleType(full)
    for cls in classes:
        cls.__module__ = name
        cls.__qualname__ = cls.__name__
        setattr(sys.modules[name], cls.__name__, cls)
    return sys.modules[name]


def ramp(*shape, dtype=None, start=0.0, step=0.25):
    """A tensor whose values are start, start+step, …, in row-major order."""
    count = int(numpy.prod(shape)) if shape else 1
    values = torch.arange(count, dtype=torch.float64) * step + start
    return values.reshape(shape).to(dtype or torch.float32)


def noise(*shape, dtype=None, seed=0):
    """A tensor of seeded normal values."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype or torch.float32)


