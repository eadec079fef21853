package main

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wick-ml/wick/examples/internal/logits"
	"github.com/wick-ml/wick/examples/internal/swaps"
)

// Expected is what generate.py wrote of transformers' words on a model.
type Expected struct {
	Prompt []int
	Logits []float32 // at every position of the prompt, in float32 arithmetic
	Native []float32 // the same in the dtype of the weights
	Greedy []int
}

func expected(t *testing.T, model string) Expected {
	t.Helper()
	b, err := os.ReadFile("testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]Expected{}
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	want, ok := all[model]
	if !ok || len(want.Logits) == 0 {
		t.Fatalf("nothing is expected of %s", model)
	}
	return want
}

// bfloat16 holds between float32 arithmetic on bfloat16 weights and PyTorch's own bfloat16 arithmetic on them, which
// rounds to 8 bits after every layer: 3 % of the largest logit.
var bfloat16 = logits.Bound{Relative: 0.03, Floor: 1}

func TestLogits(t *testing.T) {
	const converted = "../../pytorch-tests/llama/"
	// Weights so large that PyTorch's own logits in float32 are 2e-4 away from its float64's where they are near zero.
	large := logits.Bound{Relative: logits.Float32.Relative, Floor: 1}
	for _, test := range []struct {
		folder, expected string
		bound            logits.Bound
	}{
		{"testdata/tied", "tied", logits.Float32},
		{"testdata/sharded", "sharded", logits.Float32},
		{"testdata/half", "half", logits.Float32},
		{converted + "hf-2shards", "converted", large},
		// The same model as Meta would ship it: joined, renamed and permuted on the way into the record.
		{converted + "meta-2shards", "converted", large},
	} {
		t.Run(test.folder, func(t *testing.T) {
			want := expected(t, test.expected)
			weights, err := Open(t.Context(), test.folder)
			if err != nil {
				t.Fatal(err)
			}
			defer weights.Close()
			got, classes := prompted(t, weights, want.Prompt)
			if err := logits.Same(got, want.Logits, classes, test.bound); err != nil {
				t.Error(err)
			}
			if want.Native != nil {
				if err := logits.Close(got, want.Native, classes, bfloat16); err != nil {
					t.Errorf("arithmetic in bfloat16: %v", err)
				}
			}
		})
	}
}

// prompted returns the logits at every position of a prompt, and how many there are at each.
func prompted(t *testing.T, weights *Weights, prompt []int) (all []float32, classes int) {
	t.Helper()
	text, err := NewText(weights, len(prompt))
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range prompt {
		row, err := text.Add(token)
		if err != nil {
			t.Fatal(err)
		}
		all, classes = append(all, row...), len(row)
	}
	return all, classes
}

func TestCommandPrintsTheLikeliestTokens(t *testing.T) {
	for _, model := range []string{"tied", "sharded"} {
		want := expected(t, model)
		var out strings.Builder
		args := []string{"-weights", "testdata/" + model, "-prompt-ids", joined(want.Prompt, ","), "-n", strconv.Itoa(len(want.Greedy))}
		if err := run(t.Context(), args, &out); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(out.String()); got != joined(want.Greedy, " ") {
			t.Errorf("%s: printed %s, transformers says %v", model, got, want.Greedy)
		}
	}
}

// The end of a text is the last token that is printed.
func TestCommandStopsAtTheEnd(t *testing.T) {
	want := expected(t, "half")
	end := slices.Index(want.Greedy, 49) // eos_token_id of its config
	if end < 0 {
		t.Fatal("the text of this model has no end")
	}
	var out strings.Builder
	if err := run(t.Context(), []string{"-weights", "testdata/half", "-prompt-ids", joined(want.Prompt, ",")}, &out); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(out.String()); got != joined(want.Greedy[:end+1], " ") {
		t.Errorf("printed %s, want %v", got, want.Greedy[:end+1])
	}
}

func joined(ids []int, by string) string {
	var s []string
	for _, id := range ids {
		s = append(s, strconv.Itoa(id))
	}
	return strings.Join(s, by)
}

// Two weights of the same shape that were exchanged are no detail.
func TestSwappedWeights(t *testing.T) {
	want := expected(t, "sharded")
	weights, err := Open(t.Context(), "testdata/sharded")
	if err != nil {
		t.Fatal(err)
	}
	defer weights.Close()
	pairs := 0
	for names, root := range swaps.All(weights.ckpt.Root) {
		if err := weights.Fill(t.Context(), root); err != nil {
			t.Fatal(err)
		}
		got, classes := prompted(t, weights, want.Prompt)
		if logits.Same(got, want.Logits, classes, logits.Float32) == nil {
			t.Errorf("exchanging %s makes no difference", names)
		}
		pairs++
	}
	if pairs < 12 {
		t.Errorf("only %d pairs were exchanged", pairs)
	}
}

func TestRefusals(t *testing.T) {
	weights, err := Open(t.Context(), "testdata/tied")
	if err != nil {
		t.Fatal(err)
	}
	defer weights.Close()
	text, err := NewText(weights, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []int{-1, 96} {
		if _, err := text.Add(token); err == nil {
			t.Errorf("token %d of 96 was taken", token)
		}
	}
	if _, err := text.Add(1); err != nil {
		t.Fatal(err)
	}
	if _, err := text.Add(1); err == nil {
		t.Error("a second token was added where there is room for one")
	}
	scaled := weights.Config
	scaled.Scaling.Type = "yarn"
	if computable(&scaled) == nil {
		t.Error("a scaling that is not computed was taken")
	}
	if err := run(t.Context(), []string{"-weights", "testdata/tied", "-prompt-ids", "1,b"}, new(strings.Builder)); err == nil {
		t.Error("a prompt of letters was taken")
	}
}
