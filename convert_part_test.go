package wick_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// TestIndexOfPartsNamesTheShard holds that the last step of a conversion in parts says
// which shard keeps it from writing the index, and why.
func TestIndexOfPartsNamesTheShard(t *testing.T) {
	root := nested.NewMap("dict")
	for _, name := range []string{"a", "b"} {
		if err := root.Set(nested.String(name), &nested.Tensor{Tensor: tensor.Of(make([]float32, 8))}); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(out string, part wick.ConvertOption) error {
		v, err := wick.PlanTree(root, wick.Limits{}, out, wick.ShardBytes(32), part)
		if err != nil {
			return err
		}
		_, err = v.Run(t.Context())
		return err
	}
	out := filepath.Join(dir, "m.safetensors")
	if err := run(out, wick.Part(0, 2)); err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(dir, "m-00002-of-00002.safetensors")
	names(t, run(out, wick.PartIndex()), fault.NotFound, second)
	if err := os.WriteFile(second, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	names(t, run(out, wick.PartIndex()), fault.Mismatch, second)
	below := filepath.Join(file, "m.safetensors")
	names(t, run(below, wick.PartIndex()), fault.IO, filepath.Join(file, "m-00001-of-00002.safetensors"))
	names(t, run(out, wick.Part(3, 2)), fault.Usage, "")
}

func names(t *testing.T, err error, kind fault.Kind, file string) {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != kind || e.File != file {
		t.Errorf("%v, want %s of %s", err, kind, file)
	}
}
