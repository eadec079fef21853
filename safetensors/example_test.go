package safetensors_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/safetensors"
	"github.com/wick-ml/wick/tensor"
)

// Programs that carry a file of their own can leave the front door out: what
// Target plans, WriteStream writes and DecodeBytes reads.
func ExampleDecodeBytes() {
	root := nested.NewMap("dict")
	if err := root.Set(nested.String("w"), nested.F32s{Array: tensor.Array[float32]{Shape: []int{2}, Data: []float32{1, 2}}}); err != nil {
		log.Fatal(err)
	}
	plan, err := safetensors.Target{}.Plan(root, checkpoint.TargetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := checkpoint.WriteStream(context.Background(), &file, plan.Files[0].Layout); err != nil {
		log.Fatal(err)
	}
	options, err := checkpoint.NewOptions()
	if err != nil {
		log.Fatal(err)
	}
	tree, info, verified, err := safetensors.DecodeBytes(checkpoint.NewBytes("w.safetensors", file.Bytes()), options.Env())
	if err != nil {
		log.Fatal(err)
	}
	back, _ := tree.(*nested.Map)
	fmt.Println(info.Format, back.Len(), verified) // only records have checksums
	// Output:
	// safetensors 1 0
}
