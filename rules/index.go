package rules

import (
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// Entry is one named place of a tree: a scalar, a leaf, an empty container, or
// an opaque object.
type Entry struct {
	Name  string      // the flat name
	Path  nested.Path // the exact path
	Value nested.Value

	tensor *tensor.Tensor // of a leaf, made once: a packed one is laid over its slice each time
	inside bool           // an opaque object with members, which have entries of their own
}

func newEntry(name string, path nested.Path, v nested.Value) Entry {
	e := Entry{Name: name, Path: path, Value: v}
	switch v := v.(type) {
	case nested.Leaf:
		e.tensor = v.AsTensor()
	case *nested.Opaque:
		e.inside = v.Members != nil
	}
	return e
}

// Tensor returns the entry's tensor, nil if it is something else.
func (e *Entry) Tensor() *tensor.Tensor { return e.tensor }

// File returns the name, without folders, of the file that the entry's tensor
// lies in, the first if there are several: of a checkpoint in several files, the
// shard. It is "" where that is not known.
func (e *Entry) File() string {
	if e.tensor == nil {
		return ""
	}
	for s := range e.tensor.Storages() {
		if s == nil { // a tensor without data
			continue
		}
		if file := s.File(); file != "" {
			return path.Base(filepath.ToSlash(file))
		}
	}
	return ""
}

// Inside reports whether the entry is an opaque object whose members have
// entries of their own.
func (e *Entry) Inside() bool { return e.inside }

// Index finds the entries of a tree by name. It is immutable once made and
// safe for concurrent use.
type Index struct {
	Root    nested.Value
	Entries []Entry // in the order of the file

	sorted []int           // the numbers of the entries, by name
	byName map[string]span // ranges of sorted; nil in a small index
}

// NewIndex lists the tree. It fails with [fault.ErrLimit] as [nested.Walk] does
// under its default limits.
func NewIndex(root nested.Value) (*Index, error) {
	n := 0 // what grows to a million is copied twenty times, and what is left behind is memory too
	if err := nested.Walk(root, nested.WalkLimits{}, func(nested.Path, nested.Value) error { n++; return nil }); err != nil {
		return nil, err
	}
	x := &Index{Root: root, Entries: make([]Entry, 0, n)}
	err := nested.Walk(root, nested.WalkLimits{}, func(path nested.Path, v nested.Value) error {
		x.Entries = append(x.Entries, newEntry(path.String(), slices.Clone(path), v))
		return nil
	})
	if err != nil {
		return nil, err
	}
	x.index()
	return x, nil
}

// smallIndex is how many entries are searched without a map: records are
// loaded in less memory than it would take.
const smallIndex = 2048

func (x *Index) index() {
	x.sorted = make([]int, len(x.Entries))
	for i := range x.sorted {
		x.sorted[i] = i
	}
	slices.SortStableFunc(x.sorted, func(a, b int) int { return strings.Compare(x.Entries[a].Name, x.Entries[b].Name) })
	if len(x.Entries) <= smallIndex {
		return
	}
	x.byName = make(map[string]span, len(x.Entries))
	for i := 0; i < len(x.sorted); {
		name, first := x.Entries[x.sorted[i]].Name, i
		for i < len(x.sorted) && x.Entries[x.sorted[i]].Name == name {
			i++
		}
		x.byName[name] = span{first, i}
	}
}

// span is a range of the sorted entries.
type span struct{ lo, hi int }

// Lookup returns the numbers of the entries with exactly this flat name, in
// the order of the file. The slice must not be changed.
func (x *Index) Lookup(name string) []int {
	if x.byName != nil {
		s := x.byName[name]
		return x.sorted[s.lo:s.hi]
	}
	lo := x.search(name)
	hi := lo
	for hi < len(x.sorted) && x.Entries[x.sorted[hi]].Name == name {
		hi++
	}
	return x.sorted[lo:hi]
}

// search is the place of the first name that is not before name.
func (x *Index) search(name string) int {
	return sort.Search(len(x.sorted), func(i int) bool { return x.Entries[x.sorted[i]].Name >= name })
}

// Named returns the name that is prefix and key, put together, if an entry has it,
// without making it anew.
func (x *Index) Named(prefix, key string) (name string, ok bool) {
	at := sort.Search(len(x.sorted), func(i int) bool { return compareJoined(x.Entries[x.sorted[i]].Name, prefix, key) >= 0 })
	if at == len(x.sorted) {
		return "", false
	}
	name = x.Entries[x.sorted[at]].Name
	return name, compareJoined(name, prefix, key) == 0
}

// compareJoined compares s with prefix and key put together.
func compareJoined(s, prefix, key string) int {
	if len(s) <= len(prefix) {
		if c := strings.Compare(s, prefix[:len(s)]); c != 0 {
			return c
		}
		return len(s) - len(prefix) - len(key)
	}
	if c := strings.Compare(s[:len(prefix)], prefix); c != 0 {
		return c
	}
	return strings.Compare(s[len(prefix):], key)
}

// Under returns the numbers of the entries whose names begin with prefix, in
// the order of their names. The slice must not be changed.
func (x *Index) Under(prefix string) []int {
	lo := x.search(prefix)
	n := sort.Search(len(x.sorted)-lo, func(i int) bool { return !strings.HasPrefix(x.Entries[x.sorted[lo+i]].Name, prefix) })
	return x.sorted[lo : lo+n]
}

// Children returns the distinct keys directly below prefix, which is "" or
// ends with a dot, in natural order: what lies between prefix and the next
// dot.
func (x *Index) Children(prefix string) []string {
	under := x.Under(prefix)
	var keys []string
	for i := 0; i < len(under); {
		name := x.Entries[under[i]].Name
		key, _, deeper := strings.Cut(name[len(prefix):], ".")
		if len(keys) == 0 || keys[len(keys)-1] != key {
			keys = append(keys, key)
		}
		if !deeper {
			i++
			continue
		}
		// All that lies below the key is skipped in one search.
		below := prefix + key + "."
		i += sort.Search(len(under)-i, func(j int) bool { return !strings.HasPrefix(x.Entries[under[i+j]].Name, below) })
	}
	slices.SortFunc(keys, Natural)
	return slices.Compact(keys)
}

// Match calls yield for every entry that the name matches, with what its
// captures hold: first by the exact path if the name is one, else by pattern.
func (x *Index) Match(n *Name, yield func(i int, captures map[string]string)) {
	switch {
	case n.Path != nil:
		for _, i := range x.Lookup(n.Text) {
			if samePath(x.Entries[i].Path, n.Path) {
				yield(i, nil)
			}
		}
	case n.pattern.IsLiteral():
		for _, i := range x.Lookup(n.pattern.text) {
			yield(i, nil)
		}
	default:
		for i := range x.Entries {
			if captures, ok := n.pattern.Match(x.Entries[i].Name); ok {
				yield(i, captures)
			}
		}
	}
}

// Tensors returns the entries with tensors that the name matches, in natural
// order. It fails with [fault.ErrNotFound], naming the near miss, when there is
// none, and with [fault.ErrAmbiguous] when a name without wildcards has several.
func (x *Index) Tensors(n *Name) ([]int, error) {
	var found []int
	other := ""
	x.Match(n, func(i int, _ map[string]string) {
		if x.Entries[i].Tensor() != nil {
			found = append(found, i)
		} else {
			other = nested.TypeName(x.Entries[i].Value)
		}
	})
	switch {
	case len(found) == 0 && other != "":
		return nil, fault.New(fault.Mismatch, "a "+other).OnPath(n.Text).Needs("a tensor", "")
	case len(found) == 0:
		return nil, x.missing(n)
	case len(found) > 1 && n.pattern.IsLiteral():
		return nil, fault.New(fault.Ambiguous, "several tensors are called "+n.String()).Needs("one", `give the exact path, as in ["a.b", 0]`)
	}
	slices.SortStableFunc(found, func(a, b int) int { return Natural(x.Entries[a].Name, x.Entries[b].Name) })
	return found, nil
}

func (x *Index) missing(n *Name) error {
	e := fault.New(fault.NotFound, "nothing is called "+n.String())
	if near := x.Nearest(n.Text); near != "" {
		e.Cure = "did you mean " + near + "?"
	}
	return e
}

// maxCandidates bounds the names that a near miss is looked for among.
const maxCandidates = 1 << 14

// Nearest returns the name of a tensor that a person most likely meant, "" if
// none is near.
func (x *Index) Nearest(name string) string {
	var names []string
	for i := range x.Entries {
		if len(names) < maxCandidates && x.Entries[i].Tensor() != nil {
			names = append(names, x.Entries[i].Name)
		}
	}
	return nested.Nearest(name, names)
}

func samePath(a, b nested.Path) bool {
	return slices.EqualFunc(a, b, func(x, y nested.Value) bool {
		switch x := x.(type) {
		case nested.String, nested.Int:
			return x == y
		default:
			return false
		}
	})
}

// Natural compares two names with runs of digits as numbers: layer2 comes
// before layer10.
func Natural(a, b string) int {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		if isDigit(a[i]) && isDigit(b[j]) {
			m, n := digits(a[i:]), digits(b[j:])
			if c := compareDigits(a[i:i+m], b[j:j+n]); c != 0 {
				return c
			}
			i, j = i+m, j+n
			continue
		}
		if a[i] != b[j] {
			return int(a[i]) - int(b[j])
		}
		i, j = i+1, j+1
	}
	if c := (len(a) - i) - (len(b) - j); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func digits(s string) int {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return n
}

func compareDigits(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
