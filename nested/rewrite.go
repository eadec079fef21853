package nested

import (
	"github.com/wick-ml/wick/fault"
)

// Rewrite returns the tree with values replaced: change is asked for every value,
// those inside of a container first, and gives what stands in its place, or nil to
// keep it. Containers above a change are new, all else is shared with root, which
// does not change. What was one node stays one: a node that was replaced is asked
// for once, however many ways lead to it. A node that contains itself keeps its
// old self inside.
//
// An error of change comes with the path to its value; a tree deeper than
// [DefaultDepth] is a [fault.ErrLimit]. Attributes, arguments and states are not
// looked into, as in [Walk].
func Rewrite(root Value, change func(Value) (Value, error)) (Value, error) {
	r := rewriter{done: map[Value]Value{}, change: change}
	out, _, err := r.value(root, nil)
	return out, err
}

type rewriter struct {
	change func(Value) (Value, error)
	done   map[Value]Value // containers, and what was replaced of tensors and empty ones: a tree can have a million
	depth  int             // of containers; members of an opaque object add nothing to a path
}

// value returns what stands in the place of v, and whether that is another value.
func (r *rewriter) value(v Value, path Path) (next Value, changed bool, err error) {
	_, lazy := v.(*Tensor)
	holds, isFull := isContainer(v), childAt(v, 0) != nil
	isNode := holds || lazy
	if isNode {
		if known, ok := r.done[v]; ok {
			return known, known != v, nil
		}
	}
	next = v
	if holds {
		if r.depth++; r.depth > DefaultDepth {
			return nil, false, fault.OnPath(fault.NewBound("depth", int64(r.depth), DefaultDepth), path.String())
		}
		defer func() { r.depth-- }()
		if isFull { // of empty ones, which cost nothing to meet again, there can be a million
			r.done[v] = v
		}
		if next, changed, err = r.inside(v, path); err != nil {
			return nil, false, err
		}
	}
	other, err := r.change(next)
	if err != nil {
		return nil, false, fault.OnPath(err, path.String())
	}
	if other != nil {
		next, changed = other, true
	}
	if isFull || isNode && changed {
		r.done[v] = next
	}
	return next, changed, nil
}

func (r *rewriter) inside(v Value, path Path) (next Value, changed bool, err error) {
	switch v := v.(type) {
	case *Map:
		return r.entries(v, path)
	case *List:
		return r.items(v, path)
	case *Opaque:
		return r.members(v, path)
	default:
		return v, false, nil
	}
}

func (r *rewriter) members(o *Opaque, path Path) (next Value, changed bool, err error) {
	if o.Members == nil {
		return o, false, nil
	}
	members, changed, err := r.value(o.Members, path)
	if err != nil || !changed {
		return o, false, err
	}
	c := *o
	c.Members = members
	return &c, true, nil
}

func (r *rewriter) entries(m *Map, path Path) (next Value, changed bool, err error) {
	var out *Map
	for i := range m.Len() {
		e := m.Entry(i)
		value, changed, err := r.value(e.Value, append(path, e.Key))
		if err != nil {
			return nil, false, err
		}
		if out == nil && changed {
			if out, err = firstEntries(m, i); err != nil {
				return nil, false, err
			}
		}
		if out == nil {
			continue
		}
		if err := out.Set(e.Key, value); err != nil {
			return nil, false, err
		}
	}
	if out == nil {
		return m, false, nil
	}
	return out, true, nil
}

// firstEntries is a new map with the first n entries of m.
func firstEntries(m *Map, n int) (*Map, error) {
	out := NewMap(m.Class)
	out.Attrs = m.Attrs
	for i := range n {
		if err := out.Set(m.Entry(i).Key, m.Entry(i).Value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (r *rewriter) items(l *List, path Path) (next Value, changed bool, err error) {
	out := l
	for i, item := range l.Items {
		value, changed, err := r.value(item, append(path, Int(i)))
		if err != nil {
			return nil, false, err
		}
		if !changed {
			continue
		}
		if out == l {
			out = l.Clone()
		}
		out.Items[i] = value
	}
	return out, out != l, nil
}
