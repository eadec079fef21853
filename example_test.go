package wick_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/tensor"
)

// tiny is a model of two numbers.
type tiny struct {
	FC    nn.Linear[float32]
	Epoch int
}

// A struct goes into a file with its scalars, and comes back.
func ExampleSave() {
	dir, err := os.MkdirTemp("", "wick")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "tiny.safetensors")
	model := tiny{Epoch: 3}
	model.FC.Weight = tensor.Array[float32]{Shape: []int{1, 2}, Data: []float32{1, 70000}}
	if _, err := wick.Save(context.Background(), file, &model); err != nil {
		log.Fatal(err)
	}
	var again tiny
	if _, err := wick.Load(context.Background(), file, &again); err != nil {
		log.Fatal(err)
	}
	fmt.Println(again.FC.Weight.Shape, again.FC.Weight.Data, again.Epoch)

	report, err := wick.Save(context.Background(), file, &model, wick.Precision(tensor.F16), wick.Overwrite())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Stats.Loss.Overflow, "number became infinite")
	// Output:
	// [1 2] [1 70000] 3
	// 1 number became infinite
}

// The numbers of a JSON record that somebody wrote by hand, in a string.
func ExampleOpenString() {
	const text = `{"wick": {"version": 1}, "root": {
		"fc": {"weight": {"$tensor": {"dtype": "float32", "shape": [1, 2], "data": [1, 0.5]}}},
		"epoch": 3}}`
	c, err := wick.OpenString(context.Background(), "tiny.json", text)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	var model tiny
	if _, err := wick.Unmarshal(context.Background(), c, &model, serde.Alias()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(model.FC.Weight.Data, model.Epoch)
	// Output: [1 0.5] 3
}
