// Package embedded loads a record from the program's own memory: bytes of a variable
// with a go:embed directive, or any others. Weights stay where they are. It is the
// smallest way into a model: it knows safetensors records alone, so that a
// program with it carries no other format, and it makes nothing that it does
// not need.
//
//	//go:embed net.safetensors
//	var record []byte
//
//	var net Net
//	report, err := embedded.Load(ctx, record, &net)
//
// The command wick pack writes the record and a Go file that does this.
//
// # Memory
//
// A slice field whose dtype, byte order and layout are those of the record is
// the record's own memory, with no byte of it copied. What cannot be (another
// dtype, a transposed tensor, a []bool, a field tagged mutable, a machine of the
// other byte order) is copied, and its row in the report says why. So is every
// tensor of a record that does not lie aligned in memory, once: the row says
// "copied: its memory is not aligned". wick pack lays tensors out so that each is
// aligned for its elements when the record is, and Go's linker aligns embedded
// bytes, as far as seen, to 32, which is enough for every dtype; embedded strings
// it does not align.
//
// Load never takes the bytes over: they are the caller's before and after, on an
// error too, and must not change as long as the value is in use. Writing to a field
// that aliases them writes to them. Of bytes that go:embed made that changes the
// variable for the rest of the program; of a string ([LoadString]) it ends the
// program, and no recover catches it.
package embedded

import (
	"context"
	"errors"
	"io"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/record/meta"
	"github.com/wick-ml/wick/safetensors"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/tensor"
)

// name is what errors call the record.
const name = "embedded record"

// source is a record in memory that stays: unlike other sources it has nothing to
// close and nothing to guard.
type source struct{ b []byte }

// Name returns what errors call it.
func (*source) Name() string { return name }

// Size returns the number of bytes.
func (s *source) Size() int64 { return int64(len(s.b)) }

// Close does nothing: the bytes are the caller's.
func (*source) Close() error { return nil }

// Lend returns the bytes.
func (s *source) Lend() []byte { return s.b }

// ReadAt reads from the bytes, as [io.ReaderAt] asks.
func (s *source) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= int64(len(s.b)) {
		return 0, io.EOF
	}
	n := copy(p, s.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Load fills the Go value that v points to from a safetensors record, in place
// where that is possible. It fails, and leaves the value as it was, on a record
// that is damaged ([fault.ErrMalformed], or [fault.ErrChecksum]: header and
// tensors are checked), of a later version ([fault.ErrUnsupported]), of another type or precision
// ([fault.ErrMismatch], see [meta.Want]), or that does not fit the value, with a
// [*serde.FitError]. Before it fails nothing has been allocated for tensors.
//
// The value aliases data until it is dropped. Loading the same bytes from several
// goroutines at once is safe.
func Load(ctx context.Context, data []byte, v any, opts ...serde.Option) (*serde.Report, error) {
	root, info, verified, err := safetensors.DecodeBytes(&source{data}, &checkpoint.Env{})
	if err == nil {
		err = meta.CheckFor(v, info)
	}
	if err != nil {
		return nil, inRecord(err)
	}
	report, err := serde.Unmarshal(ctx, root, v, append([]serde.Option{serde.Alias()}, opts...)...)
	if err != nil {
		return nil, inRecord(err)
	}
	if verified > 0 { // before, all at once
		report.Checks = serde.Checks{Verified: verified}
	}
	return report, nil
}

// inRecord says in an error of the data where it was met.
func inRecord(err error) error {
	var e *fault.Error
	if errors.As(err, &e) && e.File == "" {
		e.In(name)
	}
	return err
}

// LoadString is [Load] from a string, whose bytes must never be written: fields
// that alias an embedded string or a constant are in memory that the system
// protects, and writing to them ends the program. Tag fields that will be written
// with mutable.
func LoadString(ctx context.Context, data string, v any, opts ...serde.Option) (*serde.Report, error) {
	return Load(ctx, tensor.StringBytes(data), v, opts...)
}
