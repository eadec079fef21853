"""Pickles as Python 2 wrote them: byte strings for text, also some that are no UTF-8, integers as LONG1.

No torch of today runs under Python 2: the opcodes of a file of today are rewritten, and torch reads the result.
"""
import collections
import pathlib
import pickletools
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import archive
import torch
from fixture import Case, load, ramp

case = Case(__file__)


def rewritten(data):
    """A protocol 2 pickle with every text and integer as Python 2's pickler spelled them."""
    out, operations = b"", list(pickletools.genops(data))
    ends = [position for _, _, position in operations[1:]] + [len(data)]
    for (opcode, argument, position), end in zip(operations, ends):
        if opcode.name == "BINUNICODE":
            text = argument.encode("latin-1")
            out += b"U" + bytes([len(text)]) + text if len(text) < 256 else b"T" + len(text).to_bytes(4, "little") + text
        elif opcode.name in ("BININT", "BININT1", "BININT2"):
            raw = argument.to_bytes((argument.bit_length() + 8) // 8, "little", signed=True) if argument else b""
            out += b"\x8a" + bytes([len(raw)]) + raw
        else:
            out += data[position:end]
    return out


class Pairs:
    """Pickles as Python 2's OrderedDict: the class called with a list of pairs."""

    def __init__(self, pairs):
        self.pairs = [list(pair) for pair in pairs]

    def __reduce__(self):
        return collections.OrderedDict, (self.pairs,)


def write(stem, value, encoding):
    model = case.path(stem)
    torch.save(value, str(model), pickle_protocol=2)
    entries = archive.records(model)
    archive.write(model, [(name, rewritten(data) if name.endswith("data.pkl") else data) for name, data in entries])
    case.expect(model, load(model, encoding=encoding), "zip")


weights = {"conv.weight": ramp(2, 3), "conv.bias": ramp(3).t(), "epoch": 3, "zero": 0, "minus": -129, "long": "x" * 300}
write("ascii", weights, "utf-8")
write("latin1", dict(weights, author="caf\xe9", raw="\x8c\xff\x00"), "latin1")
write("ordered", {"state_dict": Pairs([("a.weight", ramp(2)), ("b.weight", ramp(3))]), "empty": Pairs([])}, "utf-8")
case.finish()
