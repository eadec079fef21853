package tensor

import (
	"fmt"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/internal/crc"
)

// track notes the storages of a job.
func (r *run) track(j *job) {
	for i := range j.t.walks {
		if s := j.t.walks[i].storage; r.sums[s] == nil {
			r.sums[s] = &crc.Pieces{}
		}
	}
}

// sum notes bytes of a storage that just passed by.
func (r *run) sum(s *Storage, off int64, b []byte) {
	if s.spec.HasCRC {
		r.sums[s].Add(off, b)
	}
}

// checkOf is the worst outcome over the storages of a job.
func (r *run) checkOf(j *job) (Check, error) {
	worst, known := Verified, false
	for s := range j.t.Storages() {
		got, want, state := r.sumOf(s)
		switch {
		case state == Absent:
			continue
		case state == Unverified:
			worst = Unverified
		case got != want && r.salvage:
			return Failed, nil
		case got != want:
			return Failed, wrongSum(s, got, want)
		}
		known = true
	}
	if !known {
		return Absent, nil
	}
	return worst, nil
}

// goOver notes the wrong checksums of a job, once for each storage.
func (r *run) goOver(j *job) {
	for s := range j.t.Storages() {
		got, want, state := r.sumOf(s)
		if state != Verified || got == want || r.over[s] {
			continue
		}
		if r.over == nil {
			r.over = map[*Storage]bool{}
		}
		r.over[s] = true
		r.stats.Wrong = append(r.stats.Wrong, Wrong{s, got, want})
	}
}

// lateSum is a checksum that was computed, and the one that was stored, of a
// storage in a stream.
type lateSum struct{ got, want uint32 }

// sumOf returns both checksums of a storage and how much is known of them:
// Absent, Unverified or, if they can be compared, Verified.
func (r *run) sumOf(s *Storage) (got, want uint32, state Check) {
	if late, ok := r.late[s]; ok {
		return late.got, late.want, Verified
	}
	if !s.spec.HasCRC {
		return 0, 0, Absent
	}
	got, ok := r.sums[s].Sum(s.Size())
	if !ok {
		return 0, 0, Unverified
	}
	return got, s.spec.CRC32, Verified
}

func wrongSum(s *Storage, got, want uint32) error {
	return s.locate(fault.New(fault.Checksum, fmt.Sprintf("CRC-32 is %08x", got))).
		Needs(fmt.Sprintf("%08x", want), fault.GetAgain)
}

// extraChecks reads, under [Verify], the storages whose sums the moves left open.
func (r *run) extraChecks() {
	if !r.verify || r.ctx.Err() != nil {
		return
	}
	var tasks []task
	for s, c := range r.sums {
		if _, ok := c.Sum(s.Size()); s.spec.HasCRC && !ok {
			tasks = append(tasks, &sumTask{s})
		}
	}
	r.work(tasks)
}

// sumTask reads one whole storage for its checksum alone.
type sumTask struct{ s *Storage }

func (t *sumTask) size() int64 { return t.s.Size() }

func (t *sumTask) do(w *worker) {
	if err := t.read(w); err != nil {
		w.failUsers(t.s, err)
	}
}

func (t *sumTask) read(w *worker) error {
	if t.s.Sequential() {
		in, err := w.open(t.s)
		if err != nil {
			return err
		}
		defer in.Close()
		return w.pass(t.s, in, nil)
	}
	buf := w.source(int(min(t.s.Size(), w.step)))
	for off := int64(0); off < t.s.Size() && w.ctx.Err() == nil; off += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), t.s.Size()-off)]
		if _, err := t.s.readFull(buf, off); err != nil {
			return err
		}
		w.run.read(int64(len(buf)))
		w.run.sum(t.s, off, buf)
	}
	return nil
}

// failUsers gives an error to every move that takes bytes from s.
func (w *worker) failUsers(s *Storage, err error) {
	for i, j := range w.run.jobs {
		if j == nil {
			continue
		}
		for used := range j.t.Storages() {
			if used == s {
				w.run.failMove(i, err)
			}
		}
	}
}
