"""Recurrent and attention modules with an input and torch's outputs for it: what gates and projections must compute.

Each file holds the module's state dict, an input and the output of every step, so that whoever takes the stacked tensors
apart can compute with the parts, by the formulas of torch's documentation, and see whether they are the right ones.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case
from torch import nn

torch.manual_seed(20)
case = Case(__file__)
steps, width, hidden = 4, 3, 5
x = torch.randn(steps, width)


def run(module, result):
    return {"net": nn.ModuleDict({"cell": module}).state_dict(), "input": x, "output": result.detach().clone()}


for stem, module in (("lstm", nn.LSTM(width, hidden, bidirectional=True)), ("gru", nn.GRU(width, hidden, bidirectional=True))):
    case.save(stem, run(module, module(x.unsqueeze(1))[0].squeeze(1)))
x = torch.randn(steps, 6)
attention = nn.MultiheadAttention(6, 2)
attention.in_proj_bias.data.normal_()
each = x.unsqueeze(1)
case.save("attention", run(attention, attention(each, each, each)[0].squeeze(1)))
case.finish()
