package pytorch

import (
	"context"
	"io"
	"io/fs"

	"github.com/wick-ml/wick/checkpoint"
)

// Formats returns the formats of PyTorch's checkpoints in the order in which
// they are to be tried. The last one recognises everything: it says what a
// source is instead, and what to do about it.
func Formats() []checkpoint.Format {
	formats := []checkpoint.Format{zipFormat{}, tarFormat{}, legacyFormat{}} // in torch.load's own order
	for _, f := range wrapFormats {
		formats = append(formats, f)
	}
	return append(formats, distributedFormat{}, folderFormat{}, foreignFormat{})
}

// Open opens a checkpoint in the file system: a file, or the folder that one was
// unpacked into. Only metadata is read. The checkpoint owns the file and must
// be closed.
func Open(ctx context.Context, name string, opts ...Option) (*checkpoint.Checkpoint, error) {
	return open(ctx, opts, func(o checkpoint.Options) (checkpoint.Source, error) { return checkpoint.OpenPath(name, o) })
}

// OpenFS opens a checkpoint in a file system such as an embedded one. The
// checkpoint owns the file and must be closed.
func OpenFS(ctx context.Context, fsys fs.FS, name string, opts ...Option) (*checkpoint.Checkpoint, error) {
	return open(ctx, opts, func(o checkpoint.Options) (checkpoint.Source, error) { return checkpoint.OpenFS(fsys, name, o) })
}

// OpenReaderAt opens the checkpoint in the size bytes of r, which it borrows: r
// must serve reads until the checkpoint is closed, from several goroutines at
// once, and is not closed with it. name is what errors call it.
func OpenReaderAt(ctx context.Context, name string, r io.ReaderAt, size int64, opts ...Option) (*checkpoint.Checkpoint, error) {
	return open(ctx, opts, func(checkpoint.Options) (checkpoint.Source, error) {
		return checkpoint.NewReaderAt(name, r, size), nil
	})
}

// OpenBytes opens the checkpoint in b, which it aliases: tensors can be views of
// b, which must not change until the checkpoint is closed. name is what errors
// call it.
func OpenBytes(ctx context.Context, name string, b []byte, opts ...Option) (*checkpoint.Checkpoint, error) {
	return open(ctx, opts, func(checkpoint.Options) (checkpoint.Source, error) { return checkpoint.NewBytes(name, b), nil })
}

func open(ctx context.Context, opts []Option, source func(checkpoint.Options) (checkpoint.Source, error)) (*checkpoint.Checkpoint, error) {
	o, err := checkpoint.NewOptions(opts...)
	if err != nil {
		return nil, err
	}
	src, err := source(o)
	if err != nil {
		return nil, err
	}
	return checkpoint.Open(ctx, src, Formats(), o)
}
