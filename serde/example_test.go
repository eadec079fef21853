package serde_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/tensor"
)

// count returns a leaf whose elements count from 0.
func count(shape ...int) nested.Value {
	n := 1
	for _, s := range shape {
		n *= s
	}
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(i)
	}
	return nested.F32s{Array: tensor.Array[float32]{Shape: shape, Data: data}}
}

// dict makes a mapping of alternating names and values.
func dict(kv ...any) nested.Value {
	m := nested.NewMap("dict")
	for i := 0; i < len(kv); i += 2 {
		name, _ := kv[i].(string)
		value, _ := kv[i+1].(nested.Value)
		if err := m.Set(nested.String(name), value); err != nil {
			fmt.Println(err)
		}
	}
	return m
}

// fill fills v and prints an error.
func fill(root nested.Value, v any, opts ...serde.Option) {
	if _, err := serde.Unmarshal(context.Background(), root, v, opts...); err != nil {
		fmt.Println(err)
	}
}

// names prints the names of a tree with the shapes of its tensors.
func names(root nested.Value) {
	err := nested.Walk(root, nested.WalkLimits{}, func(path nested.Path, v nested.Value) error {
		if leaf, ok := v.(nested.Leaf); ok {
			fmt.Println(path, leaf.AsTensor().Shape())
		} else {
			fmt.Println(path, nested.Repr(v))
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
}

func ExampleUnmarshal() {
	type Linear struct {
		Weight tensor.Array[float32]
		Bias   []float32
	}
	type Net struct {
		Layers []Linear
		Epoch  int
	}
	root := dict("layers.0.weight", count(2, 2), "layers.0.bias", count(2), "layers.1.weight", count(1, 2), "layers.1.bias", count(1), "epoch", nested.Int(3))
	var net Net
	report, err := serde.Unmarshal(context.Background(), root, &net)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(net.Layers), net.Layers[1].Weight.Shape, net.Epoch, report.Copied, "bytes copied")
	// Output: 2 [1 2] 3 36 bytes copied
}

// A plan shows all that will happen, and all that does not fit, before a
// tensor is read.
func ExampleNewPlan() {
	type Linear struct{ Weight, Bias []float32 }
	plan, err := serde.NewPlan(dict("wieght", count(2, 2), "bias", count(2)), &Linear{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range plan.Applied {
		fmt.Println("applied", row.Name, row.From, row.To, row.How, row.Bytes)
	}
	for _, row := range plan.Missing {
		fmt.Println("missing", row.Name, "did you mean", row.Near)
	}
	for _, row := range plan.Unexpected {
		fmt.Println("unexpected", row.Name, row.From)
	}
	var fit *serde.FitError
	fmt.Println(errors.As(plan.Err(), &fit))
	// Output:
	// applied bias float32 [2] []float32 copy 8
	// missing weight did you mean wieght
	// unexpected wieght float32 [2, 2]
	// true
}

func ExamplePlan_Compare() {
	var v struct{ Weight []float32 }
	before, err := serde.NewPlan(dict("weight", count(2)), &v)
	if err != nil {
		fmt.Println(err)
		return
	}
	after, err := serde.NewPlan(dict("weight", count(3)), &v)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range after.Compare(before) {
		fmt.Println(c.Name, c.Other.From, "→", c.Row.From)
	}
	// Output: weight float32 [2] → float32 [3]
}

// The way back reads the tags backwards: parts are joined, what was transposed
// is transposed.
func ExampleMarshal() {
	type Attention struct {
		Query tensor.Array[float32] `torch:"qkv.weight | chunk 0 0 of 2"`
		Key   tensor.Array[float32] `torch:"qkv.weight | chunk 0 1 of 2"`
		Out   tensor.Array[float32] `torch:"out.weight | transpose"`
		Heads int
	}
	var a Attention
	fill(dict("qkv.weight", count(4, 3), "out.weight", count(5, 2), "heads", nested.Int(8)), &a)
	fmt.Println(a.Query.Shape, a.Key.Shape, a.Out.Shape)
	root, err := serde.Marshal(&a)
	if err != nil {
		fmt.Println(err)
		return
	}
	names(root)
	// Output:
	// [2 3] [2 3] [2 5]
	// heads 8
	// qkv.weight [4 3]
	// out.weight [5 2]
}

func Example_names() {
	var v struct {
		RunningMean []float32 // running_mean
		WeightIH    []float32 // weight_ih
		QProj       []float32 // q_proj
		Other       []float32 `torch:"attn.other"`
		Not         []float32 `torch:"-"`
	}
	fill(dict("running_mean", count(1), "weight_ih", count(2), "q_proj", count(3), "attn.other", count(4)), &v)
	fmt.Println(len(v.RunningMean), len(v.WeightIH), len(v.QProj), len(v.Other), len(v.Not))
	// Output: 1 2 3 4 0
}

func Example_expressions() {
	var v struct {
		Q []float32             `torch:"in_proj | narrow 0 0:1"`
		K []float32             `torch:"in_proj | select 0 1"`
		W tensor.Array[float32] `torch:"in_proj | transpose"`
		B []float32             `torch:"concat 0 (bias_ih, bias_hh)"`
		E []float32             `torch:"concat 0 (experts.*.w)"`
	}
	fill(dict("in_proj", count(2, 2), "bias_ih", count(1), "bias_hh", count(2), "experts.0.w", count(1), "experts.1.w", count(2)), &v)
	fmt.Println(v.Q, v.K, v.W.Data, v.B, v.E)
	// Output: [0 1] [2 3] [0 2 1 3] [0 0 1] [0 0 1]
}

func Example_optional() {
	var v struct {
		Weight []float32
		Bias   []float32 `torch:", optional"`
		Extra  *float32  // a pointer always is
	}
	fill(dict("weight", count(2)), &v)
	fmt.Println(v.Weight, v.Bias == nil, v.Extra == nil)
	// Output: [0 1] true true
}

func Example_default() {
	var v struct {
		Eps  float64 `torch:", default=1e-5"`
		Name string  `torch:"'model name', default='no name'"`
	}
	fill(dict(), &v)
	fmt.Println(v.Eps, v.Name)
	// Output: 1e-05 no name
}

func Example_shape() {
	var v struct {
		Conv []float32 `torch:"conv, shape 4 * 1"`
	}
	fill(dict("conv", count(4, 2, 1)), &v)
	fmt.Println(len(v.Conv))
	fill(dict("conv", count(2, 4, 1)), &v)
	// Output:
	// 8
	// mismatch: 1 mismatched (conv: float32 [2, 4, 1], need shape [4, *, 1]); need a value for every field and a field for every tensor (allow missing or unexpected ones, rename or exclude; the plan lists all)
}

func Example_bits() {
	halfs := nested.F16s{Array: tensor.Array[tensor.Float16]{Shape: []int{1}, Data: []tensor.Float16{0x3c00}}}
	var v struct {
		Raw   []uint16         `torch:"w, bits"`
		Halfs []tensor.Float16 `torch:"w"`
		Wide  []float32        `torch:"w"`
	}
	fill(dict("w", halfs), &v)
	fmt.Printf("%#x %v %v\n", v.Raw, v.Halfs[0].Float32(), v.Wide)
	// Output: [0x3c00] 1 [1]
}

func Example_inline() {
	type Norm struct{ Weight, Bias []float32 }
	var v struct {
		Norm                          // embedded: weight, bias
		Q    Norm                     `torch:", prefix=q_"` // q_weight, q_bias
		Pair struct{ Gain []float32 } `torch:", inline"`
	}
	fill(dict("weight", count(1), "bias", count(2), "q_weight", count(3), "q_bias", count(4), "gain", count(5)), &v)
	fmt.Println(len(v.Weight), len(v.Bias), len(v.Q.Weight), len(v.Q.Bias), len(v.Pair.Gain))
	// Output: 1 2 3 4 5
}

// In an nn.Sequential, activations have indexes but no parameters.
func Example_gaps() {
	type Linear struct{ Weight []float32 }
	var v struct {
		Closed []Linear  `torch:"mlp, gaps=close"`
		Kept   []*Linear `torch:"mlp, gaps=keep"`
	}
	fill(dict("mlp.0.weight", count(1), "mlp.2.weight", count(2)), &v)
	fmt.Println(len(v.Closed), len(v.Kept), v.Kept[1] == nil)
	// Output: 2 3 true
}

// Memory that the source lends can be used in place, but for fields that will
// be written.
func Example_alias() {
	weights := []float32{1, 2}
	leaf := nested.F32s{Array: tensor.Array[float32]{Shape: []int{2}, Data: weights}}
	var v struct {
		Frozen  []float32 `torch:"w, alias"`
		Trained []float32 `torch:"w, mutable"`
	}
	fill(dict("w", leaf), &v, serde.Alias())
	v.Trained[0] = 9
	fmt.Println(v.Frozen, v.Trained, weights)
	// Output: [1 2] [9 2] [1 2]
}

func Example_mapsAndArrays() {
	type Linear struct{ Weight []float32 }
	var v struct {
		Heads map[string]Linear
		Flat  map[string][]float32
		Fixed [2][2]float32
		Betas [2]float64
		Lazy  *tensor.Tensor
	}
	fill(dict("heads.a.weight", count(1), "heads.b.weight", count(2), "flat.x.y", count(3), "fixed", count(2, 2),
		"betas", nested.NewList("tuple", nested.Float(0.9), nested.Float(0.999)), "lazy", count(4)), &v)
	fmt.Println(len(v.Heads), len(v.Flat["x.y"]), v.Fixed, v.Betas, v.Lazy.Shape())
	// Output: 2 3 [[0 1] [2 3]] [0.9 0.999] [4]
}

func ExampleKey() {
	var v struct{ W []float32 }
	fill(dict("state_dict", dict("w", count(2)), "epoch", nested.Int(3)), &v, serde.Key("state_dict"))
	fmt.Println(v.W)
	// Output: [0 1]
}

func ExampleRename() {
	var v struct{ Weight []float32 }
	fill(dict("module.gamma", count(2)), &v, serde.Rename(`^module\.`, ""), serde.Rename("gamma$", "weight"))
	fmt.Println(v.Weight)
	// Output: [0 1]
}

func ExampleInclude() {
	var v map[string]*tensor.Tensor
	fill(dict("encoder.a", count(1), "encoder.b.c", count(1), "decoder.a", count(1)), &v, serde.Include("encoder"), serde.Exclude("**.c"))
	for name := range v {
		fmt.Println(name)
	}
	// Output: encoder.a
}

func ExamplePrefix() {
	var v struct{ W []float32 }
	fill(dict("encoder.w", count(2), "decoder.w", count(3)), &v, serde.Prefix("encoder."))
	fmt.Println(v.W)
	// Output: [0 1]
}

func ExampleRules() {
	set, err := rules.Parse("mine.rules", `
		strip module.
		q = qkv | chunk 0 0 of 3
	`)
	if err != nil {
		fmt.Println(err)
		return
	}
	var v struct{ Q []float32 }
	fill(dict("module.qkv", count(3, 2)), &v, serde.Rules(set))
	fmt.Println(v.Q)
	// Output: [0 1]
}

// Tied weights are read once; with Shared they are one slice.
func ExampleShared() {
	tied := &nested.Tensor{Tensor: tensor.Of([]float32{1, 2}), Class: "torch.Tensor"}
	var v struct{ Embed, Head []float32 }
	fill(dict("embed", tied, "head", tied), &v, serde.Shared())
	v.Embed[0] = 5
	fmt.Println(v.Head)
	// Output: [5 2]
}

// An Activation is one of several modules.
type Activation interface{ Name() string }

// PReLU has weights.
type PReLU struct{ Weight []float32 }

// Name is the module's name.
func (PReLU) Name() string { return "prelu" }

// Swish has a slope.
type Swish struct{ Beta []float32 }

// Name is the module's name.
func (*Swish) Name() string { return "swish" }

func ExampleVariants() {
	var v struct{ Act []Activation }
	fill(dict("act.0.weight", count(1), "act.1.beta", count(1)), &v, serde.Variants[Activation](PReLU{}, &Swish{}))
	fmt.Println(v.Act[0].Name(), v.Act[1].Name())
	// Output: prelu swish
}

func ExampleDecode() {
	type Version struct{ Major, Minor int }
	parse := func(_ context.Context, v nested.Value, dst *Version) error {
		s, ok := v.(nested.String)
		if !ok {
			return errors.New("a version is a text")
		}
		_, err := fmt.Sscanf(string(s), "%d.%d", &dst.Major, &dst.Minor)
		return err
	}
	var v struct{ Torch Version }
	fill(dict("torch", nested.String("2.15")), &v, serde.Decode(parse))
	fmt.Println(v.Torch.Major, v.Torch.Minor)
	// Output: 2 15
}
