"""numpy arrays and scalars, in both orders and byte orders; what has no tensor type is opaque."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "generators"))
import numpy
from fixture import Case, ramp

case = Case(__file__)
base = numpy.arange(12).reshape(3, 4)
names = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128"]
arrays = {name: base.astype(name) for name in names}
case.save("arrays", dict(arrays, w=ramp(2)))
case.save("orders", {
    "fortran": numpy.asfortranarray(base.astype("float32")), "transposed": base.T, "step": base[:, ::2], "reversed": base[::-1],
    "zero_d": numpy.array(2.5), "empty": numpy.zeros((0, 3)), "one": numpy.array([7]), "big": base.astype(">f4"), "big_int": base.astype(">i8"),
    "big_fortran": numpy.asfortranarray(base.astype(">i2")), "big_complex": base.astype(">c8"), "big_half": base.astype(">f2"),
    "big_bool": (base > 3), "list": [base.astype("int32"), {"a": base.astype("uint8")}], "broadcast": numpy.broadcast_to(base[0], (2, 4)),
    "same": [base, base]})
case.save("scalars", {name: numpy.dtype(name).type(1) for name in names})
case.save("scalar_values", {
    "nan": numpy.float32("nan"), "inf": numpy.float64("-inf"), "lr": numpy.float64(0.1), "single": numpy.float32(0.1), "max": numpy.uint64(2**64 - 1),
    "min": numpy.int64(-2**63), "false": numpy.bool_(False), "complex": numpy.complex64(1 - 2j), "big": numpy.dtype(">f8").type(1.5)})
more = {"more_values": True, "more_opaque": True}
case.save("without_tensor_type", {
    "structured": numpy.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]), "text": numpy.array(["ab", "c"]), "bytes": numpy.array([b"x"]),
    "objects": numpy.array([1, "two", None], dtype=object), "dates": numpy.array(["2024-01-01"], dtype="datetime64[D]"),
    "long_double": numpy.array([1.5], dtype=numpy.longdouble), "w": ramp(2)}, flags=more)
case.save("odd", {"dtype": numpy.dtype("float32"), "type": numpy.float32, "day": numpy.datetime64("2024-01-01"), "void": numpy.void(b"ab"),
                  "text": numpy.str_("ab"), "w": ramp(2)}, flags=more)
for protocol in (0, 1, 2, 4, 5):
    case.save("protocol%d" % protocol, {"array": base.astype("float32"), "fortran": numpy.asfortranarray(base.astype("int16")),
                                        "scalar": numpy.float32(0.5)}, pickle_protocol=protocol)
case.save("legacy", {"array": base.astype("float32"), "scalar": numpy.int64(5), "w": ramp(2)}, form="legacy")
state = numpy.random.RandomState(1)
case.save("random_state", {"state": state.get_state()[:1], "w": ramp(1)})
case.finish()
