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
