package nested

import (
	"math"

	"github.com/wick-ml/wick/fault"
)

// WalkLimits bounds a [Walk]. A zero field means its default.
type WalkLimits struct {
	Paths int64 // ways from the root to a node that are visited; default 16,777,216
	Depth int   // steps from the root; default 10,000
}

// The defaults of [WalkLimits]. A model of a million tensors with an optimizer
// is some ten million paths; Python's own pickler stops some 300 levels down.
const (
	DefaultPaths = 1 << 24
	DefaultDepth = 10_000
)

// Visitor is called for every node that a [Walk] names: scalars, leaves,
// opaque objects (before their members), and empty containers. Containers that
// hold something are not visited themselves. The path is only valid during the
// call; [Path.Append] or slices.Clone keeps it. Returning an error ends the
// walk with it.
type Visitor func(path Path, v Value) error

// Walk visits every path of the graph below root in the order of the file. It
// counts paths first: a subtree over the limits that holds no tensor is one
// [*Opaque] with reason "limit", and one that holds a tensor ends the walk with
// [fault.ErrLimit]. A node that contains itself is, at the second meeting, one
// *Opaque with reason "cycle". Walk does not change the tree.
func Walk(root Value, limits WalkLimits, visit Visitor) error {
	if limits.Paths <= 0 {
		limits.Paths = DefaultPaths
	}
	if limits.Depth <= 0 {
		limits.Depth = DefaultDepth
	}
	w := walker{limits: limits, visit: visit}
	if left := smallTree; limits.Paths >= smallTree && limits.Depth >= smallTree && isSmall(root, &left) {
		return w.walkSmall(make(Path, 0, 4), root)
	}
	w.stats, w.open = measure(root), map[Value]bool{}
	return w.walk(make(Path, 0, 8), root)
}

// smallTree is how many nodes, met on any way, make a tree that needs no
// measuring: it cannot contain itself, and is far below every sound limit.
// Records are loaded in less memory than measuring them would take.
const smallTree = 512

// isSmall reports whether fewer than left ways lead from v.
func isSmall(v Value, left *int) bool {
	if *left--; *left <= 0 {
		return false
	}
	if !isContainer(v) {
		return true
	}
	for i := 0; ; i++ {
		kid := childAt(v, i)
		if kid == nil {
			return true
		}
		if !isSmall(kid, left) {
			return false
		}
	}
}

// walkSmall is walk in a small tree.
func (w *walker) walkSmall(path Path, v Value) error {
	_, isOpaque := v.(*Opaque)
	if isOpaque || !isContainer(v) || childAt(v, 0) == nil {
		if err := w.emit(path, v); err != nil {
			return err
		}
	}
	return eachChild(v, func(key, child Value) error {
		if key == nil {
			return w.walkSmall(path, child)
		}
		return w.walkSmall(append(path, key), child)
	})
}

type walker struct {
	limits  WalkLimits
	visit   Visitor
	stats   *measures
	open    map[Value]bool // containers on the path, to see cycles
	visited int64
}

// walk visits v and what is below it. Its recursion is bounded by limits.Depth.
func (w *walker) walk(path Path, v Value) error {
	if !isContainer(v) {
		return w.emit(path, v)
	}
	s, shallow := shallowStat(v)
	if !shallow {
		if w.open[v] {
			return w.emit(path, &Opaque{Class: TypeName(v), Reason: "cycle"})
		}
		s = w.stats.of(v)
	}
	if s.paths > w.limits.Paths || len(path)+s.height > w.limits.Depth {
		if s.tensor && len(path) >= w.limits.Depth {
			return fault.NewLimit("depth", int64(s.height)+int64(len(path)), int64(w.limits.Depth)).OnPath(path.String())
		}
		if !s.tensor {
			return w.emit(path, &Opaque{Class: TypeName(v), Reason: "limit"})
		}
	}
	if o, ok := v.(*Opaque); ok {
		if err := w.emit(path, o); err != nil {
			return err
		}
	}
	if !shallow {
		w.open[v] = true
		defer delete(w.open, v)
	}
	return w.children(path, v)
}

func (w *walker) emit(path Path, v Value) error {
	if w.visited++; w.visited > w.limits.Paths {
		return fault.NewLimit("paths", w.visited, w.limits.Paths).OnPath(path.String())
	}
	return w.visit(path, v)
}

func (w *walker) children(path Path, v Value) error {
	n := 0
	err := eachChild(v, func(key, child Value) error {
		n++
		if key == nil {
			return w.walk(path, child)
		}
		return w.walk(append(path, key), child)
	})
	if _, isOpaque := v.(*Opaque); err == nil && n == 0 && !isOpaque {
		return w.emit(path, v)
	}
	return err
}

// eachChild calls f for everything directly inside v. The key is nil where the
// step has no name: from an opaque object to its members.
func eachChild(v Value, f func(key, child Value) error) error {
	switch v := v.(type) {
	case *Map:
		for _, e := range v.entries {
			if err := f(e.Key, e.Value); err != nil {
				return err
			}
		}
	case *List:
		for i, item := range v.Items {
			if err := f(Int(i), item); err != nil {
				return err
			}
		}
	case *Opaque:
		if v.Members != nil {
			return f(nil, v.Members)
		}
	}
	return nil
}

func isContainer(v Value) bool {
	switch v.(type) {
	case *Map, *List, *Opaque:
		return true
	default:
		return false
	}
}

// stat is what is known of a container before it is walked.
type stat struct {
	paths  int64 // saturating
	height int
	tensor bool
}

// measures holds the stats of containers that hold others.
type measures struct {
	stats paged[stat]
	at    map[Value]int32
}

func (m *measures) of(v Value) stat {
	if at, known := m.at[v]; known {
		return *m.stats.get(at)
	}
	return tooDeep
}

// maxNesting is how deep a tree is measured; no pickler of Python's gets there.
// What lies deeper counts as over every limit, and as holding a tensor, so that
// nothing is left out without an error.
const maxNesting = 1 << 17

var tooDeep = stat{paths: math.MaxInt64, height: math.MaxInt32, tensor: true}

// begin makes an empty stat for v.
func (m *measures) begin(v Value) int32 {
	m.at[v] = m.stats.push(stat{})
	return m.at[v]
}

// paged is a stack that grows without being copied: a hostile tree makes it
// long once, and what a slice leaves behind while it grows would be most of the
// memory.
type paged[T any] struct {
	pages [][]T
	n     int32
}

const pageLen = 1 << 10

// push puts v on top. Pointers from get are not valid after it: the first page
// begins small, for the small trees that most are, and moves while it grows.
func (p *paged[T]) push(v T) int32 {
	at, in := int(p.n/pageLen), int(p.n%pageLen)
	if at == len(p.pages) {
		room := pageLen
		if at == 0 {
			room = 4
		}
		p.pages = append(p.pages, make([]T, 0, room))
	}
	if in < len(p.pages[at]) {
		p.pages[at][in] = v
	} else {
		p.pages[at] = append(p.pages[at], v)
	}
	p.n++
	return p.n - 1
}

func (p *paged[T]) get(i int32) *T { return &p.pages[i/pageLen][i%pageLen] }

// shallowStat returns the stat of a container of a few values that are no
// containers. Most are, in every checkpoint: they are counted again rather than
// remembered.
func shallowStat(v Value) (stat, bool) {
	var s stat
	for i := 0; ; i++ {
		switch kid := childAt(v, i); {
		case kid == nil:
			return s, true
		case i >= maxShallow || isContainer(kid):
			return s, false
		default:
			s.addLeaf(kid)
		}
	}
}

const maxShallow = 16

// measure computes the stat of every container reachable from root, without
// recursion: a hostile graph can be millions of nodes deep.
func measure(root Value) *measures {
	m := &measures{at: map[Value]int32{}}
	if !isContainer(root) {
		return m
	}
	type frame struct {
		node Value
		stat int32
		next int32
	}
	var stack paged[frame]
	stack.push(frame{root, m.begin(root), 0})
	for stack.n > 0 {
		top := stack.get(stack.n - 1)
		kid := childAt(top.node, int(top.next))
		own := m.stats.get(top.stat)
		if kid == nil {
			if stack.n--; stack.n > 0 {
				m.stats.get(stack.get(stack.n - 1).stat).add(*own)
			}
			continue
		}
		top.next++
		if !isContainer(kid) {
			own.addLeaf(kid)
		} else if s, shallow := shallowStat(kid); shallow {
			own.add(s)
		} else if at, known := m.at[kid]; known {
			own.add(*m.stats.get(at)) // finished, or open: a cycle counts as it stands
		} else if stack.n > maxNesting {
			own.add(tooDeep)
		} else {
			stack.push(frame{kid, m.begin(kid), 0})
		}
	}
	return m
}

// childAt returns the i-th value directly inside v, nil behind the last.
func childAt(v Value, i int) Value {
	switch v := v.(type) {
	case *Map:
		if i < len(v.entries) {
			return v.entries[i].Value
		}
	case *List:
		if i < len(v.Items) {
			return v.Items[i]
		}
	case *Opaque:
		if i == 0 && v.Members != nil {
			return v.Members
		}
	}
	return nil
}

func (s *stat) addLeaf(v Value) {
	if _, ok := v.(Leaf); ok {
		s.tensor = true
	}
	s.paths = saturate(s.paths, 1)
	s.height = max(s.height, 1)
}

func (s *stat) add(kid stat) {
	s.tensor = s.tensor || kid.tensor
	s.paths = saturate(s.paths, max(kid.paths, 1))
	s.height = max(s.height, min(kid.height, math.MaxInt32-1)+1)
}

func saturate(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
