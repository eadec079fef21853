"""Objects of training code beside the weights: none of them may cost the weights."""
import argparse
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import os
import pathlib
import random
import sys
import types
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, module, ramp

try:
    import dill
except ImportError:  # of PyPI
    dill = None


class Color(enum.Enum):
    RED = 1
    BLUE = "b"


class Level(enum.IntEnum):
    LOW = 3


class Mode(enum.Flag):
    R = 1
    W = 2


@dataclasses.dataclass
class Config:
    lr: float = 0.1
    name: str = "base"
    layers: list = dataclasses.field(default_factory=lambda: [1, 2])


Point = collections.namedtuple("Point", "x y")


class Slots:
    __slots__ = ("left", "right")


class Meter:
    def __init__(self):
        self.values, self.total, self.last = collections.deque([1.0, 2.0], maxlen=5), 3.0, ramp(2)


class Reduced:
    """Pickles as a call with arguments and state."""

    def __init__(self, *args):
        self.args = args

    def __reduce__(self):
        return Reduced, self.args, {"args": self.args, "extra": ramp(3)}


class History(list):
    pass


class Vocab(dict):
    pass


class Registry(collections.OrderedDict):
    pass


class Name(str):
    pass


module("training.util", Color, Level, Mode, Config, Point, Slots, Meter, Reduced, History, Vocab, Registry, Name)
case = Case(__file__)
weights = {"w": ramp(2, 2)}
more = {"more_values": True, "more_tensors": True, "more_opaque": True}
case.save("namespace", {"args": argparse.Namespace(lr=0.1, arch="resnet", sizes=[1, 2], w=ramp(2)), "model": weights, "iteration": 500})
case.save("simple_namespace", {"args": types.SimpleNamespace(lr=0.5), "model": weights})
case.save("dates", {"day": datetime.date(2024, 2, 29), "time": datetime.datetime(2024, 2, 29, 1, 2, 3, 4), "span": datetime.timedelta(1, 2, 3),
                    "utc": datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc), "clock": datetime.time(4, 5), "model": weights},
          flags={"more_opaque": True})
case.save("paths", {"posix": pathlib.PurePosixPath("/data/run 1"), "relative": pathlib.PurePosixPath("a/b.pt"), "here": pathlib.PosixPath("x"),
                    "windows": pathlib.PureWindowsPath("C:\\data\\x"), "model": weights}, flags={"more_opaque": True})
case.save("enum_keys", {"parts": {Color.RED: ramp(1), Color.BLUE: ramp(2)}, "counts": {Level.LOW: 1}}, flags={"more_opaque": True})
case.save("enums", {"red": Color.RED, "blue": Color.BLUE, "low": Level.LOW, "mode": Mode.R | Mode.W, "model": weights}, flags={"more_opaque": True,
          "more_values": True})
case.save("numbers", {"decimal": decimal.Decimal("1.50"), "fraction": fractions.Fraction(1, 3), "uuid": uuid.UUID(int=5), "range": range(2, 9, 3),
                      "slice": slice(1, None, 2), "ellipsis": ..., "model": weights}, flags=more)
case.save("dataclass", {"config": Config(), "model": weights})
case.save("namedtuple", {"point": Point(ramp(2), 3), "model": weights, "nested": [Point(1, ramp(1))]})
slots = Slots()
slots.left, slots.right = 1, ramp(3)
case.save("slots", {"slots": slots, "model": weights}, flags=more)
case.save("meter", {"meter": Meter(), "model": weights}, flags=more)
case.save("reduce", {"reduced": Reduced(1, ramp(2)), "model": weights}, flags=more)
case.save("containers", {"history": History([1, ramp(2)]), "vocab": Vocab(a=1, w=ramp(3)), "registry": Registry(b=ramp(1)), "name": Name("x"),
                         "deque": collections.deque([1, ramp(4)]), "chain": collections.ChainMap({"a": 1}), "model": weights}, flags=more)
case.save("callables", {"cls": torch.nn.Linear, "function": torch.nn.functional.relu, "builtin": len, "method": torch.Tensor.add, "type": int,
                        "partial": functools.partial(torch.nn.functional.gelu, approximate="tanh"), "bound": "a b".split, "model": weights},
          flags=more)
case.save("random", {"random": random.Random(1), "model": weights}, flags=more)
case.save("return_types", {"max": torch.max(ramp(2, 3), 1), "model": weights}, flags=more)
case.save("storage", {"typed": ramp(4).storage(), "model": weights}, flags=more)
loop = argparse.Namespace(name="root", w=ramp(2))
loop.child = argparse.Namespace(parent=loop, value=1)
case.save("cycle", {"config": loop, "model": weights}, flags=more)


class Hostile:
    """What a stranger puts beside the weights. This command does nothing; another one would run too."""

    def __reduce__(self):
        return os.system, ("true",)


for form in ("zip", "legacy"):  # torch has run the command by now
    case.save("hostile" + ("" if form == "zip" else "_legacy"), {"run": Hostile(), "model": weights}, form=form)
    row = case.files[case.path("hostile" + ("" if form == "zip" else "_legacy")).name]
    row["values"].pop("run")
    row.update(more, odd={"run": {"class": "os.system", "str": ""}})
if dill:  # its pickles hold code
    case.save("dill", {"act": lambda x, slope=ramp(1): x * slope, "model": weights}, pickle_module=dill, flags=more)
case.save("class_keys", {"callbacks": {Config: {"best": ramp(1), "monitor": "loss"}, "Early{'mode': 'min'}": {"wait": 0}}, "model": weights})
case.finish()
