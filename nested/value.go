// Package nested is the value tree that a checkpoint becomes: ordered maps with
// typed keys, lists, scalars, opaque objects that nobody built, and leaves
// that are tensors, lazy or packed.
//
// A tree is a graph in truth: pickles share and even contain themselves, and
// wick keeps that (the same *Map twice, not a copy). [Walk] visits it without
// being trapped. Nothing here changes after a reader has built it, except
// through the methods that say so; reading a tree is safe from many goroutines.
package nested

import (
	"math/big"
	"slices"

	"github.com/wick-ml/wick/tensor"
)

// Value is one node of a tree: [None], [Bool], [Int], [BigInt], [Float],
// [Complex], [String], [Bytes], [ByteArray], [Symbol], [*Map], [*List],
// [*Opaque], [*Tensor] or a [Packed] array. It is never nil.
type Value interface{ nestedValue() }

type (
	// None is Python's None.
	None struct{}
	// Bool is a truth value.
	Bool bool
	// Int is an integer of at most 64 bits.
	Int int64
	// BigInt is an integer beyond 64 bits. It must not be changed.
	BigInt struct{ Int *big.Int }
	// Float is a 64-bit float.
	Float float64
	// Complex is a pair of 64-bit floats.
	Complex complex128
	// String is a text as the file holds it: UTF-8, or UTF-8 with lone
	// surrogates, or bytes of a Python 2 str. [String.Text] decodes it.
	String string
	// Bytes is an immutable byte string.
	Bytes string
	// ByteArray is Python's bytearray, kept apart from [Bytes].
	ByteArray string
	// Component is the key of a part of a tensor that is no strided array:
	// "indices" of a sparse one reads as name#indices in a flat name.
	Component string
)

// Symbol is a value of a foreign type that a text says completely: a dtype
// ("torch.float16"), a device ("cuda:0"), a layout, a path, a date, an enum
// member, or a class or function that is named but not called.
type Symbol struct {
	Class string // the Python type: "torch.dtype", "torch.device", "type", "pathlib.PosixPath" …
	Text  string
}

// Opaque is an object that was named in a pickle and not built: nothing of the
// file's code ever runs. What it was made of stays reachable.
type Opaque struct {
	Class  string // module.Name, as in the pickle
	Reason string // why it is opaque: "class", "call", "sparse_coo", "limit" …
	Args   *List  // what it was called with, nil if nothing
	State  Value  // what BUILD gave it, nil if nothing

	// Members is what a walk descends into: for a module its parameters,
	// buffers and submodules under their state-dict names, for another object
	// its attributes and arguments. It is nil when there is nothing inside.
	Members Value
}

// Tensor is a leaf whose bytes have not been read, with what the file says of
// it besides dtype and shape.
type Tensor struct {
	*tensor.Tensor
	Class        string // "torch.Tensor", "torch.nn.parameter.Parameter", "numpy.ndarray", or the subclass
	RequiresGrad bool
	Device       string // where it was saved from, such as "cuda:1"; never matters for reading
	Quant        *Quant // for quantized dtypes
	Attrs        Value  // state that a subclass or a Parameter carried, nil if none
}

// Quant says how a quantized tensor's integers stand for real numbers:
// real = (q - zero point) * scale.
type Quant struct {
	Scheme     string // "per_tensor_affine", "per_channel_affine", "per_channel_affine_float_qparams" …
	Scale      float64
	ZeroPoint  int64
	Axis       int     // the channel dimension, for per-channel schemes
	Scales     *Tensor // one for each channel, nil per tensor
	ZeroPoints *Tensor
}

// Packed is a leaf whose elements are in memory, in one Go slice in row-major
// order.
type Packed[T tensor.Element] struct{ tensor.Array[T] }

// The packed leaves by their usual names.
type (
	// F64s is a packed array of float64.
	F64s = Packed[float64]
	// F32s is a packed array of float32.
	F32s = Packed[float32]
	// F16s is a packed array of halfs.
	F16s = Packed[tensor.Float16]
	// BF16s is a packed array of bfloat16.
	BF16s = Packed[tensor.BFloat16]
	// I8s is a packed array of int8.
	I8s = Packed[int8]
	// I16s is a packed array of int16.
	I16s = Packed[int16]
	// I32s is a packed array of int32.
	I32s = Packed[int32]
	// I64s is a packed array of int64.
	I64s = Packed[int64]
	// U8s is a packed array of uint8.
	U8s = Packed[uint8]
	// U16s is a packed array of uint16.
	U16s = Packed[uint16]
	// U32s is a packed array of uint32.
	U32s = Packed[uint32]
	// U64s is a packed array of uint64.
	U64s = Packed[uint64]
	// Bools is a packed array of bool.
	Bools = Packed[bool]
	// C64s is a packed array of complex64.
	C64s = Packed[complex64]
	// C128s is a packed array of complex128.
	C128s = Packed[complex128]
)

// Leaf is a tensor of either sort: a lazy [*Tensor] or a [Packed] array.
type Leaf interface {
	Value
	// AsTensor returns the tensor, which for a packed array is laid over its
	// slice without copying.
	AsTensor() *tensor.Tensor
}

// AsTensor returns the tensor itself.
func (t *Tensor) AsTensor() *tensor.Tensor { return t.Tensor }

// AsTensor returns a tensor over the packed slice, which it aliases.
func (p Packed[T]) AsTensor() *tensor.Tensor { return p.Tensor() }

func (None) nestedValue()      {}
func (Bool) nestedValue()      {}
func (Int) nestedValue()       {}
func (BigInt) nestedValue()    {}
func (Float) nestedValue()     {}
func (Complex) nestedValue()   {}
func (String) nestedValue()    {}
func (Bytes) nestedValue()     {}
func (ByteArray) nestedValue() {}
func (Symbol) nestedValue()    {}
func (Component) nestedValue() {}
func (*Map) nestedValue()      {}
func (*List) nestedValue()     {}
func (*Opaque) nestedValue()   {}
func (*Tensor) nestedValue()   {}
func (Packed[T]) nestedValue() {}

// List is a sequence. Class says which of Python's it was: "list", "tuple",
// "set", "frozenset", "torch.Size", "collections.deque" or a named tuple's
// class. A set keeps the order of the file.
type List struct {
	Class string
	Items []Value
}

// NewList returns a list of the given class.
func NewList(class string, items ...Value) *List { return &List{Class: class, Items: items} }

// Clone returns a list with the same items in a slice of its own.
func (l *List) Clone() *List { return &List{Class: l.Class, Items: slices.Clone(l.Items)} }
