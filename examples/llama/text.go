package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/examples/adapters/gomlx"
	"github.com/wick-ml/wick/examples/internal/imagenet"
	"github.com/wick-ml/wick/llama"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/tensor"
)

// Weights are a model's record, filled, and its config.
type Weights struct {
	Config llama.Config
	Model  Model
	ckpt   *wick.Checkpoint
}

// Open reads a folder of weights, Hugging Face's or Meta's. The files are mapped and the record is views of them, except
// where a parameter is joined from several of Meta's shards. It is valid until Close.
func Open(ctx context.Context, folder string) (*Weights, error) {
	ckpt, err := wick.Open(ctx, folder, wick.Mmap(), wick.Join())
	if err != nil {
		return nil, err
	}
	w := &Weights{ckpt: ckpt}
	root, err := w.tree()
	if err == nil {
		err = w.Fill(ctx, root)
	}
	if err != nil {
		return nil, errors.Join(err, ckpt.Close())
	}
	return w, nil
}

// Close ends the life of the record.
func (w *Weights) Close() error { return w.ckpt.Close() }

// tree reads the config and returns the state dict under Hugging Face's names.
func (w *Weights) tree() (nested.Value, error) {
	var err error
	if w.Config, err = llama.ReadConfig(w.ckpt.Beside); err != nil {
		return nil, err
	}
	if err := computable(&w.Config); err != nil {
		return nil, err
	}
	return llama.Names(w.ckpt, w.ckpt.Root, llama.HuggingFace)
}

// Fill fills the record from a state dict.
func (w *Weights) Fill(ctx context.Context, root nested.Value) error {
	w.Model = new(Llama[float32])
	for _, t := range w.ckpt.Tensors() {
		switch t.DType() {
		case tensor.F16:
			w.Model = new(Llama[tensor.Float16])
		case tensor.BF16:
			w.Model = new(Llama[tensor.BFloat16])
		}
	}
	// Files of older versions keep the rotary frequencies, which follow from the config.
	if _, err := serde.Unmarshal(ctx, root, w.Model, serde.Alias(), serde.Exclude("**.rotary_emb.inv_freq")); err != nil {
		return err
	}
	if n, _ := w.Model.Size(); n != w.Config.Layers {
		return fmt.Errorf("%s speaks of %d layers, the weights have %d", w.Config.File, w.Config.Layers, n)
	}
	return nil
}

// Text is a text that grows by one token at a time. It is not safe for concurrent use.
type Text struct {
	exec       *model.Exec
	cache      []*tensors.Tensor // keys and values of each layer, for every position so far
	room       int               // positions in the cache
	next       int               // position
	vocabulary int
}

// NewText returns an empty text with room for that many tokens. The weights are copied, into GoMLX's memory, where
// halves are widened to float32; they must stay open until the first token was added.
func NewText(w *Weights, room int) (*Text, error) {
	backend, err := gobackend.New("")
	if err != nil {
		return nil, err
	}
	c := &w.Config
	t := &Text{room: room}
	_, t.vocabulary = w.Model.Size()
	for range 2 * c.Layers {
		t.cache = append(t.cache, tensors.FromShape(shapes.Make(dtypes.Float32, c.KVHeads, room, c.HeadDim)))
	}
	copied := gomlx.NewWeights(backend, dtypes.Float32)
	t.exec, err = model.NewExec(backend, copied.Store, func(_ *model.Scope, in []*graph.Node) []*graph.Node {
		logits, filled := w.Model.Step(copied, c, in[0], in[1], in[2:])
		return append([]*graph.Node{logits}, filled...)
	})
	return t, err
}

// Add adds a token to the text and returns the logits of the one after it.
func (t *Text) Add(token int) ([]float32, error) {
	if token < 0 || token >= t.vocabulary {
		return nil, fmt.Errorf("token %d is not in the vocabulary of %d", token, t.vocabulary)
	}
	if t.next == t.room {
		return nil, fmt.Errorf("the text has no room for more than %d tokens", t.room)
	}
	in := []any{[]int32{int32(token)}, int32(t.next)}
	for _, c := range t.cache {
		in = append(in, c)
	}
	out, err := t.exec.Call(in...)
	if err != nil {
		return nil, fmt.Errorf("computing position %d: %w", t.next, err)
	}
	t.cache = out[1:]
	t.next++
	return tensors.CopyFlatData[float32](out[0])
}

// Greedy adds the prompt and then, again and again, the likeliest next token, which it also hands to each. It ends after
// n tokens, or earlier when each returns false.
func (t *Text) Greedy(prompt []int, n int, each func(token int) bool) error {
	var logits []float32
	for _, token := range prompt {
		var err error
		if logits, err = t.Add(token); err != nil {
			return err
		}
	}
	for i := range n {
		token := imagenet.Top(logits, 1)[0]
		if !each(token) || i == n-1 {
			return nil
		}
		var err error
		if logits, err = t.Add(token); err != nil {
			return err
		}
	}
	return nil
}
