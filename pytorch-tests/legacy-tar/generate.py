"""The tar of torch 0.1: sys_info, pickle, tensors, storages. torch no longer writes it; torch 1.13 still reads it, and is asked."""
import io
import pathlib
import pickle
import struct
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, TORCH2, load

TYPES = {"FloatStorage": "f", "LongStorage": "q", "HalfStorage": "e", "ByteStorage": "B", "DoubleStorage": "d", "IntStorage": "i",
         "ShortStorage": "h", "CharStorage": "b"}


class Reference(pickle.Pickler):
    """Pickles tensors as persistent ids: the text of their key, as the old writer did."""

    def persistent_id(self, value):
        return str(value.key) if isinstance(value, Key) else None


class Key:
    def __init__(self, key):
        self.key = key


def dumps(value, protocol=2):
    stream = io.BytesIO()
    Reference(stream, protocol).dump(value)
    return stream.getvalue()


def storages(items, views):
    """items: (key, class name, values); views: (key, root key, offset, elements)."""
    out = dumps(len(items))
    for key, kind, values in items:
        out += dumps((key, "cpu", getattr(torch, kind))) + struct.pack("<q", len(values))
        out += struct.pack("<%d%s" % (len(values), TYPES[kind]), *values)
    return out + dumps(views)


def tensors(items):
    """items: (key, storage key, class name, sizes, strides, offset)."""
    out = dumps(len(items))
    for key, storage, kind, sizes, strides, offset in items:
        out += dumps((key, storage, getattr(torch, kind))) + struct.pack("<ii", len(sizes), 0)
        out += struct.pack("<%dq" % len(sizes), *sizes) + struct.pack("<%dq" % len(strides), *strides) + struct.pack("<q", offset)
    return out


def write(path, parts):
    with tarfile.open(path, "w:", format=tarfile.PAX_FORMAT) as out:
        for name, data in parts.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(data), 0
            out.addfile(entry, io.BytesIO(data))


def main():
    case = Case(__file__)
    system = dumps({"protocol_version": 1000, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}})
    kept = [(11, "FloatStorage", [0.0, 0.25, 0.5, 0.75, 1.0, 1.25]), (12, "LongStorage", [-1, 2**40]), (13, "HalfStorage", [1.5, -2.0, 0.5]),
            (14, "ByteStorage", [0, 255, 7])]
    laid = [(1, 11, "FloatTensor", (2, 3), (3, 1), 0), (2, 11, "FloatTensor", (3, 2), (1, 3), 0), (3, 12, "LongTensor", (2,), (1,), 0),
            (4, 13, "HalfTensor", (2,), (1,), 1), (5, 21, "FloatTensor", (2,), (1,), 1), (6, 14, "ByteTensor", (3, 1), (1, 1), 0)]
    tree = {"w": Key(1), "t": Key(2), "i": Key(3), "h": Key(4), "v": Key(5), "u": Key(6), "epoch": 3, "again": Key(1), "list": [Key(3), "x"]}
    path = case.path("tar", ".pth.tar")
    write(path, {"sys_info": system, "pickle": dumps(tree), "tensors": tensors(laid), "storages": storages(kept, [(21, 11, 2, 3)])})
    case.expect(path, load(path), "tar")
    for row in case.files[path.name]["tensors"]:  # a view of a storage is a storage of its own to torch
        row.pop("storage")
        if row["name"] == "v":
            row.pop("offset")
    path = case.path("tar_empty")
    write(path, {"sys_info": system, "pickle": dumps({"epoch": 1}), "tensors": tensors([]), "storages": storages([], [])})
    case.expect(path, load(path), "tar")
    case.finish()


if not TORCH2:  # torch 2.x reads it too, but one reader is enough
    main()
