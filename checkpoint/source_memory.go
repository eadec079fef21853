package checkpoint

import (
	"bytes"
	"io"

	"github.com/wick-ml/wick/fault"
)

// NewBytes returns a source over b, which it lends: tensors alias it. b must
// not change until the source is closed.
func NewBytes(name string, b []byte) Source {
	return &memory{borrowed: borrowed{name: name, r: bytes.NewReader(b), size: int64(len(b))}, b: b}
}

// NewReaderAt returns a source over the size bytes of r, which it borrows:
// Close waits for running reads and does not close r. r must be safe for
// concurrent use, as [io.ReaderAt] asks.
func NewReaderAt(name string, r io.ReaderAt, size int64) Source {
	return &borrowed{name: name, r: r, size: max(size, 0)}
}

// borrowed is a caller's reader.
type borrowed struct {
	pin
	name string
	r    io.ReaderAt
	size int64
}

// Name returns the caller's name for it.
func (s *borrowed) Name() string { return s.name }

// Size returns the number of bytes.
func (s *borrowed) Size() int64 { return s.size }

// ReadAt reads from the caller's reader.
func (s *borrowed) ReadAt(p []byte, off int64) (int, error) {
	if s.isClosed() {
		return 0, closedError(s.name)
	}
	n, err := readWithin(s.r, p, off, 0, s.size)
	if err != nil {
		err = fault.At(fault.InFile(fault.ReadFailed(err), s.name), off)
	}
	return n, err
}

// Distant reports what the caller's reader is.
func (s *borrowed) Distant() bool { return IsDistant(s.r) }

// Acquire lets Close wait until Release.
func (s *borrowed) Acquire() error { return s.acquire(s.name) }

// Release ends the use.
func (s *borrowed) Release() error {
	s.release()
	return nil
}

// Close waits for running reads.
func (s *borrowed) Close() error { return s.close(func() error { return nil }) }

// memory is a caller's byte slice.
type memory struct {
	borrowed
	b []byte
}

// Lend returns the caller's slice, nil after Close.
func (s *memory) Lend() []byte {
	if s.isClosed() {
		return nil
	}
	return s.b
}

// readWithin reads at off of the window [base, base+size) of r, as
// [io.SectionReader] does, whatever off and r are.
func readWithin(r io.ReaderAt, p []byte, off, base, size int64) (int, error) {
	if off < 0 || off >= size {
		if len(p) == 0 && off == size {
			return 0, nil
		}
		return 0, io.EOF
	}
	if most := size - off; int64(len(p)) > most {
		n, err := r.ReadAt(p[:most], base+off)
		if err == nil {
			err = io.EOF
		}
		return n, err
	}
	return r.ReadAt(p, base+off)
}
