package nested

import (
	"math"

	"github.com/wick-ml/wick/fault"
)

// WalkLimits bounds a [Walk]. A zero field means its default.
type WalkLimits struct {
	Paths int64 // ways from the root to a node that are visited; default 262,144 and one for each value in the tree
	Depth int   // steps from the root; default 10,000
}

// DefaultDepth is the default of [WalkLimits]. Python's own pickler stops some 300
// levels down.
const DefaultDepth = 10_000

// sharedPaths is how many ways more than values a tree may have by default: values
// that share each other, such as tied weights, have several each.
const sharedPaths = 1 << 18

// MeanSteps is how many steps the ways that are allowed may have on the average:
// whoever keeps ways, or writes them, pays for steps. A kilobyte of lists that share
// each other below a chain of lists is a quarter of a million ways of hundreds of
// steps.
const MeanSteps = 8

// Visitor is called for every node that a [Walk] names: scalars, leaves,
// opaque objects (before their members), and empty containers. Containers that
// hold something are not visited themselves. The path is only valid during the
// call; [Path.Append] or slices.Clone keeps it. Returning an error ends the
// walk with it.
type Visitor func(path Path, v Value) error

// Walk visits every path of the graph below root in the order of the file. It
// counts paths first: a subtree over the limits that holds no tensor is one
// [*Opaque] with reason "limit", and one that holds a tensor ends the walk with
// [fault.ErrLimit]. All paths together may have [MeanSteps] steps for each path that
// is allowed. A node that contains itself is, at the second meeting, one
// *Opaque with reason "cycle". Walk does not change the tree.
func Walk(root Value, limits WalkLimits, visit Visitor) error {
	if limits.Depth <= 0 {
		limits.Depth = DefaultDepth
	}
	w := walker{limits: limits, isDefault: limits.Paths <= 0, visit: visit}
	left := smallTree
	isRoomy := (w.isDefault || limits.Paths >= smallTree*smallTree/MeanSteps) && limits.Depth >= smallTree
	if isRoomy && isSmall(root, &left) {
		w.limits.Paths = max(limits.Paths, sharedPaths)
		return w.walkSmall(make(Path, 0, 4), root)
	}
	w.stats, w.open = measure(root), map[Value]bool{}
	if w.isDefault {
		w.limits.Paths = sharedPaths + w.stats.values
	}
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
	limits    WalkLimits
	isDefault bool // the limit on paths: nobody can raise it
	visit     Visitor
	stats     *measures
	open      map[Value]bool // containers on the path, to see cycles
	visited   int64          // paths
	steps     int64          // of them
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
	if w.isOver(s, int64(len(path))) || len(path)+s.height > w.limits.Depth {
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

// isOver reports whether the paths through a container so many steps from the root
// are too many, or too long.
func (w *walker) isOver(s stat, depth int64) bool {
	most := w.mostSteps()
	return s.paths > w.limits.Paths || s.steps > most || s.paths > (most-s.steps)/max(depth, 1)
}

func (w *walker) mostSteps() int64 { return min(w.limits.Paths, math.MaxInt64/MeanSteps) * MeanSteps }

func (w *walker) emit(path Path, v Value) error {
	w.visited++
	w.steps += int64(len(path))
	if w.visited > w.limits.Paths || w.steps > w.mostSteps() {
		return w.over().OnPath(path.String())
	}
	return w.visit(path, v)
}

// over is the error of too many paths, or too long ones.
func (w *walker) over() *fault.Error {
	value := max(w.visited, (w.steps+MeanSteps-1)/MeanSteps)
	if w.isDefault {
		return fault.NewBound("paths", value, w.limits.Paths)
	}
	return fault.NewLimit("paths", value, w.limits.Paths)
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
	steps  int64 // of all paths together, from the container; saturating
	height int
	tensor bool
}

// measures holds the stats of containers that hold others.
type measures struct {
	stats  paged[stat]
	at     map[Value]int32
	values int64 // in the tree, each as often as a container of its holds it
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

var tooDeep = stat{paths: math.MaxInt64, steps: math.MaxInt64, height: math.MaxInt32, tensor: true}

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
		m.values++
		if !isContainer(kid) {
			own.addLeaf(kid)
		} else if s, shallow := shallowStat(kid); shallow {
			own.add(s)
			m.values += s.paths
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
	s.steps = saturate(s.steps, 1)
	s.height = max(s.height, 1)
}

func (s *stat) add(kid stat) {
	s.tensor = s.tensor || kid.tensor
	s.paths = saturate(s.paths, max(kid.paths, 1))
	s.steps = saturate(s.steps, saturate(kid.steps, max(kid.paths, 1)))
	s.height = max(s.height, min(kid.height, math.MaxInt32-1)+1)
}

func saturate(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
