package tensor

import (
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/wick-ml/wick/fault"
)

// MaxDims is the most dimensions a tensor can have, as in torch
// (c10/core/TensorImpl: dim_bitset_size is 64).
const MaxDims = 64

// Tensor is a dtype and a shape over bytes that may not have been read yet. It
// is immutable and safe for concurrent use; it holds no tensor data itself.
//
// A tensor is a set of walks. Each walk fills one box of the tensor's index
// space with elements taken from one storage in strides. A tensor as it stands
// in a file has a single walk; [Concat] makes more.
type Tensor struct {
	dtype DType
	shape []int
	walks []walk
	err   error // why there are no bytes
}

// Spec describes one strided tensor over a storage to [New].
type Spec struct {
	Storage *Storage
	DType   DType
	Shape   []int64
	Strides []int64 // in elements; nil means contiguous
	Offset  int64   // of the first element, in elements of DType
	Conj    bool    // the values are the conjugates of what is stored
	Neg     bool    // the values are the negatives of what is stored
}

// New returns the tensor that spec describes after it has proved that all its
// elements lie inside the storage. It fails with [fault.ErrMalformed] when
// they do not, or a size is negative, or a product overflows; and with
// [fault.ErrLimit] on more than [MaxDims] dimensions or sizes that do not fit
// this machine's int.
func New(spec Spec) (*Tensor, error) {
	if err := checkShape(spec.DType, spec.Shape); err != nil {
		return nil, err
	}
	var few [4]int64 // of most tensors; it stays on the stack
	strides := spec.Strides
	if strides == nil {
		strides = appendStrides(few[:0], spec.Shape)
	}
	if err := checkExtent(spec, strides); err != nil {
		return nil, err
	}
	return newLeaf(spec, strides), nil
}

// prove proves what New promises, and fills in strides that were left out.
func prove(spec *Spec) error {
	if err := checkShape(spec.DType, spec.Shape); err != nil {
		return err
	}
	if spec.Strides == nil {
		spec.Strides = contiguousStrides(spec.Shape)
	}
	return checkExtent(*spec, spec.Strides)
}

// Unavailable returns a tensor whose dtype and shape are known but whose bytes
// cannot be had; every read of it returns err. For a tensor that by nature has
// no bytes, err is an [fault.ErrNoData] error.
func Unavailable(d DType, shape []int, err error) *Tensor {
	return &Tensor{dtype: d, shape: slices.Clone(shape), err: err}
}

// Err returns why the tensor's bytes cannot be had, nil when they can. Every call
// returns a [fault.Error] of its own, in which the caller may say more.
func (t *Tensor) Err() error { return ownError(t.err) }

// ownError returns err, a fault as a copy: who gets one adds the file and the
// path, and a tensor's error is given to many goroutines, a storage's to all
// the moves over it.
func ownError(err error) error {
	if e, ok := err.(*fault.Error); ok { //nolint:errorlint // what is wrapped has a place already
		own := *e
		return &own
	}
	return err
}

// DType returns the element type.
func (t *Tensor) DType() DType { return t.dtype }

// Shape returns the sizes of the dimensions, empty for a scalar. The slice is
// a copy.
func (t *Tensor) Shape() []int { return slices.Clone(t.shape) }

// Dims returns the number of dimensions.
func (t *Tensor) Dims() int { return len(t.shape) }

// Size returns the size of dimension d, which must be one of the tensor's.
func (t *Tensor) Size(d int) int { return t.shape[d] }

// Len returns the number of elements.
func (t *Tensor) Len() int64 { return product(t.shape) }

// Bytes returns the size in bytes of the packed row-major form.
func (t *Tensor) Bytes() int64 {
	n, _ := t.dtype.Bytes(t.Len())
	return n
}

// Strided returns the storage, strides and offset (both in elements of the
// stored dtype) of a tensor that is one plain strided walk, as torch keeps it.
// ok is false for a view expression that strides cannot say, and for a tensor
// without bytes.
func (t *Tensor) Strided() (s *Storage, strides []int64, offset int64, ok bool) {
	if len(t.walks) != 1 || len(t.walks[0].casts) > 0 {
		return nil, nil, 0, false
	}
	w := &t.walks[0]
	strides, ok = w.plainStrides()
	return w.storage, strides, w.offset, ok
}

// Storages yields every storage that the tensor's elements come from, each
// once, in the order of the walks.
func (t *Tensor) Storages() iter.Seq[*Storage] {
	return func(yield func(*Storage) bool) {
		if len(t.walks) == 1 {
			yield(t.walks[0].storage)
			return
		}
		var seen []*Storage
		for i := range t.walks {
			s := t.walks[i].storage
			if slices.Contains(seen, s) {
				continue
			}
			if seen = append(seen, s); !yield(s) {
				return
			}
		}
	}
}

// Contiguous reports whether the elements lie in row-major order without gaps,
// as Tensor.is_contiguous in torch says it.
func (t *Tensor) Contiguous() bool {
	if t.Len() == 0 {
		return true
	}
	if len(t.walks) != 1 || len(t.walks[0].casts) > 0 {
		return false
	}
	want := int64(1)
	for d := len(t.shape) - 1; d >= 0; d-- {
		stride, ok := t.walks[0].plainStride(d)
		if !ok || t.shape[d] != 1 && stride != want {
			return false
		}
		want *= int64(t.shape[d])
	}
	return true
}

func checkShape(d DType, shape []int64) error {
	if !d.Valid() {
		return fault.New(fault.Unsupported, "a tensor without a dtype")
	}
	if len(shape) > MaxDims {
		e := fault.NewBound("ndim", int64(len(shape)), MaxDims)
		e.Cure = fault.MadeToDeceive
		return e
	}
	for _, n := range shape {
		if n < 0 {
			return fault.New(fault.Malformed, "negative size in shape "+ShapeString(shape)).Needs("sizes from 0", fault.MadeToDeceive)
		}
		if n > math.MaxInt {
			return fault.NewBound("dimension size on this machine", n, math.MaxInt)
		}
	}
	if _, ok := byteSize(d, shape); !ok {
		return fault.New(fault.Malformed, "shape "+ShapeString(shape)+" of "+d.String()+" overflows").
			Needs("a size that 63 bits can say", fault.MadeToDeceive)
	}
	return nil
}

// byteSize is the packed size with every product checked, the zero sizes left
// for last so that [0, 2^40, 2^40] is refused as torch refuses it.
func byteSize[T int | int64](d DType, shape []T) (int64, bool) {
	n, zero := int64(1), false
	for _, s := range shape {
		if s == 0 {
			zero = true
			continue
		}
		if n > math.MaxInt64/int64(s) {
			return 0, false
		}
		n *= int64(s)
	}
	size, ok := d.Bytes(n)
	if zero {
		size = 0
	}
	return size, ok
}

// checkExtent proves that the first and the last element, and so all between,
// lie inside the storage.
func checkExtent(spec Spec, strides []int64) error {
	if len(strides) != len(spec.Shape) {
		return fault.New(fault.Malformed, strconv.Itoa(len(strides))+" strides for "+strconv.Itoa(len(spec.Shape))+" dimensions").
			Needs("a stride for each dimension", fault.MadeToDeceive)
	}
	if spec.Offset < 0 {
		return fault.New(fault.Malformed, "negative storage offset "+strconv.FormatInt(spec.Offset, 10)).Needs("an offset from 0", fault.MadeToDeceive)
	}
	last, empty, ok := lastElement(spec, strides)
	if empty && ok {
		return nil
	}
	end, fits := spec.DType.Bytes(last + 1)
	if !ok || !fits || last == math.MaxInt64 || end > spec.Storage.Size() {
		return outOfBounds(spec, strides)
	}
	return checkPacked(spec, strides)
}

func lastElement(spec Spec, strides []int64) (last int64, empty, ok bool) {
	last = spec.Offset
	for i, n := range spec.Shape {
		if n == 0 {
			empty = true
		}
		if strides[i] < 0 {
			return 0, false, false
		}
		if n < 2 || strides[i] == 0 {
			continue
		}
		if strides[i] > (math.MaxInt64-last)/(n-1) {
			return 0, empty, empty
		}
		last += (n - 1) * strides[i]
	}
	return last, empty, true
}

func outOfBounds(spec Spec, strides []int64) error {
	return fault.New(fault.Malformed, "a view out of bounds: shape "+ShapeString(spec.Shape)+", strides "+ShapeString(strides)+
		", offset "+strconv.FormatInt(spec.Offset, 10)+" of "+spec.DType.String()+" over "+
		strconv.FormatInt(spec.Storage.Size(), 10)+" bytes").InRecord(spec.Storage.Name()).
		Needs("every element inside its storage", fault.MadeToDeceive)
}

// checkPacked refuses what a dtype of less than a byte cannot address.
func checkPacked(spec Spec, strides []int64) error {
	if spec.DType.Size() > 0 {
		return nil
	}
	plain := contiguousStrides(spec.Shape)
	for d, n := range spec.Shape {
		if n != 1 && strides[d] != plain[d] {
			return fault.New(fault.Unsupported, "a strided "+spec.DType.String()+" tensor").Needs("a contiguous one", "call contiguous() before saving")
		}
	}
	if spec.Offset*int64(spec.DType.Bits())%8 != 0 {
		return fault.New(fault.Unsupported, "a "+spec.DType.String()+" tensor that starts inside a byte")
	}
	return nil
}

func contiguousStrides[T int | int64](shape []T) []int64 {
	return appendStrides(make([]int64, 0, len(shape)), shape)
}

// appendStrides appends the strides of a contiguous tensor to dst, which is empty.
func appendStrides[T int | int64](dst []int64, shape []T) []int64 {
	strides := slices.Grow(dst, len(shape))[:len(shape)]
	n := int64(1)
	for d := len(shape) - 1; d >= 0; d-- {
		strides[d] = n
		n *= int64(max(shape[d], 1))
	}
	return strides
}

func product(shape []int) int64 {
	n := int64(1)
	for _, s := range shape {
		n *= int64(s)
	}
	return n
}

// String returns dtype and shape, such as "float32 [64, 3, 7, 7]".
func (t *Tensor) String() string {
	b := append(make([]byte, 0, 32), t.dtype.String()...)
	return string(appendShape(append(b, ' '), t.shape))
}

// ShapeString prints sizes or strides as [2, 3], cut after [MaxDims] of them.
func ShapeString[T int | int64](shape []T) string { return string(appendShape(nil, shape)) }

func appendShape[T int | int64](b []byte, shape []T) []byte {
	b = append(b, '[')
	for i, n := range shape {
		if i > 0 {
			b = append(b, ", "...)
		}
		if i == MaxDims {
			b = append(b, "…"...)
			break
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return append(b, ']')
}

func int64s(shape []int) []int64 {
	v := make([]int64, len(shape))
	for i, n := range shape {
		v[i] = int64(n)
	}
	return v
}
