package tensor

import (
	"strconv"

	"github.com/wick-ml/wick/fault"
)

// Array is a packed tensor in memory: Data holds the elements in row-major
// order, len(Data) is the product of Shape. The dtype is T's own.
type Array[T Element] struct {
	Shape []int
	Data  []T
}

// DType returns the dtype of T.
func (a Array[T]) DType() DType { return DTypeOf[T]() }

// Tensor returns a tensor over the array's data, which it aliases: the data
// must not change while the tensor is in use: see [Of].
func (a Array[T]) Tensor() *Tensor { return Of(a.Data, a.Shape...) }

// Of returns a tensor of the given shape over data, which it aliases: data
// must not change while the tensor is in use. Without a shape it is a vector;
// Of(data, []int{}...) of one element is a scalar, which has no dimension. A shape that
// does not match the data gives a tensor whose Err says so.
func Of[T Element](data []T, shape ...int) *Tensor {
	if shape == nil {
		shape = []int{len(data)}
	}
	dims, d := int64s(shape), DTypeOf[T]()
	t, err := New(Spec{Storage: storageOf(data), DType: d, Shape: dims})
	if err == nil && t.Len() != int64(len(data)) {
		err = fault.New(fault.Mismatch, "shape "+ShapeString(dims)+" for a slice of "+strconv.Itoa(len(data)))
	}
	if err != nil {
		return Unavailable(d, shape, err)
	}
	return t
}
