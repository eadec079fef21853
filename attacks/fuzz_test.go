package attacks_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/attacks"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/pytorch"
)

// addSeeds seeds with attacks and fixtures of one file that are small.
func addSeeds(f *testing.F) {
	f.Helper()
	const most = 4 << 10
	for i, c := range attacks.All() {
		if strings.HasPrefix(c.Name, "opcode ") && i%40 != 0 {
			continue // hundreds that hardly differ
		}
		if heavy := strings.Contains(c.Name, "bomb") || strings.Contains(c.Name, "mega") || strings.Contains(c.Name, "million"); heavy {
			continue
		}
		if data := c.Files()[""]; 0 < len(data) && len(data) < most {
			f.Add(data)
		}
	}
	files, err := filepath.Glob("../pytorch-tests/*/*2.15.*")
	if err != nil || len(files) == 0 {
		f.Fatal("no fixtures", err)
	}
	for _, name := range files {
		if data, err := os.ReadFile(name); err == nil && len(data) < most {
			f.Add(data)
		}
	}
}

var small = wick.Limits{
	PickleBytes: 1 << 20, Opcodes: 1 << 16, Depth: 200, Paths: 1 << 12, StringBytes: 1 << 18, Tensors: 1 << 10, Records: 1 << 10,
	HeaderBytes: 1 << 18, ExpandFloor: 1 << 20, InflateBytes: 1 << 20,
}

// FuzzConvert takes the whole way of a file: open, plan, read, write. What is
// written opens again with the same tensors and the same values, and whatever
// cannot be written is an error of the plan or of the run. Seen to catch: a
// header of safetensors whose tensors were made to end one byte early.
func FuzzConvert(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := wick.OpenBytes(t.Context(), "in", data, wick.WithLimits(small))
		if err != nil {
			return
		}
		defer func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}()
		plan, err := wick.PlanConversion(c, "out.safetensors")
		if err != nil {
			return
		}
		var out bytes.Buffer
		if _, err := plan.RunTo(t.Context(), &out); err != nil {
			return
		}
		names, sums, err := values(t.Context(), out.Bytes())
		if err != nil {
			t.Fatalf("what was written does not open: %v", err)
		}
		wantNames, want, err := values(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range names {
			at := slices.Index(wantNames, name)
			if at < 0 && slices.ContainsFunc(wantNames, func(n string) bool { return !utf8.ValidString(n) }) {
				at = slices.Index(want, sums[i]) // names that are no UTF-8 are written as Latin-1
			}
			if at < 0 || want[at] != sums[i] {
				t.Errorf("%q is in the output with other values, or in the output only", name)
			}
		}
	})
}

// FuzzScan holds the scan to the loader: whatever name a file asks for when it is
// opened is in the scan's report, and a report without an error has looked at a
// pickle. Seen to catch: a host of the scan that was made to forget the names of
// the stack, which STACK_GLOBAL takes.
func FuzzScan(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		report, err := pytorch.Scan(t.Context(), checkpoint.NewBytes("in", data), pytorch.WithLimits(small))
		if err == nil && report.Pickles == 0 && report.Format != "zip" && report.Format != "tar" {
			t.Fatalf("%s is clean without a look at a pickle", report.Format)
		}
		c, openErr := pytorch.OpenBytes(t.Context(), "in", data, pytorch.WithLimits(small))
		if openErr != nil {
			return
		}
		for _, g := range c.Info.Globals {
			same := func(s pytorch.ScanGlobal) bool { return s.Module == g.Module && s.Name == g.Name }
			if !slices.ContainsFunc(report.Globals, same) {
				t.Errorf("opening names %q.%q, the scan does not: %v", g.Module, g.Name, err)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
