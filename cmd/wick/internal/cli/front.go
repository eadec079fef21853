package cli

import (
	"context"
	"io"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/pytorch"
	"github.com/wick-ml/wick/remote"
)

// stdinName is what messages call the file -.
const stdinName = "standard input"

// openFile opens a file, a folder or a URL. Files are never mapped: a file that is cut
// short while it is mapped would end the process. "-" is standard input, which is
// read in one pass.
func openFile(ctx context.Context, name string, o openOptions) (*checkpoint.Checkpoint, error) {
	opts := []wick.Option{wick.WithLimits(o.limits)}
	if o.salvage {
		opts = append(opts, wick.Salvage())
	}
	if o.join {
		opts = append(opts, wick.Join())
	}
	if name == "-" {
		return openStream(ctx, stdinName, widePipe(o.stdin), o, opts)
	}
	if remote.IsURL(name) {
		return openURL(ctx, name, o, opts)
	}
	return wick.Open(ctx, name, opts...)
}

// openStream opens what comes from r, and holds all of it where it is read more
// than once.
func openStream(ctx context.Context, name string, r io.Reader, o openOptions, opts []wick.Option) (*checkpoint.Checkpoint, error) {
	if !o.keep {
		return wick.OpenStream(ctx, name, r, append(opts, wick.SpoolMemory(o.memory), wick.Spool(o.spool))...)
	}
	src, err := pytorch.Hold(ctx, name, r, pytorch.SpoolMemory(o.memory), pytorch.Spool(o.spool))
	if err != nil {
		return nil, err
	}
	return wick.OpenSource(ctx, src, opts...)
}
