package meta

import (
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// nameQuantized is the object that a quantized tensor is in a record, since no
// format of records has its dtypes: a dict of plain tensors and values.
//
//	int_repr      the integers, as Tensor.int_repr in torch gives them: int8, uint8 or
//	              int32; for elements of less than a byte the bytes that hold them
//	dtype         "qint8", "quint8", "qint32", "quint4x2", "quint2x4"
//	shape         only where int_repr has another one
//	scheme        "per_tensor_affine", "per_channel_affine" …; with one of these
//	scale         a float, or a tensor with one number for each channel
//	zero_point    an integer, or such a tensor
//	axis          the dimension of the channels
const nameQuantized = "wick.quantized"

// IsQuantized reports whether an object of this name is a quantized tensor taken
// apart, see [Plain].
func IsQuantized(name string) bool { return name == nameQuantized }

// carriers are the plain dtypes of quantized elements.
var carriers = map[tensor.DType]tensor.DType{
	tensor.QI8: tensor.I8, tensor.QU8: tensor.U8, tensor.QI32: tensor.I32, tensor.QU4x2: tensor.U8, tensor.QU2x4: tensor.U8,
}

// Plain returns the tree as a record holds it, with every quantized tensor taken
// apart; [Quantized] is the way back. Nodes without one are shared with root. It
// fails with [fault.ErrUnsupported] on a view of elements of less than a byte that
// bytes cannot say.
func Plain(root nested.Value) (nested.Value, error) {
	return nested.Rewrite(root, func(v nested.Value) (nested.Value, error) {
		leaf, ok := v.(nested.Leaf)
		if ok && leaf.AsTensor().DType().Class() == tensor.QuantClass && leaf.AsTensor().Err() == nil {
			return takeApart(leaf)
		}
		return nil, nil // kept; a tensor without bytes is refused where it is written
	})
}

func takeApart(leaf nested.Leaf) (nested.Value, error) {
	t := leaf.AsTensor()
	m := nested.NewMap(nameQuantized)
	ints, err := intsOf(t)
	if err != nil {
		return nil, err
	}
	set := func(key string, v nested.Value) {
		if err == nil {
			err = m.Set(nested.String(key), v)
		}
	}
	set("int_repr", plainLeaf(ints))
	set("dtype", nested.String(t.DType().String()))
	if t.DType().Bits() < 8 {
		set("shape", sizes(t))
	}
	lazy, ok := leaf.(*nested.Tensor)
	if !ok || lazy.Quant == nil {
		return m, err
	}
	q := lazy.Quant
	set("scheme", nested.String(q.Scheme))
	if q.Scales == nil {
		set("scale", nested.Float(q.Scale))
		set("zero_point", nested.Int(q.ZeroPoint))
		return m, err
	}
	set("scale", plainLeaf(q.Scales.Tensor))
	set("zero_point", plainLeaf(q.ZeroPoints.Tensor))
	set("axis", nested.Int(q.Axis))
	return m, err
}

func plainLeaf(t *tensor.Tensor) *nested.Tensor {
	return &nested.Tensor{Class: "torch.Tensor", Tensor: t}
}

func sizes(t *tensor.Tensor) *nested.List {
	l := nested.NewList("list")
	for d := range t.Dims() {
		l.Items = append(l.Items, nested.Int(t.Size(d)))
	}
	return l
}

// intsOf lays plain integers over the bytes of a quantized tensor.
func intsOf(t *tensor.Tensor) (*tensor.Tensor, error) {
	s, strides, offset, ok := t.Strided()
	carrier := carriers[t.DType()]
	spec := tensor.Spec{Storage: s, DType: carrier, Strides: strides, Offset: offset}
	for d := range t.Dims() {
		spec.Shape = append(spec.Shape, int64(t.Size(d)))
	}
	each := int64(8 / t.DType().Bits()) // elements in a byte, 0 for larger ones
	switch {
	case !ok && each > 1 || each > 1 && (!t.Contiguous() || offset%each != 0):
		return nil, fault.New(fault.Unsupported, "a view of "+t.DType().String()+" elements inside their bytes").
			Needs("whole bytes in their order", "arith.DequantizeTree gives the floats that it stands for")
	case !ok:
		return t.Cast(carrier)
	case each > 1:
		spec.Shape, spec.Strides, spec.Offset = []int64{t.Bytes()}, nil, offset/each
	}
	return tensor.New(spec)
}

// Quantized returns the tree with the quantized tensors that [Plain] took apart.
// It fails with [fault.ErrMalformed] on parts that do not fit each other.
func Quantized(root nested.Value) (nested.Value, error) {
	return nested.Rewrite(root, func(v nested.Value) (nested.Value, error) {
		if m, ok := v.(*nested.Map); ok && m.Class == nameQuantized {
			return putTogether(m)
		}
		return nil, nil // kept
	})
}

func putTogether(m *nested.Map) (nested.Value, error) {
	ints := leafIn(m, "int_repr")
	name := textIn(m, "dtype")
	d, known := tensor.ParseDType(name)
	carrier, quantized := carriers[d]
	if ints == nil || !known || !quantized || ints.DType() != carrier {
		return nil, badObject(nameQuantized)
	}
	t, err := quantizedOf(ints, d, m)
	if err != nil {
		return nil, err
	}
	out := plainLeaf(t)
	if _, ok := m.Lookup("scheme"); ok {
		out.Quant, err = quantIn(m)
	}
	return out, err
}

// quantizedOf lays quantized elements over the bytes of integers.
func quantizedOf(ints *tensor.Tensor, d tensor.DType, m *nested.Map) (*tensor.Tensor, error) {
	s, strides, offset, ok := ints.Strided()
	if !ok {
		return nil, badObject(nameQuantized)
	}
	spec := tensor.Spec{Storage: s, DType: d, Strides: strides, Offset: offset}
	for i := range ints.Dims() {
		spec.Shape = append(spec.Shape, int64(ints.Size(i)))
	}
	if each := int64(8 / d.Bits()); each > 1 {
		shape, _ := m.Lookup("shape")
		l, ok := shape.(*nested.List)
		if !ok || !ints.Contiguous() {
			return nil, badObject(nameQuantized)
		}
		spec.Shape, spec.Strides, spec.Offset = nil, nil, offset*each
		for _, item := range l.Items {
			n, ok := item.(nested.Int)
			if !ok {
				return nil, badObject(nameQuantized)
			}
			spec.Shape = append(spec.Shape, int64(n))
		}
	}
	t, err := tensor.New(spec)
	if err == nil && t.Bytes() != ints.Bytes() {
		return nil, badObject(nameQuantized)
	}
	return t, err
}

func quantIn(m *nested.Map) (*nested.Quant, error) {
	q := &nested.Quant{}
	q.Scheme = textIn(m, "scheme")
	scale, _ := m.Lookup("scale")
	zero, _ := m.Lookup("zero_point")
	switch scale := scale.(type) {
	case nested.Float:
		n, ok := zero.(nested.Int)
		if !ok {
			return nil, badObject(nameQuantized)
		}
		q.Scale, q.ZeroPoint = float64(scale), int64(n)
		return q, nil
	case *nested.Tensor:
		axis, _ := m.Lookup("axis")
		n, okAxis := axis.(nested.Int)
		zeros, okZeros := zero.(*nested.Tensor)
		if !okAxis || !okZeros || n < 0 || n >= tensor.MaxDims {
			return nil, badObject(nameQuantized)
		}
		q.Scales, q.ZeroPoints, q.Axis = scale, zeros, int(n)
		return q, nil
	default:
		return nil, badObject(nameQuantized)
	}
}

func leafIn(m *nested.Map, key string) *tensor.Tensor {
	v, _ := m.Lookup(key)
	leaf, ok := v.(*nested.Tensor)
	if !ok {
		return nil
	}
	return leaf.Tensor
}

func textIn(m *nested.Map, key string) string {
	v, _ := m.Lookup(key)
	s, _ := v.(nested.String)
	return string(s)
}
