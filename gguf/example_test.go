package gguf_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/gguf"
	"github.com/wick-ml/wick/llama"
)

func try[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// A Llama becomes one GGUF file, with what lies beside its weights.
func Example() {
	ctx := context.Background()
	c := try(wick.Open(ctx, "../pytorch-tests/llama/meta-2shards"))
	defer c.Close()
	v := try(wick.PlanConversion(c, "-", wick.As(gguf.Target{}.Name())))
	var file bytes.Buffer
	try(v.RunTo(ctx, &file))
	fmt.Println(string(file.Bytes()[:4]))
	// Output: GGUF
}

// Q8_0 is a half as scale and 32 signed bytes for 32 numbers.
func ExampleQ8() {
	var block [32]float32
	block[0], block[1] = 127, -127
	b := gguf.Q8(nil, &block)
	fmt.Println(len(b), int8(b[2]), int8(b[3]))
	// Output: 34 127 -127
}

// Long contexts stretch the slow rotations and leave the fast ones.
func ExampleRopeFactors() {
	factors := gguf.RopeFactors(llama.Scaling{Type: "llama3", Factor: 8, LowFactor: 1, HighFactor: 4, OriginalContext: 8192}, 500000, 128)
	fmt.Println(len(factors), factors[0], factors[len(factors)-1])
	// Output: 64 1 8
}
