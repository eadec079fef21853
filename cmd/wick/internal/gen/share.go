package gen

import (
	"strconv"
	"strings"
)

// share makes one type of structs that have the same members, wherever they
// stand, and returns the root with all types replaced. Structs that say little,
// for they have no tensors, or nothing but tensors, are one only if their names
// are too.
func (p *plan) share(root *typ) *typ {
	s := &sharer{plain: p.o.Plain, known: map[string]*typ{}, done: map[*typ]*typ{}, ids: map[*typ]string{}}
	return s.typ(root)
}

type sharer struct {
	plain bool
	known map[string]*typ // by signature
	done  map[*typ]*typ
	ids   map[*typ]string
}

func (s *sharer) typ(t *typ) *typ {
	if out, ok := s.done[t]; ok {
		return out
	}
	out := *t
	if t.of != nil {
		out.of = s.typ(t.of)
	}
	if t.kind == structKind {
		out.fields = make([]*field, len(t.fields))
		for i, f := range t.fields {
			g := *f
			g.typ = s.typ(f.typ)
			out.fields[i] = &g
		}
	}
	shared := s.same(&out)
	s.done[t] = shared
	return shared
}

// same returns the type that was seen before with the signature of t, else t.
func (s *sharer) same(t *typ) *typ {
	if t.kind != structKind {
		return t
	}
	sig := s.signature(t)
	first := s.known[sig]
	if first == nil {
		s.known[sig] = t
		s.ids[t] = "#" + strconv.Itoa(len(s.ids))
		return t
	}
	if all := merge(first, t, true); all != nil {
		for i, f := range all.fields {
			// The members' types are shared already; only shapes are united.
			if f.typ.kind == structKind || f.typ.kind == listKind || f.typ.kind == mapKind {
				f.typ = first.fields[i].typ
			}
		}
		*first = *all
	}
	return first
}

func (s *sharer) signature(t *typ) string {
	var b strings.Builder
	if s.plain || !t.hasTensor() {
		b.WriteString(typeWords(t.place)[0])
	}
	for _, f := range t.fields {
		b.WriteString(strconv.Quote(f.key) + f.expr + strconv.FormatBool(f.optional) + s.id(f.typ) + ";")
	}
	return b.String()
}

// id tells types apart, but not by the shapes of their tensors.
func (s *sharer) id(t *typ) string {
	if id := s.ids[t]; id != "" {
		return id
	}
	id := strconv.Itoa(int(t.kind)) + t.mod + " " + t.elem + strconv.FormatBool(t.ptr) + strconv.FormatBool(t.gaps)
	if t.kind == tensorKind {
		id += strconv.Itoa(len(t.dims))
	}
	if t.of != nil {
		id += "[" + s.id(t.of) + "]"
	}
	return id
}

// hasTensor reports whether there is a tensor in the type.
func (t *typ) hasTensor() bool {
	switch t.kind {
	case tensorKind, lazyKind, moduleKind:
		return true
	case listKind, mapKind:
		return t.of.hasTensor()
	}
	for _, f := range t.fields {
		if f.typ.hasTensor() {
			return true
		}
	}
	return false
}
