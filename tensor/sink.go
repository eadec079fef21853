package tensor

import (
	"io"
	"reflect"
	"strconv"

	"github.com/wick-ml/wick/fault"
)

// Sink is where the elements of a tensor go: memory ([Into]), a place in a file
// ([FileAt]) or a writer that takes them in order ([Stream]).
type Sink struct {
	dtype  DType  // of the memory, Invalid for files and streams
	mem    []byte // the memory as bytes, nil when it cannot be seen so
	size   int64  // of the memory in bytes
	put    func(element int64, packed []byte)
	file   io.WriterAt
	offset int64
	stream io.Writer
}

// Move is one tensor and where its elements go.
type Move struct {
	From *Tensor
	To   Sink
}

// Into returns a sink that fills dst, which must hold exactly the tensor's
// elements, in row-major order. Elements are converted to T. A []bool gets
// true for every stored byte but zero.
func Into[T Element](dst []T) Sink {
	d := DTypeOf[T]()
	s := Sink{dtype: d, size: int64(len(dst)) * int64(d.Size())}
	if b, ok := bytesOf(dst); ok && d != Bool {
		s.mem = b
		return s
	}
	s.put = func(element int64, packed []byte) {
		decode(dst[element:element+int64(len(packed)/d.Size())], packed)
	}
	return s
}

// FileAt returns a sink that writes the packed row-major little-endian bytes
// to w from offset on. w is written from several goroutines at once, each in
// ranges of its own. Between two [*os.File] the bytes can move inside the
// kernel.
func FileAt(w io.WriterAt, offset int64) Sink { return Sink{file: w, offset: offset} }

// Stream returns a sink that writes the packed row-major little-endian bytes to
// w in order. Moves to the same w are done one after another in the order in
// which [Run] was given them; where w's type cannot be compared, give the same
// Sink to all of them.
func Stream(w io.Writer) Sink {
	if w != nil && !reflect.ValueOf(w).Comparable() {
		w = &writer{w}
	}
	return Sink{stream: w}
}

// emit stores packed bytes, which are in the sink's byte order, at a byte
// position of the tensor.
func (s *Sink) emit(at int64, packed []byte) error {
	switch {
	case s.mem != nil:
		copy(s.mem[at:], packed)
		return nil
	case s.put != nil:
		s.put(at/int64(s.dtype.Size()), packed)
		return nil
	case s.file != nil:
		_, err := s.file.WriteAt(packed, s.offset+at)
		return wrapWrite(err)
	default:
		_, err := s.stream.Write(packed)
		return wrapWrite(err)
	}
}

// order is the byte order in which the sink takes elements.
func (s *Sink) order() ByteOrder {
	if s.dtype.Valid() {
		return NativeOrder()
	}
	return LittleEndian
}

// check fits the move's tensor to its sink: the cast that memory of another
// type asks for, and the length.
func (m Move) check() (*Tensor, error) {
	if err := m.From.Err(); err != nil {
		return nil, err
	}
	if !m.To.dtype.Valid() {
		if m.To.file == nil && m.To.stream == nil {
			return nil, fault.New(fault.Usage, "a move without a sink")
		}
		return m.From, nil
	}
	t, err := m.From.Cast(m.To.dtype)
	if err != nil {
		return nil, err
	}
	if t.Bytes() != m.To.size {
		return nil, fault.New(fault.Mismatch, "a destination of "+strconv.FormatInt(m.To.size/int64(m.To.dtype.Size()), 10)+" elements for a "+m.From.String()).
			Needs(strconv.FormatInt(t.Len(), 10)+" elements", "")
	}
	return t, nil
}

func wrapWrite(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.IO, "write failed", err)
}
