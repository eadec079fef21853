package tensor

// The small floats have no type of their own in Go. As defined types they
// cannot be mistaken for integers: a []uint16 means the integers.
type (
	// Float16 is the bits of an IEEE 754 binary16 number.
	Float16 uint16
	// BFloat16 is the bits of a bfloat16 number: the upper half of a float32.
	BFloat16 uint16
	// Float8E4M3FN is the bits of an OCP 8-bit float, finite and NaN only.
	Float8E4M3FN uint8
	// Float8E5M2 is the bits of an OCP 8-bit float with infinities.
	Float8E5M2 uint8
	// Float8E4M3FNUZ is the bits of an 8-bit float without negative zero.
	Float8E4M3FNUZ uint8
	// Float8E5M2FNUZ is the bits of an 8-bit float without negative zero.
	Float8E5M2FNUZ uint8
	// Float8E8M0FNU is the bits of an OCP MX scale: a power of two.
	Float8E8M0FNU uint8
	// Float4E2M1FNx2 is a byte of two OCP MX 4-bit floats, the first in the low bits.
	Float4E2M1FNx2 uint8
	// Complex32 is a complex number of two halfs, the real one first.
	Complex32 [2]Float16
	// QInt8 is the integer of a quantized element.
	QInt8 int8
	// QUint8 is the integer of a quantized element.
	QUint8 uint8
	// QInt32 is the integer of a quantized element.
	QInt32 int32
)

// Element is a Go type that one element of a packed slice can have.
type Element interface {
	float64 | float32 | Float16 | BFloat16 |
		Float8E4M3FN | Float8E5M2 | Float8E4M3FNUZ | Float8E5M2FNUZ | Float8E8M0FNU | Float4E2M1FNx2 |
		int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | bool |
		Complex32 | complex64 | complex128 | QInt8 | QUint8 | QInt32
}

// DTypeOf returns the dtype whose elements a []T holds.
func DTypeOf[T Element]() DType {
	var zero T
	d, _ := dtypeOfValue(any(zero))
	return d
}

// dtypeOfValue returns the dtype of a Go value of an [Element] type.
func dtypeOfValue(v any) (DType, bool) {
	switch v.(type) {
	case float64:
		return F64, true
	case float32:
		return F32, true
	case Float16:
		return F16, true
	case BFloat16:
		return BF16, true
	case Float8E4M3FN:
		return F8E4M3FN, true
	case Float8E5M2:
		return F8E5M2, true
	case Float8E4M3FNUZ:
		return F8E4M3FNUZ, true
	case Float8E5M2FNUZ:
		return F8E5M2FNUZ, true
	case Float8E8M0FNU:
		return F8E8M0FNU, true
	case Float4E2M1FNx2:
		return F4E2M1FNx2, true
	default:
		return dtypeOfPlain(v)
	}
}

func dtypeOfPlain(v any) (DType, bool) {
	switch v.(type) {
	case int8:
		return I8, true
	case int16:
		return I16, true
	case int32:
		return I32, true
	case int64:
		return I64, true
	case uint8:
		return U8, true
	case uint16:
		return U16, true
	case uint32:
		return U32, true
	case uint64:
		return U64, true
	case bool:
		return Bool, true
	case Complex32:
		return C32, true
	case complex64:
		return C64, true
	case complex128:
		return C128, true
	case QInt8:
		return QI8, true
	case QUint8:
		return QU8, true
	case QInt32:
		return QI32, true
	default:
		return Invalid, false
	}
}
