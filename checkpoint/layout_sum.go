package checkpoint

import (
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// summer sums the parts of a file whose sums are wanted, from the writes that
// pass by in any order and from several goroutines.
type summer struct {
	to    io.WriterAt
	parts []*part // whose sums are open, by offset

	mu     sync.Mutex
	pieces [][]sumPiece // beside parts
}

type sumPiece struct {
	offset, size int64
	sum          uint32
}

func newSummer(to io.WriterAt, l *Layout) *summer {
	s := &summer{to: to}
	for i := range l.parts {
		if p := &l.parts[i]; p.sum != nil && !p.sum.known && p.text == nil {
			s.parts = append(s.parts, p)
		}
	}
	s.pieces = make([][]sumPiece, len(s.parts))
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
		piece := sumPiece{lo, hi - lo, crc32.ChecksumIEEE(b[lo-off : hi-off])}
		s.mu.Lock()
		s.pieces[i] = append(s.pieces[i], piece)
		s.mu.Unlock()
	}
}

// finish settles the sums of the parts before the given offset, all of whose
// bytes have passed by.
func (s *summer) finish(end int64) error {
	for i, p := range s.parts {
		if p.sum.known || p.offset >= end && p.size > 0 {
			continue
		}
		sum, ok := joinPieces(s.pieces[i], p.offset, p.offset+p.size)
		if !ok {
			return fault.New(fault.IO, "BUG: part of a tensor was not written").At(p.offset)
		}
		p.sum.value, p.sum.known = sum, true
	}
	return nil
}

func joinPieces(pieces []sumPiece, at, end int64) (sum uint32, ok bool) {
	slices.SortFunc(pieces, func(a, b sumPiece) int {
		if a.offset < b.offset {
			return -1
		}
		return 1
	})
	for _, p := range pieces {
		if p.offset != at {
			return 0, false
		}
		sum = tensor.CombineCRC32(sum, p.sum, p.size)
		at += p.size
	}
	return sum, at == end
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
