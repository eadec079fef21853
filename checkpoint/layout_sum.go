package checkpoint

import (
	"io"
	"slices"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/internal/crc"
)

// summer sums the parts of a file whose sums are wanted, from the writes that
// pass by in any order and from several goroutines.
type summer struct {
	to    io.WriterAt
	parts []*part      // whose sums are open, by offset
	sums  []crc.Pieces // beside parts
}

func newSummer(to io.WriterAt, l *Layout) *summer {
	s := &summer{to: to}
	for i := range l.parts {
		if p := &l.parts[i]; p.sum != nil && !p.sum.known && p.text == nil {
			s.parts = append(s.parts, p)
		}
	}
	s.sums = make([]crc.Pieces, len(s.parts))
	return s
}

// WriteAt writes b and sums what of it lies in wanted parts. A write may span
// several parts.
func (s *summer) WriteAt(b []byte, off int64) (int, error) {
	s.note(b, off)
	return s.to.WriteAt(b, off)
}

func (s *summer) note(b []byte, off int64) {
	end := off + int64(len(b))
	i, _ := slices.BinarySearchFunc(s.parts, off, func(p *part, off int64) int {
		if p.offset+p.size <= off {
			return -1
		}
		return 1
	})
	for ; i < len(s.parts) && s.parts[i].offset < end; i++ {
		lo, hi := max(off, s.parts[i].offset), min(end, s.parts[i].offset+s.parts[i].size)
		s.sums[i].Add(lo-s.parts[i].offset, b[lo-off:hi-off])
	}
}

// finish settles the sums of the parts before the given offset, all of whose
// bytes have passed by.
func (s *summer) finish(end int64) error {
	for i, p := range s.parts {
		if p.sum.known || p.offset >= end && p.size > 0 {
			continue
		}
		sum, ok := s.sums[i].Sum(p.size)
		if !ok {
			return fault.New(fault.IO, "BUG: part of a tensor was not written").At(p.offset)
		}
		p.sum.value, p.sum.known = sum, true
	}
	return nil
}

// sumStream sums the bytes of a file that is written in order.
type sumStream struct {
	s  *summer
	at int64 // in the layout
	to io.Writer
}

// Write sums b and passes it on.
func (w *sumStream) Write(b []byte) (int, error) {
	w.s.note(b, w.at)
	n, err := w.to.Write(b)
	w.at += int64(n)
	return n, err
}
