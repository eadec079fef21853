package listing

import (
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// Summary counts what a listing holds. Sums stop at 1<<62: a hostile file can
// claim more.
type Summary struct {
	Tensors  int // rows
	Elements int64
	Bytes    int64 // of the packed forms of all rows
	Storages int   // different storages behind them
	Stored   int64 // bytes of those

	Shared    int // rows whose storage other rows use too
	Strided   int // rows that are not contiguous
	Quantized int
	NoData    int
	Faulty    int // rows whose bytes cannot be had
	Values    int // plain values, a set of them counted once
	Opaque    int

	DTypes []DTypeTotal // in the order of the file
}

// DTypeTotal counts the tensors of one dtype.
type DTypeTotal struct {
	DType    tensor.DType
	Tensors  int
	Elements int64
	Bytes    int64
}

// Group counts the rows below one top-level name.
type Group struct {
	Name     string
	Tensors  int
	Elements int64
	Bytes    int64
	Values   int
	Opaque   int
	Only     nested.Value // the value when the group is nothing but one
}

// Summarize counts the rows of a listing.
func (l *Listing) Summarize() Summary {
	s := Summary{Tensors: len(l.Tensors), Values: l.Values.Len() + len(l.Sets), Opaque: len(l.Opaque)}
	users := map[*tensor.Storage]int{}
	for i := range l.Tensors {
		s.addTensor(&l.Tensors[i], users)
	}
	s.countStorages(l, users)
	return s
}

// Groups counts the rows below the first part of each name: the first groups in
// the order of the file, at most so many, and how many more there are.
func (l *Listing) Groups(most int) (groups []Group, more int) {
	g := grouper{most: most, at: map[string]int{}}
	for row := range l.InOrder() {
		if row.Empty {
			continue // nothing to count
		}
		one := g.of(row.Path)
		switch {
		case one == nil:
		case row.Tensor != nil:
			t := row.Tensor.Tensor()
			one.Tensors++
			one.Elements, one.Bytes = add(one.Elements, t.Len()), add(one.Bytes, t.Bytes())
		case row.Opaque != nil:
			one.Opaque++
		default:
			one.Values++
			one.Only = row.Value
		}
	}
	for i := range g.list {
		if one := &g.list[i]; one.Values != 1 || one.Tensors+one.Opaque > 0 {
			one.Only = nil
		}
	}
	return g.list, len(g.at) - len(g.list)
}

type grouper struct {
	most int
	list []Group
	at   map[string]int // in list, or beyond it
}

// of returns the group of a path, nil for one that is only counted. It is valid
// until the next call.
func (g *grouper) of(p nested.Path) *Group {
	name := firstPart(p)
	i, known := g.at[name]
	if !known {
		i = len(g.at)
		g.at[name] = i
		if i < g.most {
			g.list = append(g.list, Group{Name: name})
		}
	}
	if i >= len(g.list) {
		return nil
	}
	return &g.list[i]
}

// Row is a row of any sort: a tensor, an opaque object, or else a plain value, a
// set of them or an empty container.
type Row struct {
	Path   nested.Path
	Tensor *Tensor
	Opaque *Opaque
	Value  nested.Value
	Empty  bool // Value is a container that holds nothing
}

// InOrder yields all rows in the order of the file, provided that the tensors
// are in it.
func (l *Listing) InOrder() iter.Seq[Row] {
	return func(yield func(Row) bool) {
		nextValue, stop := iter.Pull(l.Values.All())
		defer stop()
		value, more := nextValue()
		nextEmpty, stopEmpty := iter.Pull(l.Empty.All())
		defer stopEmpty()
		empty, moreEmpty := nextEmpty()
		t, s, o := 0, 0, 0
		for {
			row, first := Row{}, math.MaxInt
			if more {
				row, first = Row{Path: value.Path, Value: value.Value}, value.Seq
			}
			if moreEmpty && empty.Seq < first {
				row, first = Row{Path: empty.Path, Value: empty.Value, Empty: true}, empty.Seq
			}
			if t < len(l.Tensors) && l.Tensors[t].Seq < first {
				row, first = Row{Path: l.Tensors[t].Path, Tensor: &l.Tensors[t]}, l.Tensors[t].Seq
			}
			if s < len(l.Sets) && l.Sets[s].Seq < first {
				row, first = Row{Path: l.Sets[s].Path, Value: l.Sets[s].List}, l.Sets[s].Seq
			}
			if o < len(l.Opaque) && l.Opaque[o].Seq < first {
				row, first = Row{Path: l.Opaque[o].Path, Opaque: &l.Opaque[o]}, l.Opaque[o].Seq
			}
			switch {
			case first == math.MaxInt || !yield(row):
				return
			case row.Tensor != nil:
				t++
			case row.Opaque != nil:
				o++
			case row.Empty:
				empty, moreEmpty = nextEmpty()
			case more && value.Seq == first:
				value, more = nextValue()
			default:
				s++
			}
		}
	}
}

func (s *Summary) addTensor(row *Tensor, users map[*tensor.Storage]int) {
	t := row.Tensor()
	n, bytes := t.Len(), t.Bytes()
	s.Elements, s.Bytes = add(s.Elements, n), add(s.Bytes, bytes)
	s.addDType(t.DType(), n, bytes)
	for storage := range t.Storages() {
		users[storage]++
	}
	switch {
	case row.NoData():
		s.NoData++
		return
	case row.Err != nil:
		s.Faulty++
		return
	}
	if !t.Contiguous() {
		s.Strided++
	}
	if t.DType().Class() == tensor.QuantClass {
		s.Quantized++
	}
}

func (s *Summary) addDType(d tensor.DType, elements, bytes int64) {
	i := slices.IndexFunc(s.DTypes, func(x DTypeTotal) bool { return x.DType == d })
	if i < 0 {
		i = len(s.DTypes)
		s.DTypes = append(s.DTypes, DTypeTotal{DType: d})
	}
	x := &s.DTypes[i]
	x.Tensors++
	x.Elements, x.Bytes = add(x.Elements, elements), add(x.Bytes, bytes)
}

func (s *Summary) countStorages(l *Listing, users map[*tensor.Storage]int) {
	s.Storages = len(users)
	for storage := range users {
		s.Stored = add(s.Stored, storage.Size())
	}
	for i := range l.Tensors {
		for storage := range l.Tensors[i].Tensor().Storages() {
			if users[storage] > 1 {
				s.Shared++
				break
			}
		}
	}
}

// firstPart is a name up to its first dot: state dicts are flat maps whose keys
// have dots in them.
func firstPart(p nested.Path) string {
	if len(p) == 0 {
		return ""
	}
	text, _ := KeyText(p[0])
	part, _, _ := strings.Cut(text, ".")
	return part
}

// add adds sizes that a file may have made up.
func add(a, b int64) int64 {
	if a > 1<<62-b {
		return 1 << 62
	}
	return a + b
}
