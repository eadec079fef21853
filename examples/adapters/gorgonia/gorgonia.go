// Package gorgonia shows weights to gorgonia.org/tensor without copying them: a Dense is a shape over a Go slice, and a
// packed array of wick's is both.
//
// Gorgonia has no halves: read them into float32 fields, which wick widens while it reads.
package gorgonia

import (
	"context"
	"fmt"
	"slices"

	_ "go4.org/unsafe/assume-no-moving-gc" // the version that gorgonia asks for by itself refuses today's Go
	dense "gorgonia.org/tensor"

	"github.com/wick-ml/wick/tensor"
)

// Element is a type that both sides have.
type Element interface {
	float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | complex64 | complex128
}

// Of returns a tensor over the array's memory: whoever writes to one writes to the other. It lives as long as that memory:
// that of a mapped file until the checkpoint is closed. It fails on an array without elements, which gorgonia has
// not, and on one whose shape is not that of its data.
func Of[T Element](a tensor.Array[T]) (*dense.Dense, error) {
	n := 1
	for _, size := range a.Shape {
		n *= size
	}
	if n != len(a.Data) || n == 0 {
		return nil, fmt.Errorf("an array of %d elements of shape %v is no tensor of gorgonia", len(a.Data), a.Shape)
	}
	if len(a.Shape) == 0 {
		return dense.New(dense.WithShape(1), dense.WithBacking(a.Data)), nil
	}
	return dense.New(dense.WithShape(slices.Clone(a.Shape)...), dense.WithBacking(a.Data)), nil
}

// View returns a tensor over the memory that t's source lends, in the way of [tensor.View]: the checkpoint is mapped or
// was in memory, and must stay open. A tensor of no dimensions becomes one of one element.
func View[T Element](t *tensor.Tensor) (*dense.Dense, error) {
	data, err := tensor.View[T](t)
	if err != nil {
		return nil, err
	}
	return Of(tensor.Array[T]{Shape: t.Shape(), Data: data})
}

// Read returns a tensor in memory of its own, which t's elements are read into once: strides are resolved and the dtype
// converted on the way.
func Read[T Element](ctx context.Context, t *tensor.Tensor, opts ...tensor.RunOption) (*dense.Dense, error) {
	data, err := tensor.Values[T](ctx, t, opts...)
	if err != nil {
		return nil, err
	}
	return Of(tensor.Array[T]{Shape: t.Shape(), Data: data})
}
