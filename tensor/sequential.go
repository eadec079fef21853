package tensor

import (
	"cmp"
	"slices"
)

// Strided tensors over bytes that come in order, such as compressed ones, are
// packed while the bytes pass by. Their loops are cut into portions that each take a
// small window of the storage. A permuted tensor's windows lie one behind the
// other: one pass and the memory of one window do.

// portion is a part of loops: those that begin at some element of the source and of
// the destination.
type portion struct {
	from, to int64 // elements
	extent   int64 // elements of the source from the first to the last
	loops    []loop
}

// cutLoops appends to out the portions of p, none of which spans more than most
// elements of the source. It cuts where the steps are the widest.
func cutLoops(out []portion, p portion, most int64) []portion {
	widest := -1
	p.extent = 1
	for i, l := range p.loops {
		p.extent += int64(l.n-1) * l.from
		if l.n > 1 && l.from > 0 && (widest < 0 || l.from > p.loops[widest].from) {
			widest = i
		}
	}
	if p.extent <= most || widest < 0 {
		return append(out, p)
	}
	l := p.loops[widest]
	inner := p.extent - int64(l.n-1)*l.from
	fit := int(min(max((most-inner)/l.from+1, 1), int64(l.n-1)))
	for i := 0; i < l.n; i += fit {
		part := portion{from: p.from + int64(i)*l.from, to: p.to + int64(i)*l.to, loops: slices.Clone(p.loops)}
		part.loops[widest].n = min(fit, l.n-i)
		out = cutLoops(out, part, most)
	}
	return out
}

// apart splits portions, in the order of their windows, into those whose windows
// lie one behind the other and the others, which need a pass of their own.
func apart(portions []portion) (now, later []portion) {
	end := int64(0)
	for _, p := range portions {
		if p.from < end {
			later = append(later, p)
			continue
		}
		now, end = append(now, p), p.from+p.extent
	}
	return now, later
}

// packPasses packs the elements that loops go over from an offset of a walk's
// storage, which can only be read in order.
func (w *worker) packPasses(dst []byte, wk *walk, offset int64, loops []loop) error {
	portions := cutLoops(nil, portion{from: offset, loops: loops}, max(w.step/int64(wk.dtype.Size()), 1))
	slices.SortStableFunc(portions, func(a, b portion) int { return cmp.Compare(a.from, b.from) })
	for len(portions) > 0 {
		var now []portion
		now, portions = apart(portions)
		if err := w.packPass(dst, wk, now); err != nil {
			return err
		}
	}
	return nil
}

// packPass packs portions whose windows lie one behind the other in one pass.
func (w *worker) packPass(dst []byte, wk *walk, portions []portion) error {
	in, err := w.open(wk.storage)
	if err != nil {
		return err
	}
	defer in.Close()
	size := int64(wk.dtype.Size())
	return w.passAll(wk.storage, in, func(off int64, buf []byte) error {
		end := off + int64(len(buf))
		for len(portions) > 0 {
			p := &portions[0]
			lo, hi := p.from*size, (p.from+p.extent)*size
			window := w.buf(stageBuf, int(hi-lo))
			if from, to := max(lo, off), min(hi, end); from < to {
				copy(window[from-lo:], buf[from-off:to-off])
			}
			if hi > end {
				return nil
			}
			pack(dst[p.to*size:], window, p.loops, int(size))
			portions = portions[1:]
		}
		return nil
	})
}

// placeTask packs a strided walk over bytes that come in order where its elements
// are wanted: in memory, as they are stored.
type placeTask struct{ job *job }

func (t *placeTask) size() int64 { return t.job.t.walks[0].storage.Size() }

func (t *placeTask) do(w *worker) {
	j, wk := t.job, &t.job.t.walks[0]
	err := w.packPasses(j.to.mem, wk, wk.offset, loopsOf(wk))
	if err == nil {
		err = w.hand(j, wk, 0, j.to.mem, true)
	}
	if err != nil {
		w.run.failMove(j.index, err)
	}
}

// inPass reports whether the job is one for a placeTask.
func (j *job) inPass() bool {
	return len(j.t.walks) == 1 && j.to.mem != nil && len(j.t.walks[0].casts) == 0 && j.t.walks[0].storage.Sequential()
}
