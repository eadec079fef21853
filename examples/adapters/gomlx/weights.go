package gomlx

import (
	"context"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/wick-ml/wick/tensor"
)

// Weights gives the arrays of records to graphs. An array becomes a variable of the store when a graph first asks for
// it with [Node], which copies it once, out of the record or of what the record aliases, into GoMLX's memory. Fields
// that share their memory, as tied weights do, share the variable.
//
// The records must not change, and what they alias must stay open, while graphs are built. A Weights is not safe for
// concurrent use, as building graphs is not.
type Weights struct {
	Store   *model.Store
	backend compute.Backend
	floats  dtypes.DType
	made    map[any]*model.Variable // by the address of the first element
}

// NewWeights returns weights for graphs of backend. Floats are converted to the dtype floats while they are copied, or
// stay as they are with [Keep].
func NewWeights(backend compute.Backend, floats dtypes.DType) *Weights {
	return &Weights{Store: model.NewStore(), backend: backend, floats: floats, made: map[any]*model.Variable{}}
}

// Node returns the array a in the graph that g belongs to. As all of what builds graphs does, it panics with an error
// where it fails; the Exec of the graph recovers it.
func Node[T tensor.Element](w *Weights, g graph.GraphProvider, a tensor.Array[T]) *graph.Node {
	if len(a.Data) == 0 {
		panic(fmt.Errorf("an array of shape %v has no elements: its field was not filled", a.Shape))
	}
	v := w.made[&a.Data[0]]
	if v == nil {
		to, err := Read(context.Background(), w.backend, []*tensor.Tensor{a.Tensor()}, w.floats)
		if err != nil {
			panic(err)
		}
		if v, err = w.Store.CreateVariable(fmt.Sprintf("weights/%d", len(w.made)), to[0]); err != nil {
			panic(err)
		}
		w.made[&a.Data[0]] = v
	}
	return v.NodeValue(g)
}
