package shards_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/fault"
)

const zeros = "../pytorch-tests/deepspeed"

// copyFolder copies the files of a fixture, under other names where rename says so;
// an empty name leaves a file out.
func copyFolder(t *testing.T, from string, rename map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name, renamed := rename[e.Name()]
		if !renamed {
			name = e.Name()
		}
		if name == "" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), b)
	}
	return dir
}

// TestZeroRefuses holds what a folder of DeepSpeed's must not lack.
func TestZeroRefuses(t *testing.T) {
	const last = "bf16_zero_pp_rank_2_mp_rank_00_optim_states.pt"
	for name, c := range map[string]struct {
		from   string
		rename map[string]string
		want   error
		text   string
	}{
		"a rank is missing":             {"zero2-r3-torch2.15", map[string]string{last: ""}, fault.ErrMalformed, "one of each of 3 ranks"},
		"a rank of stage 3 is missing":  {"zero3-r3-torch2.15", map[string]string{last: ""}, fault.ErrMalformed, "one of each of 3 ranks"},
		"the shapes of a rank":          {"zero3-r3-torch2.15", map[string]string{"zero_pp_rank_1_mp_rank_00_model_states.pt": ""}, fault.ErrMalformed, "one of each of 3 ranks"},
		"layers are cut over the ranks": {"zero2-r3-torch2.15", map[string]string{last: "bf16_zero_pp_rank_2_mp_rank_01_optim_states.pt"}, fault.ErrUnsupported, "mp_rank_01"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := wick.Open(t.Context(), copyFolder(t, filepath.Join(zeros, c.from), c.rename))
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %v with %q", err, c.want, c.text)
			}
		})
	}
}

// A file of another kind under the name of the shapes is no state of a model.
func TestZeroOfOtherFiles(t *testing.T) {
	dir := copyFolder(t, filepath.Join(zeros, "zero2-r3-torch2.15"), map[string]string{"mp_rank_00_model_states.pt": "", "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt": "mp_rank_00_model_states.pt"})
	if _, err := wick.Open(t.Context(), dir); !errors.Is(err, fault.ErrMalformed) {
		t.Errorf("%v", err)
	}
}

// Several steps are one too many, unless latest says which.
func TestZeroSteps(t *testing.T) {
	dir := t.TempDir()
	step := copyFolder(t, filepath.Join(zeros, "zero2-r2-torch2.15"), nil)
	for _, name := range []string{"global_step10", "global_step9"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(step)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := wick.Open(t.Context(), dir); !errors.Is(err, fault.ErrAmbiguous) {
		t.Errorf("without latest: %v", err)
	}
	write(t, filepath.Join(dir, "latest"), []byte("global_step10\n"))
	c, err := wick.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Len() != 16 || c.Info.Format != "deepspeed" {
		t.Errorf("%d tensors in a %s", c.Len(), c.Info.Format)
	}
	write(t, filepath.Join(dir, "latest"), []byte("../global_step10"))
	if _, err := wick.Open(t.Context(), dir); !errors.Is(err, fault.ErrAmbiguous) {
		t.Errorf("with a latest outside: %v", err)
	}
}
