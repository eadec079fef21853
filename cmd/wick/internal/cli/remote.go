package cli

import (
	"context"
	"errors"
	"sync"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/pytorch"
	"github.com/wick-ml/wick/remote"
	"github.com/wick-ml/wick/shards"

	"github.com/wick-ml/wick/cmd/wick/internal/human"
)

// openURL opens what is on a server: by ranges, or in one pass where the server
// has none.
func openURL(ctx context.Context, name string, o openOptions, opts []wick.Option) (*checkpoint.Checkpoint, error) {
	src, err := o.far.source(ctx, name, o.memory, o.limits)
	if errors.Is(err, remote.ErrNoRanges) {
		return o.far.stream(ctx, name, o, opts)
	}
	if err != nil {
		return nil, err
	}
	return wick.OpenSource(ctx, src, opts...)
}

// openSource opens a FILE argument for a command that reads files rather than the
// checkpoint in them: an index is the folder of its shards. Standard input is held,
// as it comes once.
func (a *app) openSource(ctx context.Context, name string, limits checkpoint.Limits) (checkpoint.Source, error) {
	if name == "-" {
		return pytorch.Hold(ctx, stdinName, widePipe(a.in), pytorch.WithLimits(limits), pytorch.SpoolMemory(a.memory), pytorch.Spool(a.spool))
	}
	src, err := a.findSource(ctx, name, limits)
	if err != nil {
		return nil, err
	}
	listed, err := shards.Listed(src, limits)
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return listed, nil
}

// findSource opens a file or a folder, here or on a server.
func (a *app) findSource(ctx context.Context, name string, limits checkpoint.Limits) (checkpoint.Source, error) {
	if remote.IsURL(name) {
		far := a.farAway()
		defer far.arrived()
		return far.source(ctx, name, 0, limits)
	}
	src, err := checkpoint.OpenPath(name, checkpoint.Options{Limits: limits})
	if err != nil && isMissing(name) {
		return nil, missingFile(name)
	}
	return src, err
}

// far is what a command does with files on servers: it shows what opening one
// fetches, and remembers it for --verbose.
type far struct {
	a    *app
	mu   sync.Mutex
	bar  *progress // nil once the file is open
	srcs []checkpoint.Source
}

// farAway starts the opening of a file that may be on a server.
func (a *app) farAway() *far {
	f := &far{a: a, bar: a.progress("fetching")}
	a.fetched = append(a.fetched, f)
	return f
}

// source opens a source and counts what it fetches.
func (f *far) source(ctx context.Context, name string, memory int64, limits checkpoint.Limits) (checkpoint.Source, error) {
	opts := []remote.Option{remote.Progress(f.report), remote.Limits(limits)}
	if memory > 0 { // --max-memory is for all that the command holds
		opts = append(opts, remote.CacheBytes(memory/2), remote.Hold(memory/2))
	}
	src, err := remote.Open(ctx, name, opts...)
	if err == nil {
		f.srcs = append(f.srcs, src)
	}
	return src, err
}

// stream opens a file in one pass, and says so.
func (f *far) stream(ctx context.Context, name string, o openOptions, opts []wick.Option) (*checkpoint.Checkpoint, error) {
	f.a.warn(remote.Redact(name) + ": the server has no range requests: wick reads the whole file, once and in order")
	s, err := remote.OpenStream(ctx, name, remote.Progress(f.report))
	if err != nil {
		return nil, err
	}
	f.a.streamed = true
	c, err := openStream(ctx, s.Name(), s, o, opts)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return c, nil // the stream ends with its last byte, or with ctx
}

// report is told the bytes fetched; how many there will be, nobody knows.
func (f *far) report(fetched int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bar != nil {
		f.bar.report(fetched, -1)
	}
}

// arrived ends the opening: from here on the command shows its own progress.
func (f *far) arrived() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bar.clear()
	f.bar = nil
}

// remarks tells --verbose what was fetched.
func (f *far) remarks() {
	for _, src := range f.srcs {
		if counted, ok := src.(interface {
			Requests() (requests, bytes int64)
		}); ok {
			requests, bytes := counted.Requests()
			f.a.remark("%s: fetched %s in %s", fault.Clean(src.Name(), maxName), human.Bytes(bytes), human.Plural(int(requests), "request"))
		}
	}
}
