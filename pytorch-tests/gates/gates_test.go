// Package gates takes stacked tensors of recurrent and attention modules apart, and computes with the parts what torch
// computed with the whole.
package gates

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/tensor"
)

type matrix = tensor.Array[float32]

// affine is W and b of one gate.
type affine struct{ w, b matrix }

func (a affine) of(x []float64) []float64 {
	out := make([]float64, a.w.Shape[0])
	for i := range out {
		out[i] = float64(a.b.Data[i])
		for j, v := range x {
			out[i] += float64(a.w.Data[i*len(x)+j]) * v
		}
	}
	return out
}

// weights are the tensors of a module by their names.
type weights map[string]matrix

func (m weights) affine(gate, suffix string) affine {
	return affine{m["weight_"+gate+suffix], m["bias_"+gate+suffix]}
}

// gate is f(W_i x + b_i + W_h h + b_h).
func (m weights) gate(name, suffix string, f func(float64) float64, x, h []float64) []float64 {
	out, more := m.affine("i"+name, suffix).of(x), m.affine("h"+name, suffix).of(h)
	for i := range out {
		out[i] = f(out[i] + more[i])
	}
	return out
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// lstm is the recurrence in the documentation of torch.nn.LSTM.
func lstm(m weights, suffix string, steps [][]float64, hidden int) [][]float64 {
	h, c := make([]float64, hidden), make([]float64, hidden)
	var out [][]float64
	for _, x := range steps {
		in, forget := m.gate("i", suffix, sigmoid, x, h), m.gate("f", suffix, sigmoid, x, h)
		cell, output := m.gate("g", suffix, math.Tanh, x, h), m.gate("o", suffix, sigmoid, x, h)
		next := make([]float64, hidden)
		for k := range next {
			c[k] = forget[k]*c[k] + in[k]*cell[k]
			next[k] = output[k] * math.Tanh(c[k])
		}
		h = next
		out = append(out, h)
	}
	return out
}

// gru is the recurrence in the documentation of torch.nn.GRU.
func gru(m weights, suffix string, steps [][]float64, hidden int) [][]float64 {
	h := make([]float64, hidden)
	var out [][]float64
	for _, x := range steps {
		reset, update := m.gate("r", suffix, sigmoid, x, h), m.gate("z", suffix, sigmoid, x, h)
		ofInput, ofHidden := m.affine("in", suffix).of(x), m.affine("hn", suffix).of(h)
		next := make([]float64, hidden)
		for k := range next {
			fresh := math.Tanh(ofInput[k] + reset[k]*ofHidden[k])
			next[k] = (1-update[k])*fresh + update[k]*h[k]
		}
		h = next
		out = append(out, h)
	}
	return out
}

// bothWays runs a recurrence forwards and backwards and puts the two side by side.
func bothWays(run func(weights, string, [][]float64, int) [][]float64) func(weights, [][]float64) [][]float64 {
	const hidden = 5
	return func(m weights, x [][]float64) [][]float64 {
		out := run(m, "_l0", x, hidden)
		back := slices.Clone(x)
		slices.Reverse(back)
		reverse := run(m, "_l0_reverse", back, hidden)
		slices.Reverse(reverse)
		for i := range out {
			out[i] = append(out[i], reverse[i]...)
		}
		return out
	}
}

// attention is torch.nn.MultiheadAttention of two heads, with its input as query, key and value.
func attention(m weights, x [][]float64) [][]float64 {
	project := func(name string) [][]float64 {
		var out [][]float64
		for _, row := range x {
			out = append(out, affine{m[name+".weight"], m[name+".bias"]}.of(row))
		}
		return out
	}
	q, k, v := project("q_proj"), project("k_proj"), project("v_proj")
	const heads, width = 2, 3
	var out [][]float64
	for i := range x {
		joined := make([]float64, heads*width)
		for lo := 0; lo < heads*width; lo += width {
			for j, share := range shares(q[i][lo:lo+width], k, lo) {
				for d := range width {
					joined[lo+d] += share * v[j][lo+d]
				}
			}
		}
		out = append(out, affine{m["out_proj.weight"], m["out_proj.bias"]}.of(joined))
	}
	return out
}

// shares is the softmax of the scaled products of one query with all keys.
func shares(q []float64, keys [][]float64, lo int) []float64 {
	out, sum := make([]float64, len(keys)), 0.0
	for j, key := range keys {
		for d, v := range q {
			out[j] += v * key[lo+d]
		}
		out[j] = math.Exp(out[j] / math.Sqrt(float64(len(q))))
		sum += out[j]
	}
	for j := range out {
		out[j] /= sum
	}
	return out
}

// cases are the modules, with the sets that take them apart and join them.
var cases = map[string]struct {
	split, join string
	compute     func(weights, [][]float64) [][]float64
	stacked     string // a tensor that the sets make and undo
}{
	"lstm":      {"lstm-split", "lstm-join", bothWays(lstm), "weight_hh_l0_reverse"},
	"gru":       {"gru-split", "gru-join", bothWays(gru), "weight_hh_l0_reverse"},
	"attention": {"qkv-split", "qkv-join", attention, "in_proj_weight"},
}

func files(stem string) []string { return []string{stem + "-torch1.13.pt", stem + "-torch2.15.pt"} }

func open(t *testing.T, name string) nested.Value {
	t.Helper()
	c, err := wick.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c.Root
}

func named(t *testing.T, name string) *rules.Set {
	t.Helper()
	set, err := rules.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func apply(t *testing.T, v nested.Value, set *rules.Set) nested.Value {
	t.Helper()
	out, _, err := set.Apply(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// taken is what a file of the folder holds, its module taken apart.
type taken struct {
	Net    weights `torch:"net.cell"`
	Input  matrix
	Output matrix
}

func rows(a matrix) [][]float64 {
	out := make([][]float64, a.Shape[0])
	for i := range out {
		for _, v := range a.Data[i*a.Shape[1] : (i+1)*a.Shape[1]] {
			out[i] = append(out[i], float64(v))
		}
	}
	return out
}

// equal compares with what torch computed in float32, of values below 1.
func (v taken) equal(t *testing.T, got [][]float64) {
	t.Helper()
	want := rows(v.Output)
	if len(got) != len(want) {
		t.Fatalf("%d rows, torch has %d", len(got), len(want))
	}
	for i := range want {
		if len(got[i]) != len(want[i]) {
			t.Fatalf("row %d: %d values, torch has %d", i, len(got[i]), len(want[i]))
		}
		for j := range want[i] {
			if math.Abs(got[i][j]-want[i][j]) > 1e-6 {
				t.Errorf("[%d %d] is %v, torch computed %v", i, j, got[i][j], want[i][j])
			}
		}
	}
}

// The parts are the gates and projections that they are called: they compute torch's own output.
func TestPartsCompute(t *testing.T) {
	for stem, c := range cases {
		for _, file := range files(stem) {
			t.Run(file, func(t *testing.T) {
				var v taken
				if _, err := serde.Unmarshal(t.Context(), open(t, file), &v, serde.Rules(named(t, c.split))); err != nil {
					t.Fatal(err)
				}
				v.equal(t, c.compute(v.Net, rows(v.Input)))
			})
		}
	}
}

// Split and joined, every tensor is torch's again.
func TestPartsAreJoined(t *testing.T) {
	for stem, c := range cases {
		for _, file := range files(stem) {
			t.Run(file, func(t *testing.T) {
				parts := apply(t, open(t, file), named(t, c.split))
				if got := sums(t, parts); got["net.cell."+c.stacked] != "" {
					t.Errorf("%s is still there", c.stacked)
				}
				agree(t, sums(t, apply(t, parts, named(t, c.join))), expected(t, file))
			})
		}
	}
}

// gatesByTags are the gates of an LSTM by the tags of fields.
type gatesByTags struct {
	Input struct {
		I matrix `torch:"weight_ih_l0 | chunk 0 0 of 4"`
		F matrix `torch:"weight_ih_l0 | chunk 0 1 of 4"`
		G matrix `torch:"weight_ih_l0 | chunk 0 2 of 4"`
		O matrix `torch:"weight_ih_l0 | chunk 0 3 of 4"`
	} `torch:", inline"`
	Hidden struct {
		I matrix `torch:"weight_hh_l0 | chunk 0 0 of 4 | transpose"`
		F matrix `torch:"weight_hh_l0 | chunk 0 1 of 4 | transpose"`
		G matrix `torch:"weight_hh_l0 | chunk 0 2 of 4 | transpose"`
		O matrix `torch:"weight_hh_l0 | chunk 0 3 of 4 | transpose"`
	} `torch:", inline"`
}

// Tags take gates apart as the sets do, and Marshal joins and transposes them back.
func TestPartsByTags(t *testing.T) {
	for _, file := range files("lstm") {
		root, want := open(t, file), expected(t, file)
		var byTags gatesByTags
		if _, err := serde.Unmarshal(t.Context(), root, &byTags, serde.Key("net.cell"), serde.AllowUnexpected()); err != nil {
			t.Fatal(file, err)
		}
		var byRules taken
		if _, err := serde.Unmarshal(t.Context(), root, &byRules, serde.Rules(named(t, "lstm-split"))); err != nil {
			t.Fatal(file, err)
		}
		if !slices.Equal(byTags.Input.G.Data, byRules.Net["weight_ig_l0"].Data) {
			t.Errorf("%s: the cell gate is %v by tags, %v by rules", file, byTags.Input.G.Data, byRules.Net["weight_ig_l0"].Data)
		}
		back, err := serde.Marshal(&byTags, serde.Prefix("net.cell."))
		if err != nil {
			t.Fatal(file, err)
		}
		got := sums(t, back)
		for _, name := range []string{"net.cell.weight_ih_l0", "net.cell.weight_hh_l0"} {
			if got[name] == "" || got[name] != want[name] {
				t.Errorf("%s: %s has the sum %q, torch says %q", file, name, got[name], want[name])
			}
		}
	}
}

// sums returns the SHA-256 of each tensor's packed bytes by its flat name.
func sums(t *testing.T, root nested.Value) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := nested.Walk(root, nested.WalkLimits{}, func(path nested.Path, v nested.Value) error {
		leaf, ok := v.(nested.Leaf)
		if !ok {
			return nil
		}
		h := sha256.New()
		if _, err := tensor.Run(t.Context(), []tensor.Move{{From: leaf.AsTensor(), To: tensor.Stream(h)}}); err != nil {
			return err
		}
		out[strings.ReplaceAll(path.String(), `"`, "")] = hex.EncodeToString(h.Sum(nil))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// expected is what torch says of a file.
func expected(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Files map[string]struct {
			Tensors []struct{ Name, SHA256 string }
		}
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, x := range all.Files[file].Tensors {
		out[x.Name] = x.SHA256
	}
	if len(out) == 0 {
		t.Fatalf("torch says nothing of %s", file)
	}
	return out
}

func agree(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, sum := range want {
		if got[name] != sum {
			t.Errorf("%s has the sum %q, torch says %s", name, got[name], sum)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d tensors, torch has %d", len(got), len(want))
	}
}
