package gomlx_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/examples/adapters/gomlx"
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/tensor"
)

const resnet18 = "../../resnet/testdata/resnet18.pt"

// Two tensors of a checkpoint become tensors of GoMLX.
func ExampleRead() {
	ctx := context.Background()
	backend, err := gobackend.New("")
	if err != nil {
		log.Fatal(err)
	}
	ckpt, err := wick.Open(ctx, resnet18)
	if err != nil {
		log.Fatal(err)
	}
	defer ckpt.Close()
	var from []*tensor.Tensor
	for _, name := range []string{"conv1.weight", "fc.bias"} {
		t, err := ckpt.Lookup(name)
		if err != nil {
			log.Fatal(err)
		}
		from = append(from, t.Tensor)
	}
	to, err := gomlx.Read(ctx, backend, from, gomlx.Keep)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range to {
		fmt.Println(t.Shape())
	}
	// Output:
	// (Float32)[4, 3, 7, 7]
	// (Float32)[10]
}

// A whole state dict becomes variables, in the scopes that its names spell.
func ExampleVariables() {
	ctx := context.Background()
	backend, err := gobackend.New("")
	if err != nil {
		log.Fatal(err)
	}
	ckpt, err := wick.Open(ctx, resnet18)
	if err != nil {
		log.Fatal(err)
	}
	defer ckpt.Close()
	store := model.NewStore()
	if err := gomlx.Variables(ctx, backend, store.RootScope(), gomlx.Tensors(ckpt), dtypes.Float64); err != nil {
		log.Fatal(err)
	}
	fmt.Println(store.NumVariables(), "variables")
	fmt.Println(store.GetVariable("/layer1/0/conv1/weight").Shape())
	fmt.Println(store.GetVariable("/bn1/num_batches_tracked").Shape())
	// Output:
	// 122 variables
	// (Float64)[4, 4, 3, 3]
	// (Int64)
}

// A record computes in a graph.
func ExampleWeights() {
	ctx := context.Background()
	backend, err := gobackend.New("")
	if err != nil {
		log.Fatal(err)
	}
	ckpt, err := wick.Open(ctx, resnet18, wick.Mmap())
	if err != nil {
		log.Fatal(err)
	}
	defer ckpt.Close()
	var net struct{ FC nn.Linear[float32] }
	if _, err := serde.Unmarshal(ctx, ckpt.Root, &net, serde.Alias(), serde.Include("fc")); err != nil {
		log.Fatal(err)
	}
	weights := gomlx.NewWeights(backend, gomlx.Keep)
	logits, err := model.CallOnce(backend, weights.Store, func(_ *model.Scope, x *graph.Node) *graph.Node {
		y := graph.Einsum("bi,oi->bo", x, gomlx.Node(weights, x, net.FC.Weight))
		return graph.Add(y, graph.InsertAxes(gomlx.Node(weights, x, net.FC.Bias), 0))
	}, [][]float32{make([]float32, 12)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(logits.Shape())
	// Output: (Float32)[1, 10]
}
