package tensor

import (
	"math"
	"slices"

	"github.com/wick-ml/wick/fault"
)

// Reshape returns t's elements, in row-major order, under another shape; one
// size may be -1 and is then computed. No bytes move, also where torch would
// have to copy: a permuted dimension stays a product of several strides. It
// fails with [fault.ErrUnsupported] in the rare case that pieces of t do not
// fit the new sizes.
func (t *Tensor) Reshape(shape ...int) (*Tensor, error) {
	shape, ok := t.resolve(shape)
	if !ok {
		return nil, t.misuse("reshape" + joined(shape))
	}
	out := &Tensor{dtype: t.dtype, shape: shape, err: t.err}
	if t.Len() == 0 {
		out.walks = emptyWalks(t.walks, shape)
		return out, nil
	}
	if t.Len() > math.MaxInt {
		return nil, fault.NewBound("elements of a reshape on this machine", t.Len(), math.MaxInt)
	}
	flat := t.walks
	for _, g := range groups(t.shape, shape) {
		var err error
		if flat, err = regroup(flat, g, t.shape, shape); err != nil {
			return nil, err
		}
	}
	out.walks = flat
	for i := range out.walks {
		if len(out.walks[i].lo) != len(shape) {
			return nil, t.misuse("reshape" + joined(shape))
		}
	}
	return out.bounded()
}

// resolve replaces a -1 and checks that the number of elements stays.
func (t *Tensor) resolve(shape []int) ([]int, bool) {
	shape = slices.Clone(shape)
	if len(shape) > MaxDims {
		return shape, false
	}
	unknown, known := -1, int64(1)
	for d, n := range shape {
		switch {
		case n == -1 && unknown < 0:
			unknown = d
		case n < 0 || n > 0 && known > (1<<62)/int64(n):
			return shape, false
		default:
			known *= int64(n)
		}
	}
	if unknown >= 0 {
		if known == 0 || t.Len()%known != 0 {
			return shape, false
		}
		shape[unknown] = int(t.Len() / known)
		return shape, true
	}
	return shape, known == t.Len()
}

// emptyWalks keeps the storage of an empty tensor known.
func emptyWalks(walks []walk, shape []int) []walk {
	if len(walks) == 0 {
		return nil
	}
	w := walks[0]
	w.lo, w.size, w.dims = make([]int, len(shape)), shape, make([][]axis, len(shape))
	for d, n := range shape {
		w.dims[d] = []axis{{n, 1}}
	}
	return []walk{w}
}

// group pairs old dimensions [i, i2) with new ones [j, j2) of the same product.
type group struct{ i, i2, j, j2 int }

// groups splits both shapes, of equal product, into the smallest such pairs,
// last first, so that replacing one leaves the places of the others alone.
func groups(from, to []int) []group {
	var out []group
	i2, j2 := len(from), len(to)
	for i2 > 0 || j2 > 0 {
		i, j := i2, j2
		a, b := int64(1), int64(1)
		for a != b || i == i2 && j == j2 || onesLeft(from[:i], to[:j]) {
			if i > 0 && (a <= b || j == 0) {
				i--
				a *= int64(from[i])
			} else {
				j--
				b *= int64(to[j])
			}
		}
		out = append(out, group{i, i2, j, j2})
		i2, j2 = i, j
	}
	return out
}

// onesLeft reports whether only sizes of one remain on one side, which then
// belong to the group at hand.
func onesLeft(from, to []int) bool {
	return product(from) == 1 && product(to) == 1 && len(from)+len(to) > 0
}

// regroup replaces the dimensions of g in every walk.
func regroup(walks []walk, g group, from, to []int) ([]walk, error) {
	var out []walk
	for i := range walks {
		for _, w := range flatten(nil, &walks[i], g, from) {
			pieces, err := split(w, g, to)
			if err != nil {
				return nil, err
			}
			if out = append(out, pieces...); len(out) > maxWalks {
				return nil, fault.NewBound("pieces of a view", int64(len(out)), maxWalks)
			}
		}
	}
	return out, nil
}

// flatten appends w with the dimensions [g.i, g.i2) made into one. A box that
// is no single range of that dimension falls into one walk for each row.
func flatten(out []walk, w *walk, g group, shape []int) []walk {
	for d := g.i; d < g.i2; d++ {
		if w.size[d] == 1 {
			continue
		}
		if full(w, d+1, g.i2, shape) {
			break
		}
		for r := range w.size[d] {
			row := w.narrow(nil, d, w.lo[d]+r, w.lo[d]+r+1)
			for i := range row {
				row[i].lo[d] = w.lo[d] + r
				out = flatten(out, &row[i], g, shape)
			}
		}
		return out
	}
	return append(out, w.merged(g, shape))
}

func full(w *walk, d, end int, shape []int) bool {
	for ; d < end; d++ {
		if w.lo[d] != 0 || w.size[d] != shape[d] {
			return false
		}
	}
	return true
}

// merged returns w with the dimensions of g as one, its axes joined.
func (w *walk) merged(g group, shape []int) walk {
	lo, size, axes := 0, 1, []axis{}
	for d := g.i; d < g.i2; d++ {
		lo = lo*shape[d] + w.lo[d]
		size *= w.size[d]
		axes = append(axes, w.dims[d]...)
	}
	c := w.clone()
	c.lo = slices.Replace(c.lo, g.i, g.i2, lo)
	c.size = slices.Replace(c.size, g.i, g.i2, size)
	c.dims = slices.Replace(c.dims, g.i, g.i2, joinAxes(axes))
	return c
}

// split divides the one dimension at g.i into the new ones.
func split(w walk, g group, to []int) ([]walk, error) {
	var out []walk
	for _, b := range boxes(to[g.j:g.j2], w.lo[g.i], w.lo[g.i]+w.size[g.i]) {
		for _, p := range narrowAxes(nil, w.dims[g.i], b.at-w.lo[g.i], b.at-w.lo[g.i]+b.n) {
			if p.size != b.n {
				return nil, cannotSplit()
			}
			dims, ok := factor(p.axes, b.size)
			if !ok {
				return nil, cannotSplit()
			}
			c := w.clone()
			c.offset += p.offset
			c.lo = slices.Replace(c.lo, g.i, g.i+1, b.lo...)
			c.size = slices.Replace(c.size, g.i, g.i+1, b.size...)
			c.dims = slices.Replace(c.dims, g.i, g.i+1, dims...)
			out = append(out, c)
		}
	}
	return out, nil
}

func cannotSplit() error {
	return fault.New(fault.Unsupported, "a reshape that cuts across the pieces of a view").
		Needs("sizes that fit the pieces", "write the view to a file first, then reshape")
}

// box is a part of a multi-dimensional range: n elements from flat index at.
type box struct {
	at, n    int
	lo, size []int
}

// boxes cuts the flat range [from, to) of a shape into as few boxes as it
// takes: at most a head, a body and a tail for each dimension.
func boxes(shape []int, from, to int) []box {
	if len(shape) == 0 {
		return []box{{from, to - from, nil, nil}}
	}
	inner := int(product(shape[1:]))
	var out []box
	for from < to {
		row := from / inner
		end := min(to, (row+1)*inner)
		rows := 1
		if from%inner == 0 && (to-from)/inner > 1 {
			rows = (to - from) / inner
			end = from + rows*inner
		}
		whole := from%inner == 0 && end%inner == 0
		if whole {
			out = append(out, rowsBox(shape, from, row, rows))
		} else {
			out = append(out, within(boxes(shape[1:], from-row*inner, end-row*inner), row, row*inner)...)
		}
		from = end
	}
	return out
}

func rowsBox(shape []int, at, row, rows int) box {
	b := box{at: at, n: rows * int(product(shape[1:])), lo: make([]int, len(shape)), size: slices.Clone(shape)}
	b.lo[0], b.size[0] = row, rows
	return b
}

// within puts boxes of the inner dimensions into one row of the outer.
func within(inner []box, row, at int) []box {
	for i := range inner {
		inner[i].at += at
		inner[i].lo = append([]int{row}, inner[i].lo...)
		inner[i].size = append([]int{1}, inner[i].size...)
	}
	return inner
}

// factor distributes axes over sizes of the same product, innermost first,
// cutting an axis in two where a boundary falls inside it.
func factor(axes []axis, sizes []int) ([][]axis, bool) {
	dims := make([][]axis, len(sizes))
	rest := slices.Clone(axes)
	for d := len(sizes) - 1; d >= 0; d-- {
		have := 1
		for have < sizes[d] {
			if len(rest) == 0 || sizes[d]%have != 0 {
				return nil, false
			}
			last := &rest[len(rest)-1]
			need := sizes[d] / have
			switch {
			case need%last.n == 0:
				dims[d] = slices.Insert(dims[d], 0, *last)
				have *= last.n
				rest = rest[:len(rest)-1]
			case last.n%need == 0:
				dims[d] = slices.Insert(dims[d], 0, axis{need, last.stride})
				*last = axis{last.n / need, last.stride * int64(need)}
				have *= need
			default:
				return nil, false
			}
		}
	}
	return dims, sizeOf(rest) == 1
}
