// Package llama joins Meta's model-parallel Llama checkpoints into one state
// dict and changes between Meta's, Hugging Face's and llama.cpp's names. What is
// known of the model is data in the grammar of package rules; every tensor is a
// lazy view.
package llama

import (
	"context"
	"crypto/sha256"
	_ "embed" // for the rules
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/tensor"
)

//go:embed join.rules
var joinRules string

// Joined is a planned join of shards.
type Joined struct {
	// Root is the one state dict under Meta's names; its tensors are views.
	Root nested.Value

	file       string
	files      []string // names of the shards
	replicated []copies
}

// copies is a parameter that every shard holds whole.
type copies struct {
	name  string
	parts []*tensor.Tensor
}

// Join returns the one state dict that the consolidated.NN.pth files of c were
// cut from: [PlanJoin] and [Joined.Check] in one.
func Join(ctx context.Context, c *checkpoint.Checkpoint) (nested.Value, error) {
	j, err := PlanJoin(c, c.Beside)
	if err != nil {
		return nil, err
	}
	return j.Root, j.Check(ctx)
}

// PlanJoin plans to join the consolidated.NN.pth files of c, under Meta's names,
// from metadata alone. Beside is asked for the config. It fails with
// [fault.ErrNotFound] without a config beside the weights, unless there is one
// shard, whose shapes say that it is all; naming parameter and shard with
// [fault.ErrMismatch] when the shards are not of one model, not all of it, or not
// of the config's; and with [fault.ErrUnsupported] on a parameter that no rule
// knows.
func PlanJoin(c *checkpoint.Checkpoint, beside checkpoint.Beside) (*Joined, error) {
	set, err := rules.Parse("join.rules", joinRules)
	if err != nil {
		return nil, err
	}
	j := &joiner{set: set, out: &Joined{file: c.Info.Name}}
	if err := j.open(c.Root); err != nil {
		return nil, err
	}
	if j.cfg, err = ReadConfig(beside); err != nil {
		if errors.Is(err, fault.ErrNotFound) && j.alone() {
			return j.out, nil
		}
		return nil, wanting(err, j.shards[0])
	}
	j.params = j.cfg.params()
	return j.out, j.join()
}

// joiner is a checkpoint of shards on its way to one state dict.
type joiner struct {
	cfg    Config
	files  []string
	shards []*rules.Index
	set    *rules.Set
	params rules.Params
	out    *Joined
}

// open lists the shards, which must all have the same names.
func (j *joiner) open(root nested.Value) error {
	m, ok := root.(*nested.Map)
	if !ok || m.Len() == 0 {
		return fault.New(fault.Usage, "a checkpoint without shards").Needs("a folder of consolidated.NN.pth", "")
	}
	for key, shard := range m.All() {
		x, err := rules.NewIndex(shard)
		if err != nil {
			return err
		}
		j.files, j.shards = append(j.files, nested.KeyName(key)), append(j.shards, x)
	}
	j.out.files = j.files
	for i, x := range j.shards {
		for _, e := range x.Entries {
			if len(j.shards[0].Lookup(e.Name)) != 1 {
				return j.mismatch(e.Name, 0, "the shard lacks a parameter of "+j.files[i])
			}
		}
	}
	return nil
}

// alone makes the one shard of a folder without a config the state dict, if it
// shows by itself that it is the whole model: embedding, q and o are as wide as
// the norm, which no shard cuts, says that the model is.
func (j *joiner) alone() bool {
	if len(j.shards) != 1 {
		return false
	}
	size := func(name string, axis int) int {
		at := j.shards[0].Lookup(name)
		if len(at) != 1 || j.shards[0].Entries[at[0]].Tensor() == nil || j.shards[0].Entries[at[0]].Tensor().Dims() <= axis {
			return -1
		}
		return j.shards[0].Entries[at[0]].Tensor().Size(axis)
	}
	dim := size("norm.weight", 0)
	if dim < 0 || size("tok_embeddings.weight", 1) != dim || size("layers.0.attention.wq.weight", 0) != dim || size("layers.0.attention.wo.weight", 1) != dim {
		return false
	}
	j.out.Root = j.shards[0].Root
	return true
}

func (j *joiner) mismatch(name string, shard int, found string) *fault.Error {
	return mismatch(name, j.files[shard], found)
}

func mismatch(name, shard, found string) *fault.Error {
	return fault.New(fault.Mismatch, found).OnPath(name).InRecord(shard).
		Needs("all shards of one model, and its config", "download the folder again")
}

// join makes the one state dict.
func (j *joiner) join() error {
	if err := j.embedAxis(); err != nil {
		return err
	}
	if err := j.complete(); err != nil {
		return err
	}
	out := nested.NewMap("dict")
	for _, e := range j.shards[0].Entries {
		t, err := j.parameter(e.Name)
		if err != nil {
			return err
		}
		if err := out.Set(nested.String(e.Name), &nested.Tensor{Tensor: t, Class: "torch.Tensor"}); err != nil {
			return err
		}
	}
	j.out.Root = out
	return nil
}

// parts are the tensors of one name, one from each shard, which must agree in
// dtype and shape: shards are equal parts.
func (j *joiner) parts(name string) ([]*tensor.Tensor, error) {
	var parts []*tensor.Tensor
	for i, x := range j.shards {
		at := x.Lookup(name)
		if len(at) != 1 || x.Entries[at[0]].Tensor() == nil {
			return nil, j.mismatch(name, i, "no such tensor in the shard")
		}
		t := x.Entries[at[0]].Tensor()
		if i > 0 && (t.DType() != parts[0].DType() || !slices.Equal(t.Shape(), parts[0].Shape())) {
			return nil, j.mismatch(name, i, t.String()+", and in "+j.files[0]+" "+parts[0].String())
		}
		parts = append(parts, t)
	}
	return parts, nil
}

// embedAxis tells by the width of the shard's embedding which axis is cut.
func (j *joiner) embedAxis() error {
	const name = "tok_embeddings.weight"
	parts, err := j.parts(name)
	if err != nil {
		return err
	}
	shape, n := parts[0].Shape(), len(parts)
	switch {
	case len(shape) == 2 && shape[1] == j.cfg.Dim:
		j.params["embed_axis"] = 0
	case len(shape) == 2 && j.cfg.Dim%n == 0 && shape[1] == j.cfg.Dim/n:
		j.params["embed_axis"] = 1
	default:
		return j.mismatch(name, 0, parts[0].String()+" in "+each(n)).
			Needs(fmt.Sprintf("a width of %d, or a share of it for each shard", j.cfg.Dim), "look for missing shards, or for another model's "+j.cfg.File)
	}
	return nil
}

// complete finds a parameter of the config's layers that no shard has.
func (j *joiner) complete() error {
	for _, a := range assigns(j.set) {
		if a.Flags.Optional {
			continue
		}
		layers := 1
		if len(a.Target.Captures()) > 0 {
			layers = j.cfg.Layers
		}
		for i := range layers {
			name := a.Target.Expand(map[string]string{"i": strconv.Itoa(i)})
			if len(j.shards[0].Lookup(name)) == 0 {
				return j.mismatch(name, 0, "no such tensor in the shard").
					Needs("every parameter of the "+strconv.Itoa(j.cfg.Layers)+" layers that "+j.cfg.File+" speaks of", "look for another model's config")
			}
		}
	}
	return nil
}

// parameter is the joined tensor of one name.
func (j *joiner) parameter(name string) (*tensor.Tensor, error) {
	parts, err := j.parts(name)
	if err != nil {
		return nil, err
	}
	for _, a := range assigns(j.set) {
		if captures, ok := a.Target.Match(name); ok && j.inLayers(captures) {
			return j.assemble(a, name, parts)
		}
	}
	return nil, fault.New(fault.Unsupported, "a parameter that the rules of Llama do not know").OnPath(name).InRecord(j.files[0]).
		Needs("Meta's Llama, as "+j.cfg.File+" describes it", "keep the shards apart with wick.KeepShards(), and convert with rules of your own")
}

// inLayers reports whether a layer is one of those that the config counts, or
// the config does not count them.
func (j *joiner) inLayers(captures map[string]string) bool {
	text, ok := captures["i"]
	if !ok {
		return true
	}
	i, err := strconv.Atoi(text)
	return err == nil && strconv.Itoa(i) == text && i >= 0 && (j.cfg.Layers == 0 || i < j.cfg.Layers)
}

// assemble applies the rule that knows the parameter.
func (j *joiner) assemble(a *rules.Assign, name string, parts []*tensor.Tensor) (*tensor.Tensor, error) {
	t := parts[0]
	if a.Expr.Join == nil {
		j.out.replicated = append(j.out.replicated, copies{name, parts})
	} else {
		var err error
		if t, err = a.Expr.Tensor(func(*rules.Name) ([]*tensor.Tensor, error) { return parts, nil }, j.params); err != nil {
			return nil, j.inShard(err, name)
		}
	}
	want, err := a.Flags.WantShape(t.Shape(), j.params)
	if err != nil || want == "" {
		return t, err
	}
	return nil, j.mismatch(name, len(j.files)-1, t.String()+" when "+joins(len(j.files))).
		Needs(want, "look for missing shards, or for another model's "+j.cfg.File)
}

// inShard names parameter and shard in an error of the algebra.
func (j *joiner) inShard(err error, name string) error {
	return fault.InRecord(fault.OnPath(err, name), j.files[0])
}

func each(n int) string {
	if n == 1 {
		return "the one shard"
	}
	return "each of " + strconv.Itoa(n) + " shards"
}

func joins(n int) string {
	if n == 1 {
		return "the one shard is all"
	}
	return strconv.Itoa(n) + " shards are joined"
}

// Check reads what every shard holds whole, the norms, in one run, and fails
// with [fault.ErrMismatch], naming parameter and shard, unless all copies are
// equal bit for bit. The checkpoint must still be open.
func (j *Joined) Check(ctx context.Context, opts ...tensor.RunOption) error {
	if len(j.files) == 1 {
		return nil
	}
	var moves []tensor.Move
	var sums []hash.Hash
	for _, r := range j.replicated {
		for _, t := range r.parts {
			sums = append(sums, sha256.New())
			moves = append(moves, tensor.Move{From: t, To: tensor.Stream(sums[len(sums)-1])})
		}
	}
	if _, err := tensor.Run(ctx, moves, opts...); err != nil {
		return err
	}
	for i, sum := range sums {
		first, shard := i-i%len(j.files), i%len(j.files)
		if string(sum.Sum(nil)) != string(sums[first].Sum(nil)) {
			return mismatch(j.replicated[i/len(j.files)].name, j.files[shard], "other values than in "+j.files[0]).In(j.file)
		}
	}
	return nil
}
