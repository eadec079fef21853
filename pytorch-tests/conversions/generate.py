"""Tables of torch's conversions among floats, which package tensor's tests compare with.

float32.bin holds the hard values as little-endian bits, float16.bin and bfloat16.bin what torch rounds them to, doubles.bin
float64 values near ties. expected.json has the rest: hashes over all values of a type, and every 8-bit float as hex.
"""
import hashlib
import json
import pathlib
import struct

import numpy
import torch

HERE = pathlib.Path(__file__).resolve().parent
SMALL = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]


def bits(tensor):
    """A tensor's bytes, little-endian."""
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


def digest(data):
    return hashlib.sha256(data).hexdigest()


def hashes(source, target):
    """Hashes of a conversion: of all values, and of the numbers alone, as the payload of a NaN depends on the processor."""
    dtype = getattr(torch, target)
    return {"sha256": digest(bits(source.to(dtype))), "without_nan_sha256": digest(bits(source[~source.isnan()].to(dtype)))}


def every_half(dtype):
    """All 65,536 patterns of a 16-bit float in the order of their bits."""
    return torch.arange(65536, dtype=torch.int32).to(torch.int16).view(dtype)


def hard_values():
    """float32 bit patterns around every kind of rounding: ties, subnormals, overflow, infinities, NaNs, and noise."""
    patterns = {0, 1, 2, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FA00000, 0x7FC00000, 0x7FFFFFFF, 0x7FC01234}
    for dtype, shift in ((torch.float16, 13), (torch.bfloat16, 16)):
        edge = numpy.linspace(0, 0x7F7F if shift == 16 else 0x7BFF, 90).astype(int)
        near = bits(every_half(dtype)[torch.tensor(edge.tolist())].float())
        for (pattern,) in struct.iter_unpack("<I", near):
            patterns.update((pattern + step) & 0xFFFFFFFF for step in (0, 1, -1, 1 << (shift - 1), (1 << (shift - 1)) - 1, (1 << (shift - 1)) + 1))
    for value in (65504.0, 65519.996, 65520.0, 65520.004, 65536.0, 5.9604645e-08, 2.9802322e-08, 2.980233e-08, 2.98e-08, 6.1035156e-05,
                  6.097555e-05, 3.3895314e38, 3.396e38, 1e-40, 9.2e-41, 448.0, 464.0, 465.0, 57344.0, 61440.0, 61441.0):
        (pattern,) = struct.unpack("<I", struct.pack("<f", value))
        patterns.update((pattern - 1, pattern, pattern + 1))
    generator = numpy.random.RandomState(7)
    while len(patterns) < 2048:
        patterns.add(int(generator.randint(0, 0x7F800000)))
    positive = numpy.array(sorted(patterns)[:2048], dtype=numpy.uint32)
    return numpy.concatenate([positive, positive | numpy.uint32(0x80000000)])


def narrowed(patterns):
    """What torch makes of the patterns in each narrower type, as hashes and for 16 bits as files."""
    source = torch.from_numpy(patterns.view(numpy.float32).copy())
    out = {}
    for name in ["float16", "bfloat16"] + SMALL:
        out[name] = hashes(source, name)
        if name in ("float16", "bfloat16"):
            (HERE / (name + ".bin")).write_bytes(bits(source.to(getattr(torch, name))))
            out[name]["file"] = name + ".bin"
    return out


def doubles():
    """float64 values so near a tie that the way through float32, which torch takes to 16 bits, rounds them twice."""
    base = [1.0 + 2.0**-11 + sign * 2.0**-40 for sign in (1, -1, 0)] + [1.0 + 2.0**-8 + sign * 2.0**-40 for sign in (1, -1, 0)]
    base += [2048.5 + 2.0**-30, 65520.0 - 2.0**-20, 65520.0, 2.0**-25 * (1 + 2.0**-40), 2.0**-25, 3.4028235677973366e38, 1e300, 1e-300, 5e-324]
    values = torch.tensor(base + [-value for value in base] + [float("inf"), float("nan")], dtype=torch.float64)
    (HERE / "doubles.bin").write_bytes(bits(values))
    return {"file": "doubles.bin", "count": len(values), "to": {
        name: bits(values.to(getattr(torch, name))).hex() for name in ("float32", "float16", "bfloat16")}}


def integers():
    """Wide integers to floats: ties beyond the mantissa."""
    values = torch.tensor([0, 1, -1, 2**24 + 1, 2**24 + 3, 2**53 + 1, 2**53 + 3, 2**63 - 1, -2**63, 2049, 2051, 65519, 65520, 257, 259],
                          dtype=torch.int64)
    return {"values": values.tolist(), "to": {name: bits(values.to(getattr(torch, name))).hex() for name in (
        "float64", "float32", "float16", "bfloat16")}}


def main():
    patterns = hard_values()
    (HERE / "float32.bin").write_bytes(patterns.astype("<u4").tobytes())
    every = torch.arange(256, dtype=torch.int16).to(torch.uint8)
    table = {
        "torch": torch.__version__.split("+")[0],
        "widened": {name: {wide: hashes(every_half(getattr(torch, name)), wide) for wide in ("float32", "float64")}
                    for name in ("float16", "bfloat16")},
        "crossed": {"float16_to_bfloat16": hashes(every_half(torch.float16), "bfloat16"),
                    "bfloat16_to_float16": hashes(every_half(torch.bfloat16), "float16")},
        "small": {name: bits(every.view(getattr(torch, name)).float()).hex() for name in SMALL},
        "narrowed": {"source": "float32.bin", "count": len(patterns), "to": narrowed(patterns)},
        "doubles": doubles(), "integers": integers()}
    (HERE / "expected.json").write_text(json.dumps(table, indent=1) + "\n")
    print("%-28s torch %s: %d values" % (HERE.name, table["torch"], len(patterns)))


if __name__ == "__main__" and hasattr(torch, SMALL[-1]):  # torch 1.13 has no 8-bit floats
    main()
