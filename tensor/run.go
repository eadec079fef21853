package tensor

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/internal/crc"
)

// Check says what became of the checksum behind a move.
type Check uint8

// The outcomes of a checksum.
const (
	Absent     Check = iota // the container stored none
	Unverified              // stored, but not all of the record's bytes passed through here
	Verified                // computed over the whole record and equal
	Failed                  // computed over the whole record and different
)

// String returns "absent", "unverified", "verified" or "failed".
func (c Check) String() string {
	return [...]string{"absent", "unverified", "verified", "failed"}[c]
}

// Stats says what a run did.
type Stats struct {
	Moves  int     // moves done
	Bytes  int64   // bytes delivered to sinks
	Read   int64   // bytes read from storages through this process
	Kernel int64   // bytes that moved inside the kernel
	Loss   Loss    // what conversions lost, over all moves
	Checks []Check // one for each move
	Wrong  []Wrong // what [Salvage] went over, each storage once for each run
}

// Wrong is a storage that was read under a wrong checksum.
type Wrong struct {
	Storage   *Storage
	Got, Want uint32 // CRC-32 of the bytes, and as the container has it
}

// Err returns what a run without [Salvage] fails with: an error of the kind
// checksum, with the record, and the file where it is known.
func (w Wrong) Err() error { return wrongSum(w.Storage, w.Got, w.Want) }

// RunOption changes how [Run] and [Feed] work.
type RunOption func(*runConfig)

type runConfig struct {
	workers  int
	memory   int64
	verify   bool
	salvage  bool
	expand   int64
	floor    int64
	spool    string
	progress func(done, total int64)
	each     func(move int, err error)
}

// DefaultMemory is what a run may use for its buffers when nothing is said.
const DefaultMemory = 16 << 20

// Workers sets how many goroutines move bytes; the default is GOMAXPROCS.
func Workers(n int) RunOption { return func(c *runConfig) { c.workers = max(n, 1) } }

// MaxMemory bounds the bytes of the run's own buffers; at least 1 MiB.
// Destinations that the caller made do not count.
func MaxMemory(bytes int64) RunOption {
	return func(c *runConfig) { c.memory = max(bytes, 1<<20) }
}

// Verify makes the run compute every stored checksum, also where it has to
// read bytes that no move needs.
func Verify() RunOption { return func(c *runConfig) { c.verify = true } }

// Salvage lets a run go on over a wrong checksum; Stats.Checks and Stats.Wrong tell.
func Salvage() RunOption { return func(c *runConfig) { c.salvage = true } }

// Expansion limits what zero strides may make of few bytes: all moves together
// deliver at most ratio bytes for each byte of their storages, or floor bytes
// if that is more. The defaults are 64 and 256 MiB.
func Expansion(ratio, floor int64) RunOption {
	return func(c *runConfig) { c.expand, c.floor = ratio, floor }
}

// Spool lets a [Feed] keep what it has no memory for in a temporary file in the
// folder dir, which is gone when the feed ends. Without it that is an error.
func Spool(dir string) RunOption { return func(c *runConfig) { c.spool = dir } }

// Progress calls f now and then, from one goroutine at a time, with the bytes
// delivered and the bytes in all.
func Progress(f func(done, total int64)) RunOption {
	return func(c *runConfig) { c.progress = f }
}

// Each calls f once for every move when the run ends, from one goroutine, and
// makes a failed move no reason to stop: the run goes on with the others and
// returns the error of the first that failed. What was to follow a failed move in
// a [Stream] fails too. f is not called in a run that ends as a whole, because its
// context is done or a source cannot be held.
func Each(f func(move int, err error)) RunOption {
	return func(c *runConfig) { c.each = f }
}

func newConfig(opts []RunOption) runConfig {
	c := runConfig{workers: runtime.GOMAXPROCS(0), memory: DefaultMemory, expand: 64, floor: 256 << 20}
	for _, o := range opts {
		o(&c)
	}
	return c
}

// Run moves the elements of every tensor to its sink. It proves all moves
// possible before a byte moves, reads in the order of the storages' bytes, in
// parallel and with bounded memory, and stops early when ctx is done. No
// goroutine outlives it. On an error, sinks may hold part of what was to come.
//
// Several runs may go on at once; a Run holds its sources open. Tensors whose
// storages arrive in a pass ([StorageSpec.Stream]) are moved as they arrive, in one
// run for all of them.
func Run(ctx context.Context, moves []Move, opts ...RunOption) (Stats, error) {
	if pass := passOf(moves); pass != nil {
		return pass.Run(ctx, moves, opts...)
	}
	r := newRun(ctx, moves, opts)
	defer r.cancel()
	r.workers = max(min(r.workers, int(r.memory/workerBytes)), 1)
	r.prepare(moves)
	if err := r.pin(); err != nil {
		r.fail(err)
	}
	r.work(r.tasks())
	r.extraChecks()
	return r.finish()
}

// passOf returns the pass that some storage arrives in, nil if all can be read.
func passOf(moves []Move) Pass {
	for i := range moves {
		for j := range moves[i].From.walks {
			if s := moves[i].From.walks[j].storage; s.spec.Stream != nil {
				return s.spec.Stream
			}
		}
	}
	return nil
}

// run is the state of one Run or Feed.
type run struct {
	runConfig
	ctx    context.Context
	cancel context.CancelFunc
	jobs   []*job // one for each move; nil where the move failed early
	plain  bool   // no job converts elements or puts several walks together
	guards []Guard
	sums   map[*Storage]*crc.Pieces
	late   map[*Storage]lateSum // of storages whose checksums came behind them
	total  int64

	mu    sync.Mutex
	stats Stats
	errs  []error // one for each move
	first error
	done  atomic.Int64      // bytes delivered
	in    atomic.Int64      // bytes read through this process
	moved atomic.Int64      // bytes moved by the kernel
	over  map[*Storage]bool // storages in stats.Wrong
}

// job is one move on its way.
type job struct {
	index int
	t     *Tensor // with the casts that the sink asks for
	to    *Sink

	mu   sync.Mutex
	loss Loss
}

// plain reports whether the job takes one walk's elements as they are stored.
func (j *job) plain() bool {
	for i := range j.t.walks {
		w := &j.t.walks[i]
		if i > 0 || !w.plain() || w.storage.spec.Order != j.to.order() && w.dtype.Component() > 1 {
			return false
		}
	}
	return true
}

func (j *job) lose(l Loss) {
	if l == (Loss{}) {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.loss.Add(l)
}

func newRun(ctx context.Context, moves []Move, opts []RunOption) *run {
	r := &run{runConfig: newConfig(opts), sums: make(map[*Storage]*crc.Pieces, len(moves))}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.jobs, r.errs = make([]*job, len(moves)), make([]error, len(moves))
	r.stats.Checks = make([]Check, len(moves))
	return r
}

// prepare proves every move from metadata.
func (r *run) prepare(moves []Move) {
	r.plain = true
	jobs, stopped := make([]job, len(moves)), map[io.Writer]bool{}
	allowance := sync.OnceValue(func() int64 { return r.allowance(moves) })
	for i := range moves {
		t, err := moves[i].check()
		if w := moves[i].To.stream; err == nil && w != nil && stopped[w] {
			err = notInTurn()
		}
		if err == nil && r.total > r.floor-t.Bytes() && r.total > allowance()-t.Bytes() {
			err = overExpanded(t, r.total+t.Bytes(), allowance())
		}
		if err != nil {
			r.failMove(i, err)
			if w := moves[i].To.stream; w != nil {
				stopped[w] = true
			}
			continue
		}
		r.total += t.Bytes()
		j := &jobs[i]
		j.index, j.t, j.to, r.jobs[i] = i, t, &moves[i].To, j
		r.plain = r.plain && j.plain()
		r.track(j)
	}
}

// overExpanded is the error of a tensor with which all come to more bytes than
// may be made of those that are there.
func overExpanded(t *Tensor, size, most int64) error {
	e := fault.NewLimit("expansion", size, most)
	if s, _, ok := t.Origin(); ok {
		return s.locate(e)
	}
	return e
}

// allowance is how many bytes all moves together may deliver.
func (r *run) allowance(moves []Move) int64 {
	seen := map[*Storage]bool{}
	present := int64(0)
	for i := range moves {
		for j := range moves[i].From.walks {
			if s := moves[i].From.walks[j].storage; !seen[s] {
				seen[s] = true
				present += s.Size()
			}
		}
	}
	if present > (1<<62)/max(r.expand, 1) {
		return 1 << 62
	}
	return max(r.floor, r.expand*present)
}

// pin acquires the guards of all storages.
func (r *run) pin() error {
	for s := range r.sums {
		g := s.spec.Guard
		if g == nil || slices.Contains(r.guards, g) {
			continue
		}
		if err := g.Acquire(); err != nil {
			return err
		}
		r.guards = append(r.guards, g)
	}
	return nil
}

// workerBytes is the least memory that is worth a worker.
const workerBytes = 512 << 10

// step is the size of a worker's buffers but the one for packed elements, on
// which the size of tiles depends: a ninth of its memory each. Both are
// multiples of every element size.
func (r *run) step() int64 { return max(r.memory/int64(r.workers)/9, 64) &^ 63 }

// room is the size of the buffer for packed elements: what is left. Three of the
// others are not needed where all elements are taken as they are stored.
func (r *run) room() int64 {
	if r.plain {
		return 8 * r.step()
	}
	return 5 * r.step()
}

// work runs tasks on the workers until they are done or one failed.
func (r *run) work(tasks []task) {
	if len(tasks) == 0 {
		return
	}
	workers := min(r.workers, len(tasks))
	todo := newShares(tasks, workers)
	loop := func(worker int) {
		w := newWorker(r)
		for r.ctx.Err() == nil {
			t := todo.next(worker)
			if t == nil {
				return
			}
			t.do(w)
		}
	}
	var wg sync.WaitGroup
	for i := 1; i < workers; i++ {
		wg.Go(func() { loop(i) })
	}
	loop(0)
	wg.Wait()
}

// failMove records the error of one move and, unless errors are wanted one by
// one, stops the run.
func (r *run) failMove(i int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.errs[i] != nil {
		return
	}
	r.errs[i] = ownError(err)
	if r.each == nil {
		r.setFirst(r.errs[i])
		r.cancel()
	}
}

// fail stops the run altogether.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setFirst(err)
	r.cancel()
}

func (r *run) setFirst(err error) {
	if r.first == nil || errors.Is(r.first, context.Canceled) {
		r.first = err
	}
}

// delivered counts bytes and reports progress.
func (r *run) delivered(n int64) {
	r.done.Add(n)
	if r.progress == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress(r.done.Load(), r.total) // read under the lock, so that it never runs backwards
}

// read counts bytes that came through this process.
func (r *run) read(n int64) { r.in.Add(n) }

// kernel counts bytes that moved inside the kernel.
func (r *run) kernel(n int64) {
	r.moved.Add(n)
	r.delivered(n)
}

// finish releases the sources, settles checksums and losses, and makes the
// run's one error.
func (r *run) finish() (Stats, error) {
	for _, g := range r.guards {
		if err := g.Release(); err != nil {
			r.fail(err)
		}
	}
	if err := context.Cause(r.ctx); err != nil && r.first == nil {
		r.first = err
	}
	r.stats.Bytes, r.stats.Read, r.stats.Kernel = r.done.Load(), r.in.Load(), r.moved.Load()
	for i, j := range r.jobs {
		if j != nil {
			r.settle(i, j)
		}
		if r.errs[i] == nil && r.first == nil {
			r.stats.Moves++
		}
		if r.each != nil && r.first == nil {
			r.each(i, r.errs[i])
		}
	}
	if r.first == nil {
		i := slices.IndexFunc(r.errs, func(err error) bool { return err != nil })
		if i >= 0 {
			r.first = r.errs[i]
		}
	}
	return r.stats, r.first
}

// settle judges a finished move: its checksums and what its casts lost.
func (r *run) settle(i int, j *job) {
	check, err := r.checkOf(j)
	r.stats.Checks[i] = check
	if check == Failed && err == nil {
		r.goOver(j)
	}
	r.stats.Loss.Add(j.loss)
	if err == nil && len(j.t.walks) > 0 {
		err = j.loss.err(j.t.walks[0].dtype, j.t.dtype)
	}
	if err != nil && r.errs[i] == nil {
		r.errs[i] = err
		if r.each == nil && r.first == nil {
			r.first = err
		}
	}
}
