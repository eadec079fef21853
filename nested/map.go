package nested

import (
	"iter"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/fault"
)

// Entry is one key of a [Map] with its value.
type Entry struct{ Key, Value Value }

// Map is a mapping that keeps the order of insertion and the types of its
// keys: the key Int(0) is not String("0"). Numbers that are equal are one key, as
// in Python: Bool(true), Int(1) and Float(1) find the same entry. Class says what it was in Python:
// "dict", "collections.OrderedDict", "collections.Counter" and so on.
type Map struct {
	Class string
	Attrs Value // what BUILD gave the mapping itself (a state dict's _metadata), nil if nothing

	entries []Entry
	index   *keyIndex // nil while a search costs less
}

// NewMap returns an empty map of the given class.
func NewMap(class string) *Map { return &Map{Class: class} }

// Grow makes room for n more keys, which must have been seen to be there: it
// allocates at once.
func (m *Map) Grow(n int) { m.entries = slices.Grow(m.entries, n) }

// Len returns the number of keys.
func (m *Map) Len() int { return len(m.entries) }

// All yields keys and values in the order of insertion.
func (m *Map) All() iter.Seq2[Value, Value] {
	return func(yield func(Value, Value) bool) {
		for _, e := range m.entries {
			if !yield(e.Key, e.Value) {
				return
			}
		}
	}
}

// Entry returns the i-th key and value in the order of insertion.
func (m *Map) Entry(i int) Entry { return m.entries[i] }

// Get returns the value under a key of any hashable type.
func (m *Map) Get(key Value) (Value, bool) {
	i, _, ok, err := m.lookup(key)
	if err != nil || !ok {
		return nil, false
	}
	return m.entries[i].Value, true
}

// Lookup returns the value under a string key.
func (m *Map) Lookup(name string) (Value, bool) { return m.Get(String(name)) }

// Set stores value under key, in the key's old place and type if the map has it. It
// fails with [fault.ErrMalformed] on a key that Python could not hash, and on a
// second NaN, of which only Python knows whether it is the first.
func (m *Map) Set(key, value Value) error {
	i, hash, ok, err := m.lookup(key)
	if err != nil {
		return err
	}
	if f, isFloat := key.(Float); ok && isFloat && f != f { //nolint:gocritic // NaN
		return fault.New(fault.Malformed, "a second NaN as a dictionary key").Needs("one", "the pickle was made to deceive")
	}
	if ok {
		m.entries[i].Value = value
		return nil
	}
	m.entries = append(m.entries, Entry{key, value})
	if m.index != nil {
		m.index.add(len(m.entries)-1, hash)
	} else if len(m.entries) > smallMap {
		m.index = newKeyIndex(m.entries)
	}
	return nil
}

// smallMap is how many keys are searched without an index: most maps of a
// checkpoint are an optimizer's or a config's handful.
const smallMap = 8

// lookup finds the entry with the key, or fails if there can be none. It also
// returns the key's hash if the map has an index.
func (m *Map) lookup(key Value) (i int, hash uint32, ok bool, err error) {
	text, isText := key.(String)
	var id keyID
	if !isText {
		if id, err = idOf(key, keyRoom); err != nil {
			return 0, 0, false, err
		}
	}
	same := func(e *Entry) bool {
		if have, ok := e.Key.(String); ok || isText {
			return ok && isText && have == text
		}
		have, _ := idOf(e.Key, keyRoom)
		return have == id
	}
	if m.index != nil {
		hash = hashOf(text, id)
		i, ok = m.index.find(m.entries, hash, same)
		return i, hash, ok, nil
	}
	for i := range m.entries {
		if same(&m.entries[i]) {
			return i, 0, true, nil
		}
	}
	return 0, 0, false, nil
}

// keyID is a comparable stand-in for a key.
type keyID struct {
	kind byte
	num  int64
	text string
	node Value // identity, for opaque objects
}

// keyRoom bounds the bytes that a tuple's identity is spelled in. Tuples that
// share their items can be exponentially large; over the bound, a tuple is told
// apart by its node.
const keyRoom = 1 << 12

// idOf returns the identity that a key has in a dict: as in Python, numbers of
// equal value are one key, whatever their types.
func idOf(key Value, room int) (keyID, error) {
	switch k := key.(type) {
	case String:
		return keyID{kind: 's', text: string(k)}, nil
	case Int:
		return keyID{kind: 'i', num: int64(k)}, nil
	case Bool:
		return keyID{kind: 'i', num: boolInt(bool(k))}, nil
	case None:
		return keyID{kind: 'n'}, nil
	case Bytes:
		return keyID{kind: 'y', text: string(k)}, nil
	case Symbol:
		return keyID{kind: 'S', text: k.Class + "\x00" + k.Text}, nil
	case Component:
		return keyID{kind: '#', text: string(k)}, nil
	case BigInt:
		return idOfBig(k.Int), nil
	case Float:
		return idOfFloat(float64(k)), nil
	case Complex:
		return idOfComplex(complex128(k)), nil
	case *Opaque:
		return keyID{kind: 'o', node: k}, nil
	case *Tensor:
		return keyID{kind: 't', node: k}, nil
	case *List:
		return idOfList(k, room)
	default:
		return keyID{}, unhashable(key)
	}
}

func idOfBig(n *big.Int) keyID {
	if n.IsInt64() {
		return keyID{kind: 'i', num: n.Int64()}
	}
	return keyID{kind: 'I', num: int64(n.Sign()), text: string(n.Bytes())}
}

// idOfFloat is that of the integer that a float equals, if it equals one.
func idOfFloat(f float64) keyID {
	switch {
	case f != math.Trunc(f) || math.IsInf(f, 0):
	case f >= -1<<63 && f < 1<<63:
		return keyID{kind: 'i', num: int64(f)}
	default:
		n, _ := big.NewFloat(f).Int(nil)
		return idOfBig(n)
	}
	return keyID{kind: 'f', num: int64(math.Float64bits(f))} //nolint:gosec // bits, not a number
}

func idOfComplex(c complex128) keyID {
	if imag(c) == 0 {
		return idOfFloat(real(c))
	}
	return keyID{kind: 'c', text: strconv.FormatComplex(c+0, 'x', -1, 128)} // zero has no sign
}

// idOfList spells a tuple as its items' identities, and a frozenset as them in an
// order of their own. Each level costs some room, so that the recursion ends.
func idOfList(l *List, room int) (keyID, error) {
	if l.Class == "list" || l.Class == "set" {
		return keyID{}, unhashable(l)
	}
	kind := byte('T')
	if l.Class == "frozenset" {
		kind = 'F'
	}
	const levelCost = 128
	items := make([]string, 0, min(len(l.Items), 64))
	for _, item := range l.Items {
		left := room - levelCost
		if left < 0 {
			return keyID{kind: kind, node: l}, nil
		}
		id, err := idOf(item, left)
		if err != nil {
			return keyID{}, err
		}
		if id.node != nil || len(id.text) > left {
			return keyID{kind: kind, node: l}, nil
		}
		items = append(items, id.spelled())
		room -= len(items[len(items)-1])
	}
	if kind == 'F' {
		slices.Sort(items)
	}
	return keyID{kind: kind, text: strings.Join(items, "")}, nil
}

// spelled is an identity as a part of a longer one.
func (id keyID) spelled() string {
	text := append(make([]byte, 0, 16+len(id.text)), id.kind)
	text = append(strconv.AppendInt(text, id.num, 36), ':')
	text = append(strconv.AppendInt(text, int64(len(id.text)), 36), ':')
	return string(append(text, id.text...))
}

// Distinct returns what a set has of items: each once, the first of those that
// are equal. It fails as [Map.Set] does on one that Python could not hash.
func Distinct(items []Value) ([]Value, error) {
	var kept []Value
	m := NewMap("set")
	for _, item := range items {
		n := m.Len()
		if err := m.Set(item, None{}); err != nil {
			return nil, err
		}
		if m.Len() > n {
			kept = append(kept, item)
		}
	}
	return kept, nil
}

func unhashable(key Value) error {
	return fault.New(fault.Malformed, "a "+TypeName(key)+" as a dictionary key").
		Needs("a hashable key", "the pickle is damaged or was made to deceive")
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
