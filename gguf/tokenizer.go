package gguf

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// maxTokenizer bounds a tokenizer file, bytes: real ones have up to 20 million.
const maxTokenizer = 64 << 20

// tokenType is llama_token_type in llama.cpp's llama.h.
type tokenType = int32

const (
	normalToken tokenType = 1 + iota
	unknownToken
	controlToken
	userToken
	unusedToken
	byteToken
)

// vocabulary is a tokenizer in the form that GGUF keeps.
type vocabulary struct {
	file   string // it was read from
	kind   string // "llama" for sentencepiece's, "gpt2" for byte-level pair encoding
	pre    string // how text is split before pairs are merged
	tokens []token
	merges []string
	ids    map[string]int  // bos, eos, unk, pad
	add    map[string]bool // whether bos, eos and a space are put before or after a text
	chat   string          // the chat template
	note   string          // what is not as it should be, "" if nothing
}

type token struct {
	text  string
	score float32
	kind  tokenType // 0 for a hole
}

// set puts a token in its place, growing up to most tokens.
func (v *vocabulary) set(id int, t token, most int) error {
	if id < 0 || id >= most {
		return fault.New(fault.Mismatch, "the token "+strconv.Itoa(id)).InRecord(v.file).
			Needs("at most "+strconv.Itoa(most)+" tokens, one for each row of the embedding", "put the model's own tokenizer beside the weights")
	}
	if id >= len(v.tokens) {
		v.tokens = append(v.tokens, make([]token, id+1-len(v.tokens))...)
	}
	v.tokens[id] = t
	return nil
}

// noVocabulary is what llama.cpp, which loads no file without a word on the
// tokenizer, calls none at all: _set_vocab_none of its convert_hf_to_gguf.py.
const noVocabulary = "no_vocab"

// tokenizer adds the tokenizer that lies beside the weights. Without one the file
// has none and says so, as do the notes.
func (m *model) tokenizer(p *pairs, beside checkpoint.Beside) error {
	v, err := readVocabulary(beside, m.vocab)
	if err != nil {
		return err
	}
	if v == nil {
		m.note("no tokenizer.model or tokenizer.json beside the weights: the file is without a tokenizer")
		v = &vocabulary{}
	}
	if v.note != "" {
		m.note(v.note)
	}
	if v.tokens == nil {
		p.text("tokenizer.ggml.model", noVocabulary)
		return nil
	}
	m.special(v)
	v.write(p, m.vocab)
	return nil
}

// readVocabulary reads sentencepiece's tokenizer.model before tokenizer.json,
// which does not keep scores, and that before the tiktoken form of
// tokenizer.model, which does not keep special tokens. It returns nil where there
// is neither.
func readVocabulary(beside checkpoint.Beside, most int) (*vocabulary, error) {
	pieces, err := optional(beside, "tokenizer.model")
	if err != nil {
		return nil, err
	}
	if pieces != nil && !looksLikeTiktoken(pieces) {
		return readSentencePiece(pieces, beside, most)
	}
	text, err := optional(beside, "tokenizer.json")
	if err != nil {
		return nil, err
	}
	switch {
	case text != nil:
		return readTokenizerJSON(text, beside, most)
	case pieces != nil:
		return readTiktoken(pieces, most)
	default:
		return nil, nil
	}
}

// optional reads a file that need not be there.
func optional(beside checkpoint.Beside, name string) ([]byte, error) {
	b, err := beside(name, maxTokenizer)
	if errors.Is(err, fault.ErrNotFound) {
		return nil, nil
	}
	return b, err
}

// special settles the special tokens: what the tokenizer's own files say wins over
// the model's config.
func (m *model) special(v *vocabulary) {
	for name, ids := range map[string][]int{"bos": m.cfg.BOS, "eos": m.cfg.EOS} {
		if _, ok := v.ids[name]; !ok && len(ids) > 0 {
			v.ids[name] = ids[0]
		}
	}
	if _, ok := v.ids["pad"]; !ok && m.cfg.Pad >= 0 {
		v.ids["pad"] = m.cfg.Pad
	}
}

// write spells the vocabulary, with a row of the embedding for each token: rows
// that have none get a name that is never met, as llama.cpp's
// convert_hf_to_gguf.py gives them.
func (v *vocabulary) write(p *pairs, rows int) {
	texts, scores, types := make([]string, rows), make([]float32, rows), make([]int32, rows)
	for i := range rows {
		t := token{text: "[PAD" + strconv.Itoa(i) + "]", score: -10000, kind: unusedToken}
		if i < len(v.tokens) && v.tokens[i].kind != 0 {
			t = v.tokens[i]
		}
		texts[i], scores[i], types[i] = t.text, t.score, t.kind
	}
	p.text("tokenizer.ggml.model", v.kind)
	p.text("tokenizer.ggml.pre", v.pre)
	p.texts("tokenizer.ggml.tokens", texts)
	if v.kind == "llama" {
		p.floats("tokenizer.ggml.scores", scores)
	}
	p.ints("tokenizer.ggml.token_type", types)
	if v.merges != nil {
		p.texts("tokenizer.ggml.merges", v.merges)
	}
	v.writeSpecial(p, rows)
}

func (v *vocabulary) writeSpecial(p *pairs, rows int) {
	for _, s := range []struct{ name, key string }{{"bos", "bos"}, {"eos", "eos"}, {"unk", "unknown"}, {"pad", "padding"}} {
		if id, ok := v.ids[s.name]; ok && id >= 0 && id < rows {
			p.uint("tokenizer.ggml."+s.key+"_token_id", id)
		}
	}
	for _, s := range []struct{ name, key string }{{"bos", "add_bos_token"}, {"eos", "add_eos_token"}, {"space", "add_space_prefix"}} {
		if on, ok := v.add[s.name]; ok {
			p.bool("tokenizer.ggml."+s.key, on)
		}
	}
	if v.chat != "" {
		p.text("tokenizer.chat_template", v.chat)
	}
}

// tokenizerConfig is tokenizer_config.json of transformers.
type tokenizerConfig struct {
	BOS     namedToken      `json:"bos_token"`
	EOS     namedToken      `json:"eos_token"`
	Unk     namedToken      `json:"unk_token"`
	Pad     namedToken      `json:"pad_token"`
	AddBOS  *bool           `json:"add_bos_token"`
	AddEOS  *bool           `json:"add_eos_token"`
	Chat    json.RawMessage `json:"chat_template"` // a text, or a list of named ones
	Decoder map[string]struct {
		Content string `json:"content"`
		Special bool   `json:"special"`
	} `json:"added_tokens_decoder"`
}

// namedToken is a token's text, or an object around it.
type namedToken string

// UnmarshalJSON reads either form; null and anything else name no token.
func (n *namedToken) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*n = namedToken(text)
		return nil
	}
	var object struct {
		Content string `json:"content"`
	}
	if json.Unmarshal(b, &object) == nil {
		*n = namedToken(object.Content)
	}
	return nil
}

// configure takes from tokenizer_config.json, if it is there, which tokens are
// special, which were added, and the chat template.
func (v *vocabulary) configure(beside checkpoint.Beside, most int) error {
	const name = "tokenizer_config.json"
	text, err := optional(beside, name)
	if err != nil || text == nil {
		return err
	}
	var c tokenizerConfig
	if err := json.Unmarshal(text, &c); err != nil {
		return fault.Wrap(fault.Malformed, "not the JSON of a tokenizer's config", err).InRecord(name)
	}
	for _, text := range slices.Sorted(maps.Keys(c.Decoder)) {
		t := c.Decoder[text]
		id, err := strconv.Atoi(text)
		if err != nil || id < len(v.tokens) && v.tokens[id].kind != 0 {
			continue
		}
		if err := v.set(id, addedToken(t.Content, t.Special), most); err != nil {
			return err
		}
	}
	for name, t := range map[string]namedToken{"bos": c.BOS, "eos": c.EOS, "unk": c.Unk, "pad": c.Pad} {
		if id := v.find(string(t)); id >= 0 {
			v.ids[name] = id
		}
	}
	for name, on := range map[string]*bool{"bos": c.AddBOS, "eos": c.AddEOS} {
		if on != nil {
			v.add[name] = *on
		}
	}
	v.chat = chatTemplate(c.Chat)
	return nil
}

// addedToken is a token that was added to a vocabulary.
func addedToken(text string, special bool) token {
	t := token{text: text, score: -1000, kind: userToken}
	if special {
		t.kind = controlToken
	}
	return t
}

// find returns the number of a token that is not made of others, -1 if there is
// none of this text.
func (v *vocabulary) find(text string) int {
	if text == "" {
		return -1
	}
	return slices.IndexFunc(v.tokens, func(t token) bool { return t.text == text && t.kind != 0 })
}

// chatTemplate is the text, or the one called default of a list.
func chatTemplate(text json.RawMessage) string {
	var one string
	if json.Unmarshal(text, &one) == nil {
		return one
	}
	var list []struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	}
	if json.Unmarshal(text, &list) != nil {
		return ""
	}
	for _, t := range list {
		if t.Name == "default" {
			return t.Template
		}
	}
	return ""
}
