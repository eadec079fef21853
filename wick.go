// Package wick reads PyTorch checkpoints in Go, without Python and without
// running a byte of them.
//
// [Open] reads the metadata of a .pt, .pth, .bin, .ckpt or .safetensors file:
// a tree of maps, lists, scalars and tensors that know their dtype and shape.
// No tensor's bytes are read until they are asked for, and then they move once,
// into a packed Go slice, a struct ([Load]) or another file ([Convert]).
//
// # Security
//
// A checkpoint is a file from a stranger. wick never executes, imports or calls
// anything that a pickle names; what it does not know stays an opaque node. All
// sizes are proved against the bytes that exist before they are trusted, and
// what a file may ask for is bounded by [Limits]. Errors tell malformed,
// unsupported and over a limit apart, see package fault.
package wick

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/llama"
	"github.com/wick-ml/wick/pytorch"
	"github.com/wick-ml/wick/record"
	"github.com/wick-ml/wick/safetensors"
	"github.com/wick-ml/wick/shards"
	"github.com/wick-ml/wick/tensor"
)

// Checkpoint is an opened file or folder. It is safe for concurrent use.
type Checkpoint = checkpoint.Checkpoint

// Limits bounds what a file may ask for; a zero field means its default.
type Limits = checkpoint.Limits

// Option is one thing that a caller asks of [Open] and its kin.
type Option = checkpoint.Option

// WithLimits bounds what a file may ask for.
func WithLimits(l Limits) Option { return checkpoint.WithLimits(l) }

// Mmap maps local files, so that tensors can be views of them without copying.
// [checkpoint.MapFile] says what that asks of the caller.
func Mmap() Option { return checkpoint.Mmap() }

// Salvage goes on over wrong checksums; the report says so.
func Salvage() Option { return checkpoint.Salvage() }

// Join opens Meta's consolidated.NN.pth as the one state dict that they were cut
// from, under Meta's names, rather than as a map of shards. Opening then fails as
// [llama.Join] does: without the model's config beside them, or when they are not
// all the shards of the model that it describes.
func Join() Option { return checkpoint.Join() }

// Formats returns every format that wick reads, in the order in which they are
// tried. PyTorch's come last: the last of them recognises everything, and says
// what a file is that is no checkpoint.
func Formats() []checkpoint.Format {
	return slices.Concat([]checkpoint.Format{safetensors.Format{}}, record.Formats(), shards.Formats(), pytorch.Formats())
}

// Open opens a file or folder of any format that wick reads. Only metadata is
// read. The checkpoint owns the file and must be closed. A URL is no name of a
// file: package remote makes a source of it for [OpenSource].
func Open(ctx context.Context, name string, opts ...Option) (*Checkpoint, error) {
	return open(ctx, opts, func(o checkpoint.Options) (checkpoint.Source, error) { return checkpoint.OpenPath(name, o) })
}

// OpenFS opens a checkpoint in a file system such as an embedded one.
func OpenFS(ctx context.Context, fsys fs.FS, name string, opts ...Option) (*Checkpoint, error) {
	return open(ctx, opts, func(o checkpoint.Options) (checkpoint.Source, error) { return checkpoint.OpenFS(fsys, name, o) })
}

// OpenReaderAt opens the checkpoint in the size bytes of r, which it borrows: r
// must serve reads until the checkpoint is closed, from several goroutines at
// once. name is what errors call it.
func OpenReaderAt(ctx context.Context, name string, r io.ReaderAt, size int64, opts ...Option) (*Checkpoint, error) {
	return open(ctx, opts, func(checkpoint.Options) (checkpoint.Source, error) {
		return checkpoint.NewReaderAt(name, r, size), nil
	})
}

// OpenBytes opens the checkpoint in b, which it aliases: tensors can be views of
// b, which must not change until the checkpoint is closed.
func OpenBytes(ctx context.Context, name string, b []byte, opts ...Option) (*Checkpoint, error) {
	return open(ctx, opts, func(checkpoint.Options) (checkpoint.Source, error) { return checkpoint.NewBytes(name, b), nil })
}

// OpenString is [OpenBytes] of a string, such as an embedded one. Tensors can be
// views of it, which must never be written: the bytes of a constant or an
// embedded string are in memory that the system protects, and writing to them ends
// the program.
func OpenString(ctx context.Context, name, s string, opts ...Option) (*Checkpoint, error) {
	return OpenBytes(ctx, name, tensor.StringBytes(s), opts...)
}

// OpenStream opens a checkpoint that comes from r in one pass: a pipe, an HTTP
// body. It returns before it waits for the bytes of a tensor. All tensors that are
// wanted must be taken by one run: a conversion, a plan, [tensor.Run]. name is what
// errors call it. [pytorch.Decoder] says what can be read so; the rest is held in
// memory as far as [SpoolMemory] allows, then in a file of [Spool].
func OpenStream(ctx context.Context, name string, r io.Reader, opts ...Option) (*Checkpoint, error) {
	o, err := checkpoint.NewOptions(opts...)
	if err != nil {
		return nil, err
	}
	return pytorch.OpenStream(ctx, name, r, Formats(), o)
}

// Spool allows a temporary file in the folder dir for a stream that cannot be
// read in order.
func Spool(dir string) Option { return checkpoint.Spool(dir) }

// SpoolMemory bounds the bytes of a stream that are held in memory where it
// cannot be read in order: by default 32 MiB.
func SpoolMemory(bytes int64) Option { return checkpoint.SpoolMemory(bytes) }

// OpenSource opens a checkpoint from any [checkpoint.Source], which it owns from
// here on, also on an error.
func OpenSource(ctx context.Context, src checkpoint.Source, opts ...Option) (*Checkpoint, error) {
	o, err := checkpoint.NewOptions(opts...)
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return openSource(ctx, src, o)
}

func open(ctx context.Context, opts []Option, source func(checkpoint.Options) (checkpoint.Source, error)) (*Checkpoint, error) {
	o, err := checkpoint.NewOptions(opts...)
	if err != nil {
		return nil, err
	}
	src, err := source(o)
	if err != nil {
		return nil, err
	}
	return openSource(ctx, src, o)
}

func openSource(ctx context.Context, src checkpoint.Source, o checkpoint.Options) (*Checkpoint, error) {
	c, err := checkpoint.Open(ctx, src, Formats(), o)
	if err != nil || !o.Join || c.Info.Format != consolidated {
		return c, err
	}
	whole, err := joined(ctx, c)
	if err != nil {
		return nil, errors.Join(fault.InFile(err, c.Info.Name), c.Close())
	}
	return whole, nil
}

// consolidated is the format of a folder of Meta's shards.
const consolidated = "consolidated"

// joined is a folder of Meta's shards as one state dict.
func joined(ctx context.Context, c *Checkpoint) (*Checkpoint, error) {
	root, err := llama.Join(ctx, c)
	if err != nil {
		return nil, err
	}
	return c.WithRoot(root, "joined")
}
