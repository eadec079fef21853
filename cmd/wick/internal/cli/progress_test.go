package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

func TestProgress(t *testing.T) {
	for _, c := range []struct {
		name       string
		tty, quiet bool
		age        time.Duration
		shown      bool
	}{
		{"terminal, over a second", true, false, 2 * time.Second, true},
		{"terminal, just begun", true, false, 0, false},
		{"no terminal", false, false, 2 * time.Second, false},
		{"quiet", true, true, 2 * time.Second, false},
	} {
		var errs bytes.Buffer
		a := &app{streams: &streams{err: &errs, errTTY: c.tty}, quiet: c.quiet}
		p := a.progress("reading")
		p.start = time.Now().Add(-c.age)
		p.report(1<<20, 4<<20)
		if got := strings.Contains(errs.String(), "reading"); got != c.shown {
			t.Errorf("%s: shown is %v: %q", c.name, got, errs.String())
		}
		p.done()
	}
}

func TestVerbose(t *testing.T) {
	trees := map[string]nested.Value{"m.pt": model(t)}
	got := runTrees(t.Context(), trees, "ls", "--verbose", "--sha256", "m.pt")
	if got.code != 0 || !strings.Contains(got.err, "opened m.pt: zip, 4 tensors") || !strings.Contains(got.err, "reading: 104 B") {
		t.Errorf("exit %d, stderr %q", got.code, got.err)
	}
	if got = runTrees(t.Context(), trees, "ls", "--verbose", "--quiet", "m.pt"); got.err != "" {
		t.Errorf("--quiet says %q", got.err)
	}
}

// A run delivers twice the bytes of float32 as float64: progress counts what is
// read, and goes on where the last stage ended.
func TestProgressOfStages(t *testing.T) {
	a := &app{streams: &streams{err: io.Discard, errTTY: true}}
	p := a.progress("reading")
	x := tensor.Array[float32]{Shape: []int{4}, Data: []float32{1, 2, 3, 4}}.Tensor()
	wide, err := x.Cast(tensor.F64)
	if err != nil {
		t.Fatal(err)
	}
	for stage, want := range []int64{16, 32} {
		moves := []tensor.Move{{From: wide, To: tensor.Stream(io.Discard)}}
		if _, err := tensor.Run(t.Context(), moves, p.stage(x.Bytes())); err != nil {
			t.Fatal(err)
		}
		if p.bytes != want || p.bar.GetMax64() != 16 {
			t.Errorf("stage %d: %d bytes done, the bar is of %d", stage, p.bytes, p.bar.GetMax64())
		}
	}
}
