package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/examples/internal/classify"
	"github.com/wick-ml/wick/examples/internal/visiontest"
)

func TestLogits(t *testing.T) {
	visiontest.Logits(t, "resnet18", network)
	visiontest.Logits(t, "resnet50", network)
}

func TestSwappedWeights(t *testing.T) {
	visiontest.Swaps(t, "resnet18", network, 80)
	visiontest.Swaps(t, "resnet50", network, 200)
}

// command returns what the command prints for the picture.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := classify.Run(t.Context(), "resnet", network, append(args, "-image", "testdata/picture.png"), &out)
	return out.String(), err
}

// A training script's checkpoint has the weights deeper inside, under longer names.
func TestCommandFindsTheStateDict(t *testing.T) {
	const plain = "testdata/resnet18.pt"
	want, err := command(t, "-weights", plain, "-top", "3")
	if err != nil || strings.Count(want, "class ") != 3 {
		t.Fatalf("printed %q: %v", want, err)
	}
	var wrapped struct {
		StateDict struct{ Module ResNet[float32] }
	}
	if _, err := wick.Load(t.Context(), plain, &wrapped.StateDict.Module); err != nil {
		t.Fatal(err)
	}
	deeper := filepath.Join(t.TempDir(), "deeper.safetensors")
	if _, err := wick.Save(t.Context(), deeper, &wrapped); err != nil {
		t.Fatal(err)
	}
	got, err := command(t, "-weights", deeper, "-top", "3", "-key", "state_dict", "-prefix", "module.")
	if err != nil || got != want {
		t.Errorf("printed %q, not %q: %v", got, want, err)
	}
	for _, args := range [][]string{
		{"-weights", deeper},
		{"-weights", deeper, "-key", "model"},
		{"-weights", plain, "-prefix", "module."},
		{"-weights", "absent.pt"},
	} {
		if out, err := command(t, args...); err == nil || out != "" {
			t.Errorf("%v printed %q", args, out)
		}
	}
}

// What this program does not compute is an error, not a wrong answer.
func TestGroupsAreRefused(t *testing.T) {
	ckpt, err := wick.Open(t.Context(), "testdata/resnet18.pt")
	if err != nil {
		t.Fatal(err)
	}
	defer ckpt.Close()
	one := make([]float32, 2*64*64) // two channels meet kernels of three
	_, err = classify.Tree(t.Context(), new(ResNet[float32]), ckpt.Root, one, []int{1, 2, 64, 64})
	if err == nil || !strings.Contains(err.Error(), "groups") {
		t.Errorf("the error is %v", err)
	}
}
