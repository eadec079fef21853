package rules_test

import (
	"fmt"
	"log"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/tensor"
)

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// small is {"model": {"fc.weight": …, "fc.bias": …}, "epoch": 3}.
func small() nested.Value {
	state, root := nested.NewMap("dict"), nested.NewMap("dict")
	for _, err := range []error{
		state.Set(nested.String("fc.weight"), &nested.Tensor{Tensor: tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 2, 3)}),
		state.Set(nested.String("fc.bias"), &nested.Tensor{Tensor: tensor.Of([]float32{7, 8}, 2)}),
		root.Set(nested.String("model"), state),
		root.Set(nested.String("epoch"), nested.Int(3)),
	} {
		if err != nil {
			log.Fatal(err)
		}
	}
	return root
}

// A set of statements makes a new tree of an old one, without reading a byte.
func ExampleParse() {
	set := must(rules.Parse("my.rules", "key model\nfc.t = fc.weight | transpose\nrest keep"))
	root, report, err := set.Apply(small())
	if err != nil {
		log.Fatal(err)
	}
	index := must(rules.NewIndex(root))
	for _, e := range index.Entries {
		fmt.Println(e.Name, e.Tensor())
	}
	fmt.Println(len(report.Made), "made")
	// Output:
	// fc.t float32 [3, 2]
	// fc.bias float32 [2]
	// 1 made
}

// Sets come with wick, can be merged, and can be built in Go.
func ExampleMerge() {
	fmt.Println(rules.Names()[:2])
	fmt.Println(len(must(rules.Named("gamma-beta")).Statements) > 0)
	rename := must(rules.NewRename(`^model\.`, ""))
	set := rules.Merge(&rules.Set{Statements: []rules.Statement{rename}}, must(rules.Floats(tensor.F16)))
	root, _, err := set.Apply(small())
	if err != nil {
		log.Fatal(err)
	}
	index := must(rules.NewIndex(root))
	found := must(index.Tensors(rules.NameOf("fc.bias")))
	fmt.Println(index.Entries[found[0]].Tensor())
	// Output:
	// [ema-averaged ema-timm]
	// true
	// float16 [2]
}

// Patterns match flat names: globs with captures, or regular expressions.
func ExampleParsePattern() {
	p := must(rules.ParsePattern("layers.{i}.**"))
	fmt.Println(p.Match("layers.3.mlp.up.weight"))
	re := must(rules.ParsePattern(`/^layers\.\d+$/`))
	_, ok := re.Match("layers.3")
	fmt.Println(ok, rules.Natural("layer2", "layer10") < 0)
	// Output:
	// map[i:3] true
	// true true
}

// A struct tag is an expression and flags.
func ExampleParseField() {
	f := must(rules.ParseField("fc.weight | transpose, shape 512 1000, optional"))
	fmt.Println(f.Expr, f.Flags.Optional, len(f.Flags.Shape), f.Flags.Shape[0].String() == rules.Size(512).String())
	// Output: fc.weight | transpose true 2 true
}

// Expressions can be read backwards: parts of one tensor become the whole.
func ExampleJoinParts() {
	var parts []rules.Part
	for _, text := range []string{"qkv | narrow 0 0:1", "qkv | narrow 0 1:2"} {
		parts = append(parts, must(must(rules.ParseExpr(text)).Invert(tensor.Of([]float32{1, 2}, 1, 2), nil)))
	}
	fmt.Println(must(rules.JoinParts(parts)).Shape())
	// Output: [2 2]
}
