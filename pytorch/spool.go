package pytorch

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// Hold reads r to its end and returns it as a source for what reads in any
// order, such as [Scan] and [Disassemble]: in memory as far as [SpoolMemory]
// allows, then in a file of [Spool], which closing the source removes. name is
// what errors call it. A stream beyond both is a [fault.ErrLimit] error whose
// Limit is "stream memory".
func Hold(ctx context.Context, name string, r io.Reader, opts ...Option) (checkpoint.Source, error) {
	o, err := checkpoint.NewOptions(opts...)
	if err != nil {
		return nil, err
	}
	src, err := hold(name, newStreamReader(&contextReader{ctx, system{r}}), &o, "what is read in any order")
	if err != nil {
		return nil, fault.InFile(err, name)
	}
	return src, nil
}

// hold keeps what is left of a stream. why says what keeps it from being read in
// order.
func hold(name string, in *streamReader, o *checkpoint.Options, why string) (checkpoint.Source, error) {
	kept := &spool{}
	if err := kept.fill(in, o.SpoolMemory, o.SpoolDir, why); err != nil {
		return nil, errors.Join(in.ended(err), kept.Close())
	}
	return checkpoint.Owned(checkpoint.NewReaderAt(name, kept, kept.size), kept), nil
}

// spool keeps a whole stream that cannot be read in order: in memory as far as
// that may go, then, if there is a folder for it, in a temporary file.
type spool struct {
	chunks
	file *os.File
	size int64
}

// fill reads r to its end.
func (s *spool) fill(r io.Reader, memory int64, dir, why string) error {
	_, err := s.chunks.fill(io.LimitReader(r, memory+1), memory)
	switch {
	case errors.Is(err, errRoom) && dir == "":
		e := fault.NewLimit("stream memory", s.chunks.size, memory)
		e.Found = why + ", and more than " + strconv.FormatInt(memory, 10) + " bytes of it"
		return e.Needs("a stream that can be read in order", "give a file instead, more memory, or a folder for a temporary file")
	case errors.Is(err, errRoom):
		return s.spill(r, dir)
	}
	s.size = s.chunks.size
	return err
}

// spill writes what was held and all the rest to a file.
func (s *spool) spill(r io.Reader, dir string) error {
	file, err := os.CreateTemp(dir, ".wick-spool-")
	if err != nil {
		return fault.Wrap(fault.IO, "no temporary file", err).In(dir)
	}
	s.file = file
	held := io.NewSectionReader(&s.chunks, 0, s.chunks.size)
	s.size, err = io.Copy(file, io.MultiReader(held, r))
	if s.chunks = (chunks{}); err != nil {
		return fault.Wrap(fault.IO, "the temporary file cannot be written", err).In(file.Name())
	}
	return nil
}

// ReadAt reads as [io.ReaderAt] does.
func (s *spool) ReadAt(p []byte, off int64) (int, error) {
	if s.file != nil {
		return s.file.ReadAt(p, off)
	}
	return s.chunks.ReadAt(p, off)
}

// Close removes the file.
func (s *spool) Close() error {
	if s.file == nil {
		return nil
	}
	err := errors.Join(s.file.Close(), os.Remove(s.file.Name()))
	if s.file = nil; err != nil {
		return fault.Wrap(fault.IO, "the temporary file cannot be removed", err)
	}
	return nil
}
