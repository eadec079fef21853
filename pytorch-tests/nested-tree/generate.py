"""Trees of dicts, lists and tuples with keys of every kind, and names that collide when they are joined."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import collections
import zipfile

import archive
import torch
from fixture import Case, ramp

case = Case(__file__)
case.save("bare_tensor", ramp(2, 3, start=-1))
case.save("bare_scalar", 7)
case.save("bare_none", None)
case.save("list", [ramp(2), {"w": ramp(1)}, (ramp(3), "text", [1, 2.5])])
case.save("deep", {"a": {"b": {"c": {"d": [[[ramp(2)]], (({"e": ramp(1)},),)]}}}, "n": 1})
case.save("keys", {
    0: ramp(1), "zero": ramp(2), -5: ramp(3), 2**70: ramp(4), 1.5: ramp(5), True: ramp(6), None: ramp(7),
    (1, "a"): ramp(8), b"\x00\xff": ramp(9), frozenset([3]): ramp(10), torch.nn.Linear: ramp(11), (): ramp(12),
    int: ramp(13), torch.float16: ramp(14)})
case.save("key_values", {0: "int", "s": "text", None: 1, (1, 2): 2, b"b": 3, 1.5: 4, torch.nn.Linear: 5})
case.save("collisions", {
    0: ramp(1), "0": ramp(2), "a.b": ramp(3), "a": {"b": ramp(4)}, "list": [ramp(5)], "list.0": ramp(6),
    "v": {"w": 1}, "v.w": 2, "": ramp(7)})
case.save("order", collections.OrderedDict((str(i), ramp(1, start=i)) for i in (9, 10, 1, 0, 2, 11)))
case.save("names", {
    "": ramp(1), "a/b": ramp(2), "..": ramp(3), "söme ünïcode ✓ 重み 🐍": ramp(4), "tab\tnew\nline\x00nul\x1b[31m": ramp(5),
    "lone \ud800 surrogate": ramp(6), "'quoted\"\\": ramp(7), "x" * 5000: ramp(8), "trailing.": ramp(9), ".leading": ramp(10),
    "\u202eright to left": ramp(11)}, pickle_protocol=4)
# A name of a megabyte, in an archive that was packed again: its rows say nothing of it, a test does.
path = case.save("megabyte_name", {"x" * (1 << 20): ramp(2), "w": ramp(1)})
archive.write(path, archive.records(path), zipfile.ZIP_DEFLATED)
case.files[path.name].update(tensors=[row for row in case.files[path.name]["tensors"] if row["name"] == "w"], more_tensors=True)
case.save("kinds", {
    "ordered": collections.OrderedDict(a=1), "default": collections.defaultdict(list, a=[1]),
    "default_none": collections.defaultdict(None, b=2), "counter": collections.Counter("abba"), "dict": {"a": 1},
    "tuple": (1, 2), "list": [1, 2], "size": torch.Size([2, 3]), "empty": {}, "empties": [(), [], {}, torch.Size([])]})
case.finish()
