"""Files of big-endian machines: torch swaps the elements, complex ones by component, single bytes not at all."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import archive
import torch
from fixture import Case, TORCH2, load, ramp
from torch import nn

case = Case(__file__)


def big(stem, value):
    """Saves value, has torch swap it, and makes sure that torch reads the swapped file as the first one."""
    little = case.save(stem + "_little", value)
    path = case.path(stem + "_big")
    archive.big_endian(little, path)
    case.expect(path, load(path), "zip")
    hashes = [[row.get("sha256") for row in case.files[file.name]["tensors"]] for file in (little, path)]
    assert hashes[0] == hashes[1], stem


if TORCH2:  # torch 1.13 writes and reads no byteorder record
    names = ["float64", "float32", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8"]
    plain = {name: ramp(2, 3, dtype=getattr(torch, name), step=3) for name in names}
    plain.update(bool=torch.tensor([True, False, True]), complex64=torch.view_as_complex(ramp(3, 2)), scalar=torch.tensor(0.1),
                 complex128=torch.view_as_complex(ramp(3, 2, dtype=torch.float64)), empty=torch.zeros(0))
    big("dtypes", plain)
    big("views", {"t": ramp(3, 4).t(), "window": ramp(100)[40:50:3], "e": ramp(1, dtype=torch.float16).expand(4),
                  "p": nn.Parameter(ramp(2)), "epoch": 3, "conj": torch.view_as_complex(ramp(2, 2)).conj()})
    big("state_dict", nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).state_dict())
    big("quantized", {"q": torch.quantize_per_tensor(ramp(4), 0.1, 2, torch.qint32), "s": torch.eye(3).to_sparse()})
    raw = torch.arange(256).to(torch.uint8)
    big("float8", {"e4m3": raw.view(torch.float8_e4m3fn), "e5m2": raw.view(torch.float8_e5m2)})
    unmarked = case.path("unmarked")
    archive.write(unmarked, [pair for pair in archive.records(case.path("views_little")) if not pair[0].endswith("/byteorder")])
    case.expect(unmarked, load(unmarked), "zip")
    case.finish()
