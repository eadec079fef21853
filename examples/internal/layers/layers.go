// Package layers computes PyTorch's layers in graphs of GoMLX, on records of package nn and with PyTorch's order of
// axes: images are [batch, channels, height, width] and no weight is transposed.
package layers

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors/images"

	"github.com/wick-ml/wick/examples/adapters/gomlx"
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/tensor"
)

// Node is a value in a graph.
type Node = graph.Node

// Conv is torch.nn.Conv2d with the given stride and padding on all sides, for one group. It is a product of matrices,
// the weights and the columns of what each place of the kernel sees: GoMLX's backend in Go multiplies matrices several
// times faster than it convolves.
func Conv[T tensor.Element](w *gomlx.Weights, x *Node, c nn.Conv2d[T], stride, padding int) *Node {
	out, in, high, wide := c.Weight.Shape[0], c.Weight.Shape[1], c.Weight.Shape[2], c.Weight.Shape[3]
	if x.Shape().Dim(1) != in {
		panic(fmt.Errorf("a convolution of %d channels meets %d: groups are not computed", in, x.Shape().Dim(1)))
	}
	x = pad(x, padding)
	rows, cols := (x.Shape().Dim(2)-high)/stride+1, (x.Shape().Dim(3)-wide)/stride+1
	var seen []*Node
	for i := range high {
		for j := range wide {
			s := graph.Slice(x, graph.AxisRange(), graph.AxisRange(), every(stride, i, rows), every(stride, j, cols))
			seen = append(seen, graph.Reshape(s, -1, in, 1, rows*cols))
		}
	}
	columns := graph.Reshape(graph.Concatenate(seen, 2), -1, in*high*wide, rows*cols)
	kernel := graph.Reshape(gomlx.Node(w, x, c.Weight), out, in*high*wide)
	y := graph.Reshape(graph.Einsum("ok,bkp->bop", kernel, columns), -1, out, rows, cols)
	if c.Bias.Data == nil {
		return y
	}
	return graph.Add(y, channels(gomlx.Node(w, x, c.Bias)))
}

// pad puts n rows or columns of zeros around images.
func pad(x *Node, n int) *Node {
	if n == 0 {
		return x
	}
	around := graph.PadAxis{Start: n, End: n}
	return graph.Pad(x, graph.ScalarZero(x.Graph(), x.DType()), graph.PadAxis{}, graph.PadAxis{}, around, around)
}

// every takes n positions of an axis, the first at start.
func every(stride, start, n int) graph.SliceAxisSpec {
	return graph.AxisRange(start, start+(n-1)*stride+1).Stride(stride)
}

// Norm is torch.nn.BatchNorm2d while it evaluates, with its default eps of 1e-5.
func Norm[T tensor.Element](w *gomlx.Weights, x *Node, n nn.BatchNorm2d[T]) *Node {
	scale := graph.Mul(gomlx.Node(w, x, n.Weight), graph.Rsqrt(graph.AddScalar(gomlx.Node(w, x, n.RunningVar), 1e-5)))
	shift := graph.Sub(gomlx.Node(w, x, n.Bias), graph.Mul(gomlx.Node(w, x, n.RunningMean), scale))
	return graph.Add(graph.Mul(x, channels(scale)), channels(shift))
}

// Linear is torch.nn.Linear over the last axis of x [rows, in_features].
func Linear[T tensor.Element](w *gomlx.Weights, x *Node, l nn.Linear[T]) *Node {
	y := graph.Einsum("ri,oi->ro", x, gomlx.Node(w, x, l.Weight))
	if l.Bias.Data == nil {
		return y
	}
	return graph.Add(y, graph.InsertAxes(gomlx.Node(w, x, l.Bias), 0))
}

// MaxPool is torch.nn.MaxPool2d(3, stride=2, padding=padding). With ceil, a window that begins inside of the image and
// ends beyond it counts too.
func MaxPool(x *Node, padding int, ceil bool) *Node {
	const window, stride = 3, 2
	pads := around(padding)
	if ceil {
		for i := range pads {
			pads[i][1] += -(x.Shape().Dim(2+i) + 2*padding - window) & (stride - 1)
		}
	}
	return graph.MaxPool(x).ChannelsAxis(images.ChannelsFirst).Window(window).Strides(stride).PaddingPerDim(pads).Done()
}

// around is the same padding on all four sides.
func around(n int) [][2]int { return [][2]int{{n, n}, {n, n}} }

// channels makes a vector of one value for each channel fit images.
func channels(v *Node) *Node { return graph.Reshape(v, 1, -1, 1, 1) }
