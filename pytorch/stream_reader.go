package pytorch

import (
	"errors"
	"io"

	"github.com/wick-ml/wick/fault"
)

// streamReader is a stream that can be looked into. It never asks its reader for
// more than it needs to go on, one Read at a time: what is not there yet must not
// hold up what can be known already. Long reads go straight to the reader.
type streamReader struct {
	r   io.Reader
	buf []byte // read and not taken
	mem []byte // what buf is cut from
	off int64  // of the first byte of buf
	err error
}

const streamBuffer = 64 << 10

func newStreamReader(r io.Reader) *streamReader {
	return &streamReader{r: r, mem: make([]byte, streamBuffer)}
}

// fill reads once, as much as comes, into what room there is.
func (s *streamReader) fill() error {
	if s.err != nil {
		return s.err
	}
	if len(s.buf) == len(s.mem) {
		s.mem = make([]byte, 2*len(s.mem)) // what is asked for is bounded by who peeks
	}
	have := copy(s.mem, s.buf)
	for range 100 {
		n, err := s.r.Read(s.mem[have:])
		s.buf, s.err = s.mem[:have+n], err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	s.err = io.ErrNoProgress
	return s.err
}

// peek returns the next n bytes, fewer only with an error. They are valid until the
// next call.
func (s *streamReader) peek(n int) ([]byte, error) {
	for len(s.buf) < n {
		if err := s.fill(); err != nil {
			return s.buf, err
		}
	}
	return s.buf[:n], nil
}

// some returns what is there of the next bytes, at least one.
func (s *streamReader) some(most int) ([]byte, error) {
	if len(s.buf) == 0 {
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
	return s.buf[:min(most, len(s.buf))], nil
}

// take drops n bytes that were looked at.
func (s *streamReader) take(n int) {
	s.buf = s.buf[n:]
	s.off += int64(n)
}

// Read reads what is there, or once from the reader.
func (s *streamReader) Read(p []byte) (int, error) {
	if len(s.buf) == 0 && len(p) >= streamBuffer/2 && s.err == nil {
		n, err := s.r.Read(p)
		s.off, s.err = s.off+int64(n), err
		if n > 0 {
			err = nil
		}
		return n, err
	}
	b, err := s.some(len(p))
	if err != nil || len(p) == 0 {
		return 0, err
	}
	n := copy(p, b)
	s.take(n)
	return n, nil
}

// ReadByte keeps a decompressor from reading past the end of its data.
func (s *streamReader) ReadByte() (byte, error) {
	b, err := s.some(1)
	if err != nil {
		return 0, err
	}
	c := b[0]
	s.take(1)
	return c, nil
}

// ended is what it means that a stream has no more, where more has to come.
func (s *streamReader) ended(err error) error {
	var known *fault.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fault.New(fault.Malformed, "the stream ends early").At(s.off+int64(len(s.buf))).
			Needs("the whole file", "the transfer was cut off; get it again")
	default:
		return fault.Wrap(fault.IO, "read failed", err).At(s.off)
	}
}
