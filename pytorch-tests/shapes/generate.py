"""Scalars, empty tensors and shapes that hold a zero."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, ramp

case = Case(__file__)
shapes = {"%s" % "x".join(map(str, shape)): torch.zeros(shape, dtype=torch.int64) for shape in ([0], [0, 3], [2, 0], [3, 0, 2], [1, 1, 1])}
shapes.update(scalar=torch.tensor(1.5), scalar_int=torch.tensor(-7), scalar_bool=torch.tensor(True), scalar_half=torch.tensor(0.5).half(),
              one=ramp(1), empty_bool=torch.zeros(2, 0, dtype=torch.bool), empty_complex=torch.zeros(0, dtype=torch.complex64),
              empty_of_big=ramp(100)[50:50], empty_step=ramp(4, 4)[:, 4:])
case.save("shapes", shapes)
case.save("shapes_legacy", shapes, form="legacy")
case.save("only_scalar", torch.tensor(3.25))
case.save("only_empty", torch.zeros(0))
case.finish()
