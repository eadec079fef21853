package tensor

import (
	"context"
	"io"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/internal/crc"
)

// Feed is the push twin of [Run], for storages that arrive one after another
// and cannot be read again: a pipe, an HTTP body. All moves are proved before
// the first byte; then every storage is fed once, in whatever order they
// arrive, and its elements go to their sinks as they pass. A Feed is used from
// one goroutine.
type Feed struct {
	run    *run
	worker *worker
	users  map[*Storage][]*job
	hold   holder
	held   map[*Storage]*Storage // what can be read: kept, or never part of the stream
	wait   map[*job]int          // storages that a job still waits for
	queues map[io.Writer]*queue
	began  bool
}

// queue is the jobs of one writer in the order in which it gets them.
type queue struct{ jobs []*job }

// NewFeed proves all moves possible and returns a Feed that waits for their
// storages. On an error nothing has been written to any sink. Storages that
// can be read at any time need not be fed.
func NewFeed(ctx context.Context, moves []Move, opts ...RunOption) (*Feed, error) {
	r := newRun(ctx, moves, opts)
	r.workers, r.late = 1, map[*Storage]lateSum{}
	r.memory /= 2 // the other half is for what is kept
	r.prepare(moves)
	f := &Feed{
		run: r, worker: newWorker(r), hold: holder{most: r.memory, dir: r.spool},
		users: map[*Storage][]*job{}, held: map[*Storage]*Storage{}, wait: map[*job]int{}, queues: map[io.Writer]*queue{},
	}
	if r.first == nil {
		if err := r.pin(); err != nil {
			r.fail(err)
		}
	}
	if r.first != nil {
		_, err := r.finish()
		r.cancel()
		return nil, err
	}
	for _, j := range r.jobs {
		if j != nil && j.t.Len() > 0 {
			f.enlist(j)
		}
	}
	return f, nil
}

// enlist notes what a job waits for.
func (f *Feed) enlist(j *job) {
	f.wait[j] = 0
	for s := range j.t.Storages() {
		if s.spec.File != nil || s.spec.Memory != nil || s.spec.Open != nil || s.Size() == 0 {
			f.held[s] = s
			continue
		}
		f.users[s] = append(f.users[s], j)
		f.wait[j]++
	}
	if w := j.to.stream; w != nil {
		if f.queues[w] == nil {
			f.queues[w] = &queue{}
		}
		f.queues[w].jobs = append(f.queues[w].jobs, j)
	}
}

// Wants reports whether a move takes bytes from s.
func (f *Feed) Wants(s *Storage) bool { return len(f.users[s]) > 0 }

// Storage takes the whole of s from in, exactly s.Size bytes. Contiguous
// tensors over it pass through in chunks; those that are strided or joined
// from several storages are kept until they are complete: in memory, at most half of
// that of [MaxMemory], then in the file of [Spool].
func (f *Feed) Storage(s *Storage, in io.Reader) error {
	if err := f.begin(); err != nil {
		return err
	}
	direct, keep := f.split(s)
	err := f.pass(s, in, direct, len(keep) > 0)
	if err == nil {
		for i := range direct {
			f.done(direct[i].job)
		}
		for _, j := range keep {
			f.wait[j]--
		}
		err = f.finishAll(append(keep, f.heads(direct)...))
	}
	if err != nil {
		f.run.fail(err)
	}
	return err
}

// begin does the jobs that wait for nothing.
func (f *Feed) begin() error {
	if f.began {
		return nil
	}
	f.began = true
	if err := f.finishAll(f.run.jobs); err != nil {
		f.run.fail(err)
		return err
	}
	return nil
}

// split sorts the users of s into those that can have its bytes as they pass,
// and those that have to wait for more.
func (f *Feed) split(s *Storage) (direct []consumer, keep []*job) {
	for _, j := range f.users[s] {
		wk, lo, hi, ok := j.t.span()
		if ok && f.inTurn(j, direct, lo) {
			direct = append(direct, consumer{j, wk, lo, hi})
		} else {
			keep = append(keep, j)
		}
	}
	return direct, keep
}

// inTurn reports whether a writer can have the bytes of j from lo on now: all
// that was given before is done, or passes in front of them.
func (f *Feed) inTurn(j *job, direct []consumer, lo int64) bool {
	if j.to.stream == nil {
		return true
	}
	ahead := 0
	for i := range direct {
		if direct[i].job.to.stream == j.to.stream {
			if ahead++; direct[i].hi > lo {
				return false
			}
		}
	}
	q := f.queues[j.to.stream]
	return ahead < len(q.jobs) && q.jobs[ahead] == j
}

func (f *Feed) pass(s *Storage, in io.Reader, direct []consumer, keep bool) error {
	var kept io.WriterAt
	if keep {
		var err error
		if kept, err = f.keep(s); err != nil {
			return err
		}
	}
	return f.worker.passTo(s, in, func(off int64, buf []byte) error {
		if kept != nil {
			if _, err := kept.WriteAt(buf, off); err != nil {
				return fault.Wrap(fault.IO, "the spool cannot be written", err)
			}
		}
		return f.worker.share(direct, off, buf)
	})
}

// keep finds room for the bytes of s.
func (f *Feed) keep(s *Storage) (io.WriterAt, error) {
	spec := s.spec
	spec.Stream, spec.HasCRC = nil, false
	to, err := f.hold.room(&spec)
	if err != nil {
		return nil, err
	}
	held := NewStorage(spec)
	f.held[s] = held
	f.run.sums[held] = &crc.Pieces{}
	return to, nil
}

// done takes a job off the list, and off the head of its writer's queue.
func (f *Feed) done(j *job) {
	delete(f.wait, j)
	if j.to.stream != nil {
		q := f.queues[j.to.stream]
		q.jobs = q.jobs[1:]
	}
}

// heads returns the jobs that are next in turn at the writers of some others.
func (f *Feed) heads(after []consumer) []*job {
	var heads []*job
	for i := range after {
		if w := after[i].job.to.stream; w != nil && len(f.queues[w].jobs) > 0 {
			heads = append(heads, f.queues[w].jobs[0])
		}
	}
	return heads
}

// finishAll moves those of the jobs whose last storage has come, and what waited for
// them at the same writer.
func (f *Feed) finishAll(jobs []*job) error {
	for _, j := range jobs {
		if j != nil && j.to.stream != nil {
			j = f.queues[j.to.stream].head()
		}
		for j != nil && f.ready(j) {
			if err := f.finish(j); err != nil {
				return err
			}
			if f.done(j); j.to.stream == nil {
				break
			}
			j = f.queues[j.to.stream].head()
		}
	}
	return nil
}

func (q *queue) head() *job {
	if q == nil || len(q.jobs) == 0 {
		return nil
	}
	return q.jobs[0]
}

func (f *Feed) ready(j *job) bool {
	n, waits := f.wait[j]
	return waits && n == 0
}

// finish moves a job over what is held.
func (f *Feed) finish(j *job) error {
	t := *j.t
	t.walks = append([]walk(nil), t.walks...)
	for i := range t.walks {
		t.walks[i].storage = f.held[t.walks[i].storage]
	}
	held := &job{index: j.index, t: &t, to: j.to}
	err := f.worker.moveInOrder(held)
	j.lose(held.loss)
	return err
}

// Sum tells the CRC-32 of the bytes of s as they came, and the one that the
// stream stored with them.
func (f *Feed) Sum(s *Storage, got, want uint32) { f.run.late[s] = lateSum{got, want} }

// Close ends the feed. It fails with [fault.ErrMalformed] when a storage that a
// move needs never came.
func (f *Feed) Close() (Stats, error) {
	defer f.run.cancel()
	if f.run.first == nil {
		_ = f.begin() // its error is the run's
	}
	if len(f.wait) > 0 && f.run.first == nil {
		f.run.fail(fault.New(fault.Malformed, "the stream ended before all storages came").
			Needs("the whole checkpoint", "the stream was cut off: get it again"))
	}
	if err := f.hold.close(); err != nil {
		f.run.fail(err)
	}
	return f.run.finish()
}

// Abort ends the feed because its stream failed with err.
func (f *Feed) Abort(err error) (Stats, error) {
	f.run.fail(err)
	return f.Close()
}
