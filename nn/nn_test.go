package nn_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/tensor"
)

// modulesJSON is what torch says of its modules; testdata/generate.py wrote it.
//
//go:embed testdata/modules.json
var modulesJSON []byte

type described struct {
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
}

// records gives the struct for each module of modules.json.
var records = map[string]any{
	"Linear": &nn.Linear[float32]{}, "Linear without bias": &nn.Linear[float32]{}, "Bilinear": &nn.Bilinear[float32]{},
	"Conv1d": &nn.Conv1d[float32]{}, "Conv2d": &nn.Conv2d[float32]{}, "Conv2d without bias": &nn.Conv2d[float32]{}, "Conv3d": &nn.Conv3d[float32]{},
	"ConvTranspose1d": &nn.ConvTranspose1d[float32]{}, "ConvTranspose2d": &nn.ConvTranspose2d[float32]{}, "ConvTranspose3d": &nn.ConvTranspose3d[float32]{},
	"BatchNorm1d": &nn.BatchNorm1d[float32]{}, "BatchNorm2d": &nn.BatchNorm2d[float32]{}, "BatchNorm3d": &nn.BatchNorm3d[float32]{},
	"LayerNorm": &nn.LayerNorm[float32]{}, "LayerNorm without bias": &nn.LayerNorm[float32]{}, "RMSNorm": &nn.RMSNorm[float32]{}, "GroupNorm": &nn.GroupNorm[float32]{},
	"InstanceNorm2d": &nn.InstanceNorm2d[float32]{}, "InstanceNorm2d with statistics": &nn.InstanceNorm2d[float32]{},
	"Embedding": &nn.Embedding[float32]{}, "EmbeddingBag": &nn.EmbeddingBag[float32]{},
	"MultiheadAttention": &nn.MultiheadAttention[float32]{}, "MultiheadAttention without bias": &nn.MultiheadAttention[float32]{},
	"MultiheadAttention with bias of k and v": &nn.MultiheadAttention[float32]{}, "MultiheadAttention of other widths": &nn.CrossAttention[float32]{},
	"RNNCell": &nn.RNNCell[float32]{}, "LSTMCell": &nn.LSTMCell[float32]{}, "GRUCell without bias": &nn.GRUCell[float32]{},
	"RNN": &nn.RNN[float32]{}, "LSTM": &nn.LSTM[float32]{}, "LSTM with projection": &nn.LSTM[float32]{}, "LSTM both ways": &nn.LSTM[float32]{},
	"GRU without bias": &nn.GRU[float32]{}, "PReLU": &nn.PReLU[float32]{},
	"TransformerEncoderLayer": &nn.TransformerEncoderLayer[float32]{}, "TransformerDecoderLayer": &nn.TransformerDecoderLayer[float32]{},
}

// tree makes a state dict of the names and shapes that torch gave.
func tree(t *testing.T, names map[string]described) *nested.Map {
	t.Helper()
	m := nested.NewMap("collections.OrderedDict")
	for name, d := range names {
		dtype, ok := tensor.ParseDType(d.DType)
		if !ok {
			t.Fatalf("dtype %s", d.DType)
		}
		n := 1
		for _, s := range d.Shape {
			n *= s
		}
		leaf, err := tensor.Of(make([]float32, n), d.Shape...).Cast(dtype)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Set(nested.String(name), &nested.Tensor{Tensor: leaf, Class: "torch.Tensor"}); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestRecordsHaveTheNamesOfTorch(t *testing.T) {
	var file struct {
		Modules map[string]map[string]described `json:"modules"`
	}
	if err := json.Unmarshal(modulesJSON, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Modules) != len(records) {
		t.Errorf("%d modules, %d records", len(file.Modules), len(records))
	}
	for module, names := range file.Modules {
		record := records[module]
		if record == nil {
			t.Errorf("%s has no record", module)
			continue
		}
		r, err := serde.Unmarshal(context.Background(), tree(t, names), record)
		if err != nil {
			t.Errorf("%s: %v", module, err)
			continue
		}
		if len(r.Plan.Applied) != len(names) {
			t.Errorf("%s: %d of %d names applied", module, len(r.Plan.Applied), len(names))
		}
		back, err := serde.Marshal(record)
		if err != nil {
			t.Errorf("%s: %v", module, err)
			continue
		}
		same(t, module, back, names)
	}
}

// same compares the tree of a record with torch's names and shapes.
func same(t *testing.T, module string, root nested.Value, names map[string]described) {
	t.Helper()
	n := 0
	err := nested.Walk(root, nested.WalkLimits{}, func(path nested.Path, v nested.Value) error {
		want, ok := names[path.String()]
		n++
		if leaf, isLeaf := v.(nested.Leaf); isLeaf && fmt.Sprint(leaf.AsTensor().Shape()) != fmt.Sprint(want.Shape) {
			t.Errorf("%s: %s has shape %v, want %v", module, path, leaf.AsTensor().Shape(), want.Shape)
		}
		if !ok {
			t.Errorf("%s: torch has no %s", module, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n != len(names) {
		t.Errorf("%s: %d names written, want %d", module, n, len(names))
	}
}

// A record is a part of a struct that serde fills.
func Example() {
	type Net struct {
		Conv1 nn.Conv2d[float32]
		FC    nn.Linear[float32]
	}
	state := nested.NewMap("dict")
	for _, leaf := range []struct {
		name  string
		shape []int
	}{{"conv1.weight", []int{2, 1, 3, 3}}, {"fc.weight", []int{4, 2}}, {"fc.bias", []int{4}}} {
		n := 1
		for _, s := range leaf.shape {
			n *= s
		}
		weights := nested.F32s{Array: tensor.Array[float32]{Shape: leaf.shape, Data: make([]float32, n)}}
		if err := state.Set(nested.String(leaf.name), weights); err != nil {
			fmt.Println(err)
			return
		}
	}
	var net Net
	if _, err := serde.Unmarshal(context.Background(), state, &net); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(net.Conv1.Weight.Shape, net.Conv1.Bias.Shape, net.FC.Bias.Shape)
	// Output: [2 1 3 3] [] [4]
}
