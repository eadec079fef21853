package meta

import (
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// Tour bounds a writer's way through a tree, which may share and contain
// itself. The zero Tour is not ready; see [NewTour]. Not safe for concurrent use.
type Tour struct {
	limits checkpoint.Limits
	nodes  int64
	depth  int64
	steps  int64 // of the ways to all nodes
	open   map[nested.Value]bool
}

// NewTour returns a tour within the limits on paths, whose steps count as
// [nested.Walk] counts them, and on depth.
func NewTour(limits checkpoint.Limits) *Tour {
	return &Tour{limits: limits.Default(), open: map[nested.Value]bool{}}
}

// Enter goes to a node. It returns what is to be written there: v itself, or
// an opaque object in the place of one that contains itself. [Tour.Leave] must
// follow unless there is an error, which is [fault.ErrLimit].
func (t *Tour) Enter(v nested.Value) (nested.Value, error) {
	t.nodes++
	t.depth++
	t.steps += t.depth
	if n := max(t.nodes, t.steps/nested.MeanSteps); n > t.limits.Paths {
		return nil, fault.NewLimit("paths", n, t.limits.Paths)
	}
	if t.depth > t.limits.Depth {
		return nil, fault.NewLimit("depth", t.depth, t.limits.Depth)
	}
	if !container(v) {
		return v, nil
	}
	if t.open[v] {
		return &nested.Opaque{Class: nested.TypeName(v), Reason: "cycle"}, nil
	}
	t.open[v] = true
	return v, nil
}

// Leave ends what Enter of the node v began; entered is what that returned.
func (t *Tour) Leave(v, entered nested.Value) {
	t.depth--
	if container(v) && v == entered {
		delete(t.open, v)
	}
}

func container(v nested.Value) bool {
	switch v.(type) {
	case *nested.Map, *nested.List, *nested.Opaque:
		return true
	default:
		return false
	}
}
