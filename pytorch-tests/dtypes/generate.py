"""Every plain dtype that torch can store, in zip and legacy files."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, TORCH2, ramp

case = Case(__file__)
names = ["float64", "float32", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "complex64", "complex128"]
plain = {name: ramp(2, 3, dtype=getattr(torch, name), start=-1, step=0.5 if "int" not in name else 1).abs() for name in names}
for name in names:
    if name.startswith(("float", "bfloat")):
        plain[name] = torch.cat([plain[name], torch.tensor([[float("nan"), float("inf"), -0.0]]).to(plain[name].dtype)])
    if name.startswith("complex"):
        plain[name] = plain[name].to(plain[name].dtype) * (1 - 2j)
    if name.startswith("int"):
        info = torch.iinfo(plain[name].dtype)
        plain[name] = torch.tensor([[info.min, info.max, -1]], dtype=plain[name].dtype)
plain["bool"] = torch.tensor([[True, False], [False, True]])
case.save("plain", plain)
case.save("plain_legacy", plain, form="legacy")
# A bool storage may hold other bytes than 0 and 1.
case.save("odd_bools", {"b": torch.tensor([0, 1, 2, 255, 128], dtype=torch.uint8).view(torch.bool)})
if TORCH2:
    case.save("complex32", {"c": torch.view_as_complex(ramp(3, 2, dtype=torch.float16, start=-1)), "w": ramp(2)})
    wide = {name: torch.tensor([0, 1, 2 ** (8 * size) - 1], dtype=getattr(torch, name))
            for name, size in (("uint16", 2), ("uint32", 4), ("uint64", 8))}
    case.save("unsigned", wide)
    every = torch.arange(256, dtype=torch.int16).to(torch.uint8)
    kinds = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"]
    case.save("small_floats", {name: every.clone().view(getattr(torch, name)) for name in kinds if hasattr(torch, name)})
    case.save("small_float_views", {
        "row": every.view(torch.float8_e4m3fn).view(16, 16)[3], "t": every.view(torch.float8_e5m2).view(16, 16).t(),
        "x2": every.view(torch.float4_e2m1fn_x2).view(32, 8)[5:9]})
    bits = ["bits8", "bits1x8", "bits2x4", "bits4x2"]
    case.save("bits", dict({name: every[:6].clone().view(getattr(torch, name)).view(2, 3) for name in bits},
                           bits16=every[:8].clone().view(torch.bits16), t=every[:6].view(2, 3).view(torch.bits8).t()))
case.finish()
