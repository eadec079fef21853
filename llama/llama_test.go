package llama_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/llama"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/tensor"
)

const fixtures = "../pytorch-tests/llama"

type row struct {
	DType  string `json:"dtype"`
	Shape  []int  `json:"shape"`
	SHA256 string `json:"sha256"`
}

type folder struct {
	Meta map[string]row `json:"meta"`
	HF   map[string]row `json:"hf"`
}

func expected(t *testing.T) map[string]folder {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(fixtures, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Folders map[string]folder `json:"folders"`
	}
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Folders) != 6 {
		t.Fatalf("%d folders, want 6", len(all.Folders))
	}
	return all.Folders
}

func open(t *testing.T, dir string) *wick.Checkpoint {
	t.Helper()
	c, err := wick.Open(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// check compares every tensor of a tree with what torch gave, bit for bit.
func check(t *testing.T, root nested.Value, want map[string]row) {
	t.Helper()
	x, err := rules.NewIndex(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Entries) != len(want) {
		t.Errorf("%d tensors, want %d", len(x.Entries), len(want))
	}
	for _, e := range x.Entries {
		w, u := want[e.Name], e.Tensor()
		sum := sha256.New()
		if _, err := u.WriteTo(sum); err != nil {
			t.Fatal(err)
		}
		if u.DType().String() != w.DType || !slices.Equal(u.Shape(), w.Shape) || hex.EncodeToString(sum.Sum(nil)) != w.SHA256 {
			t.Errorf("%s: %s with other values than torch's %s %v", e.Name, u, w.DType, w.Shape)
		}
	}
}

// TestJoinAndNames holds every tensor against torch and against Hugging Face's
// own conversion script, and goes back to Meta's names.
func TestJoinAndNames(t *testing.T) {
	for name, want := range expected(t) {
		t.Run(name, func(t *testing.T) {
			c := open(t, filepath.Join(fixtures, name))
			meta, err := llama.Join(context.Background(), c)
			if err != nil {
				t.Fatal(err)
			}
			check(t, meta, want.Meta)
			hf, err := llama.Names(c, meta, "hf")
			if err != nil {
				t.Fatal(err)
			}
			check(t, cast(t, hf), want.HF)
			back, err := llama.Names(c, hf, "meta")
			if err != nil {
				t.Fatal(err)
			}
			delete(want.Meta, "rope.freqs") // Hugging Face computes it
			check(t, back, want.Meta)
		})
	}
}

// cast gives the dtype that Hugging Face's script loads every model in.
func cast(t *testing.T, root nested.Value) nested.Value {
	t.Helper()
	set, err := rules.Floats(tensor.BF16)
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := set.Apply(root)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// shard is a file that is copied under the name of a shard.
func shard(name string) string { return filepath.Join(fixtures, filepath.FromSlash(name)) }

const params = `{"dim": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2}`

// refusals are the ways in which a folder is wrong: by the name of the shard, the
// file that is copied there.
var refusals = []struct {
	name, params string
	shards       []string
	want         error
	path, record string
}{
	{"no config", "", []string{"meta-2shards/consolidated.00.pth", "meta-2shards/consolidated.01.pth"}, fault.ErrNotFound, "", ""},
	{"half of a model without config", "", []string{"meta-2shards/consolidated.00.pth"}, fault.ErrNotFound, "", ""},
	{"half of Llama 3 without config", "", []string{"meta-3style/consolidated.00.pth"}, fault.ErrNotFound, "", ""},
	{"config that is a list", "[]", []string{"meta-1shard/consolidated.00.pth"}, fault.ErrMalformed, "", "params.json"},
	{"config with a text for a number", `{"dim": "16"}`, []string{"meta-1shard/consolidated.00.pth"}, fault.ErrMalformed, "", "params.json"},
	{"config of fewer than no layers", `{"dim": 16, "n_layers": -1, "n_heads": 4}`, []string{"meta-1shard/consolidated.00.pth"}, fault.ErrMalformed, "", "params.json"},
	{"config of endless heads", `{"dim": 16, "n_heads": 4, "head_dim": 500000000}`, []string{"meta-1shard/consolidated.00.pth"}, fault.ErrLimit, "", "params.json"},
	{"config is no JSON", "{", []string{"meta-2shards/consolidated.00.pth", "meta-2shards/consolidated.01.pth"}, fault.ErrMalformed, "", "params.json"},
	{"config without heads", `{"dim": 16}`, []string{"meta-2shards/consolidated.00.pth", "meta-2shards/consolidated.01.pth"}, fault.ErrMalformed, "", "params.json"},
	{"heads do not divide the width", `{"dim": 16, "n_heads": 3}`, []string{"meta-2shards/consolidated.00.pth", "meta-2shards/consolidated.01.pth"}, fault.ErrMalformed, "", "params.json"},
	{"config of a wider model", `{"dim": 64, "n_layers": 2, "n_heads": 4}`, []string{"meta-2shards/consolidated.00.pth", "meta-2shards/consolidated.01.pth"},
		fault.ErrMismatch, "tok_embeddings.weight", "consolidated.00.pth"},
	{"config of a deeper model", `{"dim": 16, "n_layers": 3, "n_heads": 4, "n_kv_heads": 2}`, []string{"meta-2shards/consolidated.00.pth", "meta-2shards/consolidated.01.pth"},
		fault.ErrMismatch, "layers.2.attention.wq.weight", "consolidated.00.pth"},
	{"config of a shallower model", `{"dim": 16, "n_layers": 1, "n_heads": 4, "n_kv_heads": 2}`, []string{"meta-2shards/consolidated.00.pth", "meta-2shards/consolidated.01.pth"},
		fault.ErrUnsupported, "layers.1.attention.wq.weight", "consolidated.00.pth"},
	{"config of a model with other heads", `{"dim": 16, "n_layers": 2, "n_heads": 4}`, []string{"meta-2shards/consolidated.00.pth", "meta-2shards/consolidated.01.pth"},
		fault.ErrMismatch, "layers.0.attention.wk.weight", "consolidated.01.pth"},
	{"a shard few", params, []string{"meta-2shards/consolidated.00.pth"}, fault.ErrMismatch, "tok_embeddings.weight", "consolidated.00.pth"},
	{"a shard few of Llama 3", params, []string{"meta-3style/consolidated.00.pth"}, fault.ErrMismatch, "layers.0.attention.wq.weight", "consolidated.00.pth"},
	{"a shard many", params, []string{"meta-2shards/consolidated.00.pth", "meta-2shards/consolidated.01.pth", "meta-2shards/consolidated.01.pth"},
		fault.ErrMismatch, "tok_embeddings.weight", "consolidated.00.pth"},
	{"a shard many of Llama 3", params, []string{"meta-3style/consolidated.00.pth", "meta-3style/consolidated.01.pth", "meta-3style/consolidated.01.pth"},
		fault.ErrMismatch, "layers.0.attention.wq.weight", "consolidated.02.pth"},
	{"two models", params, []string{"meta-2shards/consolidated.00.pth", "meta-3style/consolidated.01.pth"}, fault.ErrMismatch, "tok_embeddings.weight", "consolidated.01.pth"},
	{"a whole model as a shard", params, []string{"meta-2shards/consolidated.00.pth", "meta-1shard/consolidated.00.pth"},
		fault.ErrMismatch, "tok_embeddings.weight", "consolidated.01.pth"},
	{"another norm", params, []string{"meta-2shards/consolidated.00.pth", "broken-shards/norm.01.pth"}, fault.ErrMismatch, "layers.1.ffn_norm.weight", "consolidated.01.pth"},
	{"another dtype", params, []string{"meta-2shards/consolidated.00.pth", "broken-shards/dtype.01.pth"},
		fault.ErrMismatch, "layers.0.feed_forward.w1.weight", "consolidated.01.pth"},
	{"a parameter too few in one", params, []string{"meta-2shards/consolidated.00.pth", "broken-shards/lacks.01.pth"},
		fault.ErrMismatch, "layers.1.attention.wo.weight", "consolidated.01.pth"},
	{"a parameter too few in the first", params, []string{"broken-shards/lacks.00.pth", "meta-2shards/consolidated.01.pth"},
		fault.ErrMismatch, "layers.1.attention.wo.weight", "consolidated.00.pth"},
	{"a parameter too few in all", params, []string{"broken-shards/lacks.00.pth", "broken-shards/lacks.01.pth"},
		fault.ErrMismatch, "layers.1.attention.wo.weight", "consolidated.00.pth"},
	{"a parameter that no rule knows", params, []string{"broken-shards/unknown.00.pth", "broken-shards/unknown.01.pth"},
		fault.ErrUnsupported, "layers.0.attention.gate.weight", "consolidated.00.pth"},
	{"an axis that does not divide", params, []string{"broken-shards/uneven.00.pth", "broken-shards/uneven.01.pth", "broken-shards/uneven.02.pth"},
		fault.ErrMismatch, "tok_embeddings.weight", "consolidated.02.pth"},
}

// TestJoinRefuses holds one error for each way in which a folder is wrong.
func TestJoinRefuses(t *testing.T) {
	for _, tt := range refusals {
		t.Run(tt.name, func(t *testing.T) {
			_, err := llama.Join(t.Context(), open(t, assemble(t, tt.params, tt.shards)))
			var e *fault.Error
			if !errors.Is(err, tt.want) || !errors.As(err, &e) || e.Path != tt.path || e.Record != tt.record {
				t.Errorf("%v, want %v on %q in %q", err, tt.want, tt.path, tt.record)
			}
		})
	}
}

// assemble makes a folder of shards.
func assemble(t *testing.T, params string, shards []string) string {
	t.Helper()
	dir := t.TempDir()
	for i, from := range shards {
		b, err := os.ReadFile(shard(from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("consolidated.%02d.pth", i)), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if params != "" {
		if err := os.WriteFile(filepath.Join(dir, "params.json"), []byte(params), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// What Names cannot do names the parameter.
func TestNamesRefuse(t *testing.T) {
	c := open(t, filepath.Join(fixtures, "meta-2shards"))
	vector := func(name string) nested.Value {
		m := nested.NewMap("dict")
		if err := m.Set(nested.String(name), &nested.Tensor{Tensor: tensor.Of(make([]float32, 6), 6)}); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, tt := range []struct {
		root  nested.Value
		names string
		want  error
		path  string
	}{
		{vector("norm.weight"), "facebook", fault.ErrUsage, ""},
		{vector("fc.weight"), "hf", fault.ErrMismatch, "fc.weight"},
		{vector("module.norm.weight"), "hf", fault.ErrMismatch, "module.norm.weight"},
		{c.Root, "hf", fault.ErrMismatch, "consolidated.00.pth.tok_embeddings.weight"},
		{vector("layers.0.attention.gate.weight"), "hf", fault.ErrMismatch, "layers.0.attention.gate.weight"},
		{vector("layers.0.attention.wq.weight"), "hf", fault.ErrMismatch, "layers.0.attention.wq.weight"},
	} {
		_, err := llama.Names(c, tt.root, tt.names)
		var e *fault.Error
		if !errors.Is(err, tt.want) || !errors.As(err, &e) || e.Path != tt.path {
			t.Errorf("%v, want %v on %q", err, tt.want, tt.path)
		}
	}
}

// TestRenameRefuses holds what is said when the config, or a parameter, is of
// another model, under both kinds of names: parameter, file and both sides.
func TestRenameRefuses(t *testing.T) {
	for _, tt := range []struct {
		folder, config, want string
		path, record, need   string
	}{
		{"hf-2shards", `{"hidden_size": 32, "num_attention_heads": 4}`, "bfloat16 [32, 16]", "lm_head.weight", "model.safetensors", "[*, 32], says params.json"},
		{"hf-2shards", `{"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 8}`,
			"bfloat16 [8, 16]", "model.layers.0.self_attn.k_proj.weight", "model.safetensors", "[16, 16], says params.json"},
		{"hf-2shards", `{"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2}`,
			"layer 1, counted from 0", "model.layers.1.input_layernorm.weight", "model.safetensors", "1 layer, says params.json"},
		{"hf-2shards", `{"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2}`,
			"no such tensor", "model.layers.2.self_attn.q_proj.weight", "", "3 layers, says params.json"},
		{"meta-1shard", `{"dim": 16, "n_layers": 2, "n_heads": 8, "n_kv_heads": 8}`,
			"bfloat16 [8, 16]", "layers.0.attention.wk.weight", "consolidated.00.pth", "[16, 16], says params.json"},
		{"meta-1shard", `{"dim": 16, "n_layers": 2, "n_heads": 2, "n_kv_heads": 1}`, "bfloat16 [2]", "rope.freqs", "consolidated.00.pth", "[4], says params.json"},
		{"meta-1shard", `{"dim": 16, "n_layers": 4, "n_heads": 4, "n_kv_heads": 2}`, "no such tensor", "layers.2.attention.wq.weight", "", "4 layers, says params.json"},
	} {
		c := open(t, filepath.Join(fixtures, tt.folder))
		root := c.Root
		if m, ok := root.(*nested.Map); ok && tt.folder == "meta-1shard" {
			root, _ = m.Lookup("consolidated.00.pth")
		}
		config := func(string, int64) ([]byte, error) { return []byte(tt.config), nil }
		names := map[bool]string{true: "hf", false: "meta"}[tt.folder == "meta-1shard"]
		_, err := llama.Rename(root, config, names)
		var e *fault.Error
		if !errors.As(err, &e) || e.Kind != fault.Mismatch || e.Found != tt.want || e.Path != tt.path || e.Record != tt.record || e.Need != tt.need {
			t.Errorf("%s: %v, want %s, %s: %s; %s", tt.config, err, tt.record, tt.path, tt.want, tt.need)
		}
	}
}

// One shard that is all of its model is the state dict, config or not.
func TestJoinAlone(t *testing.T) {
	for name, want := range expected(t) {
		if name != "meta-1shard" && name != "meta-tied" {
			continue
		}
		root, err := llama.Join(t.Context(), open(t, assemble(t, "", []string{name + "/consolidated.00.pth"})))
		if err != nil {
			t.Fatal(err)
		}
		check(t, root, want.Meta)
	}
}
