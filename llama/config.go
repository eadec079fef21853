package llama

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/rules"
)

// Config is what the file beside the weights says of a model of the Llama
// family. What it leaves unsaid is zero, unless a comment says otherwise.
type Config struct {
	File     string // params.json, Meta's, or config.json, Hugging Face's
	Family   string // model_type of config.json: "llama", "mistral" …
	Dim      int    // width of the model, elements
	Layers   int
	Heads    int
	KVHeads  int // as many as Heads where the file is silent
	HeadDim  int // elements; Dim/Heads where the file is silent
	Context  int // tokens
	Vocab    int // tokens
	Experts  int // above 0 for a mixture of experts
	Eps      float64
	RopeBase float64 // 10000 where the file is silent
	Scaling  Scaling
	Tied     bool // the output layer is the embedding
	BOS, EOS []int
	Pad      int  // -1 where the file is silent
	Meta     bool // the file is Meta's
}

// Scaling says how rotary frequencies are stretched for long contexts, in the
// words of rope_scaling in transformers' config.json.
type Scaling struct {
	Type            string // "" for none, "linear", "llama3", "yarn" …
	Factor          float64
	LowFactor       float64
	HighFactor      float64
	OriginalContext int // tokens
}

// scalingText is a Scaling as both spellings of config.json have it.
type scalingText struct {
	Type            string  `json:"rope_type"`
	OldType         string  `json:"type"`
	Factor          float64 `json:"factor"`
	LowFactor       float64 `json:"low_freq_factor"`
	HighFactor      float64 `json:"high_freq_factor"`
	OriginalContext int     `json:"original_max_position_embeddings"`
	Base            float64 `json:"rope_theta"`
}

// maxConfig bounds a config file, bytes: real ones have a few thousand.
const maxConfig = 1 << 20

// ReadConfig reads Meta's params.json or, where there is none, Hugging Face's
// config.json from beside the weights. It fails with [fault.ErrNotFound] when
// neither is there, and with [fault.ErrMalformed] on one that is not of a model.
func ReadConfig(beside checkpoint.Beside) (Config, error) {
	for _, name := range []string{"params.json", "config.json"} {
		text, err := beside(name, maxConfig)
		if errors.Is(err, fault.ErrNotFound) {
			continue
		}
		if err != nil {
			return Config{}, err
		}
		return parseConfig(name, text)
	}
	return Config{}, fault.New(fault.NotFound, "no params.json or config.json beside the weights").
		Needs("the width of the model and the number of heads", "put the model's own config beside them, or give it with wick.Config")
}

// configText has the members of both files. Meta's are those of ModelArgs in
// llama/model.py, Hugging Face's those of LlamaConfig.
type configText struct {
	Dim       int     `json:"dim"`
	Layers    int     `json:"n_layers"`
	Heads     int     `json:"n_heads"`
	KV        int     `json:"n_kv_heads"`
	Vocab     int     `json:"vocab_size"`
	Eps       float64 `json:"norm_eps"`
	HeadDim   int     `json:"head_dim"`
	RopeTheta float64 `json:"rope_theta"`
	Scaled    bool    `json:"use_scaled_rope"`
	Stretch   float64 `json:"rope_scaling_factor"`

	Family   string          `json:"model_type"`
	HFDim    int             `json:"hidden_size"`
	HFLayers int             `json:"num_hidden_layers"`
	HFHeads  int             `json:"num_attention_heads"`
	HFKV     int             `json:"num_key_value_heads"`
	HFEps    float64         `json:"rms_norm_eps"`
	Context  int             `json:"max_position_embeddings"`
	Scaling  *scalingText    `json:"rope_scaling"`
	Rope     *scalingText    `json:"rope_parameters"` // transformers 5
	Tied     bool            `json:"tie_word_embeddings"`
	Experts  int             `json:"num_local_experts"`
	BOS      json.RawMessage `json:"bos_token_id"`
	EOS      json.RawMessage `json:"eos_token_id"`
	Pad      *int            `json:"pad_token_id"`
	MetaMoE  json.RawMessage `json:"moe"`
	MetaMoE4 json.RawMessage `json:"moe_args"`
}

func parseConfig(name string, text []byte) (Config, error) {
	var p configText
	if err := json.Unmarshal(text, &p); err != nil {
		return Config{}, notJSON(err).InRecord(name)
	}
	c := Config{
		File: name, Meta: p.Dim > 0, Family: cmp.Or(p.Family, "llama"), Dim: cmp.Or(p.Dim, p.HFDim), Layers: cmp.Or(p.Layers, p.HFLayers),
		Heads: cmp.Or(p.Heads, p.HFHeads), KVHeads: cmp.Or(p.KV, p.HFKV), HeadDim: p.HeadDim, Context: p.Context, Vocab: p.Vocab,
		Experts: p.Experts, Eps: cmp.Or(p.Eps, p.HFEps), RopeBase: p.RopeTheta, Tied: p.Tied, BOS: tokens(p.BOS), EOS: tokens(p.EOS), Pad: -1,
	}
	if p.Pad != nil {
		c.Pad = *p.Pad
	}
	if p.MetaMoE != nil || p.MetaMoE4 != nil {
		c.Experts = max(c.Experts, 1)
	}
	c.rope(&p)
	c.KVHeads = cmp.Or(c.KVHeads, c.Heads) // before grouped-query attention
	return c, c.check(name)
}

// notJSON says what is wrong with the text of a config, without Go's types.
func notJSON(err error) *fault.Error {
	var t *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &t):
		return fault.Wrap(fault.Malformed, "a config that is no JSON of a model", err)
	case t.Field == "":
		return fault.New(fault.Malformed, "a config that is a JSON "+t.Value).Needs("an object", "get the model's own config")
	default:
		return fault.New(fault.Malformed, "a config whose "+t.Field+" is the "+t.Value).Needs("a value of the kind that models have there", "get the model's own config")
	}
}

// rope settles the base and the scaling of the rotary frequencies. The numbers
// of use_scaled_rope are those of apply_scaling in Meta's llama3/model.py.
func (c *Config) rope(p *configText) {
	for _, s := range []*scalingText{p.Rope, p.Scaling} {
		if s != nil {
			c.Scaling = Scaling{cmp.Or(s.Type, s.OldType), s.Factor, s.LowFactor, s.HighFactor, s.OriginalContext}
			c.RopeBase = cmp.Or(c.RopeBase, s.Base)
		}
	}
	if c.Scaling.Type == "default" {
		c.Scaling.Type = ""
	}
	if p.Scaled {
		c.Scaling = Scaling{Type: "llama3", Factor: cmp.Or(p.Stretch, 8), LowFactor: 1, HighFactor: 4, OriginalContext: 8192}
	}
	c.RopeBase = cmp.Or(c.RopeBase, 10000)
}

// maxWidth bounds the width of a model and of a head, elements: there are numbers for
// each. The largest models have some 50,000.
const maxWidth = 1 << 24

// check proves that the heads make sense before anything is divided by them.
func (c *Config) check(name string) error {
	if widest := max(c.Dim, c.HeadDim); widest > maxWidth {
		return fault.NewBound("width of the model", int64(widest), maxWidth).InRecord(name)
	}
	if c.Dim <= 0 || c.Heads <= 0 || c.KVHeads <= 0 || c.Layers < 0 || c.Heads > c.Dim {
		return fault.New(fault.Malformed, "a config without width or heads").InRecord(name).
			Needs("dim and n_heads, or hidden_size and num_attention_heads", "get the model's own config")
	}
	if c.Heads%c.KVHeads != 0 || c.HeadDim < 0 || c.HeadDim > math.MaxInt32/c.Heads || c.HeadDim == 0 && c.Dim%c.Heads != 0 {
		return fault.New(fault.Malformed, "heads that do not divide").InRecord(name).
			Needs("a width that the heads divide, and as many or fewer heads for keys", "get the model's own config")
	}
	c.HeadDim = cmp.Or(c.HeadDim, c.Dim/c.Heads)
	return nil
}

// tokens reads the number of a token or a list of them.
func tokens(text json.RawMessage) []int {
	var one int
	if json.Unmarshal(text, &one) == nil && string(text) != "null" {
		return []int{one}
	}
	var list []int
	if json.Unmarshal(text, &list) != nil {
		return nil
	}
	return list
}

// params are the parameters that the rules of Llama ask for.
func (c *Config) params() rules.Params {
	return rules.Params{"dim": c.Dim, "heads": c.Heads, "kv_heads": c.KVHeads, "head_dim": c.HeadDim}
}
