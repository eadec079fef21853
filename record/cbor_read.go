package record

import (
	"math/big"
	"slices"
	"strconv"

	"github.com/fxamacker/cbor/v2"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/record/meta"
	"github.com/wick-ml/wick/tensor"
)

// plain decodes what is neither a container nor a tensor.
var plain = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		UTF8: cbor.UTF8RejectInvalid, IntDec: cbor.IntDecConvertSignedOrBigInt, IndefLength: cbor.IndefLengthForbidden,
		BigIntDec: cbor.BigIntDecodePointer,
	}.DecMode()
	if err != nil {
		panic("BUG: wick/record: " + err.Error())
	}
	return mode
}()

// cborReader builds the tree of a file.
type cborReader struct {
	*cursor
	source checkpoint.Source
	limits checkpoint.Limits
	values int64
	depth  int64
	leaves []pending
	parts  bool // a quantized tensor was met
}

// pending is a tensor whose checksum comes at the end of the file.
type pending struct {
	leaf *nested.Tensor
	spec tensor.StorageSpec
	view tensor.Spec
}

// value reads one value.
func (r *cborReader) value() (nested.Value, error) {
	h, err := r.head()
	if err != nil {
		return nil, err
	}
	return r.valueOf(h)
}

func (r *cborReader) valueOf(h head) (nested.Value, error) {
	r.values++
	if err := checkpoint.At("paths", r.values, r.limits.Paths); err != nil {
		return nil, err
	}
	r.depth++
	defer func() { r.depth-- }()
	if err := checkpoint.At("depth", r.depth, r.limits.Depth); err != nil {
		return nil, err
	}
	switch h.major {
	case majorArray:
		return r.list(h.n)
	case majorMap:
		return r.dict(h.n)
	case majorTag:
		return r.tagged(h)
	default:
		return r.scalar(h, nil)
	}
}

func (r *cborReader) list(n uint64) (*nested.List, error) {
	l := nested.NewList("list")
	for range n {
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, v)
	}
	return l, nil
}

func (r *cborReader) dict(n uint64) (nested.Value, error) {
	m := nested.NewMap("dict")
	for range n {
		key, err := r.value()
		if err != nil {
			return nil, err
		}
		if _, twice := m.Get(key); twice {
			return nil, r.broken("the key "+nested.Repr(key)+" twice in one map", "each key once", "write the file with a tool that follows RFC 8949")
		}
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		if err := m.Set(key, v); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (r *cborReader) tagged(h head) (nested.Value, error) {
	tag := h.n
	raw := append([]byte(nil), h.raw...)
	at := r.at - int64(len(raw))
	next, err := r.head()
	if err != nil {
		return nil, err
	}
	_, isArray := arrayOf[tag]
	switch {
	case (tag == tagBignum || tag == tagBignum+1) && next.major == majorBytes:
		return r.scalar(next, raw)
	case tag == tagObject && next.major == majorArray && next.n > 0:
		return r.object(next.n)
	case tag == tagSet && next.major == majorArray:
		l, err := r.list(next.n)
		if err != nil {
			return nil, err
		}
		return &nested.List{Class: "set", Items: l.Items}, nil
	case tag == tagRowMajor && next.major == majorArray && next.n == 2:
		return r.rowMajor()
	case isArray && next.major == majorBytes:
		return r.array(tag, next, nil)
	}
	return nil, fault.New(fault.Unsupported, "CBOR tag "+strconv.FormatUint(tag, 10)).At(at).
		Needs("tags of RFC 8746, 27, 258 and big numbers", "write the value without the tag")
}

// scalar reads the rest of an item and has it decoded with the bytes in front
// of it: the head of a tag, or nothing.
func (r *cborReader) scalar(h head, before []byte) (nested.Value, error) {
	item := slices.Concat(before, h.raw)
	if h.major == majorBytes || h.major == majorText {
		name, limit := "string bytes", r.limits.StringBytes
		if before != nil {
			name, limit = "int bytes", r.limits.IntBytes
		}
		if err := checkpoint.At(name, int64(h.n), limit); err != nil {
			return nil, err
		}
		start := len(item)
		item = append(item, make([]byte, h.n)...) // no more than there is, says head
		if err := r.read(item[start:]); err != nil {
			return nil, err
		}
	}
	at := r.at - int64(len(item))
	var v any
	if err := plain.Unmarshal(item, &v); err != nil {
		return nil, fault.Wrap(fault.Malformed, "a value that is no CBOR", err).At(at).Needs("CBOR as RFC 8949 has it", fault.GetAgain)
	}
	return toNested(v, at)
}

func toNested(v any, at int64) (nested.Value, error) {
	switch v := v.(type) {
	case nil:
		return nested.None{}, nil
	case bool:
		return nested.Bool(v), nil
	case int64:
		return nested.Int(v), nil
	case *big.Int:
		if v.IsInt64() {
			return nested.Int(v.Int64()), nil
		}
		return nested.BigInt{Int: v}, nil
	case float64:
		return nested.Float(v), nil
	case string:
		return nested.String(v), nil
	case []byte:
		return nested.Bytes(v), nil
	default:
		return nil, fault.New(fault.Unsupported, "a simple value that has no name").At(at).Needs("false, true or null", "")
	}
}

// object reads the name and the arguments behind tag 27.
func (r *cborReader) object(n uint64) (nested.Value, error) {
	at := r.at
	first, err := r.value()
	if err != nil {
		return nil, err
	}
	name, ok := first.(nested.String)
	if !ok {
		return nil, r.broken("an object named by a "+nested.TypeName(first), "a name", fault.GetAgain)
	}
	args, err := r.list(n - 1)
	if err != nil {
		return nil, err
	}
	if name == nameTensor {
		return r.retype(args.Items, at)
	}
	r.parts = r.parts || meta.IsQuantized(string(name))
	v, err := meta.Build(string(name), args.Items)
	return v, fault.At(err, at)
}
