"""Meta tensors have a shape and no data; where a tensor was saved from never matters."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, ramp

case = Case(__file__)
case.save("meta", {"m": torch.empty(2, 3, device="meta"), "h": torch.empty(4, dtype=torch.float16, device="meta"),
                   "t": torch.empty(3, 2, device="meta").t(), "p": torch.nn.Parameter(torch.empty(2, device="meta")), "w": ramp(2)})
case.save("all_meta", torch.nn.Linear(3, 2, device="meta").state_dict())
case.finish()
