package listing

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"slices"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// Hash computes the SHA-256 of every tensor that has bytes, each tensor once
// however many rows show it, in the order of the file, and reads what
// [Listing.ReadQuant] reads. A fault of one tensor is noted in its rows and the others
// go on; Hash itself fails when the system does or ctx is done.
func (l *Listing) Hash(ctx context.Context, opts ...tensor.RunOption) (tensor.Stats, error) {
	r := reading{ctx: ctx}
	sums := map[*tensor.Tensor]*sum{}
	for i := range l.Tensors {
		t := l.Tensors[i].Tensor()
		if sums[t] != nil || t.Err() != nil {
			continue
		}
		s := &sum{left: t.Bytes()}
		sums[t] = s
		r.add(tensor.Move{From: t, To: tensor.Stream(s)}, func(err error) { s.err = err })
	}
	l.addQuant(&r)
	stats, err := r.run(opts...)
	for i := range l.Tensors {
		if s := sums[l.Tensors[i].Tensor()]; s != nil {
			l.Tensors[i].settle(s)
		}
	}
	return stats, err
}

func (t *Tensor) settle(s *sum) {
	if s.err != nil {
		t.Err = s.err
		return
	}
	sum := s.finish()
	t.Sum = &sum
}

// Fatal picks from a run's errors the one that is no fault of single tensors: a
// failed read or write, a source that changed, a context that is done; and whatever
// ended the run as a whole, such as a stream that is cut: then no move was told, and
// what it got is worth nothing.
func Fatal(ctx context.Context, err error, errs []error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil && !slices.ContainsFunc(errs, func(e error) bool { return e != nil }) {
		return err
	}
	for _, e := range append(errs, err) {
		var known *fault.Error
		if e == nil {
			continue
		}
		if !errors.As(e, &known) {
			return e
		}
		switch known.Kind {
		case fault.IO, fault.Changed, fault.Closed, fault.Usage:
			return e
		}
	}
	return nil
}

// sum is a SHA-256 that holds a hash's state only while bytes arrive: a
// checkpoint can have a million tensors.
type sum struct {
	h    hash.Hash
	err  error // why not all bytes came
	left int64
	out  [sha256.Size]byte
}

// Write adds the next bytes.
func (s *sum) Write(p []byte) (int, error) {
	if s.h == nil {
		s.h = sha256.New()
	}
	s.h.Write(p)
	if s.left -= int64(len(p)); s.left == 0 {
		s.h.Sum(s.out[:0])
		s.h = nil
	}
	return len(p), nil
}

// finish returns the sum of the bytes that came.
func (s *sum) finish() [sha256.Size]byte {
	if s.h == nil && s.out == [sha256.Size]byte{} {
		return sha256.Sum256(nil)
	}
	return s.out
}
