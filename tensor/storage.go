package tensor

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"reflect"

	"github.com/wick-ml/wick/fault"
)

// ByteOrder says which byte of a component comes first.
type ByteOrder uint8

// The byte orders of files.
const (
	LittleEndian ByteOrder = iota
	BigEndian
)

// String returns "little" or "big", as sys.byteorder in Python.
func (o ByteOrder) String() string {
	if o == BigEndian {
		return "big"
	}
	return "little"
}

// NativeOrder returns the byte order of the machine it runs on.
func NativeOrder() ByteOrder {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return LittleEndian
	}
	return BigEndian
}

// Guard pins a source of bytes for as long as a run uses it.
type Guard interface {
	// Acquire keeps the source open until Release. It fails after Close.
	Acquire() error
	// Release ends the use. It reports an [fault.ErrChanged] error when the
	// source is no longer the one that was opened.
	Release() error
}

// Pass is a source of bytes that come once and in an order of their own: a pipe,
// an HTTP body. Its values must be comparable.
type Pass interface {
	// Run is [Run] for moves whose storages have this pass as their Stream. A
	// second call fails: the bytes have gone by.
	Run(ctx context.Context, moves []Move, opts ...RunOption) (Stats, error)
}

// StorageSpec describes a [Storage] to [NewStorage]. At least one of File,
// Memory and Open says where the bytes are; with none of them the bytes can
// only arrive through a [Feed], which Stream makes.
type StorageSpec struct {
	Name  string    // the record's name, for reports and errors
	Size  int64     // bytes
	Order ByteOrder // of the components of its elements

	File   io.ReaderAt // holds the bytes at [Offset, Offset+Size), safe for concurrent use
	Offset int64

	Memory []byte // the same bytes in memory, lent until the guard's source is closed; never written

	// Open starts a pass over the bytes, for storages that can only be read in
	// order, such as compressed ones.
	Open func(context.Context) (io.ReadCloser, error)

	// Stream is the pass that brings the bytes, for storages that arrive once.
	// [Run] leaves moves over such storages to it.
	Stream Pass

	CRC32  uint32 // the stored CRC-32 of all Size bytes
	HasCRC bool

	Guard Guard // nil when the bytes live as long as the Storage
}

// Storage is an immutable run of bytes that tensors are laid over. It may be
// in memory, in a file, or readable in order only. Two tensors share memory
// when they share a *Storage: the pointer is its identity. A Storage is safe
// for concurrent use.
type Storage struct{ spec StorageSpec }

// NewStorage returns a storage over the bytes that spec describes. It trusts
// the caller that they exist: a container's reader has proved the range.
func NewStorage(spec StorageSpec) *Storage {
	if spec.File != nil && !reflect.ValueOf(spec.File).Comparable() {
		spec.File = &readerAt{spec.File}
	}
	if spec.Guard != nil && !reflect.ValueOf(spec.Guard).Comparable() {
		spec.Guard = &guard{spec.Guard}
	}
	return &Storage{spec: spec}
}

// The mover tells files, guards and writers apart by comparing them. These give
// an identity to values of types that Go cannot compare.
type (
	readerAt struct{ io.ReaderAt }
	guard    struct{ Guard }
	writer   struct{ io.Writer }
)

// Name returns the record's name in its file.
func (s *Storage) Name() string { return s.spec.Name }

// File returns what the source of the bytes calls itself, such as the path of the
// file that the record is in; "" where nobody knows.
func (s *Storage) File() string {
	for _, at := range []any{s.spec.Guard, s.spec.File} {
		if named, ok := at.(interface{ Name() string }); ok {
			return named.Name()
		}
	}
	return ""
}

// Size returns the storage's size in bytes.
func (s *Storage) Size() int64 { return s.spec.Size }

// Order returns the byte order of the storage's elements.
func (s *Storage) Order() ByteOrder { return s.spec.Order }

// CRC32 returns the checksum that the container stored, and whether it stored
// one.
func (s *Storage) CRC32() (sum uint32, ok bool) { return s.spec.CRC32, s.spec.HasCRC }

// Extent returns the file that holds the storage's bytes uncompressed, and the
// offset of the first in bytes; ok is false when there is no such place.
func (s *Storage) Extent() (file io.ReaderAt, offset int64, ok bool) {
	return s.spec.File, s.spec.Offset, s.spec.File != nil
}

// Lent returns the storage's bytes when they are in memory, nil otherwise. The
// slice aliases that memory, must not be written, and is valid until the
// source that lends it is closed.
func (s *Storage) Lent() []byte { return s.spec.Memory }

// Sequential reports whether the bytes can only be read in order.
func (s *Storage) Sequential() bool { return s.spec.File == nil && s.spec.Memory == nil }

// ReadAt reads storage bytes as [io.ReaderAt] does. It fails on a storage that
// is [Storage.Sequential].
func (s *Storage) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > s.spec.Size {
		return 0, io.EOF
	}
	short := int64(len(p)) > s.spec.Size-off
	if short {
		p = p[:s.spec.Size-off]
	}
	n, err := s.readFull(p, off)
	if err == nil && short {
		err = io.EOF
	}
	return n, err
}

// readFull fills p from off; the range has been proved to lie inside.
func (s *Storage) readFull(p []byte, off int64) (int, error) {
	switch {
	case s.spec.File != nil:
		n, err := s.spec.File.ReadAt(p, s.spec.Offset+off)
		if n == len(p) {
			return n, nil
		}
		return n, s.short(off+int64(n), err)
	case s.spec.Memory != nil:
		return copy(p, s.spec.Memory[off:]), nil
	default:
		return 0, s.locate(fault.New(fault.Unsupported, "bytes that can only be read in order"))
	}
}

// short explains why bytes that were proved to exist could not be read.
func (s *Storage) short(at int64, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return s.locate(fault.New(fault.Malformed, "the file ends inside the record")).At(at).
			Needs("the bytes that were there when it was opened", "the file was cut short meanwhile; read it again")
	}
	return s.locate(fault.Wrap(fault.IO, "read failed", err)).At(at)
}

// locate puts the storage's record into an error, and the file where it is known.
func (s *Storage) locate(e *fault.Error) *fault.Error {
	return e.In(s.File()).InRecord(s.spec.Name)
}
