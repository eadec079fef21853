package gen

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/tensor"
)

type kind uint8

const (
	tensorKind kind = iota // packed elements
	lazyKind               // a tensor that no Go element fits, or that has no bytes
	scalarKind             // one number, bool or text
	noneKind               // None, of which more is known only beside its like
	emptyKind              // an empty list, likewise
	rawKind                // a part of the tree as it is
	structKind
	moduleKind // a struct of package nn
	listKind
	mapKind
)

// typ is a Go type. It does not change once something refers to it, except for
// the name of a struct.
type typ struct {
	kind kind
	elem string // the Go type of elements or of a scalar
	mod  string // the name in package nn
	dims []dim  // of a tensor; nil with ranked unset
	// ranked tells whether all tensors of this type have the same rank.
	ranked  bool
	of      *typ     // of a list or a map
	gaps    bool     // a list whose indexes leave some out
	fields  []*field // of a struct, and those that a module has in the file
	ptr     bool     // None stands in some of the places
	note    string   // what the file has there, for a comment
	inexact bool     // an integer that no float64 is

	name  string // of a struct, once it has one
	place string // where in the tree it was first seen
	last  string // and last
	times int
}

// dim is the size of a dimension, or the range of sizes that places of one type
// have.
type dim struct{ lo, hi int }

// field is a member of a struct.
type field struct {
	key      string // its name in the tree, relative to the struct
	expr     string // what finds it instead, "" for the key
	id       string // its name in Go
	typ      *typ
	optional bool
}

// infer returns the Go type for what lies below n, nil when a field can hold
// nothing of it. place is n's flat name.
//
// The answer is kept, since a member of what turns out to be no list is asked
// for a second time.
func (p *plan) infer(n *node, place string) *typ {
	t, known := p.inferred[n]
	if !known {
		t = p.inferNew(n, place)
		p.inferred[n] = t
	}
	return t
}

func (p *plan) inferNew(n *node, place string) *typ {
	// A name that is a value's too would fill a slice or a map with the value.
	if n.leaf == nil {
		if t := p.list(n, place); t != nil {
			return t
		}
		if t := p.dict(n); t != nil {
			return t
		}
	}
	t := p.structure(n, place)
	if t != nil && !p.o.Plain {
		if mod := p.module(lastStep(place), t.fields); mod != "" {
			t.kind, t.mod, t.elem = moduleKind, mod, elementOf(t.fields)
		}
	}
	return t
}

// member returns the type of one member: of a value, or of what lies below.
func (p *plan) member(k *node, place string) *typ {
	if k.leaf != nil {
		return p.leafType(k.leaf)
	}
	return p.infer(k, place)
}

// structure makes a struct of n's members.
func (p *plan) structure(n *node, place string) *typ {
	t := &typ{kind: structKind, place: place, last: place, times: 1}
	for _, k := range n.kids {
		below := join(place, k.key)
		if k.leaf != nil {
			t.add(k.key, p.single(k.leaf))
		}
		if len(k.kids) > 0 {
			t.add(k.key, p.infer(k, below))
		}
	}
	if len(t.fields) == 0 {
		return nil
	}
	p.family(t.fields)
	return t
}

func (t *typ) add(key string, of *typ) {
	if of != nil {
		t.fields = append(t.fields, &field{key: key, typ: of})
	}
}

func join(place, key string) string {
	if place == "" {
		return key
	}
	return place + "." + key
}

func lastStep(place string) string { return place[strings.LastIndexByte(place, '.')+1:] }

// single is the type of a value that stands alone: of None and of an empty list
// nothing more will be known.
func (p *plan) single(e *rules.Entry) *typ {
	t := p.leafType(e)
	switch t.kind {
	case noneKind:
		return &typ{kind: rawKind, note: "None"}
	case emptyKind:
		p.leave(e.Name, "an empty list")
		return nil
	default:
		return t
	}
}

// leafType is the type of one value.
func (p *plan) leafType(e *rules.Entry) *typ {
	if t := e.Tensor(); t != nil {
		return p.tensorType(t)
	}
	switch v := e.Value.(type) {
	case nested.None:
		return &typ{kind: noneKind}
	case *nested.List:
		return &typ{kind: emptyKind}
	default:
		elem := scalarOf(v)
		if elem == "" {
			return &typ{kind: rawKind, note: nested.TypeName(v)}
		}
		n, isInt := v.(nested.Int)
		return &typ{kind: scalarKind, elem: elem, note: nested.Repr(v), inexact: isInt && (n > 1<<53 || n < -1<<53)}
	}
}

func (p *plan) tensorType(t *tensor.Tensor) *typ {
	out := &typ{kind: tensorKind, elem: goTypes[t.DType()], ranked: true}
	for _, n := range t.Shape() {
		out.dims = append(out.dims, dim{n, n})
	}
	switch {
	case out.elem == "":
		out.kind, out.elem, out.note = lazyKind, "", t.DType().String()
	case t.Err() != nil:
		out.kind, out.elem, out.note = lazyKind, "", t.DType().String()+", without data"
	case len(out.dims) == 0:
		out.kind = scalarKind
	}
	return out
}

// maxGap bounds a slice that keeps its gaps: at most so many places for each
// item that is there. package serde allows four times as many.
const maxGap = 16

// list makes a slice of n's members, if they are numbered and of one type.
func (p *plan) list(n *node, place string) *typ {
	at, ok := n.indexes()
	if !ok {
		return nil
	}
	var of *typ
	for _, k := range n.kids {
		if k.leaf != nil && len(k.kids) > 0 {
			return nil
		}
		t := p.member(k, join(place, k.key))
		if of = p.unite(of, t); of == nil {
			return nil
		}
	}
	// Only the tag of a field can say that a list has gaps.
	if of = settled(of); of == nil || of.kind == listKind && of.gaps || slices.Max(at) > maxGap*(len(at)+1) {
		return nil
	}
	return &typ{kind: listKind, of: of, gaps: slices.Max(at) >= len(at), note: indexNote(at)}
}

// unite is merge where the first is not known yet.
func (p *plan) unite(a, b *typ) *typ {
	if a == nil {
		return b
	}
	if b == nil {
		return nil
	}
	return merge(a, b, true)
}

// settled turns what only its like could tell into something, or nil.
func settled(t *typ) *typ {
	switch t.kind {
	case noneKind:
		return &typ{kind: rawKind, note: "None"}
	case emptyKind:
		return nil
	default:
		return t
	}
}

// indexNote says which indexes a list has.
func indexNote(at []int) string {
	at = slices.Sorted(slices.Values(at))
	if at[len(at)-1] < len(at) {
		return strconv.Itoa(len(at)) + " ×"
	}
	var parts []string
	for _, i := range at[:min(len(at), 8)] {
		parts = append(parts, strconv.Itoa(i))
	}
	if len(at) > 8 {
		parts = append(parts, "…")
	}
	return strconv.Itoa(len(at)) + " × at " + strings.Join(parts, ", ")
}

// manyMembers is how many plain values of one type, or tensors, make a map
// rather than a struct: a vocabulary, and not settings.
const manyMembers = 64

// dict makes a map of many members of one type.
func (p *plan) dict(n *node) *typ {
	if len(n.kids) < manyMembers {
		return nil
	}
	var of *typ
	for _, k := range n.kids {
		if k.leaf == nil || len(k.kids) > 0 {
			return nil
		}
		t := p.leafType(k.leaf)
		if t.kind != scalarKind && (t.kind != tensorKind || len(n.kids) < 8*manyMembers) {
			return nil
		}
		if of = p.unite(of, t); of == nil {
			return nil
		}
	}
	return &typ{kind: mapKind, of: of, note: strconv.Itoa(len(n.kids)) + " ×"}
}

// family gives members called alike but for the number at their end, layer1 and
// layer2, one type, if one type fits all of them.
func (p *plan) family(fields []*field) {
	groups := map[string][]*field{}
	for _, f := range fields {
		if s := stem(f.key); s != f.key && s != "" && (f.typ.kind == structKind || f.typ.kind == listKind && f.typ.of.kind == structKind) {
			key := s + strconv.Itoa(int(f.typ.kind))
			groups[key] = append(groups[key], f)
		}
	}
	for _, f := range fields { // in order, so that the outcome is the same each time
		key := stem(f.key) + strconv.Itoa(int(f.typ.kind))
		if group := groups[key]; len(group) > 1 && group[0] == f {
			uniteFamily(group)
		}
	}
}

func uniteFamily(group []*field) {
	inner := func(f *field) *typ {
		if f.typ.kind == listKind {
			return f.typ.of
		}
		return f.typ
	}
	all := inner(group[0])
	for _, f := range group[1:] {
		if all = merge(all, inner(f), false); all == nil {
			return
		}
	}
	for _, f := range group {
		if f.typ.kind == structKind {
			f.typ = all
			continue
		}
		list := *f.typ
		list.of = all
		f.typ = &list
	}
}

// merge returns the type that both a and b can be stored as, nil if there is
// none. Tensors may differ in shape; unless loose, structs have most members in
// common, else half of them.
func merge(a, b *typ, loose bool) *typ {
	switch {
	case a.kind == noneKind || b.kind == noneKind:
		return mergeNone(a, b)
	case a.kind == emptyKind || b.kind == emptyKind:
		return mergeEmpty(a, b)
	case a.kind != b.kind:
		return nil
	}
	t := *a
	t.ptr = a.ptr || b.ptr
	t.times, t.last = a.times+b.times, b.last
	if a.note != b.note {
		t.note = ""
	}
	if !t.take(a, b, loose) {
		return nil
	}
	return &t
}

// take makes t, a copy of a, fit b of the same kind too, and reports whether that
// can be.
func (t *typ) take(a, b *typ, loose bool) bool {
	if a.elem != b.elem && a.kind != scalarKind || a.mod != b.mod {
		return false
	}
	var common int
	switch a.kind {
	case scalarKind:
		return t.takeScalar(b)
	case tensorKind, lazyKind:
		t.dims, t.ranked = mergeDims(a, b)
	case moduleKind:
		t.fields, _ = mergeFields(a.fields, b.fields)
	case structKind:
		t.fields, common = mergeFields(a.fields, b.fields)
		return t.fields != nil && common*2 >= len(t.fields) && (loose || common*3 >= len(t.fields)*2)
	case listKind, mapKind:
		t.gaps = a.gaps || b.gaps
		t.of = merge(a.of, b.of, loose)
		return t.of != nil
	}
	return true
}

func mergeNone(a, b *typ) *typ {
	if a.kind == noneKind {
		a, b = b, a
	}
	if a.kind == noneKind || b.kind != noneKind {
		return a
	}
	if a.kind == emptyKind || a.kind == rawKind || a.kind == lazyKind {
		return nil
	}
	t := *a
	t.ptr = true
	return &t
}

func mergeEmpty(a, b *typ) *typ {
	if a.kind == emptyKind {
		a = b
	}
	if a.kind == emptyKind || a.kind == listKind {
		return a
	}
	return nil
}

// takeScalar widens an integer to a float or to a bigger one.
func (t *typ) takeScalar(b *typ) bool {
	t.inexact = t.inexact || b.inexact
	switch {
	case t.elem == b.elem:
		return true
	case t.elem == "int64" && b.elem == "float64" || t.elem == "float64" && b.elem == "int64":
		t.elem = "float64"
		return !t.inexact
	case t.elem == "int64" && b.elem == "*big.Int" || t.elem == "*big.Int" && b.elem == "int64":
		t.elem = "*big.Int"
		return true
	default:
		return false
	}
}

func mergeDims(a, b *typ) (dims []dim, ranked bool) {
	if !a.ranked || !b.ranked || len(a.dims) != len(b.dims) {
		return nil, false
	}
	dims = slices.Clone(a.dims)
	for i, d := range b.dims {
		dims[i] = dim{min(dims[i].lo, d.lo), max(dims[i].hi, d.hi)}
	}
	return dims, true
}

// mergeFields unites the members of two structs, and counts those that both
// have. It returns nil when a member of both has no common type.
func mergeFields(a, b []*field) (fields []*field, common int) {
	fields = slices.Clone(a)
	both := map[*field]bool{}
	next := 0 // where a member that only b has goes: behind the one before it
	for _, f := range b {
		i := next // mostly both have the same order
		if i >= len(fields) || !fields[i].same(f) {
			i = slices.IndexFunc(fields, f.same)
		}
		if i < 0 {
			fields = slices.Insert(fields, next, f.asOptional())
			next++
			continue
		}
		t := merge(fields[i].typ, f.typ, true)
		if t == nil {
			return nil, 0
		}
		fields[i] = &field{key: f.key, typ: t, optional: fields[i].optional || f.optional}
		both[fields[i]] = true
		next = i + 1
		common++
	}
	for i, f := range fields {
		if !both[f] {
			fields[i] = f.asOptional()
		}
	}
	return fields, common
}

func (f *field) asOptional() *field {
	only := *f
	only.optional = true
	return &only
}

// same reports whether two structs mean the same member by f and g: a value and
// what lies below the same name are two.
func (f *field) same(g *field) bool {
	return f.key == g.key && f.typ.holds() == g.typ.holds()
}

// holds reports whether the type has names below its own.
func (t *typ) holds() bool {
	return t.kind == structKind || t.kind == moduleKind || t.kind == listKind || t.kind == mapKind
}
