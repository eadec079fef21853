package layers

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/wick-ml/wick/examples/adapters/gomlx"
)

// Run builds the graph of forward for images of the given shape [batch, channels, height, width] and computes its
// output, row-major.
func Run(backend compute.Backend, w *gomlx.Weights, forward func(w *gomlx.Weights, x *Node) *Node, images []float32, shape ...int) ([]float32, error) {
	exec, err := model.NewExec(backend, w.Store, func(_ *model.Scope, x *Node) *Node { return forward(w, x) })
	if err != nil {
		return nil, err
	}
	defer exec.Finalize()
	out, err := exec.Call1(tensors.FromFlatDataAndDimensions(images, shape...))
	if err != nil {
		return nil, fmt.Errorf("computing the network: %w", err)
	}
	return tensors.CopyFlatData[float32](out)
}
