package records_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/wick-ml/wick/arith"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch"
	"github.com/wick-ml/wick/record"
	"github.com/wick-ml/wick/safetensors"
	"github.com/wick-ml/wick/tensor"
)

// again writes a tree as a record and opens that.
func again(t *testing.T, target checkpoint.Target, root nested.Value) *checkpoint.Checkpoint {
	t.Helper()
	out, err := target.Plan(root, checkpoint.TargetOptions{Record: &checkpoint.RecordHeader{}})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := checkpoint.WriteStream(t.Context(), &file, out.Files[0].Layout); err != nil {
		t.Fatal(err)
	}
	formats := []checkpoint.Format{safetensors.Format{}, record.CBOR{}, record.JSON{}}
	c, err := checkpoint.Open(t.Context(), checkpoint.NewBytes("record", file.Bytes()), formats, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func digest(t *testing.T, x *tensor.Tensor) string {
	t.Helper()
	h := sha256.New()
	if _, err := x.WriteTo(h); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Quantized tensors that torch wrote come through every form of record: the same
// integers, scheme, scales and zero points, and torch's own real numbers.
func TestQuantizedTensorsThroughRecords(t *testing.T) {
	raw, err := os.ReadFile("../quantized/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Files map[string]struct {
			Tensors []struct {
				Name, DType, SHA256 string
				Shape               []int
				Dequantized         string `json:"dequantized_sha256"`
			}
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for file, want := range doc.Files {
		c, err := pytorch.Open(t.Context(), filepath.Join("../quantized", file))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, target := range []checkpoint.Target{safetensors.Target{}, record.CBORTarget{}, record.JSONTarget{}} {
			r := again(t, target, c.Root)
			for _, w := range want.Tensors {
				x, err := r.Lookup(w.Name)
				if err != nil {
					t.Error(target.Name(), file, err)
					continue
				}
				if x.DType().String() != w.DType || !slices.Equal(x.Shape(), w.Shape) || digest(t, x.Tensor) != w.SHA256 {
					t.Errorf("%s %s %s: %s %v, torch has %s %v", target.Name(), file, w.Name, x.DType(), x.Shape(), w.DType, w.Shape)
				}
				if w.Dequantized == "" {
					continue
				}
				d, err := arith.Dequantize(x, arith.Limits{})
				if err != nil {
					t.Error(target.Name(), file, w.Name, err)
					continue
				}
				if got := digest(t, d.Tensor); got != w.Dequantized {
					t.Errorf("%s %s %s stands for other numbers than torch's", target.Name(), file, w.Name)
				}
				compared++
			}
		}
	}
	if compared < 60 {
		t.Fatalf("%d tensors compared, there were more", compared)
	}
}
