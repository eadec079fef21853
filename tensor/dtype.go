package tensor

import "math"

// DType is the element type of a tensor. The zero DType is invalid.
type DType uint8

// The dtypes of PyTorch. The names are those of torch/csrc/utils/tensor_dtypes.cpp.
const (
	Invalid DType = iota
	F64
	F32
	F16
	BF16
	F8E4M3FN
	F8E5M2
	F8E4M3FNUZ
	F8E5M2FNUZ
	F8E8M0FNU
	F4E2M1FNx2 // two 4-bit floats in each byte; shapes count bytes, as torch's do
	I8
	I16
	I32
	I64
	U8
	U16
	U32
	U64
	Bool
	C32
	C64
	C128
	QI8
	QU8
	QI32
	QU4x2 // two elements in each byte; shapes count elements
	QU2x4 // four elements in each byte; shapes count elements
	Bits8 // this and the next are bits that torch keeps and does not compute with; shapes count bytes
	Bits1x8
	Bits2x4
	Bits4x2
	Bits16 // the same, and shapes count pairs of bytes
	dtypeCount
)

// Class is a family of dtypes that convert alike.
type Class uint8

// The classes of dtypes.
const (
	NoClass Class = iota
	FloatClass
	IntClass
	UintClass
	BoolClass
	ComplexClass
	QuantClass
	BitsClass
)

type dtypeInfo struct {
	name  string
	bits  int // bits of one element
	comp  int // bytes of one component, the unit of byte order
	class Class
}

var dtypes = [dtypeCount]dtypeInfo{
	Invalid:    {"invalid", 0, 0, NoClass},
	F64:        {"float64", 64, 8, FloatClass},
	F32:        {"float32", 32, 4, FloatClass},
	F16:        {"float16", 16, 2, FloatClass},
	BF16:       {"bfloat16", 16, 2, FloatClass},
	F8E4M3FN:   {"float8_e4m3fn", 8, 1, FloatClass},
	F8E5M2:     {"float8_e5m2", 8, 1, FloatClass},
	F8E4M3FNUZ: {"float8_e4m3fnuz", 8, 1, FloatClass},
	F8E5M2FNUZ: {"float8_e5m2fnuz", 8, 1, FloatClass},
	F8E8M0FNU:  {"float8_e8m0fnu", 8, 1, FloatClass},
	F4E2M1FNx2: {"float4_e2m1fn_x2", 8, 1, FloatClass},
	I8:         {"int8", 8, 1, IntClass},
	I16:        {"int16", 16, 2, IntClass},
	I32:        {"int32", 32, 4, IntClass},
	I64:        {"int64", 64, 8, IntClass},
	U8:         {"uint8", 8, 1, UintClass},
	U16:        {"uint16", 16, 2, UintClass},
	U32:        {"uint32", 32, 4, UintClass},
	U64:        {"uint64", 64, 8, UintClass},
	Bool:       {"bool", 8, 1, BoolClass},
	C32:        {"complex32", 32, 2, ComplexClass},
	C64:        {"complex64", 64, 4, ComplexClass},
	C128:       {"complex128", 128, 8, ComplexClass},
	QI8:        {"qint8", 8, 1, QuantClass},
	QU8:        {"quint8", 8, 1, QuantClass},
	QI32:       {"qint32", 32, 4, QuantClass},
	QU4x2:      {"quint4x2", 4, 1, QuantClass},
	QU2x4:      {"quint2x4", 2, 1, QuantClass},
	Bits8:      {"bits8", 8, 1, BitsClass},
	Bits1x8:    {"bits1x8", 8, 1, BitsClass},
	Bits2x4:    {"bits2x4", 8, 1, BitsClass},
	Bits4x2:    {"bits4x2", 8, 1, BitsClass},
	Bits16:     {"bits16", 16, 2, BitsClass},
}

// String returns PyTorch's spelling, such as "float32" or "bfloat16".
func (d DType) String() string { return d.info().name }

// Valid reports whether d is one of the dtypes above.
func (d DType) Valid() bool { return d > Invalid && d < dtypeCount }

// Bits returns the bits of one element, 2 to 128.
func (d DType) Bits() int { return d.info().bits }

// Size returns the bytes of one element. For the packed dtypes [QU4x2] and
// [QU2x4], whose elements are less than a byte, it is 0; see [DType.Bytes].
func (d DType) Size() int { return d.info().bits / 8 }

// Component returns the bytes of the unit that byte order applies to: half an
// element for complex dtypes, else the element itself.
func (d DType) Component() int { return d.info().comp }

// Class returns the family that d belongs to.
func (d DType) Class() Class { return d.info().class }

// Bytes returns the bytes that n elements take when packed, and whether n is
// not negative and the result fits.
func (d DType) Bytes(n int64) (int64, bool) {
	if n < 0 || n > math.MaxInt64/16 {
		return 0, false
	}
	if s := int64(d.Size()); s > 0 {
		return n * s, true
	}
	return (n*int64(d.Bits()) + 7) / 8, true
}

func (d DType) info() dtypeInfo {
	if d >= dtypeCount {
		d = Invalid
	}
	return dtypes[d]
}

// ParseDType returns the dtype with PyTorch's spelling, with or without the
// prefix "torch.", and torch's aliases ("float", "half", "long" …).
func ParseDType(name string) (DType, bool) {
	d, ok := dtypeNames[trimTorch(name)]
	return d, ok
}

func trimTorch(name string) string {
	if len(name) > 6 && name[:6] == "torch." {
		return name[6:]
	}
	return name
}

var dtypeNames = func() map[string]DType {
	names := map[string]DType{
		"double": F64, "float": F32, "half": F16, "chalf": C32, "cfloat": C64, "cdouble": C128,
		"long": I64, "int": I32, "short": I16,
	}
	for d := Invalid + 1; d < dtypeCount; d++ {
		names[d.String()] = d
	}
	return names
}()
