"""State dicts of the usual modules: the commonest file of all."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case
from torch import nn

case = Case(__file__)
model = nn.Sequential(
    nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 5), nn.LayerNorm(5), nn.Embedding(6, 5), nn.GRU(5, 3, bidirectional=True))
case.save("state_dict", model.state_dict())
case.save("with_metadata", nn.Sequential(nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2)).state_dict(), suffix=".pth")
case.save("half", model.half().state_dict(), suffix=".bin")
case.save("bfloat16", model.bfloat16().state_dict(), suffix=".ckpt")
case.save("data_parallel", nn.DataParallel(nn.Linear(2, 2)).state_dict())
case.save("empty", {})
case.save("empty_state_dict", {"state_dict": nn.ReLU().state_dict(), "list": [], "tuple": (), "epoch": 0})
case.finish()
