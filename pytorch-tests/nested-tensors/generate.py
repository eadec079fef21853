"""Nested tensors: rows of different lengths in one buffer."""
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, TORCH2, ramp

warnings.simplefilter("ignore")
case = Case(__file__)
rows = [ramp(2, 3), ramp(4, 3, start=10)]
more = {"more_values": True, "more_tensors": True, "more_opaque": True}
if TORCH2:  # torch 1.13 cannot save them
    case.save("strided", {"n": torch.nested.nested_tensor(rows), "w": ramp(2)}, flags=more)
    case.save("jagged", {"n": torch.nested.nested_tensor(rows, layout=torch.jagged), "w": ramp(2)}, flags=more)
case.finish()
