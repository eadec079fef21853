package main

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/activation"

	"github.com/wick-ml/wick/examples/adapters/gomlx"
	"github.com/wick-ml/wick/examples/internal/layers"
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/tensor"
)

// SqueezeNet is the state dict of torchvision.models.squeezenet1_1. T is the element in memory.
type SqueezeNet[T tensor.Element] struct {
	Conv       nn.Conv2d[T] `torch:"features.0"`
	Fire1      Fire[T]      `torch:"features.3"`
	Fire2      Fire[T]      `torch:"features.4"`
	Fire3      Fire[T]      `torch:"features.6"`
	Fire4      Fire[T]      `torch:"features.7"`
	Fire5      Fire[T]      `torch:"features.9"`
	Fire6      Fire[T]      `torch:"features.10"`
	Fire7      Fire[T]      `torch:"features.11"`
	Fire8      Fire[T]      `torch:"features.12"`
	Classifier nn.Conv2d[T] `torch:"classifier.1"`
}

// Fire squeezes the channels together and expands them with kernels of 1×1 and of 3×3.
type Fire[T tensor.Element] struct {
	Squeeze   nn.Conv2d[T]
	Expand1x1 nn.Conv2d[T] `torch:"expand1x1"`
	Expand3x3 nn.Conv2d[T] `torch:"expand3x3"`
}

// Forward returns the logits [batch, classes] of images x [batch, channels, height, width].
func (s *SqueezeNet[T]) Forward(w *gomlx.Weights, x *graph.Node) *graph.Node {
	x = activation.Relu(layers.Conv(w, x, s.Conv, 2, 0))
	for _, fires := range [][]Fire[T]{{s.Fire1, s.Fire2}, {s.Fire3, s.Fire4}, {s.Fire5, s.Fire6, s.Fire7, s.Fire8}} {
		x = layers.MaxPool(x, 0, true)
		for _, f := range fires {
			x = f.forward(w, x)
		}
	}
	return graph.ReduceMean(activation.Relu(layers.Conv(w, x, s.Classifier, 1, 0)), 2, 3)
}

func (f *Fire[T]) forward(w *gomlx.Weights, x *graph.Node) *graph.Node {
	x = activation.Relu(layers.Conv(w, x, f.Squeeze, 1, 0))
	return graph.Concatenate([]*graph.Node{
		activation.Relu(layers.Conv(w, x, f.Expand1x1, 1, 0)),
		activation.Relu(layers.Conv(w, x, f.Expand3x3, 1, 1)),
	}, 1)
}
