package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	tiktoken "github.com/pkoukk/tiktoken-go"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// Tokenizer makes token ids of text and text of token ids, by byte-level pair encoding as Llama 3 and its kin have it.
type Tokenizer struct {
	tk    *tiktoken.Tiktoken
	begin []int // what stands before every text
	ends  []int // what ends one
}

// maxTokenizer bounds a tokenizer's file, bytes: Llama 3's has 17 million.
const maxTokenizer = 64 << 20

// ReadTokenizer reads tokenizer.json, or Llama 3's tokenizer.model, from beside the weights.
func ReadTokenizer(beside checkpoint.Beside) (*Tokenizer, error) {
	text, err := beside("tokenizer.json", maxTokenizer)
	if err == nil {
		return parseTokenizer(text)
	}
	if !errors.Is(err, fault.ErrNotFound) {
		return nil, err
	}
	ranks, err := beside("tokenizer.model", maxTokenizer)
	if errors.Is(err, fault.ErrNotFound) {
		return nil, errors.New("no tokenizer.json or tokenizer.model beside the weights: give -prompt-ids")
	}
	if err != nil {
		return nil, err
	}
	return parseRanks(ranks)
}

// Encode returns the tokens of a text behind those that begin one. Special tokens may stand in the text.
func (t *Tokenizer) Encode(text string) []int {
	return append(append([]int(nil), t.begin...), t.tk.Encode(text, []string{"all"}, nil)...)
}

// Decode returns the bytes that a token stands for, which need not be whole characters.
func (t *Tokenizer) Decode(token int) string { return t.tk.Decode([]int{token}) }

// ends of texts, by the names that Llamas and their kin give them.
var ends = []string{"<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|im_end|>"}

func newTokenizer(ranks, special map[string]int, pattern string, begin []int) (*Tokenizer, error) {
	core, err := tiktoken.NewCoreBPE(ranks, special, pattern)
	if err != nil {
		return nil, err
	}
	names := map[string]any{}
	for name := range special {
		names[name] = true
	}
	encoding := &tiktoken.Encoding{PatStr: pattern, MergeableRanks: ranks, SpecialTokens: special}
	t := &Tokenizer{tk: tiktoken.NewTiktoken(core, encoding, names), begin: begin}
	for _, name := range ends {
		if id, ok := special[name]; ok {
			t.ends = append(t.ends, id)
		}
	}
	return t, nil
}

// tokenizerJSON is what is read of Hugging Face's tokenizer.json.
type tokenizerJSON struct {
	Added []struct {
		ID      int    `json:"id"`
		Content string `json:"content"`
	} `json:"added_tokens"`
	Normalizer json.RawMessage `json:"normalizer"`
	Pre        step            `json:"pre_tokenizer"`
	Post       step            `json:"post_processor"`
	Model      struct {
		Type   string            `json:"type"`
		Vocab  map[string]int    `json:"vocab"`
		Merges []json.RawMessage `json:"merges"`
	} `json:"model"`
}

// step is a step before or after the pairs are merged, which may have steps of its own.
type step struct {
	Type    string `json:"type"`
	Pattern struct {
		Regex string `json:"Regex"`
	} `json:"pattern"`
	Behavior string `json:"behavior"`
	Invert   bool   `json:"invert"`
	Prefix   bool   `json:"add_prefix_space"`
	UseRegex *bool  `json:"use_regex"`
	Before   []step `json:"pretokenizers"`
	After    []step `json:"processors"`
	Single   []struct {
		Special *struct {
			ID string `json:"id"`
		} `json:"SpecialToken"`
		Sequence *struct{} `json:"Sequence"`
	} `json:"single"`
}

func parseTokenizer(text []byte) (*Tokenizer, error) {
	var j tokenizerJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	pattern, ok := j.Pre.split()
	if !ok || j.Model.Type != "BPE" || len(j.Normalizer) > 0 && string(j.Normalizer) != "null" {
		return nil, errors.New("tokenizer.json: not the byte-level pair encoding of Llama 3: give -prompt-ids")
	}
	special := map[string]int{}
	for _, a := range j.Added {
		special[a.Content] = a.ID
	}
	ranks := map[string]int{}
	for name, id := range j.Model.Vocab {
		if _, ok := special[name]; ok {
			continue
		}
		b, ok := byteLevel(name)
		if !ok {
			return nil, fmt.Errorf("tokenizer.json: the token %q is no text of bytes", name)
		}
		ranks[b] = id
	}
	if err := inOrder(&j); err != nil {
		return nil, err
	}
	var begin []int
	for _, name := range j.Post.begins() {
		begin = append(begin, special[name])
	}
	return newTokenizer(ranks, special, pattern, begin)
}

// gpt2 is how ByteLevel splits text by itself: the pattern of openai/gpt-2's encoder.py.
const gpt2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// split is the pattern by which text is split before pairs are merged; false where it is not one pattern over bytes.
func (s *step) split() (string, bool) {
	steps := append([]step{*s}, s.Before...)
	if s.Type == "Sequence" {
		steps = s.Before
	}
	last := len(steps) - 1
	if last < 0 || steps[last].Type != "ByteLevel" || steps[last].Prefix {
		return "", false
	}
	own := steps[last].UseRegex == nil || *steps[last].UseRegex
	switch {
	case last == 0 && own:
		return gpt2, true
	case last == 1 && !own && steps[0].Type == "Split" && steps[0].Behavior == "Isolated" && !steps[0].Invert:
		return steps[0].Pattern.Regex, steps[0].Pattern.Regex != ""
	default:
		return "", false
	}
}

// begins are the special tokens before a text.
func (s *step) begins() []string {
	var names []string
	for _, p := range s.Single {
		if p.Sequence != nil {
			break
		}
		if p.Special != nil {
			names = append(names, p.Special.ID)
		}
	}
	for i := range s.After {
		names = append(names, s.After[i].begins()...)
	}
	return names
}

// inOrder fails unless the ids of what is merged grow with the merges: ids are then the ranks that pairs are merged by.
func inOrder(j *tokenizerJSON) error {
	last := -1
	for _, raw := range j.Model.Merges {
		var pair []string
		if json.Unmarshal(raw, &pair) != nil {
			var text string
			if err := json.Unmarshal(raw, &text); err != nil {
				return fmt.Errorf("tokenizer.json: a merge: %w", err)
			}
			pair = strings.Split(text, " ")
		}
		id, ok := j.Model.Vocab[strings.Join(pair, "")]
		if !ok || id <= last {
			return errors.New("tokenizer.json: its tokens are not in the order of its merges: give -prompt-ids")
		}
		last = id
	}
	return nil
}

// byteLevel turns a name back into the bytes that it spells: printable characters of Latin-1 are themselves, the others
// stand in their order from U+0100 on.
func byteLevel(name string) (string, bool) {
	var b []byte
	for _, r := range name {
		switch {
		case r < 256 && printable(int(r)):
			b = append(b, byte(r))
		case r >= 256 && int(r)-256 < len(hidden):
			b = append(b, hidden[r-256])
		default:
			return "", false
		}
	}
	return string(b), true
}

func printable(b int) bool { return b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE }

// hidden are the bytes that are no printable characters, in their order.
var hidden = func() []byte {
	var list []byte
	for b := range 256 {
		if !printable(b) {
			list = append(list, byte(b))
		}
	}
	return list
}()

// llama3 is how Llama 3 splits text: pat_str of meta-llama/llama3's tokenizer.py.
const llama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// parseRanks reads Llama 3's tokenizer.model: on each line a token in Base64 and its rank. The special tokens, which only
// its program knows, follow them.
func parseRanks(text []byte) (*Tokenizer, error) {
	ranks := map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		token, rank, _ := strings.Cut(lines.Text(), " ")
		b, err := base64.StdEncoding.DecodeString(token)
		n, err2 := strconv.Atoi(rank)
		if err != nil || err2 != nil || n != len(ranks) {
			return nil, errors.New("tokenizer.model: not the ranks of Llama 3, as sentencepiece's of Llama 2 are not: give -prompt-ids")
		}
		ranks[string(b)] = n
	}
	n := len(ranks)
	special := map[string]int{"<|begin_of_text|>": n, "<|end_of_text|>": n + 1, "<|start_header_id|>": n + 6, "<|end_header_id|>": n + 7, "<|eot_id|>": n + 9}
	t, err := newTokenizer(ranks, special, llama3, []int{n})
	return t, errors.Join(lines.Err(), err)
}
