package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// What an error advises works.
func TestCuresOfComplexTensors(t *testing.T) {
	dir := t.TempDir()
	half, err := tensor.Of([]complex64{1.5 - 2i}).Cast(tensor.C32)
	if err != nil {
		t.Fatal(err)
	}
	trees := map[string]nested.Value{"m.pt": mapOf(t, str("h"), lazy(half), str("z"), lazy(tensor.Of([]complex128{1.5 - 2i})))}
	npy, out, rule := filepath.Join(dir, "h.npy"), filepath.Join(dir, "z.safetensors"), filepath.Join(dir, "z.rules")
	if err := os.WriteFile(rule, []byte("z = z | cast complex64\nh = h | cast complex64\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line, cure string
		cured      []string
	}{
		{"extract m.pt h -o " + npy, "convert it with --dtype complex64", []string{"--dtype", "complex64"}},
		{"convert --include z m.pt " + out, "cast it by a rule: NAME = NAME | cast complex64", []string{"--rules", rule}},
		{"convert --force --dtype complex64 m.pt " + out, "is cast by a rule: NAME = NAME | cast complex64", nil},
	} {
		args := strings.Fields(c.line)
		if got := runTrees(t.Context(), trees, args...); got.code == 0 || !strings.Contains(got.err, c.cure) {
			t.Errorf("%s: exit %d, %s; want the cure %s", c.line, got.code, got.err, c.cure)
		}
		if c.cured == nil {
			continue
		}
		if strings.Contains(c.line, "--include") {
			args = []string{"convert", "m.pt", out}
		}
		if got := runTrees(t.Context(), trees, append(args, c.cured...)...); got.code != 0 {
			t.Errorf("%s %s: exit %d, %s", c.line, c.cured, got.code, got.err)
		}
	}
}
