// Package strictjson reads and writes JSON where a stranger's text must not
// pass for something else: duplicate keys, invalid UTF-8, control characters
// and leftovers are errors, integers keep all their digits, members keep their
// order, and lone surrogates survive. A text is read once from front to back;
// nothing is allocated for what is skipped.
package strictjson

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"strconv"

	"github.com/wick-ml/wick/fault"
)

// Kind is the kind of the value that comes next.
type Kind byte

// The kinds of values.
const (
	Bad    Kind = 0 // no value starts here
	Object Kind = '{'
	Array  Kind = '['
	String Kind = '"'
	Number Kind = '0'
	True   Kind = 't'
	False  Kind = 'f'
	Null   Kind = 'n'
)

// Reader takes values off a JSON text, one after another. Its errors are
// [fault.ErrMalformed] with the offset in the text. Not safe for concurrent
// use.
type Reader struct {
	b     []byte
	i     int
	depth int
	keys  [4]string // the last short keys that were met: most objects of a text have the same few
	next  int       // of keys, to be replaced
	asked int       // by Room, in all
}

// maxDepth bounds the nesting of arrays and objects: the reader recurses.
const maxDepth = 10_000

// NewReader returns a reader of text, which it aliases.
func NewReader(text []byte) *Reader { return &Reader{b: text} }

// Offset returns where the reader stands, in bytes.
func (r *Reader) Offset() int { return r.i }

// Remaining returns how many bytes are left.
func (r *Reader) Remaining() int { return len(r.b) - r.i }

// Kind returns what comes next without taking it.
func (r *Reader) Kind() Kind {
	r.space()
	if r.i >= len(r.b) {
		return Bad
	}
	switch c := r.b[r.i]; {
	case c == '-' || c >= '0' && c <= '9':
		return Number
	case c == '{' || c == '[' || c == '"' || c == 't' || c == 'f' || c == 'n':
		return Kind(c)
	default:
		return Bad
	}
}

// Object takes an object and calls member for each of its members, in order.
// member must take the value. A repeated key is an error.
func (r *Reader) Object(member func(key string) error) error {
	var seen keySet
	return r.items('{', '}', func() error {
		at := r.i
		key, err := r.key()
		if err != nil {
			return err
		}
		if !seen.add(key, r.Room) {
			return r.errorAt(at, "the key "+strconv.Quote(fault.Clean(key, 100))+" twice in one object")
		}
		if err := r.literal(":"); err != nil {
			return err
		}
		return member(key)
	})
}

// key takes a string as Text does, and makes the keys that come again once.
func (r *Reader) key() (string, error) {
	for _, k := range &r.keys {
		end := r.i + 1 + len(k)
		if k != "" && end < len(r.b) && r.b[r.i] == '"' && r.b[end] == '"' && string(r.b[r.i+1:end]) == k {
			r.i = end + 1
			return k, nil
		}
	}
	start := r.i
	key, err := r.Text()
	if plain := r.i-start == len(key)+2; err == nil && plain && len(key) <= maxKept {
		r.keys[r.next] = key
		r.next = (r.next + 1) % len(r.keys)
	}
	return key, err
}

// Word takes a string as Text does, and makes the short ones that come again once:
// for values that are few words, as the name of a dtype is.
func (r *Reader) Word() (string, error) {
	r.space()
	return r.key()
}

// maxKept is the longest key that is kept, bytes.
const maxKept = 16

// Array takes an array and calls element for each of its elements, which must
// take it.
func (r *Reader) Array(element func() error) error { return r.items('[', ']', element) }

func (r *Reader) items(first, last byte, item func() error) error {
	if err := r.literal(string(first)); err != nil {
		return err
	}
	if r.depth++; r.depth > maxDepth {
		return fault.NewBound("nesting of JSON", int64(r.depth), maxDepth).At(int64(r.i))
	}
	defer func() { r.depth-- }()
	if r.take(last) {
		return nil
	}
	for {
		r.space()
		if err := item(); err != nil {
			return err
		}
		if r.take(last) {
			return nil
		}
		if err := r.literal(","); err != nil {
			return err
		}
	}
}

// Null takes null.
func (r *Reader) Null() error { return r.literal("null") }

// Bool takes true or false.
func (r *Reader) Bool() (bool, error) {
	if r.Kind() == True {
		return true, r.literal("true")
	}
	return false, r.literal("false")
}

// Skip takes the next value, whatever it is, and checks it.
func (r *Reader) Skip() error {
	switch r.Kind() {
	case Object:
		return r.Object(func(string) error { return r.Skip() })
	case Array:
		return r.Array(r.Skip)
	case String:
		_, err := r.Text()
		return err
	case Number:
		_, err := r.Number()
		return err
	case True, False:
		_, err := r.Bool()
		return err
	default:
		return r.Null()
	}
}

// End makes sure that nothing but white space is left.
func (r *Reader) End() error {
	if r.space(); r.i < len(r.b) {
		return r.error("more text behind the value")
	}
	return nil
}

// error returns a malformed error at the reader's place.
func (r *Reader) error(found string) error { return r.errorAt(r.i, found) }

func (r *Reader) errorAt(at int, found string) error {
	return fault.New(fault.Malformed, found).At(int64(at)).Needs("strict JSON", "the text is damaged: get the file again")
}

// Wrong returns the error for a value of another kind than want.
func (r *Reader) Wrong(want string) error {
	r.space()
	if r.i >= len(r.b) {
		return r.error("the JSON text ends where " + want + " should be")
	}
	return r.error(strconv.QuoteToASCII(string(rune(r.b[r.i]))) + " where " + want + " should be")
}

func (r *Reader) space() {
	for r.i < len(r.b) {
		switch r.b[r.i] {
		case ' ', '\t', '\r', '\n':
			r.i++
		default:
			return
		}
	}
}

// take takes the byte c if it comes next.
func (r *Reader) take(c byte) bool {
	r.space()
	if r.i < len(r.b) && r.b[r.i] == c {
		r.i++
		return true
	}
	return false
}

// literal takes exactly the bytes of s.
func (r *Reader) literal(s string) error {
	r.space()
	if len(r.b)-r.i < len(s) || string(r.b[r.i:r.i+len(s)]) != s {
		return r.Wrong(s)
	}
	r.i += len(s)
	return nil
}

// keySet tells repeated keys; small objects, which are most, cost nothing.
type keySet struct {
	few  [8]string
	n    int
	some []string // up to a few dozen are looked through
	many *bigSet
}

// perKey is about how many bytes a member of a large object has at least: in a
// header of safetensors some 100. The set grows if there are more.
const perKey = 80

// maxSome is how many keys are looked through before there is a map of them.
const maxSome = 64

// Room returns for how many members of an object that begins here there may be text,
// so that who keeps them can make room. All calls together answer with no more than
// twice what the text has room for, whatever it is.
func (r *Reader) Room() int {
	n := (len(r.b) - r.i) / perKey
	if r.asked += n; r.asked > 2*len(r.b)/perKey {
		return 0
	}
	return n
}

// add adds a key and reports whether it is new. room says for how many keys there
// should be room once they are no longer few.
func (s *keySet) add(key string, room func() int) bool {
	if s.many == nil && s.n < len(s.few) {
		for _, k := range s.few[:s.n] {
			if k == key {
				return false
			}
		}
		s.few[s.n] = key
		s.n++
		return true
	}
	if s.many == nil && len(s.some) < maxSome {
		if slices.Contains(s.few[:], key) || slices.Contains(s.some, key) {
			return false
		}
		if s.some == nil {
			s.some = make([]string, 0, min(maxSome, max(len(s.few), room())))
		}
		s.some = append(s.some, key)
		return true
	}
	if s.many == nil {
		s.many = newBigSet(max(2*maxSome, room()))
		for _, k := range append(s.some, s.few[:]...) {
			s.many.add(k)
		}
		s.some = nil
	}
	return s.many.add(key)
}

// bigSet is a set of many keys in a third of the memory of a map: a table of their
// places in a list, in which a key stands at its hash or behind it.
type bigSet struct {
	seed  maphash.Seed
	keys  []string
	table []uint32 // one more than the place in keys, 0 for none; a power of two of them
}

func newBigSet(room int) *bigSet {
	s := &bigSet{seed: maphash.MakeSeed(), keys: make([]string, 0, room)}
	s.resize(room)
	return s
}

// resize makes a table in which that many keys leave a quarter free.
func (s *bigSet) resize(room int) {
	s.table = make([]uint32, 1<<bits.Len(uint(room+room/3)))
	for i, k := range s.keys {
		s.table[s.find(k)] = uint32(i) + 1
	}
}

// find returns where in the table the key is, or would be.
func (s *bigSet) find(key string) int {
	last := len(s.table) - 1
	at := int(maphash.String(s.seed, key)) & last
	for s.table[at] != 0 && s.keys[s.table[at]-1] != key {
		at = (at + 1) & last
	}
	return at
}

// add adds a key and reports whether it is new.
func (s *bigSet) add(key string) bool {
	if len(s.keys)+len(s.keys)/3 >= len(s.table) {
		s.resize(2 * len(s.keys))
	}
	at := s.find(key)
	if s.table[at] != 0 {
		return false
	}
	s.keys = append(s.keys, key)
	s.table[at] = uint32(len(s.keys))
	return true
}
