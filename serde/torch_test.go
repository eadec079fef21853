package serde_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/pytorch"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/tensor"
)

// open opens a fixture that real PyTorch wrote, and returns what torch itself
// says of it: the SHA-256 of each tensor's packed little-endian bytes.
func open(t *testing.T, folder, file string) (root nested.Value, sums map[string]string) {
	t.Helper()
	dir := filepath.Join("..", "pytorch-tests", folder)
	c, err := pytorch.Open(t.Context(), filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	text, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var expected struct {
		Files map[string]struct {
			Tensors []struct{ Name, SHA256 string } `json:"tensors"`
		} `json:"files"`
	}
	if err := json.Unmarshal(text, &expected); err != nil {
		t.Fatal(err)
	}
	sums = map[string]string{}
	for _, x := range expected.Files[file].Tensors {
		sums[x.Name] = x.SHA256
	}
	if len(sums) == 0 {
		t.Fatalf("torch says nothing of %s", file)
	}
	return c.Root, sums
}

func sum(t *testing.T, x *tensor.Tensor) string {
	t.Helper()
	h := sha256.New()
	if _, err := tensor.Run(t.Context(), []tensor.Move{{From: x, To: tensor.Stream(h)}}); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

type basic struct {
	Conv1, Conv2 nn.Conv2d[float32]
	BN1, BN2     nn.BatchNorm2d[float32]
	Downsample   *struct {
		Conv nn.Conv2d[float32]      `torch:"0"`
		BN   nn.BatchNorm2d[float32] `torch:"1"`
	}
}

type resNet struct {
	Conv1                          nn.Conv2d[float32]
	BN1                            nn.BatchNorm2d[float32]
	Layer1, Layer2, Layer3, Layer4 []basic
	FC                             nn.Linear[float32]
}

// Every tensor of a ResNet goes into a struct and comes back out of it as
// torch has it.
func TestResNetOfTorch(t *testing.T) {
	for _, file := range []string{"demo-resnet-torch1.13.pt", "demo-resnet-torch2.15.pt"} {
		root, sums := open(t, "demo-resnet", file)
		var net resNet
		if _, err := serde.Unmarshal(t.Context(), root, &net, serde.Key("state_dict")); err != nil {
			t.Fatal(err)
		}
		back, err := serde.Marshal(&net, serde.Prefix("state_dict."))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		err = nested.Walk(back, nested.WalkLimits{}, func(path nested.Path, v nested.Value) error {
			n++
			name := path.String()
			if got := sum(t, v.(nested.Leaf).AsTensor()); got != sums[name] {
				t.Errorf("%s: %s has the sum %s, torch says %q", file, name, got, sums[name])
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n != len(sums) {
			t.Errorf("%s: %d tensors, torch has %d", file, n, len(sums))
		}
	}
}

func TestTiedWeightsOfTorch(t *testing.T) {
	for _, file := range []string{"tied_parameters-torch1.13.pt", "tied_parameters-torch2.15.pt"} {
		root, sums := open(t, "shared", file)
		var model struct {
			Emb  nn.Embedding[float32]
			Head nn.Linear[float32]
		}
		r, err := serde.Unmarshal(t.Context(), root, &model, serde.Shared())
		if err != nil {
			t.Fatal(err)
		}
		if &model.Emb.Weight.Data[0] != &model.Head.Weight.Data[0] || r.Allocated != 5*3*4 {
			t.Errorf("%s: the tied weights take %d bytes", file, r.Allocated)
		}
		if got := sum(t, model.Head.Weight.Tensor()); got != sums["head.weight"] {
			t.Errorf("%s: sum %s, torch says %q", file, got, sums["head.weight"])
		}
	}
}

// Views of one storage that are not the same are not tied.
func TestViewsOfOneStorageOfTorch(t *testing.T) {
	root, sums := open(t, "shared", "tied-torch2.15.pt")
	var model struct {
		Wte, View, O1, O2, All tensor.Array[float32]
		Head                   tensor.Array[float32] `torch:"lm_head"`
		T                      tensor.Array[float32]
	}
	if _, err := serde.Unmarshal(t.Context(), root, &model, serde.Shared()); err != nil {
		t.Fatal(err)
	}
	if &model.Wte.Data[0] != &model.Head.Data[0] || &model.Wte.Data[0] == &model.View.Data[0] {
		t.Error("wte and lm_head are the same tensor, wte and view are not")
	}
	for name, x := range map[string]tensor.Array[float32]{"wte": model.Wte, "view": model.View, "o1": model.O1, "o2": model.O2, "all": model.All, "lm_head": model.Head, "t": model.T} {
		if got := sum(t, x.Tensor()); got != sums[name] {
			t.Errorf("%s: sum %s, torch says %q", name, got, sums[name])
		}
	}
}

// The gates of an LSTM are taken apart in tags.
func TestLSTMOfTorch(t *testing.T) {
	root, sums := open(t, "shared", "flat_lstm-torch2.15.pt")
	var whole nn.LSTM[float32]
	if _, err := serde.Unmarshal(t.Context(), root, &whole); err != nil {
		t.Fatal(err)
	}
	if got := sum(t, whole.WeightIH.Tensor()); got != sums["weight_ih_l0"] {
		t.Errorf("sum %s, torch says %q", got, sums["weight_ih_l0"])
	}
	var gates struct {
		Input  tensor.Array[float32] `torch:"weight_ih_l0 | chunk 0 0 of 4"`
		Forget tensor.Array[float32] `torch:"weight_ih_l0 | chunk 0 1 of 4"`
		Cell   tensor.Array[float32] `torch:"weight_ih_l0 | chunk 0 2 of 4"`
		Output tensor.Array[float32] `torch:"weight_ih_l0 | chunk 0 3 of 4"`
	}
	if _, err := serde.Unmarshal(t.Context(), root, &gates, serde.AllowUnexpected()); err != nil {
		t.Fatal(err)
	}
	back, err := serde.Marshal(&gates)
	if err != nil {
		t.Fatal(err)
	}
	joined, _ := back.(*nested.Map).Lookup("weight_ih_l0")
	if got := sum(t, joined.(nested.Leaf).AsTensor()); got != sums["weight_ih_l0"] {
		t.Errorf("joined again: sum %s, torch says %q", got, sums["weight_ih_l0"])
	}
}

func TestLightningOfTorch(t *testing.T) {
	set, err := rules.Named("lightning")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"lightning-torch1.13.ckpt", "lightning-torch2.15.ckpt"} {
		root, sums := open(t, "lightning", file)
		var model map[string]tensor.Array[float32]
		if _, err := serde.Unmarshal(context.Background(), root, &model, serde.Rules(set)); err != nil {
			t.Fatal(err)
		}
		if len(model) == 0 {
			t.Errorf("%s: no tensors", file)
		}
		for name, x := range model {
			got, want := sum(t, x.Tensor()), sums["state_dict."+name]
			if want == "" {
				want = sums["state_dict.model."+name]
			}
			if got != want {
				t.Errorf("%s: %s has the sum %s, torch says %q", file, name, got, want)
			}
		}
	}
}
