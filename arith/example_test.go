package arith_test

import (
	"context"
	"fmt"
	"log"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/arith"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/tensor"
)

func try[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// A quantized tensor is integers with a scale; dequantized it is floats, as
// torch's dequantize makes them.
func ExampleDequantize() {
	c := try(wick.Open(context.Background(), "../pytorch-tests/quantized/per_tensor-torch2.15.pt"))
	defer c.Close()
	for _, t := range c.Tensors() {
		if t.Quant != nil {
			fmt.Println(t.DType(), "becomes", try(arith.Dequantize(t, arith.Limits{})).DType())
			break
		}
	}
	tree := try(arith.DequantizeTree(c.Root, arith.Limits{})) // all of them
	_, isMap := tree.(*nested.Map)
	fmt.Println(isMap)
	// Output:
	// qint8 becomes float32
	// true
}

// A sparse tensor is an object with its components; densified it is a tensor.
func ExampleDensify() {
	c := try(wick.Open(context.Background(), "../pytorch-tests/sparse/coo-torch2.15.pt"))
	defer c.Close()
	root, _ := c.Root.(*nested.Map)
	v, _ := root.Lookup("coalesced")
	if sparse, ok := v.(*nested.Opaque); ok {
		t := try(arith.Densify(context.Background(), sparse, arith.Limits{}))
		fmt.Println(t.Shape(), try(tensor.Values[float32](context.Background(), t.Tensor))[:4])
	}
	tree := try(arith.DensifyTree(context.Background(), root, arith.Limits{Expand: 64, Floor: 1 << 20})) // all of them
	fmt.Println(nested.TypeName(tree))
	// Output:
	// [4 4] [0 1.5 0 0]
	// dict
}

func array(shape []int, data ...float32) tensor.Array[float32] {
	return tensor.Array[float32]{Shape: shape, Data: data}
}

// In evaluation mode a batch norm is a scale and a shift, which the transposed
// convolution before it can do.
func ExampleFoldBatchNormTransposed() {
	up := nn.ConvTranspose2d[float32]{Weight: array([]int{1, 1, 1, 1}, 2), Bias: array([]int{1}, 0)}
	norm := nn.BatchNorm[float32]{Weight: array([]int{1}, 3), Bias: array([]int{1}, 1), RunningMean: array([]int{1}, 4), RunningVar: array([]int{1}, 9)}
	if err := arith.FoldBatchNormTransposed(&up.Weight, &up.Bias, &norm, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Println(up.Weight.Data, up.Bias.Data)
	// Output: [2] [-3]
}
