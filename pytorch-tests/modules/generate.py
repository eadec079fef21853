"""Whole pickled modules: the state dict's names, without the buffers that are not persistent."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, TORCH2, module, ramp
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 2)
        self.blocks = nn.ModuleList([nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.BatchNorm1d(2))])
        self.heads = nn.ModuleDict({"a": nn.Linear(2, 1), "b": nn.Linear(2, 3, bias=False)})
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.register_buffer("kept", ramp(3))
        self.register_buffer("dropped", ramp(4), persistent=False)
        self.register_parameter("none", None)
        self.plain_attribute = "text"


class Hooked(nn.Module):
    """A module that changes its own state dict's names."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 1)
        self.tied = self.inner

    def forward(self, x):
        return self.inner(x)


class Stateful(nn.Module):
    """A module whose state has room for slots, of which there are none."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 1)

    def __getstate__(self):
        return self.__dict__, None

    def __setstate__(self, state):
        self.__dict__.update(state[0])


def with_norms():
    return nn.ModuleDict({"weight_norm": nn.utils.weight_norm(nn.Linear(2, 2)), "spectral": nn.utils.spectral_norm(nn.Linear(2, 2))})


module("mymodel.net", Net, Hooked, Stateful)
torch.manual_seed(2)
more = {"more_values": True, "more_opaque": True}
case = Case(__file__)
case.save("module", Net(), flags=more)
case.save("module_legacy", Net(), form="legacy", flags=more)
case.save("in_checkpoint", {"model": Net(), "epoch": 3, "ema": None}, flags=more)
case.save("tied", Hooked(), flags=more)
case.save("norms", with_norms(), flags=dict(more, more_tensors=True))
case.save("torch_modules", nn.Sequential(
    nn.LSTM(2, 3), nn.MultiheadAttention(4, 2), nn.TransformerEncoderLayer(4, 2, 8), nn.Embedding(3, 2), nn.GroupNorm(1, 2), nn.PReLU(),
    nn.Bilinear(2, 2, 1), nn.ConvTranspose1d(1, 2, 2)), suffix=".pth", flags=more)
case.save("half", Net().half(), flags=more)
case.save("data_parallel", nn.DataParallel(nn.Linear(2, 1)), flags=more)
case.save("traced", torch.fx.symbolic_trace(Hooked()), flags=more)
path = case.save("quantized", torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(3, 2)), {nn.Linear}), flags=more)
want = case.files[path.name]
want["tensors"] = [row for row in want["tensors"] if row["name"] not in ("0.scale", "0.zero_point")]  # numbers in the pickle
want["values"].update({"0.scale": 1.0, "0.zero_point": 0})
case.save("stateful", Stateful(), flags=more)
if TORCH2:  # torch 1.13 does not compile
    case.save("compiled", torch.compile(nn.Linear(2, 1), backend="eager"), flags=more)
case.finish()
