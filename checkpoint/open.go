package checkpoint

import (
	"context"
	"errors"
	"io"

	"github.com/wick-ml/wick/fault"
)

// maxNesting is how many checkpoints may lie inside one another: a gzip around
// a zip around a file is three.
const maxNesting = 8

// Open opens src with the first of formats that recognises it. On success the
// checkpoint owns src; on an error src has been closed. A source that no format
// knows is an [fault.ErrUnsupported] error.
func Open(ctx context.Context, src Source, formats []Format, opts Options) (*Checkpoint, error) {
	o := opener{formats: formats, opts: opts}
	c, err := o.open(ctx, src, 0)
	if err != nil {
		return nil, closing(err, src)
	}
	return c, nil
}

type opener struct {
	formats []Format
	opts    Options
}

func (o *opener) open(ctx context.Context, src Source, depth int64) (*Checkpoint, error) {
	if depth > maxNesting {
		e := fault.NewBound("nesting", depth, maxNesting).In(src.Name())
		e.Cure = "unpack it, and open what is inside"
		return nil, e
	}
	head, err := Head(src)
	if err != nil {
		return nil, err
	}
	env := o.opts.Env()
	env.Open = func(ctx context.Context, src Source) (*Checkpoint, error) { return o.open(ctx, src, depth+1) }
	for _, f := range o.formats {
		if f.Sniff(head, src) {
			c, err := f.Open(ctx, src, env)
			if err != nil {
				return nil, fault.InFile(err, src.Name())
			}
			c.neighbours(src)
			return c, nil
		}
	}
	return nil, fault.New(fault.Unsupported, "no format that wick knows").In(src.Name())
}

// Head returns the first bytes of src, at most [SniffLen]; nil for a [Folder].
func Head(src Source) ([]byte, error) {
	if _, ok := src.(Folder); ok {
		return nil, nil
	}
	head := make([]byte, min(src.Size(), SniffLen))
	n, err := src.ReadAt(head, 0)
	if n < len(head) {
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fault.New(fault.Changed, "shorter than it was when it was opened")
		}
		return nil, fault.InFile(err, src.Name())
	}
	return head, nil
}
