package cli

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

func TestShow(t *testing.T) {
	long := make([]float32, 2000)
	for i := range long {
		long[i] = float32(i)
	}
	nan := float32(math.NaN())
	trees := map[string]nested.Value{"m.pt": mapOf(t,
		str("w"), lazy(tensor.Of([]float32{1, -2, 0.5, nan, 0, 4}, 2, 3)),
		str("long"), lazy(tensor.Of(long, 2, 1000)),
		str("n"), lazy(tensor.Of([]int64{1<<62 + 1}, []int{}...)),
		str("flags"), lazy(tensor.Of([]bool{true, false})),
		str("c"), lazy(tensor.Of([]complex64{1 - 2i})),
		str("none"), lazy(tensor.Of([]float32{}, 0, 3)),
		str("tiny"), lazy(tensor.Of([]float64{1e-9, 2e-9})))}
	for _, c := range []struct{ args, want string }{
		{"w", `w  float32 [2, 3]  24 B
min -2  max 4  mean 0.7  std 2.16795  of the finite values
6 elements: 1 zero, 1 NaN, 0 infinite
-2 █         █  █  █              █ 4
[[ 1.0000 -2.0000  0.5000]
 [    nan  0.0000  4.0000]]
`},
		{"--slice 1,-2: w", `w  float32 [2]  8 B
min 0  max 4  mean 2  std 2.82843
2 elements: 1 zero, 0 NaN, 0 infinite
0 █                              █ 4
[0. 4.]
`},
		{"long", `long  float32 [2, 1000]  7.8 KiB
min 0  max 1999  mean 999.5  std 577.495
2,000 elements: 1 zero, 0 NaN, 0 infinite
0 ████████████████████████████████ 1999
[[   0.    1.    2. …  997.  998.  999.]
 [1000. 1001. 1002. … 1997. 1998. 1999.]]
`},
		{"flags", `flags  bool [2]  2 B
2 elements: 1 true, 1 false
[ True False]
`},
		{"c", "c  complex64 [1]  8 B\n[1.-2.j]\n"},
		{"none", "none  float32 [0, 3]  0 B\n0 elements: 0 zero, 0 NaN, 0 infinite\n[]\n"},
		{"tiny", `tiny  float64 [2]  16 B
min 1e-09  max 2e-09  mean 1.5e-09  std 7.07107e-10
2 elements: 0 zero, 0 NaN, 0 infinite
1e-09 █                              █ 2e-09
[1.0000e-09 2.0000e-09]
`},
	} {
		args := strings.Fields(c.args)
		args = append([]string{"show", "m.pt"}, args...)
		got := runTrees(t.Context(), trees, args...)
		if got.code != 0 || got.out != c.want {
			t.Errorf("show %s: exit %d, %s got\n%s\nwant\n%s", c.args, got.code, got.err, got.out, c.want)
		}
	}
	if got := runTrees(t.Context(), trees, "show", "m.pt", "n"); !strings.HasSuffix(got.out, "\n4611686018427387905\n") {
		t.Errorf("an integer was rounded: %s", got.out)
	}
	got := runTrees(t.Context(), trees, "show", "--json", "m.pt", "w")
	var doc struct {
		Stats struct {
			Count, NaN, Zero int
			Min, Max         float64
		}
		Values []any
	}
	if err := json.Unmarshal([]byte(got.out), &doc); err != nil {
		t.Fatalf("%v in %s", err, got.out)
	}
	if doc.Stats.Count != 6 || doc.Stats.NaN != 1 || doc.Stats.Min != -2 || len(doc.Values) != 6 || doc.Values[3] != "nan" {
		t.Errorf("%s", got.out)
	}
}

// TestShowAsTorch prints values as torch 2.15 does, but for its commas.
func TestShowAsTorch(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	narrow := func(list ...float64) *tensor.Tensor { return tensor.Of(list) }
	for i, c := range []struct {
		t    *tensor.Tensor
		want string
	}{
		{tensor.Of([]complex128{1 + 2i, -3.5 - 0.25i, complex(nan, 1)}), "[ 1.0000+2.0000j -3.5000-0.2500j     nan+1.0000j]"},
		{tensor.Of([]uint64{0, 1 << 63, math.MaxUint64}), "[                   0  9223372036854775808 18446744073709551615]"},
		{tensor.Of([]int64{1<<53 + 1, math.MaxInt64, math.MinInt64}), "[    9007199254740993  9223372036854775807 -9223372036854775808]"},
		{narrow(nan, nan), "[nan nan]"},
		{narrow(-inf, -inf), "[-inf -inf]"},
		{narrow(1, nan, inf, -2.5), "[ 1.0000     nan     inf -2.5000]"},
		{narrow(1, 2, 3), "[1. 2. 3.]"},
		{narrow(math.Copysign(0, -1), 0), "[-0.  0.]"},
		{narrow(1e8, 2.5), "[1.0000e+08 2.5000e+00]"},
		{narrow(1e-5, 2e-5), "[1.0000e-05 2.0000e-05]"},
		{narrow(1, 1e-5), "[1.0000e+00 1.0000e-05]"},
		{tensor.Of([]float32{3.25}, []int{}...), "3.2500"},
		{tensor.Of([]int64{7}, []int{}...), "7"},
		{tensor.Of([]bool{true}, []int{}...), "True"},
		{tensor.Of([]float32{}, 3, 0, 2), "[]"},
	} {
		got := runTrees(t.Context(), map[string]nested.Value{"m.pt": mapOf(t, str("x"), lazy(c.t))}, "show", "m.pt", "x")
		if got.code != 0 || !strings.HasSuffix(got.out, "\n"+c.want+"\n") {
			t.Errorf("%d: %s%s\nwant %s", i, got.out, got.err, c.want)
		}
	}
}

// TestShowWholeNumbers holds that statistics of integers are exact where a float64 is
// not.
func TestShowWholeNumbers(t *testing.T) {
	for _, c := range []struct {
		t              *tensor.Tensor
		min, max, mean string
	}{
		{tensor.Of([]int64{1<<53 + 1, math.MaxInt64, math.MinInt64, -5}), "-9223372036854775808", "9223372036854775807", "2251799813685246.8"},
		{tensor.Of([]uint64{math.MaxUint64, math.MaxUint64 - 2}), "18446744073709551613", "18446744073709551615", "1.8446744073709552e+19"},
		{tensor.Of([]int8{-3, -4}), "-4", "-3", "-3.5"},
	} {
		got := runTrees(t.Context(), map[string]nested.Value{"m.pt": mapOf(t, str("x"), lazy(c.t))}, "show", "--json", "m.pt", "x")
		var doc struct {
			Stats struct{ Min, Max, Mean json.Number }
		}
		if err := json.Unmarshal([]byte(got.out), &doc); err != nil {
			t.Fatal(err, got)
		}
		if s := doc.Stats; s.Min.String() != c.min || s.Max.String() != c.max || s.Mean.String() != c.mean {
			t.Errorf("%v, want %s %s %s", s, c.min, c.max, c.mean)
		}
	}
}

// TestShowWraps breaks a row as numpy does, and no line of a terminal is too long.
func TestShowWraps(t *testing.T) {
	var values []float32
	for i := range 40 {
		values = append(values, float32(i)+0.5)
	}
	got := runTrees(t.Context(), map[string]nested.Value{"m.pt": mapOf(t, str("x"), lazy(tensor.Of(values, 1, 40)))}, "show", "m.pt", "x")
	if !strings.Contains(got.out, "\n[[ 0.5000  1.5000") || !strings.HasSuffix(got.out, "\n  36.5000 37.5000 38.5000 39.5000]]\n") {
		t.Error(got.out)
	}
	for line := range strings.Lines(got.out) {
		if textWidth(line) > usualWidth+1 {
			t.Error(line)
		}
	}
}

func TestShowRefuses(t *testing.T) {
	x, y := lazy(tensor.Of([]float32{1, 2}, 2, 1)), lazy(tensor.Of([]float32{3}))
	trees := map[string]nested.Value{"m.pt": mapOf(t,
		str("a.b"), x, str("a"), mapOf(t, str("b"), y), str("w"), x,
		str("meta"), lazy(tensor.Unavailable(tensor.F32, []int{1}, fault.New(fault.NoData, "meta"))),
		str("bad"), lazy(tensor.Unavailable(tensor.F32, []int{1}, fault.New(fault.Malformed, "out of bounds"))),
		str("deep"), lazy(tensor.Of([]float32{1}, 1, 1, 1, 1, 1, 1, 1)))}
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"ambiguous", []string{"a.b"}, 2, `--path '["a.b"]', --path '["a","b"]'`},
		{"exact", []string{"--path", `["a", "b"]`}, 0, ""},
		{"other exact", []string{"--path", `["a.b"]`}, 0, ""},
		{"no such path", []string{"--path", `["a.c"]`}, 2, "no tensor has the path"},
		{"no path at all", []string{"--path", `a.b`}, 2, "a list of keys"},
		{"name and path", []string{"--path", `["a.b"]`, "w"}, 2, "beside --path"},
		{"near miss", []string{"ww"}, 2, "did you mean w?"},
		{"no name", nil, 2, "show needs FILE and NAME"},
		{"meta", []string{"meta"}, 4, "meta"},
		{"bad", []string{"bad"}, 3, "out of bounds"},
		{"too many dimensions", []string{"deep"}, 4, "--slice"},
		{"bad slice", []string{"--slice", "x", "w"}, 2, "--slice"},
		{"slice of too many", []string{"--slice", "0,0,0", "w"}, 2, "more than 2 dimensions"},
		{"slice out of range", []string{"--slice", "2", "w"}, 2, "index 2 is outside of a dimension of 2"},
		{"slice cut to what there is", []string{"--slice", "1:99", "w"}, 0, ""},
	} {
		got := runTrees(t.Context(), trees, append([]string{"show", "m.pt"}, c.args...)...)
		if got.code != c.code || !strings.Contains(got.err, c.want) || (got.out == "") != (c.code != 0) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", c.name, got.code, got.out, got.err)
		}
	}
}

func TestDiff(t *testing.T) {
	a := mapOf(t, str("same"), lazy(tensor.Of([]float32{1})), str("gone"), lazy(tensor.Of([]float32{1})),
		str("v"), lazy(tensor.Of([]float32{1, 2, 4})), str("d"), lazy(tensor.Of([]float32{1.25})), str("s"), lazy(tensor.Of([]float32{1, 2})))
	b := mapOf(t, str("same"), lazy(tensor.Of([]float32{1})), str("new"), lazy(tensor.Of([]int8{1})),
		str("v"), lazy(tensor.Of([]float32{1, 2.5, 4})), str("d"), lazy(tensor.Of([]float64{1.25})), str("s"), lazy(tensor.Of([]float32{1, 2}, 2, 1)))
	trees := map[string]nested.Value{"a.pt": a, "b.pt": b}
	got := runTrees(t.Context(), trees, "diff", "a.pt", "b.pt")
	const want = `KIND     NAME  MAX DIFF  MAX REL  WHAT
missing  gone                     float32 [1]
values   v          0.5      0.2  1 of 3 elements
dtype    d                        float32 → float64
shape    s                        [2] → [2, 1]
added    new                      int8 [1]
a.pt, b.pt: 5 differences, 1 tensor the same
`
	if got.code != 1 || got.err != "" || got.out != want {
		t.Errorf("exit %d, %s got\n%s\nwant\n%s", got.code, got.err, got.out, want)
	}
	got = runTrees(t.Context(), trees, "diff", "--tol", "0.5", "--json", "a.pt", "b.pt")
	var doc struct {
		Same        int
		OK          bool
		Differences []struct{ Name, Kind string }
	}
	if err := json.Unmarshal([]byte(got.out), &doc); err != nil || got.code != 1 || doc.OK || doc.Same != 3 || len(doc.Differences) != 3 {
		t.Errorf("exit %d, %v, %s", got.code, err, got.out)
	}
	if got = runTrees(t.Context(), trees, "diff", "a.pt", "a.pt"); got.code != 0 || !strings.Contains(got.out, "no difference") {
		t.Errorf("exit %d, %s", got.code, got.out)
	}
	if got = runTrees(t.Context(), trees, "diff", "--tol", "-1", "a.pt", "a.pt"); got.code != 2 {
		t.Errorf("--tol -1: exit %d", got.code)
	}
}

func TestExtract(t *testing.T) {
	x := lazy(tensor.Of([]float32{0, 1, 2, 3, 4, 5}, 2, 3))
	trees := map[string]nested.Value{"m.pt": mapOf(t, str("w"), x, str("b"), lazy(tensor.Of([]tensor.BFloat16{0x3f80})))}
	dir := t.TempDir()
	npy := filepath.Join(dir, "w.npy")
	if got := runTrees(t.Context(), trees, "extract", "m.pt", "w", "-o", npy); got.code != 0 || got.out != "" {
		t.Fatalf("exit %d, %s", got.code, got.err)
	}
	// What numpy.save writes for numpy.arange(6, dtype="<f4").reshape(2, 3).
	head := "\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
	want := head + strings.Repeat(" ", 127-len(head)) + "\n" +
		"\x00\x00\x00\x00\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@"
	if b, err := os.ReadFile(npy); err != nil || string(b) != want {
		t.Errorf("%v, got %q", err, b)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		out  string
		err  string
	}{
		{"raw", []string{"w", "-o", "-", "--to", "raw", "--slice", "1,:2"}, 0, "\x00\x00@@\x00\x00\x80@", ""},
		{"an ellipsis", []string{"w", "-o", "-", "--to", "raw", "--slice", "1,...,:2"}, 0, "\x00\x00@@\x00\x00\x80@", ""},
		{"cast", []string{"b", "-o", "-", "--to", "raw", "--dtype", "float32"}, 0, "\x00\x00\x80?", ""},
		{"bfloat16 in npy", []string{"b", "-o", filepath.Join(dir, "b.npy")}, 4, "", "--dtype float32"},
		{"exists", []string{"w", "-o", npy}, 2, "", "--force"},
		{"no output", []string{"w"}, 2, "", "-o"},
		{"no format", []string{"w", "-o", "x.foo"}, 2, "", ".npy .raw"},
		{"other format", []string{"w", "-o", "x.npy", "--to", "csv"}, 2, "", "csv"},
		{"no dtype", []string{"w", "-o", "-", "--to", "raw", "--dtype", "f99"}, 2, "", "f99"},
		{"inexact", []string{"w", "-o", "-", "--to", "raw", "--dtype", "quint8"}, 4, "", ""},
	} {
		got := runTrees(t.Context(), trees, append([]string{"extract", "m.pt"}, c.args...)...)
		if got.code != c.code || got.out != c.out || !strings.Contains(got.err, c.err) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", c.name, got.code, got.out, got.err)
		}
	}
}

// Quantized and sparse tensors become what torch says they stand for.
func TestConvertArithmetic(t *testing.T) {
	for _, c := range []struct{ dir, file, flag, key string }{
		{"quantized", "per_tensor-torch2.15.pt", "--dequantize", "dequantized_sha256"},
		{"quantized", "per_channel-torch2.15.pt", "--dequantize", "dequantized_sha256"},
	} {
		raw, err := os.ReadFile(filepath.Join(fixtures, c.dir, "expected.json"))
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Files map[string]struct{ Tensors []map[string]any }
		}
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "o.safetensors")
		if got := runFiles(t, "convert", filepath.Join(fixtures, c.dir, c.file), out); got.code != 4 || !strings.Contains(got.err, c.flag) {
			t.Errorf("%s without %s: exit %d, %s", c.file, c.flag, got.code, got.err)
		}
		if got := runFiles(t, "convert", c.flag, filepath.Join(fixtures, c.dir, c.file), out); got.code != 0 {
			t.Fatalf("%s: exit %d, %s", c.file, got.code, got.err)
		}
		sums := map[string]string{}
		for _, row := range tensorRows(t, runFiles(t, "ls", "--json", "--sha256", out).out) {
			sums[row.Name] = row.SHA256
		}
		compared := 0
		for _, row := range doc.Files[c.file].Tensors {
			name, _ := row["name"].(string)
			if want, ok := row[c.key].(string); ok {
				compared++
				if sums[name] != want {
					t.Errorf("%s: %s has the sum %s, torch says %s", c.file, name, sums[name], want)
				}
			}
		}
		if compared == 0 {
			t.Errorf("%s: nothing to compare", c.file)
		}
	}
	out := filepath.Join(t.TempDir(), "o.safetensors")
	if got := runFiles(t, "convert", "--densify", filepath.Join(fixtures, "sparse", "coo-torch2.15.pt"), out); got.code != 0 {
		t.Errorf("--densify: exit %d, %s", got.code, got.err)
	}
}
