package checkpoint

import (
	"errors"
	"io"
)

// Section returns the size bytes of src from off as a source of its own: a file
// inside another. It has the abilities of src, except siblings, and borrows it:
// Close ends the section alone. The part of the range that src does not have
// cannot be read.
func Section(src Source, off, size int64, name string) Source {
	if _, ok := src.(Lender); ok {
		return &lentSection{section{src: src, off: off, size: size, name: name}}
	}
	return &section{src: src, off: off, size: size, name: name}
}

// Owned returns src with a Close that closes owner too, after it. It has the
// abilities of src, except siblings.
func Owned(src Source, owner io.Closer) Source {
	o := owned{Source: src, owner: owner}
	if lender, ok := src.(Lender); ok {
		return &ownedLender{owned: o, Lender: lender}
	}
	return &o
}

// Place returns where byte off of src really is, through all sections: the
// reader at the bottom and the offset in it. Storages are described by it, so
// that neighbours in one file can be told.
func Place(src Source, off int64) (io.ReaderAt, int64) {
	if p, ok := src.(placed); ok {
		return p.place(off)
	}
	return src, off
}

type placed interface {
	place(off int64) (io.ReaderAt, int64)
}

// GuardOf returns what must be acquired while bytes of src are read, nil if
// nothing.
func GuardOf(src Source) Pinned {
	if p, ok := src.(Pinned); ok {
		return p
	}
	return nil
}

// LentRange returns size bytes of src at off without copying, when src is a
// [Lender] that has them.
func LentRange(src Source, off, size int64) ([]byte, bool) {
	lender, ok := src.(Lender)
	if !ok {
		return nil, false
	}
	b := lender.Lend()
	if off < 0 || size < 0 || off > int64(len(b)) || size > int64(len(b))-off {
		return nil, false
	}
	return b[off : off+size : off+size], true
}

type section struct {
	pin
	src       Source
	off, size int64
	name      string
}

func (s *section) Name() string { return s.name }
func (s *section) Size() int64  { return s.size }

func (s *section) ReadAt(p []byte, off int64) (int, error) {
	if s.isClosed() {
		return 0, closedError(s.name)
	}
	return readWithin(s.src, p, off, s.off, s.size)
}

// Distant reports what the source around the section is.
func (s *section) Distant() bool { return IsDistant(s.src) }

func (s *section) place(off int64) (io.ReaderAt, int64) { return Place(s.src, s.off+off) }

func (s *section) Acquire() error {
	if err := s.acquire(s.name); err != nil {
		return err
	}
	guard := GuardOf(s.src)
	if guard == nil {
		return nil
	}
	err := guard.Acquire()
	if err != nil {
		s.release()
	}
	return err
}

func (s *section) Release() error {
	defer s.release()
	if guard := GuardOf(s.src); guard != nil {
		return guard.Release()
	}
	return nil
}

func (s *section) Close() error { return s.close(func() error { return nil }) }

type lentSection struct{ section }

func (s *lentSection) Lend() []byte {
	if s.isClosed() {
		return nil
	}
	b, _ := LentRange(s.src, s.off, s.size)
	return b
}

type owned struct {
	Source
	owner io.Closer
}

func (o *owned) Close() error { return errors.Join(o.Source.Close(), o.owner.Close()) }

// Distant reports what the source is.
func (o *owned) Distant() bool { return IsDistant(o.Source) }

func (o *owned) place(off int64) (io.ReaderAt, int64) { return Place(o.Source, off) }

func (o *owned) Acquire() error {
	if guard := GuardOf(o.Source); guard != nil {
		return guard.Acquire()
	}
	return nil
}

func (o *owned) Release() error {
	if guard := GuardOf(o.Source); guard != nil {
		return guard.Release()
	}
	return nil
}

type ownedLender struct {
	owned
	Lender
}
