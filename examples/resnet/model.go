package main

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/activation"

	"github.com/wick-ml/wick/examples/adapters/gomlx"
	"github.com/wick-ml/wick/examples/internal/layers"
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/tensor"
)

// ResNet is the state dict of torchvision.models.resnet.ResNet, of any depth and width but without
// groups: 18, 34, 50, 101, 152 and the wide ones. T is the element in memory.
type ResNet[T tensor.Element] struct {
	Conv1  nn.Conv2d[T]
	BN1    nn.BatchNorm2d[T]
	Layer1 []Block[T]
	Layer2 []Block[T]
	Layer3 []Block[T]
	Layer4 []Block[T]
	FC     nn.Linear[T]
}

// Block is a BasicBlock or, with a third convolution, a Bottleneck.
type Block[T tensor.Element] struct {
	Conv1      nn.Conv2d[T]
	BN1        nn.BatchNorm2d[T]
	Conv2      nn.Conv2d[T]
	BN2        nn.BatchNorm2d[T]
	Conv3      *nn.Conv2d[T]
	BN3        *nn.BatchNorm2d[T]
	Downsample *Downsample[T]
}

// Downsample fits a block's input to its output where their shapes differ.
type Downsample[T tensor.Element] struct {
	Conv nn.Conv2d[T]      `torch:"0"`
	BN   nn.BatchNorm2d[T] `torch:"1"`
}

// Forward returns the logits [batch, classes] of images x [batch, channels, height, width].
func (r *ResNet[T]) Forward(w *gomlx.Weights, x *graph.Node) *graph.Node {
	x = activation.Relu(layers.Norm(w, layers.Conv(w, x, r.Conv1, 2, 3), r.BN1))
	x = layers.MaxPool(x, 1, false)
	for i, blocks := range [][]Block[T]{r.Layer1, r.Layer2, r.Layer3, r.Layer4} {
		for j, b := range blocks {
			stride := 1
			if i > 0 && j == 0 {
				stride = 2
			}
			x = b.forward(w, x, stride)
		}
	}
	return layers.Linear(w, graph.ReduceMean(x, 2, 3), r.FC)
}

// forward has the stride where torchvision has it: in the first convolution, or in that of 3×3 of a Bottleneck.
func (b *Block[T]) forward(w *gomlx.Weights, x *graph.Node, stride int) *graph.Node {
	var y *graph.Node
	if b.Conv3 == nil {
		y = activation.Relu(layers.Norm(w, layers.Conv(w, x, b.Conv1, stride, 1), b.BN1))
		y = layers.Norm(w, layers.Conv(w, y, b.Conv2, 1, 1), b.BN2)
	} else {
		y = activation.Relu(layers.Norm(w, layers.Conv(w, x, b.Conv1, 1, 0), b.BN1))
		y = activation.Relu(layers.Norm(w, layers.Conv(w, y, b.Conv2, stride, 1), b.BN2))
		y = layers.Norm(w, layers.Conv(w, y, *b.Conv3, 1, 0), *b.BN3)
	}
	if b.Downsample != nil {
		x = layers.Norm(w, layers.Conv(w, x, b.Downsample.Conv, stride, 0), b.Downsample.BN)
	}
	return activation.Relu(graph.Add(x, y))
}
