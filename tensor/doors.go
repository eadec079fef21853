package tensor

import (
	"context"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/wick-ml/wick/fault"
)

// ErrNotViewable is the cause of every error of [View]: the tensor's elements
// do not lie in memory as a Go slice would hold them.
var ErrNotViewable = errors.New("tensor cannot be viewed in place")

// View returns the tensor's elements in place. The slice aliases the memory
// that the source lends: it must not be written unless that memory is a private
// map, and is valid until the checkpoint is closed; copy what must live longer.
// It works where the storage is in memory, the elements are contiguous, aligned
// and in host order, and T is the stored dtype; elsewhere the error wraps
// [ErrNotViewable] and says which of these failed. There is no view as []bool, and
// none after the checkpoint was closed ([fault.ErrClosed]).
func View[T Element](t *Tensor) ([]T, error) {
	if err := t.Err(); err != nil {
		return nil, err
	}
	if t.Len() == 0 && t.dtype == DTypeOf[T]() {
		return []T{}, nil
	}
	b, why := t.inPlace(DTypeOf[T]())
	if why == "" {
		if err := t.isOpen(); err != nil {
			return nil, err
		}
		if s, ok := viewAs[T](b); ok {
			return s, nil
		}
		why = "its memory is not aligned"
	}
	e := fault.Wrap(fault.Unsupported, why, ErrNotViewable)
	return nil, e.Needs("contiguous elements of the same dtype in lent memory", "read a copy instead")
}

// isOpen fails when the memory behind a tensor of one storage was given back.
func (t *Tensor) isOpen() error {
	s, _, ok := t.Origin()
	if !ok || s.spec.Guard == nil {
		return nil
	}
	if err := s.spec.Guard.Acquire(); err != nil {
		return err
	}
	return s.spec.Guard.Release()
}

// inPlace returns the bytes of a tensor that lie in memory as d asks.
func (t *Tensor) inPlace(d DType) (b []byte, why string) {
	wk, lo, hi, ok := t.span()
	switch {
	case t.dtype != d:
		return nil, "it is " + t.dtype.String() + ", not " + d.String()
	case d == Bool:
		return nil, "a stored bool may be a byte other than 0 and 1"
	case !ok:
		return nil, "its elements are strided"
	case !wk.plain():
		return nil, "its elements are converted while they are read"
	case wk.storage.Lent() == nil:
		return nil, "its bytes are not in memory"
	case wk.storage.Order() != NativeOrder() && d.Component() > 1:
		return nil, "it is stored in the other byte order"
	}
	return wk.storage.Lent()[lo:hi], ""
}

// Values returns the tensor's elements in a fresh slice, in row-major order,
// converted to T. It fails as [Room] does before it allocates.
func Values[T Element](ctx context.Context, t *Tensor, opts ...RunOption) ([]T, error) {
	if err := t.Err(); err != nil {
		return nil, err
	}
	size, ok := DTypeOf[T]().Bytes(t.Len())
	if !ok {
		size = math.MaxInt64
	}
	if err := Room([]*Tensor{t}, size, opts...); err != nil {
		return nil, err
	}
	dst := SlabSlice[T](NewSlab([]int64{size}), 0, int(t.Len()))
	if err := ReadInto(ctx, t, dst, opts...); err != nil {
		return nil, err
	}
	return dst, nil
}

// Room checks that a run may deliver size bytes to memory, which is what the
// tensors take there together, before that memory is allocated. It fails with
// [fault.ErrLimit] where zero strides make more of few bytes than [Expansion]
// allows, on more than a slice of this machine can hold, and on more than the
// system has: the pickle of a stream can claim any size, and a Go program dies of
// memory that it does not get.
func Room(tensors []*Tensor, size int64, opts ...RunOption) error {
	if size > mostBytes {
		return fault.NewBound("bytes in memory on this machine", size, mostBytes)
	}
	c := newConfig(opts)
	if size <= c.floor {
		return nil
	}
	moves := make([]Move, len(tensors))
	for i, t := range tensors {
		moves[i].From = t
	}
	r := run{runConfig: c}
	if allowed := r.allowance(moves); size > allowed {
		return fault.NewLimit("expansion", size, allowed)
	}
	if !systemHas(size) {
		return fault.New(fault.Limit, strconv.FormatInt(size, 10)+" bytes, for which the system has no memory").
			Needs("as much memory as the tensors take", "load a part of them, or convert the file")
	}
	return nil
}

// mostBytes is what a slice can hold: of 64 bits, systems give a process 47.
const mostBytes = min(math.MaxInt, 1<<47) - slabAlign

// ReadInto fills dst, which must hold exactly the tensor's elements, in
// row-major order, converted to T. It allocates nothing of the tensor's size.
func ReadInto[T Element](ctx context.Context, t *Tensor, dst []T, opts ...RunOption) error {
	_, err := Run(ctx, []Move{{t, Into(dst)}}, opts...)
	return err
}

// WriteTo writes the packed row-major little-endian bytes to w in bounded
// chunks. It implements [io.WriterTo].
func (t *Tensor) WriteTo(w io.Writer) (int64, error) {
	stats, err := Run(context.Background(), []Move{{t, Stream(w)}})
	return stats.Bytes, err
}
