package tensor

import (
	"cmp"
	"io"
	"slices"
)

// task is a piece of work for one worker.
type task interface {
	do(w *worker)
	size() int64 // bytes to read or to deliver, to share tasks out
}

const (
	// spanBytes is how much of a contiguous tensor one task moves: enough to
	// make a task's cost vanish, little enough to share a big tensor out.
	spanBytes = 2 << 20
	// smallBytes is the size below which neighbours in a file are read together.
	smallBytes = 64 << 10
	// gapBytes is how much between two neighbours is read and dropped rather
	// than skipped by another read. Zip puts some 100 bytes between records.
	gapBytes = 4 << 10
	// batchBytes is the most that neighbours read together ever span.
	batchBytes = 1 << 20
)

// span returns the bytes of a walk that is one contiguous run of its storage
// and fills the whole tensor.
func (t *Tensor) span() (w *walk, lo, hi int64, ok bool) {
	if len(t.walks) != 1 {
		return nil, 0, 0, false
	}
	w = &t.walks[0]
	if !w.rowMajor() {
		axes := joinAxes(slices.Concat(w.dims...))
		if len(axes) > 1 || len(axes) == 1 && axes[0].stride != 1 && axes[0].n != 1 {
			return nil, 0, 0, false
		}
	}
	lo = w.bytesAt(w.offset)
	n, _ := w.dtype.Bytes(t.Len())
	return w, lo, lo + n, true
}

// rowMajor reports whether the walk is a contiguous run as most tensors are one:
// each dimension with one stride. It may be one all the same if not.
func (w *walk) rowMajor() bool {
	want := int64(1)
	for d := len(w.dims) - 1; d >= 0; d-- {
		if len(w.dims[d]) != 1 {
			return false
		}
		a := w.dims[d][0]
		if a.n != 1 && a.stride != want {
			return false
		}
		want *= int64(a.n)
	}
	return true
}

// bytesAt is the byte position of an element in the storage.
func (w *walk) bytesAt(element int64) int64 { return element * int64(w.dtype.Bits()) / 8 }

// tasks cuts the jobs into work, in the order of the bytes that they read.
func (r *run) tasks() []task {
	spans := make([]spanTask, 0, len(r.jobs))
	var out []task
	streams := map[io.Writer]*streamTask{}
	passes := map[*Storage]*passTask{}
	for _, j := range r.jobs {
		if j == nil || j.t.Len() == 0 {
			continue
		}
		w, lo, hi, contiguous := j.t.span()
		switch {
		case j.to.stream != nil:
			out = addStream(out, streams, j)
		case contiguous && w.storage.Sequential():
			out = addPass(out, passes, consumer{j, w, lo, hi})
		case j.inPass():
			out = append(out, &placeTask{j})
		case contiguous:
			spans = append(spans, spanTask{j, w, lo, lo, hi})
		default:
			out = appendTiles(out, j, j.t, make([]int, len(j.t.shape)), r.room())
		}
	}
	return append(batched(spans, r.step()), out...)
}

func addStream(out []task, streams map[io.Writer]*streamTask, j *job) []task {
	t := streams[j.to.stream]
	if t == nil {
		t = &streamTask{}
		streams[j.to.stream] = t
		out = append(out, t)
	}
	t.jobs = append(t.jobs, j)
	return out
}

func addPass(out []task, passes map[*Storage]*passTask, c consumer) []task {
	t := passes[c.walk.storage]
	if t == nil {
		t = &passTask{s: c.walk.storage}
		passes[t.s] = t
		out = append(out, t)
	}
	t.consumers = append(t.consumers, c)
	return out
}

// batched sorts the spans by place, cuts the big ones and puts small
// neighbours of one file together, as far as they span at most room bytes.
func batched(spans []spanTask, room int64) []task {
	files := fileOrder(spans)
	slices.SortStableFunc(spans, func(a, b spanTask) int {
		return cmp.Or(cmp.Compare(files[a.walk.storage.spec.File], files[b.walk.storage.spec.File]), cmp.Compare(a.place(), b.place()))
	})
	var out []task
	var open *batchTask
	for i, s := range spans {
		if s.hi-s.lo >= smallBytes || s.walk.storage.spec.File == nil {
			out = s.cut(out)
			open = nil
			continue
		}
		if open == nil || !open.takes(s, min(room, batchBytes)) {
			open = &batchTask{spans: spans[i:i]}
			out = append(out, open)
		}
		open.add(s)
	}
	return out
}

// fileOrder numbers the files in the order in which the jobs name them.
func fileOrder(spans []spanTask) map[io.ReaderAt]int {
	files := map[io.ReaderAt]int{}
	for i := range spans {
		f := spans[i].walk.storage.spec.File
		if _, ok := files[f]; !ok && f != nil {
			files[f] = len(files)
		}
	}
	return files
}

// spanTask moves bytes [lo, hi) of a contiguous walk, which starts at base.
type spanTask struct {
	job          *job
	walk         *walk
	base, lo, hi int64 // in the storage
}

// place is the position in the file.
func (s *spanTask) place() int64 { return s.walk.storage.spec.Offset + s.lo }

func (s *spanTask) size() int64 { return s.hi - s.lo }

func (s spanTask) cut(out []task) []task {
	for lo := s.lo; lo < s.hi; lo += spanBytes {
		part := s
		part.lo, part.hi = lo, min(lo+spanBytes, s.hi)
		out = append(out, &part)
	}
	return out
}

// batchTask moves small spans that lie close together in one file.
type batchTask struct {
	spans []spanTask // a part of all spans, which lie in the order of their places
	end   int64      // of all spans, in the file
}

func (b *batchTask) add(s spanTask) {
	b.spans = b.spans[:len(b.spans)+1] // s stands there
	b.end = max(b.end, s.place()+s.hi-s.lo)
}

func (b *batchTask) size() int64 { return b.end - b.spans[0].place() }

// takes reports whether s, which comes after the batch, is near enough, and the
// whole at most that long.
func (b *batchTask) takes(s spanTask, most int64) bool {
	first := &b.spans[0]
	return first.walk.storage.spec.File == s.walk.storage.spec.File &&
		s.place()-b.end <= gapBytes && s.place()+s.hi-s.lo-first.place() <= most
}

// streamTask moves tensors to one writer, in order.
type streamTask struct{ jobs []*job }

func (t *streamTask) size() (n int64) {
	for _, j := range t.jobs {
		n += j.t.Bytes()
	}
	return n
}

// passTask reads a storage once from its start for all who want parts of it.
type passTask struct {
	s         *Storage
	consumers []consumer
}

func (t *passTask) size() int64 { return t.s.Size() }

// consumer wants bytes [lo, hi) of a storage.
type consumer struct {
	job    *job
	walk   *walk
	lo, hi int64
}
