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
}

// add appends a tensor, which must have one dimension and the dtype of the others.
func (v *vector) add(t *tensor.Tensor) error {
	if t.Dims() != 1 || len(v.parts) > 0 && t.DType() != v.parts[0].DType() || t.Size(0) > math.MaxInt-v.len {
		return fault.New(fault.Malformed, "a flat part of "+t.DType().String()+" "+tensor.ShapeString(t.Shape())).
			Needs("one dimension, and the dtype of the other parts", "the files are not of one checkpoint")
	}
	if t.Size(0) > 0 || len(v.parts) == 0 {
		v.parts = append(v.parts, t)
		v.len += t.Size(0)
	}
	return nil
}

// cut returns the part from lo up to hi, which must lie inside.
func (v *vector) cut(lo, hi int) (*vector, error) {
	out, at := &vector{}, 0
	for _, t := range v.parts {
		n := t.Size(0)
		a, b := max(lo-at, 0), min(hi-at, n)
		at += n
		if a >= b && (lo != hi || len(out.parts) > 0) {
			continue
		}
		part, err := t.Narrow(0, min(a, n), max(min(a, n), b))
		if err != nil {
			return nil, err
		}
		if err := out.add(part); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// view returns the first elements as a tensor of the given shape, in row-major
// order. Nothing is read: the tensor is put together of the parts.
func (v *vector) view(shape []int) (*tensor.Tensor, error) {
	n, ok := elements(shape)
	if !ok || n > v.len || len(v.parts) == 0 {
		return nil, fault.New(fault.Malformed, "the shape "+tensor.ShapeString(shape)+" of a flat part of fewer elements").
			Needs("as many elements as the shape has", "the files are not of one checkpoint")
	}
	if whole, err := v.cut(0, n); err != nil || len(whole.parts) == 1 {
		if err != nil {
			return nil, err
		}
		return whole.parts[0].Reshape(shape...)
	}
	var boxes []tensor.Part
	at := 0
	for _, t := range v.parts {
		end := min(at+t.Size(0), n)
		for _, b := range boxesOf(shape, at, end) {
			part, err := t.Narrow(0, b.lo-at, b.hi-at)
			if err != nil {
				return nil, err
			}
			if part, err = part.Reshape(b.size...); err != nil {
				return nil, err
			}
			boxes = append(boxes, tensor.Part{Tensor: part, At: b.at})
		}
		if at = end; at == n {
			break
		}
	}
	return tensor.Assemble(v.parts[0].DType(), shape, boxes...)
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

// box is a block of a shape that holds neighbours in row-major order.
type box struct {
	lo, hi   int // the elements
	at, size []int
}

// boxesOf cuts the elements from lo up to hi of a shape into boxes: at most two
// for each dimension, and the full rows between them.
func boxesOf(shape []int, lo, hi int) []box {
	if len(shape) == 0 {
		if lo == hi {
			return nil
		}
		return []box{{lo: lo, hi: hi}}
	}
	row, _ := elements(shape[1:])
	var boxes []box
	for lo < hi {
		i, n := lo/row, (hi-lo)/row
		if lo%row == 0 && n > 0 {
			boxes = append(boxes, box{lo, lo + n*row, append([]int{i}, make([]int, len(shape)-1)...), append([]int{n}, shape[1:]...)})
			lo += n * row
			continue
		}
		end := min(hi, (i+1)*row)
		for _, b := range boxesOf(shape[1:], lo-i*row, end-i*row) {
			boxes = append(boxes, box{b.lo + i*row, b.hi + i*row, append([]int{i}, b.at...), append([]int{1}, b.size...)})
		}
		lo = end
	}
	return boxes
}
