"""Files from before torch 1.6: stacked pickles, then storages in key order, views with their own keys."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, ramp
from torch import nn

case = Case(__file__)
big = ramp(100)
case.save("views", {"a": big[10:20], "b": big[15:30:3], "all": big, "t": ramp(3, 4).t(), "e": ramp(1).expand(3), "last": ramp(7, dtype=torch.float16)[3:]},
          form="legacy")
case.save("many", {"layer%d" % i: ramp(i % 5, start=i) for i in range(40)}, form="legacy")
case.save("mixed", {"f": ramp(3), "flag": torch.tensor([True, False, True]), "i": torch.arange(5), "epoch": 4, "half": ramp(5, dtype=torch.float16),
                    "odd": torch.arange(3, dtype=torch.uint8), "d": ramp(2, dtype=torch.float64)}, suffix=".pth", form="legacy")
case.save("state_dict", nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).state_dict(), suffix=".pth", form="legacy")
case.save("no_tensors", {"epoch": 3, "list": [1, 2]}, form="legacy")
case.save("bare", ramp(2, 3), form="legacy")
case.save("storage", {"s": ramp(4).storage(), "w": ramp(2)}, form="legacy", flags={"more_values": True, "more_tensors": True, "more_opaque": True})
case.finish()
