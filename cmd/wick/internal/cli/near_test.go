package cli

import (
	"strings"
	"testing"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// A name that is nearly there, or is there as something else, is not just denied.
func TestNamesThatAreAlmostThere(t *testing.T) {
	x := lazy(tensor.Of([]float32{1, 2, 3, 4}, 2, 2))
	trees := map[string]nested.Value{"m.pt": mapOf(t,
		str("model"), mapOf(t, str("backbone.conv1.weight"), x, str("backbone.conv1.bias"), x),
		str("epoch"), nested.Int(3),
		str("schedulers"), nested.NewList("list"),
		str("config"), &nested.Opaque{Class: "m.Config", Reason: "class"},
		str("coo"), &nested.Opaque{
			Class: "torch.Tensor", Reason: "torch.sparse_coo",
			Members: mapOf(t, nested.Component("indices"), x, nested.Component("values"), x),
		},
	)}
	for line, want := range map[string]string{
		"show m.pt epoch":                            "epoch is no tensor but a value: 3 (wick tree shows values)",
		"show m.pt schedulers":                       "schedulers is no tensor but a value: []",
		"show m.pt config":                           "config is no tensor but an object of m.Config",
		"extract m.pt coo -o x.npy":                  "coo is a torch.sparse_coo tensor, which is several; need one of coo#indices, coo#values (wick convert --densify makes",
		"show m.pt modol":                            "no tensor is called modol",
		"ls m.pt modol":                              "nothing is called modol (did you mean model?)",
		"tree m.pt conf1":                            "nothing is called conf1 (did you mean config?)",
		"tree m.pt bakcbone":                         "nothing is called bakcbone (did you mean **.backbone?)",
		"convert --include modol m.pt x.safetensors": "did you mean model?",
		"convert --rules lightening m.pt x.cbor":     "did you mean lightning? the sets are ",
		"gen --json m.pt":                            "gen has no --json",
		"gen --typ X m.pt":                           "unknown flag: --typ (did you mean --type?)",
		"show --slice ...,... m.pt model.backbone.conv1.weight": "more than one ellipsis",
	} {
		got := runTrees(t.Context(), trees, strings.Fields(line)...)
		if got.code != 2 || got.out != "" || !strings.Contains(got.err, want) {
			t.Errorf("%s: exit %d, %s; want %s", line, got.code, got.err, want)
		}
	}
}
