"""Tied weights: the same tensor twice, several tensors over one storage, partial overlap, the same dict twice."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, ramp
from torch import nn

case = Case(__file__)
weight, flat = ramp(4, 3), ramp(10)
tied = {"wte": weight, "lm_head": weight, "view": weight.view(12), "t": weight.t(), "o1": flat[:6], "o2": flat[4:], "all": flat}
case.save("tied", tied)
case.save("tied_legacy", tied, form="legacy")
inner = {"w": ramp(2), "n": 3}
case.save("same_dict_twice", {"a": inner, "b": inner, "list": [inner, inner], "t": (ramp(1),) * 3})
embedding, head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
head.weight = embedding.weight
case.save("tied_parameters", nn.ModuleDict({"emb": embedding, "head": head}).state_dict())
gru = nn.LSTM(3, 2)
case.save("flat_lstm", gru.state_dict())
ring = {"w": ramp(2)}
ring["self"] = ring
case.save("self_reference", ring, flags={"more_values": True, "more_opaque": True})
case.finish()
