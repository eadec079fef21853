package serdetest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/serde/serdetest"
	"github.com/wick-ml/wick/tensor"
)

// recorder is a test that only notes what fails.
type recorder struct {
	testing.TB
	texts []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.texts = append(r.texts, fmt.Sprintf(format, args...))
}

func load(t *testing.T, opts ...serde.Option) *serde.Report {
	t.Helper()
	root := nested.NewMap("dict")
	for _, name := range []string{"a", "b"} {
		if err := root.Set(nested.String(name), &nested.Tensor{Tensor: tensor.Of([]float32{1, 2})}); err != nil {
			t.Fatal(err)
		}
	}
	var v struct {
		A []float32
		B []float32 `torch:", mutable"`
	}
	report, err := serde.Unmarshal(t.Context(), root, &v, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestWhatFails(t *testing.T) {
	report := load(t)
	var r recorder
	serdetest.Assert(&r, report, serdetest.Memory{Read: report.Read, Copied: 16, Allocated: 16})
	if len(r.texts) > 0 {
		t.Error(r.texts)
	}
	serdetest.Assert(&r, report, serdetest.Memory{Aliased: 16})
	serdetest.InPlace(&r, report)
	serdetest.AllocatesAtMost(&r, 1<<20, func() { sink = make([]byte, 2<<20) })
	if all := strings.Join(r.texts, "\n"); len(r.texts) != 5 || !strings.Contains(all, "Copied:16") || !strings.Contains(all, "A: 8 bytes, copy") {
		t.Errorf("%d failures: %s", len(r.texts), all)
	}
	if _, err := tensor.View[float32](tensor.Of([]float32{1})); err != nil {
		return // this build copies instead of viewing
	}
	r.texts = nil
	serdetest.InPlace(&r, load(t, serde.Alias()))
	if all := strings.Join(r.texts, "\n"); len(r.texts) != 2 || !strings.Contains(all, "B: 8 bytes, copy (float32 [2] copied: mutable)") {
		t.Errorf("%d failures: %s", len(r.texts), all)
	}
}

// sink keeps the compiler from leaving an allocation out.
var sink []byte
