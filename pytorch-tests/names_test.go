package pytorchtests

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/tensor"
)

// TestMegabyteName finds a tensor by a name of a megabyte, which expected.json
// leaves out.
func TestMegabyteName(t *testing.T) {
	files, err := filepath.Glob("nested-tree/megabyte_name-*.pt")
	if err != nil || len(files) < 2 {
		t.Fatal("no fixtures", err)
	}
	for _, file := range files {
		c, err := wick.Open(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		x, err := c.Lookup(strings.Repeat("x", 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		v, err := tensor.Values[float32](t.Context(), x.Tensor)
		if err != nil || len(v) != 2 || v[0] != 0 || v[1] != 0.25 {
			t.Errorf("%v, %v", v, err)
		}
	}
}

// TestParametersAsKeys holds that the state of a whole pickled optimizer, whose
// keys are the parameters themselves, has a name for each tensor.
func TestParametersAsKeys(t *testing.T) {
	files, err := filepath.Glob("optimizers/whole_optimizer-*.pt")
	if err != nil || len(files) < 2 {
		t.Fatal("no fixtures", err)
	}
	for _, file := range files {
		c, err := wick.Open(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		seen := map[string]bool{}
		for name := range c.Tensors() {
			if seen[name] {
				t.Errorf("%s: two tensors are %s", file, name)
			}
			seen[name] = true
		}
		if _, err := wick.Convert(t.Context(), c, filepath.Join(t.TempDir(), "out.safetensors")); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
