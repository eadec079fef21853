"""Record files made without wick, by cbor2 and json from torch's tensors, and what torch says of these."""
import json
import pathlib
import struct
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, TORCH2, packed, ramp

if not TORCH2:
    sys.exit(0)  # one torch is enough: it only gives the tensors
try:
    import cbor2
except ImportError:
    print("records: left as they are, for want of cbor2 (pip install cbor2)", file=sys.stderr)
    sys.exit(0)

case = Case(__file__)
LITTLE = {torch.uint8: 64, torch.uint16: 69, torch.uint32: 70, torch.uint64: 71, torch.int8: 72, torch.int16: 77,
          torch.int32: 78, torch.int64: 79, torch.float16: 84, torch.float32: 85, torch.float64: 86}
CARRIER = {torch.bfloat16: torch.uint16, torch.bool: torch.uint8, torch.complex64: torch.float32,
           torch.float8_e4m3fn: torch.uint8}


def typed_array(tensor):
    return cbor2.CBORTag(LITTLE[CARRIER.get(tensor.dtype, tensor.dtype)], packed(tensor))


def typed(tensor):
    """A tensor as RFC 8746 says it, and a dtype that it does not know as an object over its bits."""
    bits = cbor2.CBORTag(40, [list(tensor.shape) + [2] * tensor.is_complex(), typed_array(tensor)])
    if tensor.dtype not in CARRIER:
        return bits
    return cbor2.CBORTag(27, ["wick.tensor", str(tensor.dtype).replace("torch.", ""), bits])


def plain(value):
    """A tree with every tensor as CBOR has it."""
    if isinstance(value, torch.Tensor):
        return typed(value)
    if isinstance(value, dict):
        return {plain(key): plain(child) for key, child in value.items()}
    if isinstance(value, list):
        return [plain(child) for child in value]
    if isinstance(value, tuple):
        return cbor2.CBORTag(27, ["tuple", plain(list(value))])
    return value


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    children = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else []
    return [tensor for child in children for tensor in tensors(child)]


def record(value):
    """The bytes of a record: the checksums of the tensors, then that of all else."""
    head = b"\xd9\xd9\xf7\xa3" + cbor2.dumps("wick")
    head += cbor2.dumps({"version": 1, "type": "example.Model", "precision": "full", "writer": "a test"}) + cbor2.dumps("root")
    body = cbor2.dumps(plain(value))
    leaves = [packed(tensor) for tensor in tensors(value)]
    rest, at = head, 0
    for leaf, tensor in zip(leaves, tensors(value)):
        array = cbor2.dumps(typed_array(tensor))
        end = body.index(array, at) + len(array)
        rest += body[at:end - len(leaf)]
        at = end
    tail = cbor2.dumps("crc32") + cbor2.dumps([0] * (len(leaves) + 1))[:1]
    for leaf in leaves:
        tail += b"\x1a" + struct.pack(">I", zlib.crc32(leaf))
    tail += b"\x1a"
    return head + body + tail + struct.pack(">I", zlib.crc32(rest + body[at:] + tail))


def save(stem, value, data, suffix, form):
    path = case.path(stem, suffix)
    path.write_bytes(data)
    return case.expect(path, value, form)


tree = {
    "conv.weight": ramp(2, 1, 3, 3), "conv.bias": ramp(2, dtype=torch.float16), "bf16": ramp(3, dtype=torch.bfloat16, start=-1),
    "ids": torch.arange(5), "wide": torch.tensor([2**64 - 1], dtype=torch.uint64), "flags": torch.tensor([True, False]),
    "c": torch.complex(ramp(2), -ramp(2)), "f8": ramp(4).to(torch.float8_e4m3fn), "double": ramp(2, dtype=torch.float64),
    "scalar": torch.tensor(2.5), "none": torch.zeros(0, 2),
    "epoch": 3, "lr": 0.1, "big": 2**70, "less": -2**70, "name": "Ünï", "ok": True, "no": None, "raw": b"\x00\xff",
    "list": [1, [2.0, "x"], (3,)], 7: {"deep": ramp(1)},
}
save("record", tree, record(tree), ".cbor", "cbor")


def big_endian(tensor, tag):
    return cbor2.CBORTag(tag, tensor.numpy().astype(tensor.numpy().dtype.newbyteorder(">")).tobytes())


foreign = {"be": ramp(3), "be16": torch.tensor([1, 2, 256], dtype=torch.int16), "bare": ramp(2, dtype=torch.float64),
           "be2": ramp(2, 2, dtype=torch.float16), "clamped": torch.tensor([1, 2], dtype=torch.uint8), "n": [1, 2]}
save("foreign", foreign, cbor2.dumps(cbor2.CBORTag(55799, {
    "be": big_endian(foreign["be"], 81), "be16": big_endian(foreign["be16"], 73), "bare": cbor2.CBORTag(86, packed(foreign["bare"])),
    "be2": cbor2.CBORTag(40, [[2, 2], big_endian(foreign["be2"], 80)]), "clamped": cbor2.CBORTag(68, packed(foreign["clamped"])),
    "n": [1, 2]})), ".cbor", "cbor")

model = {"weight": ramp(2, 3, start=-0.3, step=0.1), "half": ramp(2, dtype=torch.float16, step=0.1),
         "brain": ramp(2, dtype=torch.bfloat16, step=0.1), "bytes": torch.arange(4, dtype=torch.uint8).view(2, 2),
         "z": torch.complex(ramp(2, step=0.1), -ramp(2)), "odd": torch.tensor([float("inf"), float("-inf"), 1e-45]), "epoch": 3, "lr": 1.0}


def numbers(tensor):
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    values = tensor.reshape(-1).to(torch.float64).tolist() if tensor.is_floating_point() else tensor.reshape(-1).tolist()
    return ["inf" if v == float("inf") else "-inf" if v == float("-inf") else v for v in values]


def spelled(value):
    if not isinstance(value, torch.Tensor):
        return value
    return {"$tensor": {"dtype": str(value.dtype).replace("torch.", ""), "shape": list(value.shape), "data": numbers(value)}}


text = {"wick": {"version": 1, "type": "example.Model"}, "root": {key: spelled(value) for key, value in model.items()}}
save("by_hand", model, json.dumps(text).encode(), ".json", "json")
case.finish()
