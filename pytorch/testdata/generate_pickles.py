"""Writes pickles.json: values pickled by Python's own pickle in protocols 0 to 5, with their text.

usage: python3 generate_pickles.py > pickles.json
The text is what show() makes of the value; load_python_test.go spells trees the same way.
"""
import base64, collections, datetime, decimal, fractions, json, pathlib, pickle, sys, uuid

D = collections.OrderedDict


def show(v):
    if v is None or isinstance(v, (bool, int)):
        return repr(v)
    if isinstance(v, (float, complex)):
        return repr(v)
    if isinstance(v, str):
        return json.dumps(v)
    if isinstance(v, bytes):
        return "bytes:" + v.hex()
    if isinstance(v, bytearray):
        return "bytearray:" + v.hex()
    if isinstance(v, type):
        return "<type %s.%s>" % (v.__module__, v.__qualname__)
    if isinstance(v, dict):
        name = {dict: "dict", D: "collections.OrderedDict", collections.Counter: "collections.Counter", collections.defaultdict: "collections.defaultdict"}[type(v)]
        return name + "{" + ", ".join(show(k) + ": " + show(x) for k, x in v.items()) + "}"
    if isinstance(v, (set, frozenset)):
        return type(v).__name__ + "{" + ", ".join(sorted(map(show, v))) + "}"
    if isinstance(v, (list, tuple)):
        return type(v).__name__ + "[" + ", ".join(map(show, v)) + "]"
    return "<%s.%s %s>" % (type(v).__module__, type(v).__name__, v)


zone = datetime.timezone
VALUES = {
    "constants": [None, True, False],
    "small ints": [0, 1, 127, 128, 255, 256, 65535, 65536, -1, -128, -129, 2**31 - 1, 2**31, -2**31, -2**31 - 1],
    "wide ints": [2**62, 2**63 - 1, 2**63, -2**63, -2**63 - 1, 2**64, 2**100, -2**100, 2**2040, -2**2048, 10**300, 255 << 56, -(255 << 56)],
    "floats": [0.0, -0.0, 1.0, 0.1, 1e300, -1e-300, 5e-324, 1e16, 123456.75, float("inf"), float("-inf"), float("nan")],
    "complex": [1 + 2j, -0j, 1j, complex(0.1, -3)],
    "texts": ["", "a", "é", "重み", "🐍", "\ud800", "a\nb", "back\\slash", "\\u0041", "\x00\x1a", "'\"", "x" * 257, "\xff\xfe"],
    "bytes": [b"", b"a", bytes(range(256)), b"\x00" * 257],
    "bytearrays": [bytearray(), bytearray(b"\x00\xff"), bytearray(257)],
    "lists": [[], [1], [[], [[]]], [[]] * 30],
    "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ((), ((),))],
    "dicts": [{}, {"a": 1}, {1: "int", "1": "text", None: 0, (1, 2): "tuple", b"b": "bytes", 1.5: "float", False: "bool"}, {i: None for i in range(1001)}],
    "sets": [set(), {1, 2, 3}, frozenset(), frozenset({"a"})],
    "collections": [D(), D(a=1, b=[2]), collections.Counter("aab"), collections.defaultdict(list, {"a": [1]}), collections.defaultdict(None)],
    "dates": [datetime.date(2024, 2, 29), datetime.datetime(1999, 12, 31, 23, 59, 59, 999999), datetime.datetime(2020, 1, 1, tzinfo=zone.utc),
              datetime.datetime(2020, 6, 1, 12, tzinfo=zone(datetime.timedelta(hours=-3, minutes=-30))), datetime.time(4, 5), datetime.timedelta(1, 2, 3), datetime.timedelta(-1),
              datetime.timedelta(400), datetime.timedelta(), zone.utc, zone(datetime.timedelta(hours=5))],
    "numbers": [decimal.Decimal("1.50"), decimal.Decimal("NaN"), fractions.Fraction(1, 3), uuid.UUID(int=5), uuid.UUID("12345678-1234-5678-9234-567812345678")],
    "paths": [pathlib.PurePosixPath("/a/b"), pathlib.PurePosixPath("a"), pathlib.PurePosixPath(), pathlib.PureWindowsPath("C:\\a\\b")],
    "types": [int, str, dict, D, collections.Counter, datetime.datetime, Exception],
}

out = []
for name, values in VALUES.items():
    pickles = [base64.b64encode(pickle.dumps(values, protocol)).decode() for protocol in range(6)]
    out.append({"name": name, "text": show(values), "pickles": pickles})
json.dump(out, sys.stdout, indent=0)
print()
