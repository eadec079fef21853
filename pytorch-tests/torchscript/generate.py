"""TorchScript archives, scripted and traced: parameters, buffers, attributes under their state dict's names."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import archive
import torch
from fixture import Case, expectation, ramp
from torch import nn
from typing import Dict, List, Optional, Tuple


class Block(nn.Module):
    def __init__(self, inside: int):
        super().__init__()
        self.linear = nn.Linear(inside, 2)
        self.register_buffer("mask", ramp(inside))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x * self.mask)


class Net(nn.Module):
    sizes: List[int]
    names: Dict[str, int]
    pair: Tuple[int, str]
    maybe: Optional[torch.Tensor]
    loose: torch.Tensor

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 1)
        self.norm = nn.BatchNorm2d(2)
        self.blocks = nn.ModuleList([Block(2), Block(2)])
        self.scale = nn.Parameter(ramp(1))
        self.sizes, self.names, self.pair = [1, 2], {"a": 1}, (3, "x")
        self.maybe, self.loose, self.rate = None, ramp(2, start=7), 0.5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.conv(x)).mean(0) * self.scale + torch.tensor([1.0, 2.0]).sum() + self.loose.sum()
        for block in self.blocks:
            x = block(x)
        return x


def expect(case, stem, scripted, suffix=".pt", extra=None):
    path = case.path(stem, suffix)
    torch.jit.save(scripted, str(path), **({"_extra_files": extra} if extra else {}))
    archive.without_debug(path)
    state = dict(torch.jit.load(str(path), map_location="cpu").state_dict())
    case.expect(path, state, "torchscript", more_values=True, more_tensors=True, more_opaque=True)
    row = case.files[path.name]
    row.pop("containers", None)
    for tensor in row["tensors"]:
        tensor.pop("path")


torch.manual_seed(3)
case = Case(__file__)
expect(case, "scripted", torch.jit.script(Net().eval()))
expect(case, "traced", torch.jit.trace(Net().eval(), ramp(1, 1, 2, 2)), suffix=".pth")
expect(case, "half", torch.jit.script(Block(2).half()))
expect(case, "extra_files", torch.jit.script(Block(2)), extra={"labels.txt": "cat\ndog", "config.json": "{}"})
expect(case, "frozen", torch.jit.freeze(torch.jit.script(Block(2).eval())))
path = case.path("frozen")  # whose weights are constants of its code
constants = torch.jit.load(str(path)).code_with_constants[1].const_mapping
case.files[path.name]["tensors"] = expectation({"CONSTANTS": dict(sorted(constants.items()))})["tensors"]
for tensor in case.files[path.name]["tensors"]:
    tensor.pop("path")
expect(case, "shared", torch.jit.script(nn.Sequential(*[nn.Linear(2, 2)] * 2)))
expect(case, "sequential", torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))))
expect(case, "double", torch.jit.script(nn.Sequential(nn.Linear(2, 2)).double()))
case.finish()
