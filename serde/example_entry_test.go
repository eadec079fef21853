package serde_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/tensor"
)

// stateOf is a state dict of tensors of ones.
func stateOf(names ...string) *nested.Map {
	root := nested.NewMap("dict")
	for _, name := range names {
		if err := root.Set(nested.String(name), &nested.Tensor{Tensor: tensor.Of([]float32{1, 1}, 2), Class: "torch.Tensor"}); err != nil {
			log.Fatal(err)
		}
	}
	return root
}

// What is missing or unexpected is an error unless it is allowed.
func ExampleAllowMissing() {
	root := stateOf("weight", "extra")
	var layer struct{ Weight, Bias []float32 }
	_, err := serde.Unmarshal(context.Background(), root, &layer)
	fmt.Println(err != nil)
	report, err := serde.Unmarshal(context.Background(), root, &layer, serde.AllowMissing(), serde.AllowUnexpected())
	fmt.Println(layer.Weight, len(report.Plan.Missing), len(report.Plan.Unexpected), err)
	// Output:
	// true
	// [1 1] 1 1 <nil>
}

// Gaps says what becomes of the indexes that a list leaves out.
func ExampleGaps() {
	var net struct{ Layers []struct{ W []float32 } }
	_, err := serde.Unmarshal(context.Background(), stateOf("layers.0.w", "layers.3.w"), &net, serde.Gaps("keep"))
	fmt.Println(len(net.Layers), len(net.Layers[1].W), err)
	// Output: 4 0 <nil>
}

// Options for the run: memory, workers, checksums, progress, and whether slices
// share allocations.
func ExampleMover() {
	var layer struct{ Weight []float32 }
	report, err := serde.Unmarshal(context.Background(), stateOf("weight"), &layer,
		serde.Mover(tensor.Workers(1), tensor.MaxMemory(1<<20)), serde.Verify(), serde.Separate(), serde.Progress(func(done, total int64) {}))
	fmt.Println(report.Copied, err)
	// Output: 8 <nil>
}

// A report prints the plan that was run, and what that took.
func ExampleReport_String() {
	var layer struct{ Weight, Bias []float32 }
	report, err := serde.Unmarshal(context.Background(), stateOf("weight", "bias"), &layer)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(report)
	// Output:
	// copy  weight  float32 [2]  → Weight  []float32
	// copy  bias    float32 [2]  → Bias    []float32
	// 2 applied, 0 mismatched, 0 missing, 0 unexpected, 0 ignored; 16 B in fields, 16 B peak
	// 16 B read, 16 B copied, 0 B aliased; checksums: 0 verified, 0 unverified, 2 absent
}

// Precision converts what Marshal writes; Encode says how a type is written.
func ExamplePrecision() {
	type label string
	root, err := serde.Marshal(&struct {
		Weight []float32
		Label  label
	}{[]float32{1, 2}, "cat"}, serde.Precision(tensor.F16), serde.Encode(func(l label) (nested.Value, error) {
		return nested.String(strings.ToUpper(string(l))), nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	m, _ := root.(*nested.Map)
	for key, v := range m.All() {
		if leaf, ok := v.(nested.Leaf); ok {
			fmt.Println(nested.KeyName(key), leaf.AsTensor().DType())
			continue
		}
		fmt.Println(nested.KeyName(key), nested.Repr(v))
	}
	// Output:
	// weight float16
	// label 'CAT'
}
