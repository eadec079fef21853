// Package visiontest holds networks that classify pictures to what torchvision computes with the same weights.
package visiontest

import (
	"encoding/json"
	"image/png"
	"os"
	"slices"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/examples/internal/classify"
	"github.com/wick-ml/wick/examples/internal/imagenet"
	"github.com/wick-ml/wick/examples/internal/logits"
	"github.com/wick-ml/wick/examples/internal/swaps"
	"github.com/wick-ml/wick/tensor"
)

// Classes is the number of classes of the narrow networks that the generators make.
const Classes = 10

// expected returns what a generator wrote of PyTorch's logits for a network, by how they were computed.
func expected(t *testing.T, network string) map[string][]float32 {
	b, err := os.ReadFile("testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string][]float32{}
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	return all[network]
}

// images returns the batch that the logits are of: the picture and its reflection.
func images(t *testing.T) (pixels []float32, shape []int) {
	f, err := os.Open("testdata/picture.png")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	width, height := picture.Bounds().Dx(), picture.Bounds().Dy()
	pixels = imagenet.Normalize(picture)
	reflection := slices.Clone(pixels)
	for row := range slices.Chunk(reflection, width) {
		slices.Reverse(row)
	}
	return append(pixels, reflection...), []int{2, 3, height, width}
}

// Logits compares the logits of a network, whose weights are in testdata in full and in half precision, with PyTorch's.
func Logits(t *testing.T, name string, network classify.New) {
	pixels, shape := images(t)
	for _, test := range []struct {
		file, arithmetic string
		bound            logits.Bound
	}{
		{name + ".pt", "float32", logits.Float32},
		{name + "-half.pt", "half weights", logits.Float32},
		{name + "-half.pt", "half", logits.Half},
	} {
		t.Run(test.file+" as "+test.arithmetic, func(t *testing.T) {
			got, err := classify.File(t.Context(), network, "testdata/"+test.file, pixels, shape)
			if err != nil {
				t.Fatal(err)
			}
			if err := logits.Same(got, expected(t, name)[test.arithmetic], Classes, test.bound); err != nil {
				t.Error(err)
			}
		})
	}
}

// Swaps makes sure that no two weights of the same shape can be exchanged without the logits telling. atLeast is how
// many such pairs there are, or fewer.
func Swaps(t *testing.T, name string, network classify.New, atLeast int) {
	pixels, shape := images(t)
	want := expected(t, name)["float32"]
	ckpt, err := wick.Open(t.Context(), "testdata/"+name+".pt")
	if err != nil {
		t.Fatal(err)
	}
	defer ckpt.Close()
	pairs := 0
	for names, root := range swaps.All(ckpt.Root) {
		got, err := classify.Tree(t.Context(), network(tensor.F32), root, pixels, shape)
		if err != nil {
			t.Fatal(err)
		}
		if logits.Same(got, want, Classes, logits.Float32) == nil {
			t.Errorf("exchanging %s makes no difference", names)
		}
		pairs++
	}
	if pairs < atLeast {
		t.Errorf("only %d pairs were exchanged", pairs)
	}
}
