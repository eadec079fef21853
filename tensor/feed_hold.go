package tensor

import (
	"errors"
	"io"
	"os"

	"github.com/wick-ml/wick/fault"
)

// holder keeps storages that went by: in memory as far as that goes, then in
// one temporary file, if there may be one.
type holder struct {
	most int64 // bytes of memory
	used int64
	dir  string // of the file; "" for none
	file *os.File
	end  int64 // of the file
}

// room makes room for a storage, says in spec where it is, and returns what its
// bytes are to be written to.
func (h *holder) room(spec *StorageSpec) (io.WriterAt, error) {
	switch {
	case spec.Size <= h.most-h.used:
		h.used += spec.Size
		spec.Memory = make([]byte, spec.Size)
		return memory(spec.Memory), nil
	case h.dir == "":
		e := fault.NewBound("bytes kept while streaming", h.used+spec.Size, h.most).InRecord(spec.Name)
		return nil, e.Needs("tensors that can be written as they come", "give more memory, a folder for a temporary file, or a file instead of a stream")
	}
	if err := h.open(); err != nil {
		return nil, err
	}
	spec.File, spec.Offset = h.file, h.end
	h.end += spec.Size
	return io.NewOffsetWriter(h.file, spec.Offset), nil
}

func (h *holder) open() error {
	if h.file != nil {
		return nil
	}
	var err error
	if h.file, err = os.CreateTemp(h.dir, ".wick-spool-"); err != nil {
		return fault.Wrap(fault.IO, "no temporary file", err).In(h.dir)
	}
	return nil
}

// close removes the file.
func (h *holder) close() error {
	if h.file == nil {
		return nil
	}
	err := errors.Join(h.file.Close(), os.Remove(h.file.Name()))
	if h.file = nil; err != nil {
		return fault.Wrap(fault.IO, "the temporary file cannot be removed", err).In(h.dir)
	}
	return nil
}

// memory is a slice that is written to.
type memory []byte

// WriteAt copies p, which has its place there.
func (m memory) WriteAt(p []byte, off int64) (int, error) { return copy(m[off:], p), nil }
