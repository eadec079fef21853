package meta

import (
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/internal/strictjson"
	"github.com/wick-ml/wick/nested"
)

// JSONReader takes a tree off JSON text as [JSON] writes it.
type JSONReader struct {
	// Leaf takes what stands behind the key "$tensor".
	Leaf func(r *strictjson.Reader) (nested.Value, error)
	// Limits bounds the number of values and the digits of an integer.
	Limits checkpoint.Limits
	// Parts says after reading that a quantized tensor was met, which [Quantized]
	// puts together.
	Parts bool

	values int64
}

// Value takes one value off r.
func (d *JSONReader) Value(r *strictjson.Reader) (nested.Value, error) {
	d.values++
	if err := checkpoint.At("paths", d.values, d.Limits.Default().Paths); err != nil {
		return nil, err
	}
	switch r.Kind() {
	case strictjson.Object:
		return d.object(r)
	case strictjson.Array:
		l := nested.NewList("list")
		err := r.Array(func() error {
			v, err := d.Value(r)
			l.Items = append(l.Items, v)
			return err
		})
		return l, err
	case strictjson.String:
		s, err := r.Text()
		return nested.String(s), err
	case strictjson.Number:
		return d.number(r)
	case strictjson.True, strictjson.False:
		b, err := r.Bool()
		return nested.Bool(b), err
	default:
		return nested.None{}, r.Null()
	}
}

// number keeps integers and floats apart by their spelling.
func (d *JSONReader) number(r *strictjson.Reader) (nested.Value, error) {
	at := r.Offset()
	number, err := r.Number()
	if err != nil {
		return nil, err
	}
	text := string(number)
	if strings.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fault.New(fault.Malformed, "a float out of range").At(int64(at)).Needs("a number of 64 bits", fault.GetAgain)
		}
		return nested.Float(f), nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return nested.Int(n), nil
	}
	if err := checkpoint.At("int bytes", int64(len(text)/2), d.Limits.Default().IntBytes); err != nil {
		return nil, err
	}
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return nil, fault.New(fault.Malformed, "an integer of no digits").At(int64(at)).Needs("digits", fault.GetAgain)
	}
	return nested.BigInt{Int: n}, nil
}

// mostRoom is for how many entries a dict is given room at once.
const mostRoom = 64

// object takes a dict, or an object that was unbuilt: its first key starts with
// a dollar sign and is the only one.
func (d *JSONReader) object(r *strictjson.Reader) (nested.Value, error) {
	var m *nested.Map
	var built nested.Value
	err := r.Object(func(key string) (err error) {
		if built != nil {
			return r.Wrong("the end of an object")
		}
		if name, special := strings.CutPrefix(key, "$"); special && m == nil {
			built, err = d.special(r, name)
			return err
		}
		if m == nil {
			m = nested.NewMap("dict")
			m.Grow(min(r.Room(), mostRoom))
		}
		v, err := d.Value(r)
		if err != nil {
			return err
		}
		return m.Set(nested.String(key), v)
	})
	switch {
	case err != nil || built != nil:
		return built, err
	case m == nil:
		return nested.NewMap("dict"), nil
	default:
		return m, nil
	}
}

func (d *JSONReader) special(r *strictjson.Reader, name string) (nested.Value, error) {
	if name == "tensor" && r.Kind() != strictjson.Array {
		return d.Leaf(r)
	}
	at := r.Offset()
	v, err := d.Value(r)
	if err != nil {
		return nil, err
	}
	args, ok := v.(*nested.List)
	if !ok || args.Class != "list" {
		return nil, fault.New(fault.Malformed, "an object "+name+" without a list of arguments").At(int64(at)).Needs("a list", fault.GetAgain)
	}
	d.Parts = d.Parts || name == nameQuantized
	built, err := build(name, args.Items)
	return built, fault.At(err, int64(at))
}

// build adds to [Build] what JSON needs beyond the plain values.
func build(name string, args []nested.Value) (nested.Value, error) {
	if name == "dict" && (len(args) == 0 || isPair(args[0])) {
		return dictOf(args)
	}
	if text, ok := oneText(args); ok {
		switch name {
		case "bytes":
			if b, err := hex.DecodeString(text); err == nil {
				return nested.Bytes(b), nil
			}
			return nil, badObject(name)
		case "float":
			if f, ok := map[string]float64{"nan": math.NaN(), "inf": math.Inf(1), "-inf": math.Inf(-1)}[text]; ok {
				return nested.Float(f), nil
			}
			return nil, badObject(name)
		}
	}
	return Build(name, args)
}

func oneText(args []nested.Value) (string, bool) {
	if len(args) != 1 {
		return "", false
	}
	s, ok := args[0].(nested.String)
	return string(s), ok
}

func isPair(v nested.Value) bool {
	l, ok := v.(*nested.List)
	return ok && l.Class == "list" && len(l.Items) == 2
}

func dictOf(pairs []nested.Value) (nested.Value, error) {
	m := nested.NewMap("dict")
	for _, p := range pairs {
		if !isPair(p) {
			return nil, badObject("dict")
		}
		pair, _ := p.(*nested.List)
		if _, twice := m.Get(pair.Items[0]); twice {
			return nil, fault.New(fault.Malformed, "a key twice in one dict: "+nested.Repr(pair.Items[0])).Needs("each key once", fault.GetAgain)
		}
		if err := m.Set(pair.Items[0], pair.Items[1]); err != nil {
			return nil, err
		}
	}
	return m, nil
}
