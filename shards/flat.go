package shards

import (
	"math"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// vector is the numbers of several tensors of one dimension, one after another:
// what trainers flatten parameters into.
type vector struct {
	parts []*tensor.Tensor
	len   int
	whole *tensor.Tensor // the parts joined, nil until it is asked for
}

// add appends a tensor, which must have one dimension and the dtype of the others.
func (v *vector) add(t *tensor.Tensor) error {
	if t.Dims() != 1 || len(v.parts) > 0 && t.DType() != v.parts[0].DType() || t.Size(0) > math.MaxInt-v.len {
		return fault.New(fault.Malformed, "a flat part of "+t.String()).
			Needs("one dimension, and the dtype of the other parts", "the files are not of one checkpoint")
	}
	v.parts, v.whole = append(v.parts, t), nil
	v.len += t.Size(0)
	return nil
}

// cut returns the elements from lo up to hi, which must lie inside.
func (v *vector) cut(lo, hi int) (*tensor.Tensor, error) {
	if v.whole == nil {
		var err error
		if v.whole, err = tensor.Concat(0, v.parts...); err != nil {
			return nil, err
		}
	}
	return v.whole.Narrow(0, lo, hi)
}

// view returns the elements from lo on as a tensor of the given shape, in row-major
// order. Nothing is read: the tensor is put together of the parts.
func (v *vector) view(lo int, shape []int) (*tensor.Tensor, error) {
	n, ok := elements(shape)
	if !ok || lo < 0 || n > v.len-lo || len(v.parts) == 0 {
		return nil, fault.New(fault.Malformed, "the shape "+tensor.ShapeString(shape)+" of a flat part of fewer elements").
			Needs("as many elements as the shape has", "the files are not of one checkpoint")
	}
	t, err := v.cut(lo, lo+n)
	if err != nil {
		return nil, err
	}
	return t.Reshape(shape...)
}

// elements is the product of a shape that a file claims, false when it is none.
func elements(shape []int) (int, bool) {
	n := 1
	for _, s := range shape {
		if s < 0 || s > 0 && n > math.MaxInt/s {
			return 0, false
		}
		n *= s
	}
	return n, len(shape) <= tensor.MaxDims
}
