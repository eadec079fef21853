package gorgonia_test

import (
	"context"
	"fmt"
	"log"

	dense "gorgonia.org/tensor"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/examples/adapters/gorgonia"
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/serde"
)

const resnet18 = "../../resnet/testdata/resnet18.pt"

// A layer computes on weights that lie in the mapped file: nothing was copied.
func ExampleOf() {
	ctx := context.Background()
	ckpt, err := wick.Open(ctx, resnet18, wick.Mmap())
	if err != nil {
		log.Fatal(err)
	}
	defer ckpt.Close()
	var net struct{ FC nn.Linear[float32] }
	report, err := serde.Unmarshal(ctx, ckpt.Root, &net, serde.Alias(), serde.Include("fc"))
	if err != nil {
		log.Fatal(err)
	}
	weight, err := gorgonia.Of(net.FC.Weight)
	if err != nil {
		log.Fatal(err)
	}
	logits, err := weight.MatVecMul(dense.New(dense.WithBacking(make([]float32, 12))))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Copied, "bytes copied,", logits.Shape(), "logits")
	// Output: 0 bytes copied, (10) logits
}

// A tensor of a checkpoint, in place and read.
func ExampleView() {
	ctx := context.Background()
	ckpt, err := wick.Open(ctx, resnet18, wick.Mmap())
	if err != nil {
		log.Fatal(err)
	}
	defer ckpt.Close()
	t, err := ckpt.Lookup("conv1.weight")
	if err != nil {
		log.Fatal(err)
	}
	there, err := gorgonia.View[float32](t.Tensor)
	if err != nil {
		log.Fatal(err)
	}
	wide, err := gorgonia.Read[float64](ctx, t.Tensor)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(there.Shape(), there.Dtype(), wide.Dtype())
	// Output: (4, 3, 7, 7) float32 float64
}
