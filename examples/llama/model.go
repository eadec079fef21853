package main

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/activation"

	"github.com/wick-ml/wick/examples/adapters/gomlx"
	"github.com/wick-ml/wick/examples/internal/layers"
	"github.com/wick-ml/wick/llama"
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/tensor"
)

// Llama is the state dict of transformers' LlamaForCausalLM. T is the element in memory.
type Llama[T tensor.Element] struct {
	EmbedTokens nn.Embedding[T] `torch:"model.embed_tokens"`
	Layers      []Layer[T]      `torch:"model.layers"`
	Norm        nn.RMSNorm[T]   `torch:"model.norm"`
	LMHead      *nn.Linear[T]   `torch:"lm_head"` // nil where it is the embedding
}

// Layer is a LlamaDecoderLayer.
type Layer[T tensor.Element] struct {
	InputLayernorm         nn.RMSNorm[T]
	SelfAttn               Attention[T]
	PostAttentionLayernorm nn.RMSNorm[T]
	MLP                    MLP[T]
}

// Attention is a LlamaAttention.
type Attention[T tensor.Element] struct {
	QProj nn.Linear[T] // [heads * head_dim, hidden_size]
	KProj nn.Linear[T] // [key_value_heads * head_dim, hidden_size]
	VProj nn.Linear[T] // [key_value_heads * head_dim, hidden_size]
	OProj nn.Linear[T] // [hidden_size, heads * head_dim]
}

// MLP is a LlamaMLP.
type MLP[T tensor.Element] struct {
	GateProj nn.Linear[T] // [intermediate_size, hidden_size]
	UpProj   nn.Linear[T] // [intermediate_size, hidden_size]
	DownProj nn.Linear[T] // [hidden_size, intermediate_size]
}

// Model is a pointer to a record that computes.
type Model interface {
	// Size returns the number of layers and of tokens in the vocabulary.
	Size() (decoders, vocabulary int)
	// Step returns the logits [1, vocabulary] of what follows a token [1] at a position [] of a text, and the keys and
	// values of every layer, each [key_value_heads, context, head_dim], with those of this position filled in.
	Step(w *gomlx.Weights, c *llama.Config, token, position *graph.Node, cache []*graph.Node) (logits *graph.Node, filled []*graph.Node)
}

// Size implements [Model].
func (m *Llama[T]) Size() (decoders, vocabulary int) {
	return len(m.Layers), m.EmbedTokens.Weight.Shape[0]
}

// Step implements [Model].
func (m *Llama[T]) Step(w *gomlx.Weights, c *llama.Config, token, position *graph.Node, cache []*graph.Node) (*graph.Node, []*graph.Node) {
	embedding := gomlx.Node(w, token, m.EmbedTokens.Weight)
	at := rotary(c, position)
	x := graph.Gather(embedding, graph.InsertAxes(token, -1)) // [1, hidden_size]
	filled := make([]*graph.Node, len(cache))
	for i, l := range m.Layers {
		var y *graph.Node
		y, filled[2*i], filled[2*i+1] = l.SelfAttn.step(w, c, norm(w, c, x, l.InputLayernorm), at, cache[2*i], cache[2*i+1])
		x = graph.Add(x, y)
		x = graph.Add(x, l.MLP.step(w, norm(w, c, x, l.PostAttentionLayernorm)))
	}
	x = norm(w, c, x, m.Norm)
	if m.LMHead == nil {
		return graph.Einsum("rh,vh->rv", x, embedding), filled
	}
	return layers.Linear(w, x, *m.LMHead), filled
}

// step lets the queries of one position meet the keys of all positions up to it. Heads that share keys and values are
// neighbours.
func (a *Attention[T]) step(w *gomlx.Weights, c *llama.Config, x *graph.Node, at angles, keys, values *graph.Node) (y, allKeys, allValues *graph.Node) {
	group := c.Heads / c.KVHeads
	q := at.turn(graph.Reshape(layers.Linear(w, x, a.QProj), c.KVHeads, group, c.HeadDim))
	k := at.turn(graph.Reshape(layers.Linear(w, x, a.KProj), c.KVHeads, 1, c.HeadDim))
	v := graph.Reshape(layers.Linear(w, x, a.VProj), c.KVHeads, 1, c.HeadDim)
	keys, values = at.put(keys, k), at.put(values, v)

	scores := graph.DivScalar(graph.Einsum("kgd,kcd->kgc", q, keys), math.Sqrt(float64(c.HeadDim)))
	here, there := at.positions(scores, 2)
	scores = graph.Where(graph.GreaterThan(there, here), graph.AddScalar(graph.ZerosLike(scores), math.Inf(-1)), scores)
	seen := graph.Einsum("kgc,kcd->kgd", graph.Softmax(scores, -1), values)
	return layers.Linear(w, graph.Reshape(seen, 1, c.Heads*c.HeadDim), a.OProj), keys, values
}

// step is the gated network of a layer.
func (m *MLP[T]) step(w *gomlx.Weights, x *graph.Node) *graph.Node {
	gate := activation.Swish(layers.Linear(w, x, m.GateProj))
	return layers.Linear(w, graph.Mul(gate, layers.Linear(w, x, m.UpProj)), m.DownProj)
}

// norm is torch.nn.RMSNorm over the last axis of x [1, hidden_size].
func norm[T tensor.Element](w *gomlx.Weights, c *llama.Config, x *graph.Node, n nn.RMSNorm[T]) *graph.Node {
	mean := graph.ReduceAndKeep(graph.Square(x), graph.ReduceMean, -1)
	x = graph.Mul(x, graph.Rsqrt(graph.AddScalar(mean, c.Eps)))
	return graph.Mul(x, graph.InsertAxes(gomlx.Node(w, x, n.Weight), 0))
}

// angles are those by which a position turns the halves of a head, [1, 1, head_dim/2] each.
type angles struct{ position, cos, sin *graph.Node }

// rotary returns the angles of a position.
func rotary(c *llama.Config, position *graph.Node) angles {
	turns := graph.Reshape(graph.Const(position.Graph(), frequencies(c)), 1, 1, -1)
	angle := graph.Mul(turns, graph.BroadcastToDims(graph.ConvertDType(position, dtypes.Float32), turns.Shape().Dimensions...))
	return angles{position, graph.Cos(angle), graph.Sin(angle)}
}

// positions returns the position of the step and that of every element along an axis of x, in the shape of x.
func (a angles) positions(x *graph.Node, axis int) (here, there *graph.Node) {
	dims := x.Shape().Dimensions
	return graph.BroadcastToDims(a.position, dims...), graph.Iota(x.Graph(), shapes.Make(dtypes.Int32, dims...), axis)
}

// put returns the cache [key_value_heads, context, head_dim] with x [key_value_heads, 1, head_dim] at the position.
func (a angles) put(cache, x *graph.Node) *graph.Node {
	here, there := a.positions(cache, 1)
	return graph.Where(graph.Equal(there, here), graph.BroadcastToDims(x, cache.Shape().Dimensions...), cache)
}

// turn rotates x [..., head_dim], of which number i of the first half and number i of the second are a pair, as
// transformers has them.
func (a angles) turn(x *graph.Node) *graph.Node {
	parts := graph.Split(x, -1, 2)
	first := graph.Sub(graph.Mul(parts[0], a.cos), graph.Mul(parts[1], a.sin))
	second := graph.Add(graph.Mul(parts[1], a.cos), graph.Mul(parts[0], a.sin))
	return graph.Concatenate([]*graph.Node{first, second}, -1)
}

// frequencies returns how far one position turns each pair. Llama 3's scaling slows the pairs whose waves are long, as
// transformers' modeling_rope_utils.py does.
func frequencies(c *llama.Config) []float32 {
	f := make([]float32, c.HeadDim/2)
	s := c.Scaling
	for i := range f {
		exponent := float32(2*i) / float32(c.HeadDim)
		v := float64(1 / float32(math.Pow(c.RopeBase, float64(exponent)))) // rounded where PyTorch rounds
		switch s.Type {
		case "linear":
			v /= s.Factor
		case "llama3":
			waves := float64(s.OriginalContext) * v / (2 * math.Pi) // in the context of the training
			share := min(max((waves-s.LowFactor)/(s.HighFactor-s.LowFactor), 0), 1)
			v = (1-share)*v/s.Factor + share*v
		}
		f[i] = float32(v)
	}
	return f
}

// computable returns an error unless this program computes models of that config.
func computable(c *llama.Config) error {
	switch c.Scaling.Type {
	case "", "default", "linear", "llama3":
	default:
		return fmt.Errorf("%s: rotary scaling of type %s is not computed", c.File, c.Scaling.Type)
	}
	switch {
	case c.Family != "llama" && !c.Meta:
		return fmt.Errorf("%s: a model of type %s is not computed: need llama", c.File, c.Family)
	case c.Experts > 0:
		return fmt.Errorf("%s: a mixture of experts is not computed", c.File)
	case c.Heads < 1 || c.KVHeads < 1 || c.Heads%c.KVHeads != 0 || c.HeadDim < 2 || c.HeadDim%2 != 0:
		return fmt.Errorf("%s: %d heads of %d share %d keys: not computed", c.File, c.Heads, c.HeadDim, c.KVHeads)
	}
	return nil
}
