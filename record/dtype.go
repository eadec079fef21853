package record

import "github.com/wick-ml/wick/tensor"

// carrier returns the dtype of RFC 8746 and of JSON that holds the bytes of d:
// d itself, or plain numbers of the same bytes for the dtypes that neither
// knows. A complex number is two of them, in a dimension of its own behind the
// others. ok is false for quantized dtypes.
func carrier(d tensor.DType) (by tensor.DType, parts int, ok bool) {
	switch {
	case d.Class() == tensor.QuantClass || !d.Valid():
		return tensor.Invalid, 0, false
	case d.Class() == tensor.ComplexClass:
		halves := map[tensor.DType]tensor.DType{tensor.C32: tensor.F16, tensor.C64: tensor.F32, tensor.C128: tensor.F64}
		return halves[d], 2, true
	case d == tensor.BF16 || d == tensor.Bits16:
		return tensor.U16, 1, true
	case d.Size() == 1 && d != tensor.I8:
		return tensor.U8, 1, true
	default:
		return d, 1, true
	}
}

// carried returns the shape that a tensor of this shape has in its carrier.
func carried(shape []int, parts int) []int {
	if parts == 1 {
		return shape
	}
	return append(shape[:len(shape):len(shape)], parts)
}
