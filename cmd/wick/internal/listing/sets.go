package listing

import (
	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
	"github.com/wick-ml/wick/nested"
)

// Set is a set or frozenset of plain values. Its elements have positions in the
// file but none in Python, so they are no rows of their own.
type Set struct {
	Seq  int
	Path nested.Path
	List *nested.List
}

// JSON returns the row as one object of "sets". An element that is no plain
// value is a text in Python's spelling.
func (s *Set) JSON() []byte {
	var o jsonout.Object
	name, encoding := s.Path.Text()
	o.String("path", name)
	o.String("type", s.List.Class)
	items := []byte{'['}
	for i, item := range s.List.Items {
		if i > 0 {
			items = append(items, ',')
		}
		var enc string
		if items, enc = AppendValue(items, item); enc != "" {
			encoding = enc
		}
	}
	o.Raw("items", append(items, ']'))
	if encoding != "" {
		o.String("encoding", encoding)
	}
	return o.Bytes()
}

// setFinder tells the sets that paths lead through. Neighbours in a walk mostly
// have one parent, for which the answer is kept.
type setFinder struct {
	root   nested.Value
	parent nested.Path
	known  bool
	depth  int // steps to the set
	set    *nested.List
}

// find returns the outermost set on the way to p and the steps to it, nil when
// there is none.
func (f *setFinder) find(p nested.Path) (set *nested.List, depth int) {
	if len(p) == 0 {
		return nil, 0
	}
	parent := p[:len(p)-1]
	if !f.known || !sameKeys(parent, f.parent) {
		f.parent, f.known = append(f.parent[:0], parent...), true
		f.set, f.depth = f.descend(parent)
	}
	return f.set, f.depth
}

func (f *setFinder) descend(p nested.Path) (set *nested.List, depth int) {
	v := inside(f.root)
	for i := 0; ; i++ {
		if l, ok := v.(*nested.List); ok && (l.Class == "set" || l.Class == "frozenset") {
			return l, i
		}
		if i == len(p) {
			return nil, 0
		}
		v = inside(child(v, p[i]))
	}
}

// inside steps from an opaque object to its members, as a walk does.
func inside(v nested.Value) nested.Value {
	for {
		o, ok := v.(*nested.Opaque)
		if !ok {
			return v
		}
		v = o.Members
	}
}

// child returns what lies one step below v, nil if nothing does.
func child(v, key nested.Value) nested.Value {
	switch v := v.(type) {
	case *nested.Map:
		x, _ := v.Get(key)
		return x
	case *nested.List:
		if i, ok := key.(nested.Int); ok && i >= 0 && int64(i) < int64(len(v.Items)) {
			return v.Items[i]
		}
	}
	return nil
}

func sameKeys(a, b nested.Path) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] { // keys are comparable: a packed array is none
			return false
		}
	}
	return true
}
