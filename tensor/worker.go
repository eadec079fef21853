package tensor

import (
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/wick-ml/wick/fault"
)

// worker does tasks with buffers of its own.
type worker struct {
	run  *run
	ctx  context.Context
	room int64 // of the buffer for packed elements, bytes
	step int64 // of the others, bytes each
	bufs [5][]byte
}

// The uses of a worker's buffers.
const (
	sourceBuf = iota // bytes as they lie in the storage
	packedBuf        // elements in row-major order
	stageBuf         // between two conversions
	castBuf          // between two conversions, too
	tileBuf          // what goes to the sink
)

// newWorker makes a worker that uses at most its share of the memory.
func newWorker(r *run) *worker {
	return &worker{run: r, ctx: r.ctx, room: r.room(), step: r.step()}
}

// buf returns buffer k with n bytes of unknown content. A buffer that grows at
// least doubles as far as it may: each smaller one is garbage.
func (w *worker) buf(k, n int) []byte {
	if had := cap(w.bufs[k]); had < n {
		most := int(w.step)
		if k == packedBuf {
			most = int(w.room)
		}
		w.bufs[k] = make([]byte, max(n, min(2*had, most)))
	}
	return w.bufs[k][:n]
}

func (w *worker) source(n int) []byte { return w.buf(sourceBuf, n) }

// sumBytes is the step of reads: the bytes are still in the processor's cache
// when they are summed, converted and written.
const sumBytes = 512 << 10

func (s *spanTask) do(w *worker) {
	lo := w.kernelCopy(s)
	step := min(sumBytes, w.step)
	if s.inPlace() {
		step = sumBytes
		if !s.walk.storage.spec.HasCRC {
			step = spanBytes
		}
	}
	for ; lo < s.hi && w.ctx.Err() == nil; lo += step {
		if err := w.moveSpan(s, lo, min(lo+step, s.hi)); err != nil {
			w.run.failMove(s.job.index, err)
			return
		}
	}
}

// moveSpan moves bytes [lo, hi) of the storage.
func (w *worker) moveSpan(s *spanTask, lo, hi int64) error {
	st := s.walk.storage
	if !s.inPlace() && st.spec.File == nil && st.spec.Memory != nil {
		w.run.read(hi - lo)
		return w.deliver(s, lo, st.spec.Memory[lo:hi], false)
	}
	b := w.landing(s, lo, hi)
	if _, err := st.readFull(b, lo); err != nil {
		return err
	}
	w.run.read(hi - lo)
	return w.deliver(s, lo, b, true)
}

// inPlace reports whether the bytes are read to their destination: it is memory
// of the same dtype.
func (s *spanTask) inPlace() bool { return s.job.to.mem != nil && len(s.walk.casts) == 0 }

// landing is where the bytes are read to: their destination or a buffer.
func (w *worker) landing(s *spanTask, lo, hi int64) []byte {
	if s.inPlace() {
		return s.job.to.mem[lo-s.base : hi-s.base]
	}
	return w.source(int(hi - lo))
}

// deliver takes bytes of the storage from position lo, which may be the
// destination itself, through checksum and conversion to the sink.
func (w *worker) deliver(s *spanTask, lo int64, b []byte, mutable bool) error {
	w.run.sum(s.walk.storage, lo, b)
	at, _ := s.job.t.dtype.Bytes((lo - s.base) * 8 / int64(s.walk.dtype.Bits()))
	return w.hand(s.job, s.walk, at, b, mutable)
}

// hand converts packed elements of a walk and gives them to the sink at byte
// at, unless they are there already. It goes in steps that fit the buffers.
func (w *worker) hand(j *job, wk *walk, at int64, b []byte, mutable bool) error {
	step := len(b)
	if len(wk.casts) > 0 || !mutable && !(wk.plain() && wk.storage.spec.Order == j.to.order()) {
		step = w.stepOf(wk)
	}
	for ; len(b) > step; b = b[step:] {
		if err := w.handStep(j, wk, at, b[:step], mutable); err != nil {
			return err
		}
		at += w.outSize(j, wk, step)
	}
	return w.handStep(j, wk, at, b, mutable)
}

// stepOf is how many bytes of a walk's elements can be converted at once.
func (w *worker) stepOf(wk *walk) int {
	size := max(wk.dtype.Size(), 1)
	widest := size
	for _, d := range wk.casts {
		widest = max(widest, d.Size())
	}
	return int(w.step) / widest * size
}

func (w *worker) handStep(j *job, wk *walk, at int64, b []byte, mutable bool) error {
	var out []byte
	if j.to.mem != nil {
		out = j.to.mem[at : at+w.outSize(j, wk, len(b))]
	}
	packed, loss, err := w.convert(wk, b, mutable, j.to.order(), out)
	if err != nil {
		return err
	}
	j.lose(loss)
	if j.to.mem == nil {
		if err := j.to.emit(at, packed); err != nil {
			return err
		}
	}
	w.run.delivered(int64(len(packed)))
	return nil
}

func (w *worker) outSize(j *job, wk *walk, n int) int64 {
	if j.t.dtype == wk.dtype {
		return int64(n)
	}
	return int64(n) / int64(wk.dtype.Size()) * int64(j.t.dtype.Size())
}

func (b *batchTask) do(w *worker) {
	first := &b.spans[0]
	if len(b.spans) == 1 {
		first.do(w)
		return
	}
	buf := w.source(int(b.end - first.place()))
	if n, err := first.walk.storage.spec.File.ReadAt(buf, first.place()); n < len(buf) {
		b.each(w, func(s *spanTask) error { return s.walk.storage.short(s.lo, err) })
		return
	}
	w.run.read(int64(len(buf)))
	b.each(w, func(s *spanTask) error {
		at := s.place() - first.place()
		return w.deliver(s, s.lo, buf[at:at+s.hi-s.lo], false)
	})
}

func (b *batchTask) each(w *worker, f func(*spanTask) error) {
	for i := range b.spans {
		if err := f(&b.spans[i]); err != nil {
			w.run.failMove(b.spans[i].job.index, err)
		}
	}
}

func (t *streamTask) do(w *worker) {
	for i, j := range t.jobs {
		if w.ctx.Err() != nil {
			return
		}
		if err := w.moveInOrder(j); err != nil {
			w.run.failMove(j.index, err)
			if w.ctx.Err() != nil { // what ended the run is the reason for all
				return
			}
			for _, behind := range t.jobs[i+1:] {
				w.run.failMove(behind.index, notInTurn())
			}
			return
		}
	}
}

// notInTurn is the error of a move to a writer that lacks what was to come
// before: its bytes would stand in the wrong place.
func notInTurn() error {
	return fault.New(fault.IO, "not written: a tensor before it in the same stream failed")
}

// moveInOrder moves one tensor front to back.
func (w *worker) moveInOrder(j *job) error {
	wk, lo, hi, ok := j.t.span()
	switch {
	case !ok:
		return w.moveTile(j, j.t, make([]int, len(j.t.shape)))
	case wk.storage.Sequential():
		in, err := w.open(wk.storage)
		if err != nil {
			return err
		}
		defer in.Close()
		return w.pass(wk.storage, in, []consumer{{j, wk, lo, hi}})
	}
	s := spanTask{j, wk, lo, lo, hi}
	step := min(sumBytes, w.step)
	for at := lo; at < hi; at += step {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if err := w.moveSpan(&s, at, min(at+step, hi)); err != nil {
			return err
		}
	}
	return nil
}

func (t *passTask) do(w *worker) {
	in, err := w.open(t.s)
	if err == nil {
		defer in.Close()
		err = w.pass(t.s, in, t.consumers)
	}
	if err != nil {
		for _, c := range t.consumers {
			w.run.failMove(c.job.index, err)
		}
	}
}

// open starts a pass over a storage that can only be read in order.
func (w *worker) open(s *Storage) (io.ReadCloser, error) {
	if s.spec.Open == nil {
		return nil, s.locate(fault.New(fault.Unsupported, "a storage whose bytes come from a stream")).
			Needs("bytes that can be read again", "read it in one pass, or from a file")
	}
	return s.spec.Open(w.ctx)
}

// pass reads a whole storage from in and hands every consumer its part.
func (w *worker) pass(s *Storage, in io.Reader, consumers []consumer) error {
	return w.passAll(s, in, func(off int64, buf []byte) error { return w.share(consumers, off, buf) })
}

// passAll is passTo over bytes that are the storage's alone, and proves that they
// end with it: more of them are no part of what was claimed.
func (w *worker) passAll(s *Storage, in io.Reader, use func(off int64, buf []byte) error) error {
	if err := w.passTo(s, in, use); err != nil {
		return err
	}
	var more [1]byte
	switch _, err := io.ReadFull(in, more[:]); {
	case err == nil:
		return s.locate(fault.New(fault.Malformed, "the record goes on after its last byte")).At(s.Size()).
			Needs(strconv.FormatInt(s.Size(), 10)+" bytes", fault.GetAgain)
	case !errors.Is(err, io.EOF):
		return passError(s, s.Size(), err)
	}
	return nil
}

// passTo reads a whole storage from in and calls use for each step. The steps
// are multiples of every element size.
func (w *worker) passTo(s *Storage, in io.Reader, use func(off int64, buf []byte) error) error {
	buf := w.source(int(min(w.step, s.Size())))
	for off := int64(0); off < s.Size(); off += int64(len(buf)) {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		buf = buf[:min(int64(len(buf)), s.Size()-off)]
		if n, err := io.ReadFull(in, buf); err != nil {
			return passError(s, off+int64(n), err)
		}
		w.run.read(int64(len(buf)))
		w.run.sum(s, off, buf)
		if err := use(off, buf); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) share(consumers []consumer, off int64, buf []byte) error {
	for _, c := range consumers {
		from, to := max(c.lo, off), min(c.hi, off+int64(len(buf)))
		if from >= to {
			continue
		}
		at, _ := c.job.t.dtype.Bytes((from - c.lo) * 8 / int64(c.walk.dtype.Bits()))
		if err := w.hand(c.job, c.walk, at, buf[from-off:to-off], len(consumers) == 1); err != nil {
			return err
		}
	}
	return nil
}

func passError(s *Storage, at int64, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return s.locate(fault.New(fault.Malformed, "the record ends early")).At(at).
			Needs("all its bytes", fault.GetAgain)
	}
	if fault.KindOf(err) != "" {
		return err
	}
	return s.locate(fault.Wrap(fault.Malformed, "the record cannot be read", err)).At(at).
		Needs("all its bytes", fault.GetAgain)
}
