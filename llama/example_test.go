package llama_test

import (
	"context"
	"fmt"
	"log"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/llama"
	"github.com/wick-ml/wick/rules"
)

func try[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// shape finds a tensor of a tree.
func shape(index *rules.Index, name string) []int {
	return index.Entries[try(index.Tensors(rules.NameOf(name)))[0]].Tensor().Shape()
}

// Meta's shards hold a slice of every tensor; joined they are one state dict,
// and no byte has moved.
func ExampleJoin() {
	ctx := context.Background()
	c := try(wick.Open(ctx, "../pytorch-tests/llama/meta-2shards"))
	defer c.Close()
	root := try(llama.Join(ctx, c))
	fmt.Println(shape(try(rules.NewIndex(root)), "layers.0.attention.wq.weight"))

	renamed := try(llama.Names(c, root, "hf"))
	fmt.Println(shape(try(rules.NewIndex(renamed)), "model.layers.0.self_attn.q_proj.weight"))
	// Output:
	// [16 16]
	// [16 16]
}

// PlanJoin is Join in two steps: what must be equal in all shards is compared
// apart.
func ExamplePlanJoin() {
	ctx := context.Background()
	c := try(wick.Open(ctx, "../pytorch-tests/llama/meta-2shards"))
	defer c.Close()
	joined := try(llama.PlanJoin(c, c.Beside))
	fmt.Println(joined.Check(ctx))
	// Output: <nil>
}

func ExampleReadConfig() {
	c := try(wick.Open(context.Background(), "../pytorch-tests/llama/meta-2shards"))
	defer c.Close()
	config := try(llama.ReadConfig(c.Beside))
	fmt.Println(config.File, config.Dim, config.Heads, config.KVHeads)

	root := try(llama.Join(context.Background(), c))
	back := try(llama.Rename(try(llama.Rename(root, c.Beside, "hf")), c.Beside, "meta"))
	fmt.Println(shape(try(rules.NewIndex(back)), "norm.weight"))
	// Output:
	// params.json 16 4 2
	// [16]
}

// The rules behind other names say where each tensor comes from.
func ExampleRenameRules() {
	c := try(wick.Open(context.Background(), "../pytorch-tests/llama/meta-2shards"))
	defer c.Close()
	root := try(llama.Join(context.Background(), c))
	for _, set := range try(llama.RenameRules(root, c.Beside, "hf")) {
		_, report, err := set.Apply(root)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(report.Made[0].From, report.Made[0].To, report.Dropped)
	}
	// Output:
	// [tok_embeddings.weight] model.embed_tokens.weight [rope.freqs]
}
