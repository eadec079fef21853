package meta

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/internal/strictjson"
	"github.com/wick-ml/wick/nested"
)

// JSON writes a tree as JSON that [JSONReader] takes back. Integers and floats
// stay apart (a float has a point or an exponent), and what JSON has no words
// for is an object of one member: {"$tuple": [[1, 2]]}, {"$bytes": ["00ff"]},
// {"$float": ["nan"]}. Not safe for concurrent use.
type JSON struct {
	// Leaf writes a tensor, by Raw and Text.
	Leaf func(w *JSON, path nested.Path, leaf nested.Leaf) error

	out    []byte
	tour   *Tour
	indent string
	level  int
}

// NewJSON returns a writer within the limits.
func NewJSON(limits checkpoint.Limits, leaf func(*JSON, nested.Path, nested.Leaf) error) *JSON {
	return &JSON{Leaf: leaf, tour: NewTour(limits)}
}

// Indented makes the writer begin a line for every element, indented by so much
// for each level, from the given level on. Without it all is one line.
func (w *JSON) Indented(indent string, level int) { w.indent, w.level = indent, level }

// Take returns the text written since the last Take.
func (w *JSON) Take() []byte {
	b := w.out
	w.out = nil
	return b
}

// Raw writes JSON text as it stands.
func (w *JSON) Raw(s string) { w.out = append(w.out, s...) }

// Text writes a string, which must be UTF-8; other bytes become U+FFFD.
func (w *JSON) Text(s string) {
	w.out, _ = strictjson.AppendText(w.out, strings.ToValidUTF8(s, "\uFFFD"))
}

// Level returns how deep the writer stands, for leaves that indent themselves.
func (w *JSON) Level() int { return w.level }

// Value writes one value.
func (w *JSON) Value(path nested.Path, v nested.Value) error {
	if leaf, ok := v.(nested.Leaf); ok {
		return w.Leaf(w, path, leaf)
	}
	entered, err := w.tour.Enter(v)
	if err != nil {
		return fault.OnPath(err, path.String())
	}
	defer w.tour.Leave(v, entered)
	if name, args, ok := Unbuild(entered); ok {
		return w.object(path, name, args)
	}
	switch v := entered.(type) {
	case *nested.List:
		return w.list(path, v)
	case *nested.Map:
		return w.dict(path, v)
	case nested.Bytes:
		return w.object(path, "bytes", []nested.Value{nested.String(hex.EncodeToString([]byte(v)))})
	default:
		return w.scalar(path, v)
	}
}

func (w *JSON) scalar(path nested.Path, v nested.Value) error {
	switch v := v.(type) {
	case nested.None:
		w.Raw("null")
	case nested.Bool:
		w.out = strconv.AppendBool(w.out, bool(v))
	case nested.Int:
		w.out = strconv.AppendInt(w.out, int64(v), 10)
	case nested.BigInt:
		w.out = v.Int.Append(w.out, 10)
	case nested.String:
		w.Text(string(v))
	case nested.Float:
		return w.float(path, float64(v))
	default:
		return fault.New(fault.Unsupported, "a "+nested.TypeName(v)+" in a record").OnPath(path.String())
	}
	return nil
}

func (w *JSON) float(path nested.Path, f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return w.object(path, "float", []nested.Value{nested.String(nested.Repr(nested.Float(f)))})
	}
	start := len(w.out)
	w.out = strconv.AppendFloat(w.out, f, 'g', -1, 64)
	if !strings.ContainsAny(string(w.out[start:]), ".e") {
		w.Raw(".0")
	}
	return nil
}

// object writes {"$name": [args…]}.
func (w *JSON) object(path nested.Path, name string, args []nested.Value) error {
	if !utf8.ValidString(name) {
		return fault.New(fault.Unsupported, "a class name that is no UTF-8").OnPath(path.String())
	}
	w.Raw("{")
	w.Text("$" + name)
	w.Raw(":")
	w.space()
	w.Raw("[")
	for i, arg := range args {
		if i > 0 {
			w.Raw(",")
			w.space()
		}
		if err := w.Value(path, arg); err != nil {
			return err
		}
	}
	w.Raw("]}")
	return nil
}

func (w *JSON) list(path nested.Path, l *nested.List) error {
	return w.items("[", "]", len(l.Items), func(i int) error {
		return w.Value(append(path, nested.Int(i)), l.Items[i])
	})
}

func (w *JSON) dict(path nested.Path, m *nested.Map) error {
	if !plainKeys(m) {
		return w.pairs(path, m)
	}
	return w.items("{", "}", m.Len(), func(i int) error {
		e := m.Entry(i)
		w.Text(nested.KeyName(e.Key))
		w.Raw(":")
		w.space()
		return w.Value(append(path, e.Key), e.Value)
	})
}

// plainKeys reports whether the keys are strings that JSON can say and that
// nobody takes for an object.
func plainKeys(m *nested.Map) bool {
	for key := range m.All() {
		s, ok := key.(nested.String)
		if !ok || !utf8.ValidString(string(s)) {
			return false
		}
	}
	if m.Len() == 0 {
		return true
	}
	first := m.Entry(0).Key
	return !strings.HasPrefix(nested.KeyName(first), "$")
}

// pairs writes {"$dict": [[key, value], …]}.
func (w *JSON) pairs(path nested.Path, m *nested.Map) error {
	w.Raw(`{"$dict":`)
	w.space()
	err := w.items("[", "]", m.Len(), func(i int) error {
		e := m.Entry(i)
		if _, leaf := e.Key.(nested.Leaf); leaf {
			return TensorKey(path)
		}
		w.Raw("[")
		if err := w.Value(path, e.Key); err != nil {
			return err
		}
		w.Raw(",")
		w.space()
		err := w.Value(append(path, e.Key), e.Value)
		w.Raw("]")
		return err
	})
	w.Raw("}")
	return err
}

// TensorKey returns the error for a dict whose key is a tensor.
func TensorKey(path nested.Path) error {
	return fault.New(fault.Unsupported, "a tensor as a dictionary key").OnPath(path.String()).
		Needs("a key that a record can hold", "leave it out with the rule `drop`")
}

func (w *JSON) items(first, last string, n int, item func(int) error) error {
	w.Raw(first)
	w.level++
	for i := range n {
		if i > 0 {
			w.Raw(",")
		}
		w.line()
		if err := item(i); err != nil {
			return err
		}
	}
	if w.level--; n > 0 {
		w.line()
	}
	w.Raw(last)
	return nil
}

// line begins a new line when the text is indented.
func (w *JSON) line() {
	if w.indent != "" {
		w.Raw("\n" + strings.Repeat(w.indent, w.level))
	}
}

func (w *JSON) space() {
	if w.indent != "" {
		w.Raw(" ")
	}
}
