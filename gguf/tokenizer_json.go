package gguf

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// tokenizerJSON is tokenizer.json of Hugging Face's tokenizers.
type tokenizerJSON struct {
	Added []struct {
		ID      int    `json:"id"`
		Content string `json:"content"`
		Special bool   `json:"special"`
	} `json:"added_tokens"`
	Normalizer preTokenizer  `json:"normalizer"`
	Pre        preTokenizer  `json:"pre_tokenizer"`
	Post       postProcessor `json:"post_processor"`
	Model      struct {
		Type         string          `json:"type"`
		Vocab        json.RawMessage `json:"vocab"`
		Merges       []merge         `json:"merges"`
		Unk          *string         `json:"unk_token"`
		ByteFallback bool            `json:"byte_fallback"`
	} `json:"model"`
}

// preTokenizer is a step before pairs are merged, which may have steps of its own.
type preTokenizer struct {
	Type    string `json:"type"`
	Pattern struct {
		Regex string `json:"Regex"`
	} `json:"pattern"`
	UseRegex *bool          `json:"use_regex"`
	Prepend  string         `json:"prepend_scheme"`
	Parts    []preTokenizer `json:"pretokenizers"`
	Steps    []preTokenizer `json:"normalizers"`
}

// prepends reports whether a space is put before a text: by Prepend in Llama 2's
// normalizer, or by Metaspace, which splits text since.
func (p *preTokenizer) prepends() bool {
	for _, list := range [][]preTokenizer{p.Parts, p.Steps} {
		for i := range list {
			if list[i].prepends() {
				return true
			}
		}
	}
	return p.Type == "Prepend" || p.Type == "Metaspace" && p.Prepend != "never"
}

type postProcessor struct {
	Type   string `json:"type"`
	Single []struct {
		Special *struct {
			ID string `json:"id"`
		} `json:"SpecialToken"`
	} `json:"single"`
	Parts []postProcessor `json:"processors"`
}

// merge is a pair of tokens: "a b", or ["a", "b"] since tokens may hold spaces.
type merge [2]string

// UnmarshalJSON reads either form.
func (m *merge) UnmarshalJSON(b []byte) error {
	var pair []string
	if err := json.Unmarshal(b, &pair); err == nil && len(pair) == 2 {
		*m = merge(pair)
		return nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	m[0], m[1], _ = strings.Cut(text, " ")
	return nil
}

// String is the merge as GGUF keeps it: spaces inside of tokens are written as
// byte-level encoding writes them (gguf-py's SpecialVocab).
func (m merge) String() string {
	return strings.ReplaceAll(m[0], " ", "Ġ") + " " + strings.ReplaceAll(m[1], " ", "Ġ")
}

// readTokenizerJSON reads byte-level pair encoding, and sentencepiece's with byte
// fallback as transformers converts it. Others are named in the note.
func readTokenizerJSON(text []byte, beside checkpoint.Beside, most int) (*vocabulary, error) {
	v := &vocabulary{file: "tokenizer.json", ids: map[string]int{}, add: map[string]bool{}}
	var j tokenizerJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, fault.Wrap(fault.Malformed, "not the JSON of a tokenizer", err).InRecord(v.file)
	}
	if j.Model.Type != "BPE" {
		v.note = "tokenizer.json is of the kind " + strconv.QuoteToASCII(j.Model.Type) + ", not BPE: the file is without a tokenizer"
		return v, nil
	}
	var vocab map[string]int
	if err := json.Unmarshal(j.Model.Vocab, &vocab); err != nil {
		return nil, fault.Wrap(fault.Malformed, "not the vocabulary of a tokenizer", err).InRecord(v.file)
	}
	for _, text := range slices.Sorted(maps.Keys(vocab)) {
		if err := v.set(vocab[text], token{text: text, kind: normalToken}, most); err != nil {
			return nil, err
		}
	}
	for _, t := range j.Added {
		if err := v.set(t.ID, addedToken(t.Content, t.Special), most); err != nil {
			return nil, err
		}
	}
	if j.Model.ByteFallback {
		v.likeSentencePiece(&j, vocab)
	} else {
		v.byteLevel(&j)
	}
	v.template(&j.Post)
	return v, v.configure(beside, most)
}

// likeSentencePiece gives tokens the scores that sentencepiece had given them: it
// merges the pair of the highest score first, and merges stand in that order.
func (v *vocabulary) likeSentencePiece(j *tokenizerJSON, vocab map[string]int) {
	v.kind, v.pre = "llama", "default"
	v.add["space"] = j.Pre.prepends() || j.Normalizer.prepends()
	rank := 0
	scored := make([]bool, len(v.tokens))
	for _, m := range j.Model.Merges {
		id, ok := vocab[m[0]+m[1]]
		if ok && !scored[id] && v.tokens[id].kind == normalToken {
			scored[id] = true
			v.tokens[id].score = float32(-rank)
			rank++
		}
	}
	for i := range v.tokens {
		t := &v.tokens[i]
		switch {
		case j.Model.Unk != nil && t.text == *j.Model.Unk:
			t.kind, t.score, v.ids["unk"] = unknownToken, 0, i
		case isByte(t.text):
			t.kind, t.score = byteToken, 0
		case t.kind == controlToken:
			t.score = 0
		case t.kind == normalToken && !scored[i]:
			t.score = float32(-rank) // characters, which nothing is merged into
			rank++
		}
	}
}

// isByte reports whether a token is <0x00> … <0xFF>.
func isByte(s string) bool {
	if len(s) != 6 || !strings.HasPrefix(s, "<0x") || s[5] != '>' {
		return false
	}
	_, err := strconv.ParseUint(s[3:5], 16, 8)
	return err == nil
}

// byteLevel takes the merges and finds out how text is split before.
func (v *vocabulary) byteLevel(j *tokenizerJSON) {
	v.kind = "gpt2"
	v.merges = make([]string, len(j.Model.Merges))
	for i, m := range j.Model.Merges {
		v.merges[i] = m.String()
	}
	if v.pre = splitter(&j.Pre); v.pre == "" {
		v.pre = "default"
		v.note = "tokenizer.json splits text in a way that wick has no name for: llama.cpp will split it in its default way"
	}
}

// splits are the regular expressions of known models under the names that
// llama.cpp has for them (llama-vocab.cpp).
var splits = map[string]string{
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: "llama-bpe",
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:      "qwen2",
}

// splitter is llama.cpp's name of how text is split, "" where it is not known.
func splitter(p *preTokenizer) string {
	if p.Pattern.Regex != "" {
		return splits[p.Pattern.Regex]
	}
	for i := range p.Parts {
		if p.Parts[i].Pattern.Regex != "" {
			return splits[p.Parts[i].Pattern.Regex]
		}
	}
	for _, q := range append(p.Parts, *p) {
		if q.Type == "ByteLevel" && (q.UseRegex == nil || *q.UseRegex) {
			return "gpt-2"
		}
	}
	return ""
}

// template takes from the post-processor which tokens are put around a text.
func (v *vocabulary) template(p *postProcessor) {
	for i := range p.Parts {
		v.template(&p.Parts[i])
	}
	if p.Type != "TemplateProcessing" || len(p.Single) < 2 {
		return
	}
	first, last := p.Single[0].Special, p.Single[len(p.Single)-1].Special
	if first != nil {
		v.around("bos", first.ID)
	}
	if last != nil {
		v.around("eos", last.ID)
	}
}

func (v *vocabulary) around(name, text string) {
	v.add[name] = true
	if id := v.find(text); id >= 0 {
		v.ids[name] = id
	}
}
