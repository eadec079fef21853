package pickle

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/wick-ml/wick/nested"
)

// pool saves allocations: short strings and integers that come again are the
// same interface values, and tuples are cut from slabs. What it keeps has a
// fixed size.
type pool struct {
	seed    maphash.Seed
	strings []nested.Value // by hash; each is the last string with that hash
	ints    []nested.Value
	shapes  []*nested.List // short tuples of integers, by hash
	lists   []nested.List
	values  []nested.Value
	text    strings.Builder // the block that short strings are cut from
	block   int             // its size
	slab    int             // size of the next slab
	empty   *nested.List
}

const (
	poolSize  = 1 << 10
	poolText  = 64  // longest string that is kept, bytes
	maxSlab   = 256 // tuples; small, so that one that stays does not hold many
	slabWidth = 4   // values for each tuple
	textBlock = 4 << 10
)

// str returns the string with the given bytes.
func (p *pool) str(b []byte) nested.Value {
	if len(b) > poolText {
		return nested.String(b)
	}
	if p.strings == nil {
		p.strings, p.seed = make([]nested.Value, poolSize), maphash.MakeSeed()
	}
	slot := &p.strings[maphash.Bytes(p.seed, b)%poolSize]
	if s, ok := (*slot).(nested.String); ok && string(s) == string(b) {
		return *slot
	}
	*slot = nested.String(p.keep(b))
	return *slot
}

// keep returns a copy of b that is cut from a block of text.
func (p *pool) keep(b []byte) string {
	if p.text.Cap()-p.text.Len() < len(b) {
		p.block = min(max(2*p.block, poolText), textBlock)
		p.text = strings.Builder{}
		p.text.Grow(p.block)
	}
	start := p.text.Len()
	p.text.Write(b)
	return p.text.String()[start:]
}

// int returns the integer n.
func (p *pool) int(n int64) nested.Value {
	if p.ints == nil {
		p.ints = make([]nested.Value, poolSize)
	}
	slot := &p.ints[uint64(n)%poolSize] //nolint:gosec // any spread will do
	if v, ok := (*slot).(nested.Int); ok && int64(v) == n {
		return *slot
	}
	*slot = nested.Int(n)
	return *slot
}

// tuple returns a tuple with a copy of the items.
func (p *pool) tuple(items []nested.Value) *nested.List {
	if len(items) == 0 {
		if p.empty == nil {
			p.empty = nested.NewList("tuple")
		}
		return p.empty
	}
	if l := p.shape(items); l != nil {
		return l
	}
	return p.fresh(items)
}

// shape returns the tuple of a few integers, which shapes and strides are: the
// same one when it comes again, for nobody can change a tuple. It is nil for
// other items.
func (p *pool) shape(items []nested.Value) *nested.List {
	if len(items) > slabWidth {
		return nil
	}
	hash := uint64(len(items))
	for _, v := range items {
		n, ok := v.(nested.Int)
		if !ok {
			return nil
		}
		hash = hash*0x9E3779B97F4A7C15 + uint64(n) //nolint:gosec // any spread will do
	}
	if p.shapes == nil {
		p.shapes = make([]*nested.List, poolSize)
	}
	slot := &p.shapes[(hash^hash>>32)%poolSize]
	if *slot == nil || !slices.Equal((*slot).Items, items) {
		*slot = p.fresh(items)
	}
	return *slot
}

// fresh returns a new tuple with a copy of the items.
func (p *pool) fresh(items []nested.Value) *nested.List {
	if len(p.lists) == 0 {
		p.slab = min(max(2*p.slab, 8), maxSlab)
		p.lists = make([]nested.List, p.slab)
	}
	l := &p.lists[0]
	p.lists = p.lists[1:]
	l.Class, l.Items = "tuple", p.copy(items)
	return l
}

// copy returns a copy of v with no room to grow.
func (p *pool) copy(v []nested.Value) []nested.Value {
	n := len(v)
	if n > 2*slabWidth {
		return append(make([]nested.Value, 0, n), v...)
	}
	if len(p.values) < n {
		p.values = make([]nested.Value, max(p.slab*slabWidth, n))
	}
	c := p.values[:n:n]
	p.values = p.values[n:]
	copy(c, v)
	return c
}
