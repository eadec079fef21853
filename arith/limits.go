package arith

import (
	"cmp"
	"math"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/tensor"
)

// Limits bounds what [Dequantize] and [Densify] make, and what [DequantizeTree]
// and [DensifyTree] make in all: at most Expand bytes for each byte of the storages
// that it is made of, or Floor bytes if that is more. Zero means the default, 64 and
// 256 MiB; those of an open checkpoint are Expand and ExpandFloor of its Limits.
type Limits struct{ Expand, Floor int64 }

// expansion is the limits for a run.
func (l Limits) expansion() tensor.RunOption { return tensor.Expansion(l.Expand, l.Floor) }

// budget is what may be made. Tensors can be views that repeat few bytes, and
// lie in storages that others lie in too: what counts is the storages, each once.
type budget struct {
	limits        Limits
	seen          map[*tensor.Storage]bool
	present, made int64 // bytes
}

func newBudget(l Limits) *budget {
	l = Limits{Expand: cmp.Or(l.Expand, 64), Floor: cmp.Or(l.Floor, 256<<20)}
	return &budget{limits: l, seen: map[*tensor.Storage]bool{}}
}

// take counts size bytes that will be made of parts. A stream may claim storages of
// any size, so no sum or product here may wrap.
func (b *budget) take(size int64, parts ...*tensor.Tensor) error {
	for _, t := range parts {
		for s := range t.Storages() {
			if !b.seen[s] {
				b.seen[s] = true
				b.present += min(s.Size(), math.MaxInt64-b.present)
			}
		}
	}
	b.made += min(size, math.MaxInt64-b.made)
	allowed := int64(math.MaxInt64)
	if b.present < math.MaxInt64/max(b.limits.Expand, 1) {
		allowed = b.limits.Expand * b.present
	}
	return checkpoint.At("expansion", b.made, max(b.limits.Floor, allowed))
}
