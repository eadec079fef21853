package checkpoint

import (
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/wick-ml/wick/fault"
)

// Matches fails with [fault.ErrMismatch] unless a file has the size of the layout
// and, around the tensors, its bytes: it was written for the same tensors in the
// same places. The bytes of tensors are not read. A file that cannot be read is a
// [fault.ErrIO] error.
func (l *Layout) Matches(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return fault.Wrap(fault.IO, "cannot be read", err)
	}
	if !l.loose && info.Size() != l.size {
		return unlike()
	}
	for i := range l.parts {
		p := &l.parts[i]
		if l.loose || p.literal == nil {
			continue // a tensor, or bytes that only writing tells
		}
		have := make([]byte, len(p.literal))
		if _, err := f.ReadAt(have, p.offset); err != nil && !errors.Is(err, io.EOF) {
			return fault.Wrap(fault.IO, "cannot be read", err)
		}
		if !bytes.Equal(have, p.literal) {
			return unlike()
		}
	}
	return nil
}

func unlike() error {
	return fault.New(fault.Mismatch, "not what this conversion writes").
		Needs("the same input and the same flags for all parts", "convert the part that it belongs to again")
}
