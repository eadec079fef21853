package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The words that records have for precisions go where dtypes go.
func TestPrecisionWords(t *testing.T) {
	const model = "../../../../pytorch-tests/demo-resnet/demo-resnet-torch2.15.pt"
	dir := t.TempDir()
	convert := func(name string, args ...string) []byte {
		out := filepath.Join(dir, name+".safetensors")
		if got := runFiles(t, append([]string{"convert", "-q", model, out}, args...)...); got.code != 0 {
			t.Fatalf("%v: exit %d, %s", args, got.code, got.err)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	plain := convert("plain")
	for _, c := range []struct {
		word string
		same bool
	}{{"keep", true}, {"full", true}, {"half", false}, {"bfloat16", false}, {"double", false}, {"fp32", true}, {"fp16", false}, {"bf16", false}, {"fp64", false}} {
		if got := convert(c.word, "--dtype", c.word); bytes.Equal(got, plain) != c.same {
			t.Errorf("--dtype %s: the same as a plain conversion of float32 is %t", c.word, !c.same)
		}
	}
}
