package serde

import (
	"reflect"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// element is what serde does with packed slices of one element type. Slices
// pass as any, holding a []T, so that no value is ever boxed one by one.
type element interface {
	dtype() tensor.DType
	kind() reflect.Kind
	fresh(n int) any
	carve(s *tensor.Slab, i, n int) any
	view(t *tensor.Tensor) (any, error)
	sink(data any) tensor.Sink
	copy(dst, src any)
	store(dst reflect.Value, how holder, shape []int, data any)
	leaf(shape []int, data any) nested.Leaf
	parts(array any) (shape []int, data any) // of an Array or a Packed
}

// of is the element T.
type of[T tensor.Element] struct{}

func (of[T]) dtype() tensor.DType { return tensor.DTypeOf[T]() }

func (of[T]) kind() reflect.Kind { return reflect.TypeFor[T]().Kind() }

func (of[T]) fresh(n int) any { return make([]T, n) }

func (of[T]) carve(s *tensor.Slab, i, n int) any { return tensor.SlabSlice[T](s, i, n) }

func (of[T]) view(t *tensor.Tensor) (any, error) { return tensor.View[T](t) }

func (of[T]) sink(data any) tensor.Sink { return tensor.Into(slice[T](data)) }

func (of[T]) copy(dst, src any) { copy(slice[T](dst), slice[T](src)) }

// store assigns data to a field that holds it as how says. It cannot fail.
func (of[T]) store(dst reflect.Value, how holder, shape []int, data any) {
	s := slice[T](data)
	switch p := dst.Addr().Interface().(type) {
	case *[]T:
		*p = s
	case *tensor.Array[T]:
		*p = tensor.Array[T]{Shape: shape, Data: s}
	case *nested.Packed[T]:
		*p = nested.Packed[T]{Array: tensor.Array[T]{Shape: shape, Data: s}}
	case *T:
		*p = s[0]
	default:
		if how == asOneValue {
			dst.Set(reflect.ValueOf(s[0]).Convert(dst.Type()))
			return
		}
		dst.Set(reflect.ValueOf(s).Convert(dst.Type()))
	}
}

func (of[T]) leaf(shape []int, data any) nested.Leaf {
	return nested.Packed[T]{Array: tensor.Array[T]{Shape: shape, Data: slice[T](data)}}
}

func (of[T]) parts(array any) (shape []int, data any) {
	switch a := array.(type) {
	case tensor.Array[T]:
		return a.Shape, a.Data
	case nested.Packed[T]:
		return a.Shape, a.Data
	default:
		panic("BUG: wick/serde: an array of another element type")
	}
}

func slice[T tensor.Element](data any) []T {
	s, ok := data.([]T)
	if !ok {
		panic("BUG: wick/serde: a slice of another element type")
	}
	return s
}

// holder is how a Go type holds packed elements.
type holder uint8

const (
	notPacked  holder = iota
	inSlice           // []T
	inArray           // tensor.Array[T]
	inNested          // nested.Packed[T]
	asOneValue        // T
)

type packedType struct {
	el  element
	how holder
}

// elements are the Go types of single elements; packedTypes those of packed
// arrays with a type of their own.
var elements, packedTypes = map[reflect.Type]element{}, map[reflect.Type]packedType{}

func register[T tensor.Element]() {
	el := of[T]{}
	elements[reflect.TypeFor[T]()] = el
	packedTypes[reflect.TypeFor[tensor.Array[T]]()] = packedType{el, inArray}
	packedTypes[reflect.TypeFor[nested.Packed[T]]()] = packedType{el, inNested}
}

func init() {
	register[float64]()
	register[float32]()
	register[tensor.Float16]()
	register[tensor.BFloat16]()
	register[tensor.Float8E4M3FN]()
	register[tensor.Float8E5M2]()
	register[tensor.Float8E4M3FNUZ]()
	register[tensor.Float8E5M2FNUZ]()
	register[tensor.Float8E8M0FNU]()
	register[tensor.Float4E2M1FNx2]()
	register[int8]()
	register[int16]()
	register[int32]()
	register[int64]()
	register[uint8]()
	register[uint16]()
	register[uint32]()
	register[uint64]()
	register[bool]()
	register[tensor.Complex32]()
	register[complex64]()
	register[complex128]()
	register[tensor.QInt8]()
	register[tensor.QUint8]()
	register[tensor.QInt32]()
}

// packedOf returns how t holds packed elements: as a slice, also of a named
// slice type, or as an array with a shape.
func packedOf(t reflect.Type) (packedType, bool) {
	if p, ok := packedTypes[t]; ok {
		return p, true
	}
	if t.Kind() == reflect.Slice {
		el, ok := elements[t.Elem()]
		return packedType{el, inSlice}, ok
	}
	return packedType{}, false
}

// fixedOf returns the dimensions and the element of a Go array of elements,
// such as [3][4]float32.
func fixedOf(t reflect.Type) (dims []int, el element, ok bool) {
	for t.Kind() == reflect.Array {
		if _, isElement := elements[t]; isElement { // Complex32
			break
		}
		dims = append(dims, t.Len())
		t = t.Elem()
	}
	el, ok = elements[t]
	return dims, el, ok && len(dims) > 0
}

// fill copies packed data, row-major, into a Go array of arrays and returns
// what is left of it.
func fill(dst, data reflect.Value, dims int) reflect.Value {
	if dims == 1 {
		n := reflect.Copy(dst, data)
		return data.Slice(n, data.Len())
	}
	for i := range dst.Len() {
		data = fill(dst.Index(i), data, dims-1)
	}
	return data
}

// gather copies a Go array of arrays into packed data, row-major, and returns
// what is left of it.
func gather(data, src reflect.Value, dims int) reflect.Value {
	if dims == 1 {
		n := reflect.Copy(data, src)
		return data.Slice(n, data.Len())
	}
	for i := range src.Len() {
		data = gather(data, src.Index(i), dims-1)
	}
	return data
}
