"""Random trees as scripts/differential makes them: odd keys, odd values, ties, views, every dtype."""
import pathlib
import sys

here = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(here.parents[1] / "generators"), str(here.parents[2] / "scripts")]
from fixture import Case
from random_checkpoints import Maker

case = Case(__file__)
for number, kind in enumerate(["tree", "tree", "legacy", "tree", "quantized", "sparse", "numpy", "tree", "tree", "legacy", "tree", "tree"]):
    maker = Maker("random-trees/%d" % number, kind)
    case.save("tree%02d" % number, maker.root(), form="legacy" if kind == "legacy" else "zip")
case.finish()
