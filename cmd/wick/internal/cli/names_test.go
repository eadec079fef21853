package cli

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// A name of any length is served. One that lies above so much that its copies are more
// than commands go through is a limit error whose need is in bytes, and whose cure works.
func TestLongNames(t *testing.T) {
	x := lazy(tensor.Of([]float32{1}))
	below := nested.NewMap("dict")
	for i := range 120 {
		if err := below.Set(nested.Int(i), x); err != nil {
			t.Fatal(err)
		}
	}
	trees := map[string]nested.Value{
		"30k.pt":  mapOf(t, str(strings.Repeat("n", 30_000)), x, str("b.weight"), x),
		"400k.pt": mapOf(t, str(strings.Repeat("n.", 200_000)+"n"), x, str("b.weight"), x),
		"many.pt": mapOf(t, str(strings.Repeat("n", 40_000)), below, str("b.weight"), x),
	}
	const limit = "paths=262144" // of a small file
	cure := regexp.MustCompile(`; need at most 4194304 bytes.*--limit (paths=\d+)\)`)
	for file := range trees {
		for _, line := range []string{
			"ls @ **.weight", "ls @ b", "tree @", "tree @ b", "plan --rename b.{x}->c.{x} @", "convert --rename b.{x}->c.{x} @ OUT",
		} {
			args := strings.Fields(strings.NewReplacer("@", file, "OUT", filepath.Join(t.TempDir(), "x.safetensors")).Replace(line))
			got := runTrees(t.Context(), trees, append(args, "--limit", limit)...)
			if file == "many.pt" {
				m := cure.FindStringSubmatch(got.err)
				if got.code != 4 || m == nil {
					t.Errorf("%s: exit %d, %s", line, got.code, got.err)
					continue
				}
				got = runTrees(t.Context(), trees, append(args, "--limit", m[1])...)
			}
			if got.code != 0 {
				t.Errorf("%s of %s: exit %d, %.300s", line, file, got.code, got.err)
			}
		}
	}
}
