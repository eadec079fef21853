package gguf

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/fault"
)

// looksLikeTiktoken tells Llama 3's tokenizer.model, lines of base64 and a number,
// from sentencepiece's, which begins with the tag of a field.
func looksLikeTiktoken(b []byte) bool {
	line, _, _ := bytes.Cut(b[:min(len(b), 1<<10)], []byte("\n"))
	_, _, err := tiktokenLine(line)
	return err == nil
}

func tiktokenLine(line []byte) (text string, rank int, err error) {
	word, number, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
	raw, err := base64.StdEncoding.DecodeString(string(word))
	if err != nil {
		return "", 0, err
	}
	rank, err = strconv.Atoi(string(number))
	return string(raw), rank, err
}

// llama3Special are the special tokens behind the ranks, of which Llama 3 has 256:
// Tokenizer in models/llama3/tokenizer.py of Meta's llama-models. Those between
// them are reserved.
var llama3Special = []string{
	"<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>", "<|finetune_right_pad_id|>",
	"<|step_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>",
}

const llama3Specials = 256

// maxToken bounds a token, bytes: finding its merges takes time with the square of
// its length. Llama 3's longest has 128.
const maxToken = 256

// readTiktoken reads Llama 3's tokenizer.model: the bytes of each token, by rank.
func readTiktoken(b []byte, most int) (*vocabulary, error) {
	v := &vocabulary{file: "tokenizer.model", kind: "gpt2", pre: "llama-bpe", ids: map[string]int{}, add: map[string]bool{"bos": true}}
	ranks := map[string]int{}
	for line := range bytes.Lines(b) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		text, rank, err := tiktokenLine(line)
		if err != nil {
			return nil, fault.Wrap(fault.Malformed, "no token and its rank", err).InRecord(v.file)
		}
		if len(text) > maxToken {
			return nil, fault.NewBound("token bytes", int64(len(text)), maxToken).InRecord(v.file)
		}
		ranks[text] = rank
		if err := v.set(rank, token{text: byteLevelText(text), kind: normalToken}, most); err != nil {
			return nil, err
		}
	}
	v.merges = tiktokenMerges(ranks, len(v.tokens))
	base := len(v.tokens)
	for i := range min(llama3Specials, most-base) {
		text := "<|reserved_special_token_" + strconv.Itoa(i-len(llama3Special)+2) + "|>"
		if i < len(llama3Special) {
			text = llama3Special[i]
		}
		v.tokens = append(v.tokens, token{text: text, kind: controlToken})
	}
	for name, text := range map[string]string{"bos": "<|begin_of_text|>", "eos": "<|end_of_text|>"} {
		if id := v.find(text); id >= 0 {
			v.ids[name] = id
		}
	}
	return v, nil
}

// tiktokenMerges finds for each token, in the order of ranks, the two tokens that
// it is merged from: what merging its bytes by lower ranks leaves.
func tiktokenMerges(ranks map[string]int, n int) []string {
	byRank := make([]string, n)
	for text, rank := range ranks {
		byRank[rank] = text
	}
	merges := []string{}
	for rank, text := range byRank {
		if len(text) < 2 {
			continue
		}
		if parts := mergeBelow(ranks, text, rank); len(parts) == 2 {
			merges = append(merges, byteLevelText(parts[0])+" "+byteLevelText(parts[1]))
		}
	}
	return merges
}

// mergeBelow merges the bytes of text, the pair of the lowest rank first, as long
// as that is below most.
func mergeBelow(ranks map[string]int, text string, most int) []string {
	parts := make([]string, 0, len(text))
	for i := range len(text) {
		parts = append(parts, text[i:i+1])
	}
	for len(parts) > 2 {
		best, at := most, -1
		for i := range len(parts) - 1 {
			if r, ok := ranks[parts[i]+parts[i+1]]; ok && r < best {
				best, at = r, i
			}
		}
		if at < 0 {
			break
		}
		parts[at] += parts[at+1]
		parts = append(parts[:at+1], parts[at+2:]...)
	}
	return parts
}

// byteLevelText spells bytes as printable characters: bytes_to_unicode of GPT-2's
// encoder.py.
func byteLevelText(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(byteRunes[s[i]])
	}
	return b.String()
}

var byteRunes = func() (runes [256]rune) {
	next := rune(256)
	for c := range runes {
		if c >= '!' && c <= '~' || c >= 0xA1 && c <= 0xAC || c >= 0xAE {
			runes[c] = rune(c)
			continue
		}
		runes[c] = next
		next++
	}
	return runes
}()
