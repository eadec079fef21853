// Package gomlx moves weights from wick into GoMLX: the tensors of a checkpoint into tensors ([Read]) and variables
// ([Variables]), and the arrays of a record into graphs ([Weights]).
//
// GoMLX never aliases memory that it did not allocate. So it allocates, and wick's mover fills that memory where it
// lies: the elements of a file move once, from the file to where the backend computes with them, and are converted to
// another dtype on the way where that is asked for.
package gomlx

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/tensor"
)

// Keep is given for a dtype to leave every tensor in its own.
const Keep = dtypes.InvalidDType

// pairs are the dtypes that both sides have.
var pairs = []struct {
	wick  tensor.DType
	gomlx dtypes.DType
	lend  func(t *tensors.Tensor, use func(tensor.Sink) error) error
}{
	{tensor.F64, dtypes.Float64, lend[float64]},
	{tensor.F32, dtypes.Float32, lend[float32]},
	{tensor.F16, dtypes.Float16, lend[tensor.Float16]},
	{tensor.BF16, dtypes.BFloat16, lend[tensor.BFloat16]},
	{tensor.I8, dtypes.Int8, lend[int8]},
	{tensor.I16, dtypes.Int16, lend[int16]},
	{tensor.I32, dtypes.Int32, lend[int32]},
	{tensor.I64, dtypes.Int64, lend[int64]},
	{tensor.U8, dtypes.Uint8, lend[uint8]},
	{tensor.U16, dtypes.Uint16, lend[uint16]},
	{tensor.U32, dtypes.Uint32, lend[uint32]},
	{tensor.U64, dtypes.Uint64, lend[uint64]},
	{tensor.C64, dtypes.Complex64, lend[complex64]},
	{tensor.C128, dtypes.Complex128, lend[complex128]},
	{tensor.Bool, dtypes.Bool, lendBools},
}

// DType returns GoMLX's dtype for wick's. It fails on those that GoMLX does not have, such as the 8-bit floats.
func DType(d tensor.DType) (dtypes.DType, error) {
	for _, p := range pairs {
		if p.wick == d {
			return p.gomlx, nil
		}
	}
	return dtypes.InvalidDType, fmt.Errorf("GoMLX has no %v: ask for a dtype that it has", d)
}

// Read returns a GoMLX tensor for each tensor of from, in the same order and of the same shape, in memory that backend
// computes with. Floats are converted to the dtype floats, or stay as they are with [Keep]; other elements are kept. All
// are filled in one run: in the order of the file, in parallel, in bounded memory beside the tensors themselves. The new
// tensors alias nothing of the source. On an error, also when ctx ends, none is returned.
func Read(ctx context.Context, backend compute.Backend, from []*tensor.Tensor, floats dtypes.DType, opts ...tensor.RunOption) ([]*tensors.Tensor, error) {
	to := make([]*tensors.Tensor, len(from))
	for i, t := range from {
		d, err := target(t.DType(), floats)
		if err == nil {
			to[i], err = tensors.FromShapeForBackend(backend, 0, shapes.Make(d, t.Shape()...))
		}
		if err != nil {
			return nil, errors.Join(err, finalize(to[:i]))
		}
	}
	if err := fill(ctx, from, to, make([]tensor.Move, 0, len(to)), opts); err != nil {
		return nil, errors.Join(err, finalize(to))
	}
	return to, nil
}

// target returns the dtype that a tensor gets.
func target(d tensor.DType, floats dtypes.DType) (dtypes.DType, error) {
	if floats != Keep && d.Class() == tensor.FloatClass {
		return floats, nil
	}
	return DType(d)
}

// fill asks GoMLX for the memory of one tensor after another, which it lends during a call back, and runs the moves
// in the innermost of these calls, when all of it is lent.
func fill(ctx context.Context, from []*tensor.Tensor, to []*tensors.Tensor, moves []tensor.Move, opts []tensor.RunOption) error {
	i := len(moves)
	if i == len(to) {
		_, err := tensor.Run(ctx, moves, opts...)
		return err
	}
	for _, p := range pairs {
		if p.gomlx == to[i].DType() {
			return p.lend(to[i], func(sink tensor.Sink) error {
				return fill(ctx, from, to, append(moves, tensor.Move{From: from[i], To: sink}), opts)
			})
		}
	}
	return fmt.Errorf("wick fills no tensors of %v", to[i].DType())
}

// lend calls use with a sink that fills the memory of t, whose elements are those of T.
func lend[T tensor.Element](t *tensors.Tensor, use func(tensor.Sink) error) error {
	var inner error
	outer := t.MutableBytes(func(b []byte) {
		var elements []T
		if elements, inner = elementsOf[T](b); inner == nil {
			inner = use(tensor.Into(elements))
		}
	})
	return errors.Join(outer, inner)
}

// lendBools is lend for bools, of which wick makes no view.
func lendBools(t *tensors.Tensor, use func(tensor.Sink) error) error {
	var inner error
	outer := tensors.MutableFlatData(t, func(elements []bool) { inner = use(tensor.Into(elements)) })
	return errors.Join(outer, inner)
}

// elementsOf sees bytes as elements: a view of a tensor whose storage is b.
func elementsOf[T tensor.Element](b []byte) ([]T, error) {
	d := tensor.DTypeOf[T]()
	t, err := tensor.New(tensor.Spec{
		Storage: tensor.NewStorage(tensor.StorageSpec{
			Name: "memory of GoMLX", Size: int64(len(b)), Order: tensor.NativeOrder(), Memory: b,
		}),
		DType: d, Shape: []int64{int64(len(b) / d.Size())},
	})
	if err != nil {
		return nil, err
	}
	return tensor.View[T](t)
}

// finalize gives back the memory of tensors that nobody will see.
func finalize(to []*tensors.Tensor) error {
	var errs []error
	for _, t := range to {
		errs = append(errs, t.FinalizeAll())
	}
	return errors.Join(errs...)
}

// Variables makes a variable of scope for each named tensor, in the way of [Read]. The dots of a name become scopes:
// "layer1.0.conv1.weight" of the root scope is "/layer1/0/conv1/weight". A name that the scope has already is an error
// and no variable is made.
func Variables(ctx context.Context, backend compute.Backend, scope *model.Scope, named iter.Seq2[string, *tensor.Tensor], floats dtypes.DType, opts ...tensor.RunOption) error {
	var paths []string
	var from []*tensor.Tensor
	for name, t := range named {
		path := model.JoinPath(scope.Scope(), strings.ReplaceAll(name, ".", "/"))
		if slices.Contains(paths, path) || scope.Store().GetVariable(path) != nil {
			return fmt.Errorf("the store has a variable %s already", path)
		}
		paths, from = append(paths, path), append(from, t)
	}
	to, err := Read(ctx, backend, from, floats, opts...)
	if err != nil {
		return err
	}
	for i, t := range to {
		if _, err := scope.Store().CreateVariable(paths[i], t); err != nil {
			return err
		}
	}
	return nil
}

// Tensors yields the names and tensors of a checkpoint, for [Variables].
func Tensors(ckpt *wick.Checkpoint) iter.Seq2[string, *tensor.Tensor] {
	return func(yield func(string, *tensor.Tensor) bool) {
		for name, t := range ckpt.Tensors() {
			if !yield(name, t.Tensor) {
				return
			}
		}
	}
}
