package gguf

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/llama"
	"github.com/wick-ml/wick/tensor"
)

// families are the model_types of transformers that llama.cpp runs as its
// architecture "llama".
var families = []string{"llama", "mistral"}

func supported(cfg *llama.Config) error {
	for _, f := range families {
		if cfg.Family == f && cfg.Experts == 0 {
			return nil
		}
	}
	found := "a model of the family " + cfg.Family
	if cfg.Experts > 0 {
		found = "a mixture of experts"
	}
	return fault.New(fault.Unsupported, found).InRecord(cfg.File).Needs("a dense model of the Llama family", "write safetensors and convert these with llama.cpp")
}

// model is the file in the making.
type model struct {
	cfg    llama.Config
	items  []item
	notes  []string
	layers int
	vocab  int
	ffn    int
}

// maxVocab bounds the rows of the embedding, each of which gets a text, a score and
// a type: a view of one row can have any number. Real ones have up to 260,000.
const maxVocab = 1 << 22

// check proves that llama.cpp will find every tensor that it asks for, in the
// shape that the config says.
func (m *model) check() error {
	byName := map[string]*item{}
	for i := range m.items {
		it := &m.items[i]
		byName[it.name] = it
		var layer int
		if n, _ := fmt.Sscanf(it.name, "blk.%d.", &layer); n == 1 && layer >= m.layers && layer < len(m.items) {
			m.layers = layer + 1
		}
	}
	if m.cfg.Layers > 0 && m.cfg.Layers != m.layers {
		return fault.New(fault.Mismatch, strconv.Itoa(m.layers)+" layers").Needs(strconv.Itoa(m.cfg.Layers)+", says "+m.cfg.File, "look for missing shards, or for another model's config")
	}
	if err := m.want(byName, "token_embd.weight", []int{anySize, m.cfg.Dim}); err != nil {
		return err
	}
	if m.vocab = byName["token_embd.weight"].tensor.Size(0); m.vocab > maxVocab {
		return fault.NewBound("tokens", int64(m.vocab), maxVocab).OnPath("token_embd.weight")
	}
	if err := m.want(byName, "output_norm.weight", []int{m.cfg.Dim}); err != nil {
		return err
	}
	if byName["output.weight"] != nil {
		if err := m.want(byName, "output.weight", []int{m.vocab, m.cfg.Dim}); err != nil {
			return err
		}
	}
	for i := range m.layers {
		if err := m.checkLayer(byName, "blk."+strconv.Itoa(i)+"."); err != nil {
			return err
		}
	}
	return nil
}

// checkLayer proves one layer; the first says how wide the feed-forward part is.
func (m *model) checkLayer(byName map[string]*item, p string) error {
	dim, q, kv := m.cfg.Dim, m.cfg.Heads*m.cfg.HeadDim, m.cfg.KVHeads*m.cfg.HeadDim
	if m.ffn == 0 {
		if err := m.want(byName, p+"ffn_gate.weight", []int{anySize, dim}); err != nil {
			return err
		}
		m.ffn = byName[p+"ffn_gate.weight"].tensor.Size(0)
	}
	for _, w := range []struct {
		name  string
		shape []int
	}{
		{"attn_norm", []int{dim}}, {"attn_q", []int{q, dim}}, {"attn_k", []int{kv, dim}}, {"attn_v", []int{kv, dim}}, {"attn_output", []int{dim, q}},
		{"ffn_norm", []int{dim}}, {"ffn_gate", []int{m.ffn, dim}}, {"ffn_down", []int{dim, m.ffn}}, {"ffn_up", []int{m.ffn, dim}},
	} {
		if err := m.want(byName, p+w.name+".weight", w.shape); err != nil {
			return err
		}
	}
	return nil
}

const anySize = -1

func (m *model) want(byName map[string]*item, name string, shape []int) error {
	it := byName[name]
	if it == nil {
		return fault.New(fault.Mismatch, "no such tensor").OnPath(name).Needs("every parameter of the model", "look for missing shards, and for rules that leave it out")
	}
	have := it.tensor.Shape()
	fits := len(have) == len(shape)
	for i := 0; fits && i < len(shape); i++ {
		fits = shape[i] == anySize || have[i] == shape[i]
	}
	if !fits {
		return fault.New(fault.Mismatch, "the shape "+tensor.ShapeString(have)).OnPath(name).
			Needs(strings.ReplaceAll(tensor.ShapeString(shape), "-1", "*")+", says "+m.cfg.File, "look for another model's config")
	}
	return nil
}

// scale adds the factors by which long contexts stretch the rotary frequencies.
func (m *model) scale() {
	factors := RopeFactors(m.cfg.Scaling, m.cfg.RopeBase, m.cfg.HeadDim)
	if factors == nil {
		return
	}
	t := tensor.Of(factors)
	m.items = append(m.items, item{"rope_freqs.weight", t, formF32, t.Bytes()})
}

// RopeFactors returns by what a scaling of the type "llama3" divides each rotary
// frequency of a head of dim elements, nil for other scalings: the numbers of
// generate_extra_tensors of LlamaModel in llama.cpp's convert_hf_to_gguf.py and of
// _compute_llama3_parameters in transformers' modeling_rope_utils.py.
func RopeFactors(s llama.Scaling, base float64, dim int) []float32 {
	if s.Type != "llama3" || s.Factor <= 0 || s.LowFactor <= 0 || s.HighFactor <= s.LowFactor || s.OriginalContext <= 0 {
		return nil
	}
	longest, shortest := float64(s.OriginalContext)/s.LowFactor, float64(s.OriginalContext)/s.HighFactor
	factors := make([]float32, (dim+1)/2)
	for i := range factors {
		length := 2 * math.Pi * math.Pow(base, float64(2*i)/float64(dim))
		switch {
		case length < shortest:
			factors[i] = 1
		case length > longest:
			factors[i] = float32(s.Factor)
		default:
			smooth := (float64(s.OriginalContext)/length - s.LowFactor) / (s.HighFactor - s.LowFactor)
			factors[i] = float32(1 / ((1-smooth)/s.Factor + smooth))
		}
	}
	return factors
}

// metadata is what the file says of the model. The keys are those that
// llama.cpp's convert_hf_to_gguf.py writes for its architecture "llama".
func (m *model) metadata(opts checkpoint.TargetOptions) (*pairs, error) {
	p := &pairs{}
	p.text("general.architecture", "llama")
	p.text("general.type", "model")
	name := opts.Metadata["name"]
	if name == "" {
		name = strings.TrimSuffix(path.Base(opts.Name), ".gguf")
	}
	p.text("general.name", strings.ToValidUTF8(name, "\uFFFD"))
	p.uint("general.file_type", m.mostly(findForm(opts.DType)).file)
	p.uint("general.quantization_version", 2) // GGML_QNT_VERSION in ggml.h
	p.uint("llama.block_count", m.layers)
	p.uint("llama.context_length", m.context())
	p.uint("llama.embedding_length", m.cfg.Dim)
	p.uint("llama.feed_forward_length", m.ffn)
	p.uint("llama.attention.head_count", m.cfg.Heads)
	p.uint("llama.attention.head_count_kv", m.cfg.KVHeads)
	p.float("llama.attention.layer_norm_rms_epsilon", m.epsilon())
	if m.cfg.HeadDim*m.cfg.Heads != m.cfg.Dim {
		p.uint("llama.attention.key_length", m.cfg.HeadDim)
		p.uint("llama.attention.value_length", m.cfg.HeadDim)
	}
	p.float("llama.rope.freq_base", m.cfg.RopeBase)
	p.uint("llama.rope.dimension_count", m.cfg.HeadDim)
	m.rope(p)
	p.uint("llama.vocab_size", m.vocab)
	return p, m.tokenizer(p, opts.Beside)
}

// mostly is the form that was asked for, else that of most matrices.
func (m *model) mostly(want *form) *form {
	if want != nil {
		return want
	}
	count := map[*form]int{}
	best := formF32
	for i := range m.items {
		if it := &m.items[i]; it.tensor.Dims() > 1 {
			if count[it.form]++; count[it.form] > count[best] {
				best = it.form
			}
		}
	}
	return best
}

func (m *model) note(text string) { m.notes = append(m.notes, text) }

// context is the length of the context in tokens. Meta's params.json leaves it
// unsaid: it was 2048 up to Llama 1, 4096 in Llama 2, 16384 in Code Llama, 8192 in
// Llama 3 and 131072 since 3.1, which the base and the scaling of the rotary
// frequencies tell apart.
func (m *model) context() int {
	n := m.cfg.Context
	if n > 0 {
		return n
	}
	switch {
	case m.cfg.Scaling.Type == "llama3":
		n = 131072
	case m.cfg.RopeBase >= 1e6:
		n = 16384
	case m.cfg.RopeBase >= 5e5:
		n = 8192
	default:
		n = 4096
	}
	m.note(m.cfg.File + " does not say how long the context is: " + strconv.Itoa(n) + " tokens were written, which goes with its rotary frequencies")
	return n
}

// epsilon is that of the norms, 1e-5 where the config is silent, as in ModelArgs
// of Meta's llama/model.py.
func (m *model) epsilon() float64 {
	if m.cfg.Eps > 0 {
		return m.cfg.Eps
	}
	return 1e-5
}

// rope says how frequencies are scaled otherwise than by factors of their own.
func (m *model) rope(p *pairs) {
	switch s := m.cfg.Scaling; s.Type {
	case "", "llama3":
	case "linear", "yarn":
		p.text("llama.rope.scaling.type", s.Type)
		p.float("llama.rope.scaling.factor", s.Factor)
		if s.OriginalContext > 0 {
			p.uint("llama.rope.scaling.original_context_length", s.OriginalContext)
		}
	default:
		m.note("the rope scaling " + strconv.QuoteToASCII(s.Type) + " of " + m.cfg.File + " has no form in GGUF and was left out")
	}
}
