package checkpoint

import (
	"io"
	"math"
	"slices"

	"github.com/wick-ml/wick/tensor"
)

// Layout is a file before it is written: its parts in order. Formats build one
// from metadata alone; [WriteFile] and [WriteStream] move the bytes. The zero
// Layout is an empty file. A Layout is not safe for concurrent use, and one that
// has been written can be written again.
//
//	┌─────────┬────────────┬─────────┬──────────┬─────────┐
//	│ literal │ tensor     │ padding │ tensor   │ late    │
//	│ bytes   │ packed     │         │ as text  │ bytes   │
//	└─────────┴────────────┴─────────┴──────────┴─────────┘
type Layout struct {
	parts  []part
	size   int64 // of the parts so far; meaningless when it is not known
	loose  bool  // some part's size is not known
	filter func(io.Writer) (io.WriteCloser, error)
}

// part is one segment of a file. Exactly one of literal, tensor and late is set.
type part struct {
	offset  int64
	size    int64
	literal []byte
	tensor  *tensor.Tensor
	text    func(io.Writer) io.WriteCloser // how the tensor is spelled, nil for its packed bytes
	sum     *Sum                           // wanted of the tensor, nil if not
	late    func() ([]byte, error)
}

// Sum is the CRC-32 (IEEE, as in zip files) of a tensor's packed bytes. It is
// known from the start when the tensor's source stored it for just these bytes,
// else once they have been written.
type Sum struct {
	value uint32
	known bool
}

// Value returns the sum. It is only right in a [Layout.Late] part and after the
// layout has been written.
func (s *Sum) Value() uint32 { return s.value }

// Bytes appends a copy of b.
func (l *Layout) Bytes(b []byte) {
	if len(b) == 0 {
		return
	}
	if last := len(l.parts) - 1; last >= 0 && l.parts[last].literal != nil {
		p := &l.parts[last]
		p.literal = append(p.literal, b...)
		p.size += int64(len(b))
		l.grow(int64(len(b)))
		return
	}
	l.add(part{literal: slices.Clone(b), size: int64(len(b))})
}

// Tensor appends the packed row-major little-endian bytes of t.
func (l *Layout) Tensor(t *tensor.Tensor) { l.add(part{tensor: t, size: t.Bytes()}) }

// Summed appends the packed bytes of t, as [Layout.Tensor] does, and returns
// their checksum.
func (l *Layout) Summed(t *tensor.Tensor) *Sum {
	sum := inherited(t)
	l.add(part{tensor: t, size: t.Bytes(), sum: sum})
	return sum
}

func inherited(t *tensor.Tensor) *Sum {
	s, ok := t.Whole()
	if !ok {
		return &Sum{known: t.Bytes() == 0}
	}
	value, ok := s.CRC32()
	return &Sum{value: value, known: ok || t.Bytes() == 0}
}

// Text appends t in another spelling than its packed bytes, and returns the
// checksum of these. spell returns a writer that takes the packed bytes and
// writes text of any length to the writer it is given; its Close ends the text
// and leaves that writer open. The sum is known behind the text alone: a
// [Layout.Late] part that asks for it must follow.
func (l *Layout) Text(t *tensor.Tensor, spell func(io.Writer) io.WriteCloser) *Sum {
	sum := &Sum{}
	l.add(part{tensor: t, text: spell, sum: sum})
	l.loose = true
	return sum
}

// Late appends size bytes that text returns once every [Sum] is known. It may
// stand before the tensors: a file is patched, a stream is read twice.
func (l *Layout) Late(size int64, text func() ([]byte, error)) {
	l.add(part{late: text, size: size})
}

// Pad appends zeros up to a multiple of align bytes.
func (l *Layout) Pad(align int) {
	if over := l.size % int64(align); over > 0 {
		l.Bytes(make([]byte, int64(align)-over))
	}
}

// Through sends the whole file through a filter, such as a compressor, whose
// Close ends the filtered form. Its size is then not known ahead.
func (l *Layout) Through(filter func(io.Writer) (io.WriteCloser, error)) {
	l.filter, l.loose = filter, true
}

// Size returns the size of the file in bytes, ok false when only writing tells.
func (l *Layout) Size() (bytes int64, ok bool) { return l.size, !l.loose }

func (l *Layout) add(p part) {
	p.offset = l.size
	l.parts = append(l.parts, p)
	l.grow(p.size)
}

// grow adds to the size. Views that repeat few bytes can claim more than there
// are numbers; [tensor.Run] refuses them before anything is written.
func (l *Layout) grow(n int64) {
	if n > math.MaxInt64-l.size {
		n = math.MaxInt64 - l.size
	}
	l.size += n
}

// plausible reports whether the size stands in some proportion to the bytes
// that there are, so that a view of one byte repeated without end takes no
// room before the run refuses it. What is still to come, or to be inflated, is not
// there: a pipe's pickle can claim more than the disk holds.
func (l *Layout) plausible() bool {
	seen := map[*tensor.Storage]bool{}
	present := int64(0)
	for i := range l.parts {
		if l.parts[i].tensor == nil {
			present += l.parts[i].size
			continue
		}
		for s := range l.parts[i].tensor.Storages() {
			if !seen[s] && !s.Sequential() {
				seen[s] = true
				present += s.Size()
			}
		}
	}
	return l.size/2 <= present
}
