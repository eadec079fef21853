package tensor

import (
	"cmp"
	"slices"
)

// gatherPlan says how the source bytes of loops get into a buffer: the outer
// loops one read each, the inner ones as a window of the storage with its gaps.
type gatherPlan struct {
	outer  []loop // read one by one
	window int64  // bytes of one read
	bytes  int64  // of the buffer
	reads  int64
	widest int    // the loop that moves the most through the storage, -1 if none moves
	loops  []loop // from the buffer
}

// maxGap is the unused part of a window that is still read rather than skipped.
const maxGap = 4 << 10

// planGather finds the fewest outer loops for which the windows are dense.
func planGather(loops []loop, size int64) gatherPlan {
	order := byStride(loops)
	for k := 0; ; k++ {
		window, need := windowOf(loops, order[k:], size)
		if k < len(order) && window > 2*need+maxGap {
			continue
		}
		p := makePlan(loops, order[:k], window, size)
		if len(order) > 0 {
			p.widest = order[0]
		}
		return p
	}
}

// byStride returns the loops that move through the storage, widest stride first.
func byStride(loops []loop) []int {
	var order []int
	for i, l := range loops {
		if l.from != 0 && l.n > 1 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(loops[b].from, loops[a].from) })
	return order
}

// windowOf is the extent of the given loops in the storage, and what of it is used.
func windowOf(loops []loop, which []int, size int64) (window, need int64) {
	last, need := int64(0), size
	for _, i := range which {
		last += int64(loops[i].n-1) * loops[i].from
		need *= int64(loops[i].n)
	}
	return (last + 1) * size, need
}

func makePlan(loops []loop, outer []int, window, size int64) gatherPlan {
	p := gatherPlan{window: window, bytes: window, reads: 1, widest: -1, loops: slices.Clone(loops)}
	for i := len(outer) - 1; i >= 0; i-- {
		p.loops[outer[i]].from = p.bytes / size
		p.bytes *= int64(loops[outer[i]].n)
		p.reads *= int64(loops[outer[i]].n)
	}
	for _, k := range outer {
		p.outer = append(p.outer, loops[k])
	}
	return p
}

// pack reads one walk and returns its elements in row-major order.
func (w *worker) pack(wk *walk) ([]byte, error) {
	packed := w.buf(packedBuf, int(wk.len())*wk.dtype.Size())
	return packed, w.packLoops(packed, wk, wk.offset, loopsOf(wk))
}

func (w *walk) len() int64 { return product(w.size) }

// packLoops packs the elements that loops go over from an offset of a walk's
// storage. What does not fit the source buffer is read in parts.
func (w *worker) packLoops(dst []byte, wk *walk, offset int64, loops []loop) error {
	s, size := wk.storage, wk.dtype.Size()
	switch {
	case s.Sequential():
		return w.packPasses(dst, wk, offset, loops)
	case s.spec.File == nil:
		w.run.read(int64(len(dst)))
		pack(dst, s.spec.Memory[wk.bytesAt(offset):], loops, size)
		return nil
	}
	plan := planGather(loops, int64(size))
	if plan.bytes > w.step && plan.widest >= 0 {
		return w.packParts(dst, wk, offset, loops, plan)
	}
	src, rest := w.source(int(plan.bytes)), w.source(int(plan.bytes))
	if err := w.readOuter(wk, plan, plan.outer, wk.bytesAt(offset), &rest); err != nil {
		return err
	}
	pack(dst, src, plan.loops, size)
	return nil
}

// packParts cuts the loops at the widest.
func (w *worker) packParts(dst []byte, wk *walk, offset int64, loops []loop, plan gatherPlan) error {
	whole := loops[plan.widest]
	parts := slices.Clone(loops)
	part := &parts[plan.widest]
	most := max(int(int64(whole.n)*w.step/plan.bytes), 1)
	for i := 0; i < whole.n; i += most {
		part.n = min(most, whole.n-i)
		at := int64(i) * whole.to * int64(wk.dtype.Size())
		if err := w.packLoops(dst[at:], wk, offset+int64(i)*whole.from, parts); err != nil {
			return err
		}
	}
	return nil
}

// readOuter reads the windows of the outer loops, widest first, end to end.
func (w *worker) readOuter(wk *walk, plan gatherPlan, outer []loop, at int64, rest *[]byte) error {
	if len(outer) == 0 {
		b := (*rest)[:plan.window]
		*rest = (*rest)[plan.window:]
		_, err := wk.storage.readFull(b, at)
		w.run.read(plan.window)
		if err == nil && (plan.window >= smallBytes || plan.window == wk.storage.Size()) {
			w.run.sum(wk.storage, at, b) // windows of a whole record can lie end to end
		}
		return err
	}
	for i := range outer[0].n {
		if err := w.readOuter(wk, plan, outer[1:], at+wk.bytesAt(int64(i)*outer[0].from), rest); err != nil {
			return err
		}
	}
	return nil
}

// advance steps a row-major index; it returns false behind the last.
func advance(index, size []int) bool {
	for d := len(index) - 1; d >= 0; d-- {
		if index[d]++; index[d] < size[d] {
			return true
		}
		index[d] = 0
	}
	return false
}
