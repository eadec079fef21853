package embedded_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/embedded"
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/tensor"
)

func try[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// packedLinear is what "wick pack" writes and go:embed embeds.
func packedLinear() []byte {
	dir := try(os.MkdirTemp("", "wick-example-"))
	defer func() { try(0, os.RemoveAll(dir)) }()
	layer := nn.Linear[float32]{Weight: tensor.Array[float32]{Shape: []int{1, 2}, Data: []float32{3, 4}}}
	out := filepath.Join(dir, "linear.safetensors")
	try(wick.Save(context.Background(), out, &layer, wick.AsRecord(checkpoint.RecordHeader{}), wick.Align(64)))
	b := try(os.ReadFile(out))
	return b
}

func ExampleLoad() {
	record := packedLinear() // of go:embed
	var layer nn.Linear[float32]
	try(embedded.Load(context.Background(), record, &layer))
	fmt.Println(layer.Weight.Shape, layer.Weight.Data)
	// Output: [1 2] [3 4]
}

// The bytes of a string must not be written: tag fields that will be mutable.
func ExampleLoadString() {
	record := string(packedLinear())
	var layer struct {
		Weight []float32 `torch:"weight, mutable"`
	}
	try(embedded.LoadString(context.Background(), record, &layer))
	layer.Weight[0] = 0
	fmt.Println(layer.Weight)
	// Output: [0 4]
}
