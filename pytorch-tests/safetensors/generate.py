"""Files written by the safetensors package, and by hand where a writer of another kind counts, read back by it."""
import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, TORCH2, ramp

if not TORCH2:
    sys.exit(0)  # the package is installed beside the current torch
import safetensors.torch

case = Case(__file__)


def save(stem, tensors, metadata=None):
    """Saves by the package, which makes files that nobody else may read."""
    path = case.path(stem, ".safetensors")
    safetensors.torch.save_file(tensors, str(path), metadata=metadata)
    path.chmod(0o644)
    return case.expect(path, safetensors.torch.load_file(str(path)), "safetensors")


def by_hand(stem, header, data):
    path = case.path(stem, ".safetensors")
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def accepted(path):
    return case.expect(path, safetensors.torch.load_file(str(path)), "safetensors")


def refused(path, *words):
    """safetensors itself refuses the file too."""
    try:
        safetensors.torch.load_file(str(path))
    except Exception:
        return case.refuse(path, "malformed", 3, *words)
    raise AssertionError("%s loads" % path)


every = torch.arange(256, dtype=torch.int16).to(torch.uint8)
floats = ["float64", "float32", "float16", "bfloat16"]
ints = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
small = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"]
kinds = {name: ramp(2, 3, dtype=getattr(torch, name)) for name in floats + ints}
kinds.update({name: every.clone().view(getattr(torch, name)).reshape(16, 16) for name in small})
kinds["bool"] = torch.tensor([0, 1, 2, 255], dtype=torch.uint8).view(torch.bool)
kinds["complex64"] = torch.complex(ramp(3), -ramp(3))
save("dtypes", kinds, {"format": "pt"})
save("names", {"": ramp(1), "a.b": ramp(2), "zwei/ü": ramp(3), "\x01\x7f\"\\\b\f\n\r\t": ramp(4), "😀": ramp(5), "z" * 1000: ramp(6)},
     {"format": "pt"})
save("shapes", {"scalar": torch.tensor(3.5), "none": torch.zeros(0, 3), "five": ramp(1, 2, 1, 3, 2), "also none": torch.zeros(0)},
     {"format": "pt"})
save("metadata", {"w": ramp(2)}, {"format": "pt", "Ünï": "\"text\"\n"})
save("empty", {}, None)
# As earlier writers did it: in the order of the names, so that some tensors are not aligned.
accepted(by_hand("unaligned", {"a": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]},
                               "b": {"dtype": "F32", "shape": [2], "data_offsets": [3, 11]}},
                 b"\x01\x02\x03" + ramp(2).numpy().tobytes()))
# The header's order is not that of the data; unknown members are passed over.
accepted(by_hand("order", b'  {"b": {"shape": [1], "note": {"x": [1, null, -2.5e3]}, "data_offsets": [4, 8], "dtype": "F32"},\n'
                 b'"__metadata__": null, "a": {"dtype": "I32", "shape": [], "data_offsets": [0, 4]}} \n', bytes(range(8))))
one = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
refused(by_hand("hole", {"a": one, "b": dict(one, data_offsets=[8, 12])}, bytes(12)), "b", "end to end")
refused(by_hand("overlap", {"a": one, "b": dict(one, data_offsets=[2, 6])}, bytes(6)), "b", "end to end")
refused(by_hand("beyond", {"a": dict(one, data_offsets=[0, 8], shape=[2])}, bytes(4)), "a", "cut off")
refused(by_hand("behind", {"a": one}, bytes(5)), "1 byte behind")
refused(by_hand("size", {"a": dict(one, shape=[2])}, bytes(4)), "a", r"\[2\]", "8 bytes")
refused(by_hand("overflow", {"a": dict(one, shape=[2**40, 2**40])}, bytes(4)), "a", "overflows")
refused(by_hand("negative", {"a": dict(one, shape=[-1])}, bytes(4)), "negative")
refused(by_hand("fraction", b'{"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}}', bytes(4)), "fraction")
refused(by_hand("backward", {"a": dict(one, data_offsets=[4, 0])}, bytes(4)), "a", "data_offsets")
refused(by_hand("no_dtype", {"a": {"shape": [1], "data_offsets": [0, 4]}}, bytes(4)), "a", "without dtype")
refused(by_hand("leftover", b"{} x", b""), "more text")
refused(by_hand("no_utf8", b'{"\xff":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}', b""), "UTF-8")
refused(by_hand("control", b'{"\x01":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}', b""), "control")
refused(by_hand("numbers", b'{"__metadata__":{"a":1}}', b""), "a string")
refused(by_hand("nibble", {"a": {"dtype": "F4", "shape": [3], "data_offsets": [0, 1]}}, bytes(1)), "a", "F4", "12 bits")
path = by_hand("short", {"a": one}, bytes(4))
path.write_bytes(path.read_bytes()[:40])
refused(path, "cut off")
case.finish()
