package arith

import (
	"context"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// fill adds every stored block at its place in a dense tensor of zeros.
func (s *sparse) fill(ctx context.Context, p positions) (*tensor.Tensor, error) {
	switch d := s.values.DType(); d {
	case tensor.F32:
		return sum(ctx, s, p, func(a, b float32) float32 { return a + b })
	case tensor.F64:
		return sum(ctx, s, p, func(a, b float64) float64 { return a + b })
	case tensor.F16:
		return sum(ctx, s, p, func(a, b tensor.Float16) tensor.Float16 {
			return tensor.Float16From(a.Float32() + b.Float32())
		})
	case tensor.BF16:
		return sum(ctx, s, p, func(a, b tensor.BFloat16) tensor.BFloat16 {
			return tensor.BFloat16From(a.Float32() + b.Float32())
		})
	case tensor.C64:
		return sum(ctx, s, p, func(a, b complex64) complex64 { return a + b })
	case tensor.C128:
		return sum(ctx, s, p, func(a, b complex128) complex128 { return a + b })
	case tensor.Bool:
		return sum(ctx, s, p, func(a, b bool) bool { return a || b })
	default:
		return s.fillInts(ctx, p, d)
	}
}

func (s *sparse) fillInts(ctx context.Context, p positions, d tensor.DType) (*tensor.Tensor, error) {
	switch d {
	case tensor.I8:
		return sum(ctx, s, p, add[int8])
	case tensor.I16:
		return sum(ctx, s, p, add[int16])
	case tensor.I32:
		return sum(ctx, s, p, add[int32])
	case tensor.I64:
		return sum(ctx, s, p, add[int64])
	case tensor.U8:
		return sum(ctx, s, p, add[uint8])
	case tensor.U16:
		return sum(ctx, s, p, add[uint16])
	case tensor.U32:
		return sum(ctx, s, p, add[uint32])
	case tensor.U64:
		return sum(ctx, s, p, add[uint64])
	default:
		return nil, fault.New(fault.Unsupported, "densifying "+d.String()).Needs("a dtype that adds up", "keep the components")
	}
}

func add[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](a, b T) T { return a + b }

func sum[T tensor.Element](ctx context.Context, s *sparse, p positions, plus func(a, b T) T) (*tensor.Tensor, error) {
	values, err := tensor.Values[T](ctx, s.values)
	if err != nil {
		return nil, err
	}
	n := int64(1)
	for _, k := range s.shape {
		n *= int64(k)
	}
	dense := make([]T, n) // checkRoom bounds it
	block := blockOffsets(p.block, p.stride)
	if len(values) != len(p.first)*len(block) {
		return nil, broken("values of another number")
	}
	for i, first := range p.first {
		for k, off := range block {
			dense[first+off] = plus(dense[first+off], values[i*len(block)+k])
		}
	}
	return tensor.Of(dense, append([]int{}, s.shape...)...), nil
}

// blockOffsets lists the places of a block's elements, row-major.
func blockOffsets(shape []int, stride []int64) []int64 {
	out := []int64{0}
	for d, n := range shape {
		next := make([]int64, 0, len(out)*n)
		for _, at := range out {
			for i := range n {
				next = append(next, at+int64(i)*stride[d])
			}
		}
		out = next
	}
	return out
}
