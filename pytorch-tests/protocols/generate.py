"""Pickle protocols 0 to 5, in zip and legacy files, over the same values."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import torch
from fixture import Case, ramp

case = Case(__file__)
value = {"w": ramp(2, 2), "t": ramp(2, 3).t(), "flag": True, "off": False, "none": None, "big": 1 << 40, "huge": -(1 << 70), "zero": 0,
         "small": [0, 255, 256, 65535, 65536, -1, 2**31 - 1, -2**31, 2**31, 2**63 - 1, -2**63, 2**63], "float": 0.1,
         "text": "x" * 300, "unicode": "naïve \u2713 \U0001f40d \n\\", "bytes": b"\x00\xff", "t0": (), "t1": (1,), "t2": (1, 2), "t3": (1, 2, 3),
         "t4": (1, 2, 3, 4), "list": [1, "two", 3.0], "set": {1, 2, 3}, "frozen": frozenset([4]), "bytearray": bytearray(b"\x01\xfe"),
         "p": torch.nn.Parameter(ramp(2)), 5: "int key", (1, "k"): "tuple key"}
for protocol in range(6):
    case.save("protocol%d" % protocol, value, pickle_protocol=protocol)  # torch cannot read its own protocol 0
    if protocol:
        case.save("legacy_protocol%d" % protocol, value, pickle_protocol=protocol, form="legacy")
many = {"k%d" % i: i for i in range(2500)}
case.save("batches", {"many": many, "list": list(range(1500)), "set": set(range(1200)), "w": ramp(1), "long_text": "y" * 30000},
          pickle_protocol=4)
case.finish()
