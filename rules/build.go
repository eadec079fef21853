package rules

import (
	"math"
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// builder makes the tree of the items. The entries below a container are
// neighbours in the order of the walk, so each container is a range of them.
//
//	root ─┬─ state_dict ─┬─ a.weight     entries 0
//	      │              └─ a.bias               1     state_dict = [0, 2)
//	      └─ epoch                               2     root       = [0, 3)
//
// An item whose name changed keeps the deepest container whose name still
// begins its own, and becomes one key in it.
type builder struct {
	*state

	bySrc  [][]item
	depths [][]int // beside bySrc: the steps of the container's path
}

func (s *state) build() (nested.Value, error) {
	n := len(s.index.Entries)
	b := &builder{state: s, bySrc: make([][]item, n), depths: make([][]int, n)}
	for _, it := range s.items {
		b.bySrc[it.src] = append(b.bySrc[it.src], it)
		b.depths[it.src] = append(b.depths[it.src], s.depth(&it))
	}
	if root, ok := b.single(); ok {
		return root, nil
	}
	return b.container(s.index.Root, 0, 0, n)
}

// single is the case of a tree that is one leaf and stays one.
func (b *builder) single() (nested.Value, bool) {
	if len(b.items) == 1 && b.items[0].name == "" && !b.items[0].made && len(b.index.Entries[b.items[0].src].Path) == 0 {
		return b.items[0].value, true
	}
	return nil, false
}

// depth is the length of the container's path that the item goes into.
func (s *state) depth(it *item) int {
	path := s.index.Entries[it.src].Path
	if !s.moved(it) {
		return max(len(path)-1, 0)
	}
	for k := len(path) - 1; k > 0; k-- {
		if strings.HasPrefix(it.name, path[:k].String()+".") {
			return k
		}
	}
	return 0
}

// container rebuilds v, whose path has depth steps and whose entries are
// [lo, hi). Its depth is bounded by the walk's.
func (b *builder) container(v nested.Value, depth, lo, hi int) (nested.Value, error) {
	if depth > 0 && b.untouched(lo, hi) {
		return v, nil
	}
	inner := members(v)
	out := &nested.Map{Class: "dict"}
	if m, ok := inner.(*nested.Map); ok {
		out.Class, out.Attrs = m.Class, m.Attrs
	}
	for lo < hi {
		next, err := b.child(out, inner, depth, lo, hi)
		if err != nil {
			return nil, err
		}
		lo = next
	}
	return sameList(inner, out), nil
}

// child adds to out what becomes of the next child's entries and returns where
// the one after it begins.
func (b *builder) child(out *nested.Map, inner nested.Value, depth, lo, hi int) (int, error) {
	path := b.index.Entries[lo].Path
	if len(path) <= depth { // the container itself, or the root as a leaf
		return lo + 1, b.add(out, depth, lo, lo+1, nil)
	}
	key := path[depth]
	stop := lo + 1
	for stop < hi && len(b.index.Entries[stop].Path) > depth && sameKey(b.index.Entries[stop].Path[depth], key) {
		stop++
	}
	kept, err := b.kept(inner, key, depth, lo, stop)
	if err != nil {
		return 0, err
	}
	if kept != nil {
		if _, taken := out.Get(key); taken {
			return 0, inTheWay(path[:depth+1].String())
		}
		if err := out.Set(key, kept); err != nil || b.untouched(lo, stop) {
			return stop, err
		}
	}
	return stop, b.add(out, depth, lo, stop, key)
}

// sameKey compares two keys of one container.
func sameKey(x, y nested.Value) bool {
	f, isFloat := x.(nested.Float)
	g, both := y.(nested.Float)
	if isFloat && both && math.IsNaN(float64(f)) && math.IsNaN(float64(g)) {
		return true
	}
	return x == y
}

// kept returns what stays of a child container under its key, nil if nothing
// does.
func (b *builder) kept(inner, key nested.Value, depth, lo, stop int) (nested.Value, error) {
	sub, ok := child(inner, key)
	switch {
	case !ok:
		return nil, nil //nolint:nilnil // the root as a leaf has no children
	case b.untouched(lo, stop):
		return sub, nil
	}
	for i := lo; i < stop; i++ {
		for k := range b.bySrc[i] {
			if b.depths[i][k] > depth && !b.isInside(&b.bySrc[i][k]) {
				return b.container(sub, depth+1, lo, stop)
			}
		}
	}
	return nil, nil //nolint:nilnil // nothing stays, which is no fault
}

// add puts the items of [lo, stop) that belong into this container into it:
// under their own key if they did not move, else under the rest of their name.
func (b *builder) add(out *nested.Map, depth, lo, stop int, key nested.Value) error {
	for i := lo; i < stop; i++ {
		prefix := ""
		if path := b.index.Entries[i].Path; depth > 0 {
			prefix = path[:depth].String() + "."
		}
		for k := range b.bySrc[i] {
			it := &b.bySrc[i][k]
			if b.depths[i][k] != depth || b.isInside(it) {
				continue
			}
			at := key
			if b.moved(it) || at == nil {
				at = nested.String(strings.TrimPrefix(it.name, prefix))
			}
			if _, taken := out.Get(at); taken {
				return inTheWay(it.name)
			}
			if err := out.Set(at, it.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// inTheWay is the error of two names that flat names tell apart and the keys of a
// tree do not: a tensor called a, and a container in which a.b lies.
func inTheWay(name string) error {
	return fault.New(fault.Collision, name+" would be a value and a container of others").
		Needs("one of them under each name", "rename one of them")
}

// untouched reports whether all entries of a range are as they were.
func (b *builder) untouched(lo, hi int) bool {
	for i := lo; i < hi; i++ {
		if len(b.bySrc[i]) != 1 || b.moved(&b.bySrc[i][0]) {
			return false
		}
	}
	return true
}

// sameList returns a list if inner was one and every item is still in place,
// else the map, whose integer keys then keep the names.
func sameList(inner nested.Value, out *nested.Map) nested.Value {
	l, ok := inner.(*nested.List)
	if !ok || out.Len() != len(l.Items) {
		return out
	}
	items := make([]nested.Value, 0, len(l.Items))
	for i := range l.Items {
		e := out.Entry(i)
		if e.Key != nested.Value(nested.Int(i)) {
			return out
		}
		items = append(items, e.Value)
	}
	return nested.NewList(l.Class, items...)
}
