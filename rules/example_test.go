package rules_test

import (
	"context"
	"fmt"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
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

// dict makes a state dict of names and leaves.
func dict(leaves map[string]nested.Value, order ...string) nested.Value {
	m := nested.NewMap("dict")
	for _, name := range order {
		if err := m.Set(nested.String(name), leaves[name]); err != nil {
			fmt.Println(err)
		}
	}
	return m
}

// show prints the shape and the elements of an expression over w, a matrix
// [2, 3] that counts from 0, and v, a vector [4] that does.
func show(text string) {
	root := dict(map[string]nested.Value{"w": count(2, 3), "v": count(4)}, "w", "v")
	index, err := rules.NewIndex(root)
	if err != nil {
		fmt.Println(err)
		return
	}
	expr, err := rules.ParseExpr(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := expr.Tensor(func(n *rules.Name) ([]*tensor.Tensor, error) {
		found, err := index.Tensors(n)
		var ts []*tensor.Tensor
		for _, i := range found {
			ts = append(ts, index.Entries[i].Tensor())
		}
		return ts, err
	}, rules.Params{"heads": 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	values, err := tensor.Values[float32](context.Background(), t)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.DType(), t.Shape(), values)
}

// apply prints the names and shapes of a small checkpoint after some rules.
func apply(text string) {
	root := nested.NewMap("dict")
	state := dict(map[string]nested.Value{"module.qkv.weight": count(6, 2), "module.norm.gamma": count(2), "steps": nested.Int(7)},
		"module.qkv.weight", "module.norm.gamma", "steps")
	if err := root.Set(nested.String("state_dict"), state); err != nil {
		fmt.Println(err)
		return
	}
	set, err := rules.Parse("example", text)
	if err != nil {
		fmt.Println(err)
		return
	}
	out, report, err := set.Apply(root)
	if err != nil {
		fmt.Println(err)
		return
	}
	index, err := rules.NewIndex(out)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range index.Entries {
		if e := &index.Entries[i]; e.Tensor() != nil {
			fmt.Println(e.Name, e.Tensor().DType(), e.Tensor().Shape())
		} else {
			fmt.Println(e.Name, nested.Repr(e.Value))
		}
	}
	for _, st := range report.Unmatched {
		fmt.Println("matched nothing:", st)
	}
}

// In the examples of operations, w is a matrix [2, 3] and v a vector [4]; both
// count from 0.
func Example_transpose() {
	show("w | transpose")
	show("w | transpose 0 1")
	// Output:
	// float32 [3 2] [0 3 1 4 2 5]
	// float32 [3 2] [0 3 1 4 2 5]
}

func Example_permute() {
	show("w | permute 1 0")
	// Output: float32 [3 2] [0 3 1 4 2 5]
}

func Example_reshape() {
	show("w | reshape 3 -1")
	// Output: float32 [3 2] [0 1 2 3 4 5]
}

func Example_flatten() {
	show("w | flatten")
	show("w | unsqueeze 0 | flatten 0 1")
	// Output:
	// float32 [6] [0 1 2 3 4 5]
	// float32 [2 3] [0 1 2 3 4 5]
}

func Example_unflatten() {
	show("v | unflatten 0 $heads -1")
	// Output: float32 [2 2] [0 1 2 3]
}

func Example_expand() {
	show("v | unsqueeze 0 | expand 2 -1")
	// Output: float32 [2 4] [0 1 2 3 0 1 2 3]
}

func Example_squeeze() {
	show("w | narrow 0 1: | squeeze 0")
	// Output: float32 [3] [3 4 5]
}

func Example_unsqueeze() {
	show("v | unsqueeze 1")
	// Output: float32 [4 1] [0 1 2 3]
}

func Example_narrow() {
	show("v | narrow 0 1:3")
	show("v | narrow 0 -1:")
	// Output:
	// float32 [2] [1 2]
	// float32 [1] [3]
}

func Example_select() {
	show("w | select 1 2")
	// Output: float32 [2] [2 5]
}

func Example_chunk() {
	show("v | chunk 0 1 of 2")
	// Output: float32 [2] [2 3]
}

func Example_cast() {
	show("v | cast int64")
	// Output: int64 [4] [0 1 2 3]
}

func Example_concat() {
	show("concat 0 (w, w | narrow 0 0:1)")
	// Output: float32 [3 3] [0 1 2 3 4 5 0 1 2]
}

func Example_stack() {
	show("stack 0 (v, v)")
	// Output: float32 [2 4] [0 1 2 3 0 1 2 3]
}

// Rotary weights, from the interleaved order of Meta's Llama to the halves of
// transformers.
func Example_rotary() {
	show("v | unflatten 0 1 -1 2 | transpose 1 2 | flatten 0 2")
	// Output: float32 [4] [0 2 1 3]
}

// In the examples of statements, the checkpoint is
//
//	state_dict: module.qkv.weight  float32 [6, 2]
//	            module.norm.gamma  float32 [2]
//	            steps              7
func Example_key() {
	apply("key state_dict")
	// Output:
	// module.qkv.weight float32 [6 2]
	// module.norm.gamma float32 [2]
	// steps 7
}

func Example_rename() {
	apply(`rename /^state_dict\.module\./ -> ""`)
	fmt.Println()
	apply("rename {x...}.gamma -> {x...}.weight")
	// Output:
	// state_dict.steps 7
	// qkv.weight float32 [6 2]
	// norm.gamma float32 [2]
	//
	// state_dict.module.qkv.weight float32 [6 2]
	// state_dict.module.norm.weight float32 [2]
	// state_dict.steps 7
}

func Example_strip() {
	apply("key state_dict; strip module.; strip encoder.")
	// Output:
	// qkv.weight float32 [6 2]
	// norm.gamma float32 [2]
	// steps 7
	// matched nothing: strip encoder.
}

func Example_add() {
	apply("key state_dict; add net.")
	// Output:
	// net.module.qkv.weight float32 [6 2]
	// net.module.norm.gamma float32 [2]
	// net.steps 7
}

func Example_selectNames() {
	apply("key state_dict; select module.norm")
	// Output: module.norm.gamma float32 [2]
}

func Example_drop() {
	apply("key state_dict; drop **.gamma steps")
	// Output: module.qkv.weight float32 [6 2]
}

// Neighbouring assignments see the same tree, so that one tensor can be taken
// apart.
func Example_assign() {
	apply(`
		key state_dict
		drop steps
		{m...}.q = {m...}.qkv.weight | chunk 0 0 of 3
		{m...}.k = {m...}.qkv.weight | chunk 0 1 of 3
		{m...}.v = {m...}.qkv.weight | chunk 0 2 of 3
	`)
	// Output:
	// module.q float32 [2 2]
	// module.k float32 [2 2]
	// module.v float32 [2 2]
	// module.norm.gamma float32 [2]
}

// The flags of assignments choose among the matches, and say that there need
// not be any.
func Example_assignFlags() {
	apply(`
		key state_dict
		{x...} = {x...} | transpose, dims=2, except=**.embed
		rest keep # what follows sees the tensors that were made
		{x...} = {x...} | cast float16, floats
		head = absent, optional
	`)
	// Output:
	// module.qkv.weight float16 [2 6]
	// module.norm.gamma float16 [2]
	// steps 7
	// matched nothing: head = absent, optional
}

func Example_alias() {
	apply("key state_dict; select module.norm; alias tied = module.norm.gamma")
	// Output:
	// module.norm.gamma float32 [2]
	// tied float32 [2]
}

func Example_let() {
	apply("let heads = 3; key state_dict; select module.qkv; w = module.qkv.weight | unflatten 0 $heads -1")
	// Output: w float32 [3 2 2]
}

func Example_rest() {
	apply("key state_dict; w = module.qkv.weight; rest drop")
	fmt.Println()
	apply("key state_dict; w = module.qkv.weight; rest error")
	// Output:
	// w float32 [6 2]
	// steps 7
	//
	// example: module.norm.gamma: mismatch: no rule knows this tensor; need a rule for every tensor (add one, or write rest keep or rest drop)
}

// Errors point at the character.
func ExampleParseExpr() {
	_, err := rules.ParseExpr("fc.weight | transpoze")
	fmt.Println(err)
	// Output: @0xc: usage: the unknown operation "transpoze" at character 13: fc.weight | ▸transpoze (did you mean transpose?)
}

// The gates that PyTorch stacks in one tensor of an LSTM, taken apart by a set and
// joined by its inverse. There are gru-split and qkv-split too.
func ExampleNamed_gates() {
	show := func(v nested.Value, names ...string) nested.Value {
		for _, name := range names {
			set, err := rules.Named(name)
			if err != nil {
				fmt.Println(err)
				return v
			}
			if v, _, err = set.Apply(v); err != nil {
				fmt.Println(err)
				return v
			}
		}
		index, err := rules.NewIndex(v)
		if err != nil {
			fmt.Println(err)
			return v
		}
		for _, e := range index.Entries {
			fmt.Println(e.Name, e.Tensor())
		}
		return v
	}
	cell := dict(map[string]nested.Value{"weight_ih": count(8, 3), "weight_hh": count(8, 2)}, "weight_ih", "weight_hh")
	show(show(cell, "lstm-split"), "lstm-join")
	// Output:
	// weight_ii float32 [2, 3]
	// weight_if float32 [2, 3]
	// weight_ig float32 [2, 3]
	// weight_io float32 [2, 3]
	// weight_hi float32 [2, 2]
	// weight_hf float32 [2, 2]
	// weight_hg float32 [2, 2]
	// weight_ho float32 [2, 2]
	// weight_ih float32 [8, 3]
	// weight_hh float32 [8, 2]
}

// A set prints itself in the grammar that it was parsed from.
func ExampleNamed() {
	set, err := rules.Named("gamma-beta")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(set)
	// Output:
	// rename /(^|\.)gamma$/ -> "${1}weight"
	// rename /(^|\.)beta$/ -> "${1}bias"
}
