package listing

import (
	"encoding/hex"
	"strconv"

	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// TensorJSON returns a row as one object of "tensors".
func (l *Listing) TensorJSON(t *Tensor) []byte {
	var o jsonout.Object
	return l.tensorJSON(&o, t)
}

// tensorJSON makes one object of "tensors" of a row. What it returns is part of o.
func (l *Listing) tensorJSON(o *jsonout.Object, t *Tensor) []byte {
	o.Reset()
	name, encoding := t.Path.Text()
	o.String("name", name)
	o.Append("path", func(b []byte) []byte { return AppendPath(b, t.Path) })
	x := t.Tensor()
	o.String("dtype", x.DType().String())
	o.Append("shape", func(b []byte) []byte { return appendShape(b, x) })
	o.Int("bytes", x.Bytes())
	if s, strides, offset, ok := x.Strided(); ok {
		if file := l.FileName(s); file != "" {
			o.String("file", file)
		}
		o.String("storage", l.StorageName(s))
		o.Int("offset", offset)
		o.Append("strides", func(b []byte) []byte { return jsonout.AppendInts(b, strides) })
		o.Bool("contiguous", x.Contiguous())
	}
	if t.Sum != nil {
		o.String("sha256", t.Hex())
	}
	if encoding != "" {
		o.String("encoding", encoding)
	}
	t.notes(o)
	return o.Bytes()
}

func appendShape(b []byte, x *tensor.Tensor) []byte {
	b = append(b, '[')
	for d := range x.Dims() {
		if d > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(x.Size(d)), 10)
	}
	return append(b, ']')
}

// notes adds what only some rows have.
func (t *Tensor) notes(o *jsonout.Object) {
	if leaf, ok := t.Leaf.(*nested.Tensor); ok && leaf.Quant != nil {
		o.Raw("quant", t.quantJSON(leaf.Quant))
	}
	if t.NoData() {
		o.Bool("no_data", true)
	} else if kind := RowKind(t.Err); kind != "" {
		var e jsonout.Object
		e.String("kind", string(kind))
		e.String("text", t.Err.Error())
		o.Raw("error", e.Bytes())
	}
}

// JSON returns the row as one object of "values".
func (v *Value) JSON() []byte {
	var o jsonout.Object
	name, encoding := v.Path.Text()
	o.String("path", name)
	o.String("type", nested.TypeName(v.Value))
	json, enc := AppendValue(nil, v.Value)
	o.Raw("value", json)
	if encoding == "" {
		encoding = enc
	}
	if encoding != "" {
		o.String("encoding", encoding)
	}
	return o.Bytes()
}

// JSON returns the row as one object of "opaque".
func (v *Opaque) JSON() []byte {
	var o jsonout.Object
	name, encoding := v.Path.Text()
	o.String("path", name)
	class, enc := nested.String(v.Class).Text()
	o.String("class", class)
	o.String("reason", v.Reason)
	if encoding == "" {
		encoding = enc
	}
	if encoding != "" {
		o.String("encoding", encoding)
	}
	return o.Bytes()
}

// AppendPath appends a list of typed keys: texts and 64-bit integers as JSON's
// own, every other key as {"type", "text"} with Python's name of the type and
// its spelling of the key.
func AppendPath(b []byte, p nested.Path) []byte {
	return jsonout.AppendList(b, p, appendKey)
}

func appendKey(b []byte, key nested.Value) []byte {
	text, _ := KeyText(key)
	switch k := key.(type) {
	case nested.String:
		return jsonout.AppendString(b, text)
	case nested.Int:
		return strconv.AppendInt(b, int64(k), 10)
	case nested.BigInt:
		text = k.Int.String() // in full, where the name cuts it
	}
	var o jsonout.Object
	o.String("type", nested.TypeName(key))
	o.String("text", text)
	return append(b, o.Bytes()...)
}

// AppendValue appends a plain value: integers as numbers, beyond 64 bits as
// decimal strings; floats as numbers or "nan", "inf", "-inf"; bytes as
// "hex:…"; complex numbers, dtypes, devices and the like as text. encoding is
// "latin1" for a text that was no UTF-8.
func AppendValue(b []byte, v nested.Value) (json []byte, encoding string) {
	switch v := v.(type) {
	case nested.None:
		return append(b, "null"...), ""
	case nested.Bool:
		return strconv.AppendBool(b, bool(v)), ""
	case nested.Int:
		return strconv.AppendInt(b, int64(v), 10), ""
	case nested.BigInt:
		return jsonout.AppendString(b, v.Int.String()), ""
	case nested.Float:
		return jsonout.AppendFloat(b, float64(v)), ""
	case nested.String:
		text, enc := v.Text()
		return jsonout.AppendString(b, text), enc
	case nested.Bytes:
		return appendHex(b, string(v)), ""
	case nested.ByteArray:
		return appendHex(b, string(v)), ""
	case nested.Symbol:
		text, enc := nested.String(v.Text).Text()
		return jsonout.AppendString(b, text), enc
	default:
		return jsonout.AppendString(b, nested.Repr(v)), ""
	}
}

func appendHex(b []byte, s string) []byte {
	b = append(b, `"hex:`...)
	b = hex.AppendEncode(b, []byte(s))
	return append(b, '"')
}

// SameKey reports whether two keys are the same: of one type and value.
func SameKey(a, b nested.Value) bool {
	return string(appendKey(nil, a)) == string(appendKey(nil, b))
}

// SamePath reports whether two paths lead the same way, key types included.
func SamePath(a, b nested.Path) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !SameKey(a[i], b[i]) {
			return false
		}
	}
	return true
}
