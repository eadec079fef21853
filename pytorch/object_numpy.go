package pytorch

import (
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// numpyCalls are numpy's arrays, scalars and dtypes. numpy 2 moved its core
// from numpy.core to numpy._core.
var numpyCalls = map[string]callFunc{
	"numpy.dtype":                         newDType,
	"numpy.core.multiarray._reconstruct":  newArray,
	"numpy._core.multiarray._reconstruct": newArray,
	"numpy.core.multiarray.scalar":        newScalar,
	"numpy._core.multiarray.scalar":       newScalar,
	"numpy.core.numeric._frombuffer":      newArrayFromBuffer,
	"numpy._core.numeric._frombuffer":     newArrayFromBuffer,
}

const (
	classDType = "numpy.dtype"
	classArray = "numpy.ndarray"
)

// newDType is numpy.dtype(code, align, copy); its state follows by BUILD. It
// stays an object of its own, which an array or scalar reads.
func newDType(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) == 0 {
		return nil, false
	}
	return l.opaque(classDType, reasonClass, nested.NewList("tuple", args[0])), true
}

// arrayType is what a numpy dtype says.
type arrayType struct {
	kind  byte // 'f', 'i', 'u', 'b', 'c', or another of numpy's kinds
	size  int  // bytes
	order tensor.ByteOrder
	odd   string // why there is no such tensor, "" if there is
}

// arrayTypeOf reads a numpy.dtype object: its code and byte order, and whether
// its state names fields or a shape of its own (numpy, descriptor.c,
// arraydescr_setstate).
func arrayTypeOf(v nested.Value) (arrayType, bool) {
	var t arrayType
	o, ok := v.(*nested.Opaque)
	if !ok || o.Class != classDType || o.Args == nil {
		return t, false
	}
	code := strings.TrimLeft(asciiText(o.Args.Items[0]), "<>=|")
	if code == "" {
		return t, false
	}
	t.kind = code[0]
	t.size, _ = strconv.Atoi(code[1:])
	if text := asciiText(o.Args.Items[0]); text[0] == '>' {
		t.order = tensor.BigEndian
	}
	if t.kind == '?' {
		t.kind, t.size = 'b', 1
	}
	if state, ok := o.State.(*nested.List); ok && len(state.Items) >= 5 {
		t.state(state.Items)
	}
	if t.dtype() == tensor.Invalid && t.odd == "" {
		t.odd = "dtype " + code
	}
	return t, true
}

func (t *arrayType) state(items []nested.Value) {
	if asciiText(items[1]) == ">" {
		t.order = tensor.BigEndian
	}
	for _, field := range items[2:5] { // sub-array, names, fields
		if _, none := field.(nested.None); !none {
			t.odd = reasonRecords
		}
	}
	if t.kind == 'O' {
		t.odd = reasonObjects
	}
}

// arrayDTypes maps numpy's kind and size to ours.
var arrayDTypes = map[string]tensor.DType{
	"f2": tensor.F16, "f4": tensor.F32, "f8": tensor.F64, "i1": tensor.I8, "i2": tensor.I16, "i4": tensor.I32, "i8": tensor.I64,
	"u1": tensor.U8, "u2": tensor.U16, "u4": tensor.U32, "u8": tensor.U64, "b1": tensor.Bool, "c8": tensor.C64, "c16": tensor.C128,
}

func (t *arrayType) dtype() tensor.DType {
	if t.odd != "" {
		return tensor.Invalid
	}
	return arrayDTypes[string(t.kind)+strconv.Itoa(t.size)]
}

// pendingArray stands in the Attrs of an array that waits for its state.
type pendingArray struct {
	nested.None
	class string
}

// newArray is _reconstruct(class, shape, code): an empty array that BUILD fills.
func newArray(l *loader, args []nested.Value) (nested.Value, bool) {
	class, ok := classOf(args)
	if !ok || len(args) != 3 {
		return nil, false
	}
	l.waiting = true
	return &nested.Tensor{Class: class, Attrs: &pendingArray{class: class}}, true
}

// buildArray gives an array its state: (version, shape, dtype, is_fortran,
// data), of which the oldest have no version. What is no tensor becomes an
// opaque object in the array's place.
func (l *loader) buildArray(t *nested.Tensor, p *pendingArray, state nested.Value) nested.Value {
	s, ok := state.(*nested.List)
	if ok && len(s.Items) == 2 { // a subclass adds its own state behind the array's
		if inner, isList := s.Items[0].(*nested.List); isList {
			s = inner
		}
	}
	if ok && len(s.Items) >= 5 {
		if made, reason := l.array(s.Items[1], s.Items[2], s.Items[4], isTruthy(s.Items[3])); made != nil {
			t.Tensor, t.Attrs = made, nil
			return t
		} else if reason != "" {
			return l.oddArray(p.class, reason, state, s.Items[4])
		}
	}
	if ok && len(s.Items) == 4 {
		if made, _ := l.array(s.Items[0], s.Items[1], s.Items[3], isTruthy(s.Items[2])); made != nil {
			t.Tensor, t.Attrs = made, nil
			return t
		}
	}
	return l.oddArray(p.class, reasonClass, state, state)
}

// oddArray keeps an array that is no tensor. The members of an object array
// stay reachable.
func (l *loader) oddArray(class, reason string, state, data nested.Value) *nested.Opaque {
	o := l.opaque(class, reason, nil)
	o.State = state
	if _, ok := data.(*nested.List); ok {
		o.Members = data
	} else {
		o.Members = nested.NewList("tuple") // raw bytes are no member
	}
	return o
}

func isTruthy(v nested.Value) bool {
	n, ok := v.(nested.Int)
	return isTrue(v) || (ok && n != 0)
}

// array lays a tensor over the bytes in a pickle. When it cannot, reason says
// why, or is empty where the arguments make no sense.
func (l *loader) array(shape, dtype, data nested.Value, fortran bool) (made *tensor.Tensor, reason string) {
	dims, ok := appendInts(l.shape[:0], shape)
	l.shape = dims
	t, known := arrayTypeOf(dtype)
	if !ok || !known {
		return nil, ""
	}
	d := t.dtype()
	if d == tensor.Invalid {
		return nil, t.odd
	}
	spec := tensor.Spec{DType: d, Shape: dims}
	want, fits := packedSize(d, dims)
	raw, ok := rawBytes(data, want)
	if !ok {
		return nil, ""
	}
	if !fits || int64(len(raw)) != want {
		return unavailable(spec, wrongData(strconv.Itoa(len(raw))+" bytes for an array of "+d.String()+" "+tensor.ShapeString(dims))), ""
	}
	if fortran {
		spec.Strides = fortranStrides(dims)
	}
	spec.Storage = tensor.NewStorage(tensor.StorageSpec{Name: "array in " + l.record, Size: want, Order: t.order, Memory: raw})
	if over := l.overDims(d, dims); over != nil {
		return over, ""
	}
	made, err := tensor.New(spec)
	if err != nil {
		return unavailable(spec, err), ""
	}
	return made, ""
}

// packedSize is the size in bytes of an array, when it can be.
func packedSize(d tensor.DType, shape []int64) (int64, bool) {
	n := int64(1)
	for _, s := range shape {
		if s < 0 || (s > 0 && n > math.MaxInt64/16/s) {
			return 0, false
		}
		n *= s
	}
	return d.Bytes(n)
}

// rawBytes returns an array's bytes in memory of its own: bytes, a str of
// Python 2, or Latin-1 text of as many characters.
func rawBytes(v nested.Value, want int64) ([]byte, bool) {
	switch b := v.(type) {
	case nested.Bytes:
		return notNil(string(b)), true
	case nested.ByteArray:
		return notNil(string(b)), true
	case nested.String:
		if int64(len(b)) == want {
			return notNil(string(b)), true
		}
		s, ok := latin1Bytes(string(b))
		return notNil(s), ok
	}
	return nil, false
}

// notNil returns the bytes of s, in a slice that is not nil even when empty: a
// storage without memory would be one that cannot be read.
func notNil(s string) []byte { return append([]byte{}, s...) }

func fortranStrides(shape []int64) []int64 {
	strides := make([]int64, len(shape))
	n := int64(1)
	for i, s := range shape {
		strides[i] = n
		n *= max(s, 1)
	}
	return strides
}

// newArrayFromBuffer is _frombuffer(buffer, dtype, shape, order) of protocol 5.
func newArrayFromBuffer(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 4 {
		return nil, false
	}
	made, reason := l.array(args[2], args[1], args[0], asciiText(args[3]) == "F")
	if made != nil {
		return &nested.Tensor{Tensor: made, Class: classArray}, true
	}
	if reason == "" {
		return nil, false
	}
	return l.oddArray(classArray, reason, nested.NewList("tuple", args...), args[0]), true
}

// newScalar is scalar(dtype, bytes): a plain number of Python's.
func newScalar(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) == 0 || len(args) > 2 {
		return nil, false
	}
	t, ok := arrayTypeOf(args[0])
	if !ok || len(args) == 1 {
		return nil, false
	}
	if t.kind == 'O' {
		return args[1], true
	}
	raw, ok := rawBytes(args[1], int64(t.size))
	if !ok || t.odd == reasonRecords {
		return nil, false
	}
	if v, ok := textScalar(t, raw); ok {
		return v, true
	}
	if t.dtype() == tensor.Invalid || len(raw) != t.size {
		return nil, false
	}
	return numberScalar(t, raw), true
}

// textScalar decodes numpy.str_ (UTF-32) and numpy.bytes_.
func textScalar(t arrayType, raw []byte) (nested.Value, bool) {
	switch t.kind {
	case 'S':
		return nested.Bytes(strings.TrimRight(string(raw), "\x00")), true
	case 'U':
		var out []byte
		for ; len(raw) >= 4; raw = raw[4:] {
			r := rune(order(t.order).Uint32(raw)) //nolint:gosec // checked by AppendRune
			if r == 0 {
				break
			}
			out = utf8.AppendRune(out, r)
		}
		return nested.String(out), true
	}
	return nil, false
}

func order(o tensor.ByteOrder) binary.ByteOrder {
	if o == tensor.BigEndian {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func numberScalar(t arrayType, raw []byte) nested.Value {
	switch t.kind {
	case 'b':
		return nested.Bool(raw[0] != 0)
	case 'f':
		return nested.Float(floatBits(raw, t.order))
	case 'c':
		half := len(raw) / 2
		return nested.Complex(complex(floatBits(raw[:half], t.order), floatBits(raw[half:], t.order)))
	}
	u := uintBits(raw, t.order)
	if t.kind == 'i' {
		shift := 64 - 8*len(raw)
		return nested.Int(int64(u<<shift) >> shift) //nolint:gosec // two's complement
	}
	if u > math.MaxInt64 {
		return nested.BigInt{Int: new(big.Int).SetUint64(u)}
	}
	return nested.Int(u)
}

func uintBits(raw []byte, o tensor.ByteOrder) uint64 {
	var u uint64
	for i := range raw {
		b := raw[i]
		if o == tensor.LittleEndian {
			b = raw[len(raw)-1-i]
		}
		u = u<<8 | uint64(b)
	}
	return u
}

func floatBits(raw []byte, o tensor.ByteOrder) float64 {
	u := uintBits(raw, o)
	switch len(raw) {
	case 8:
		return math.Float64frombits(u)
	case 4:
		return float64(math.Float32frombits(uint32(u))) //nolint:gosec // four bytes
	default:
		return float64(tensor.Float16(u).Float32()) //nolint:gosec // two bytes
	}
}
