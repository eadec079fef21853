package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wick-ml/wick/fault"
)

const tokenizers = "../../pytorch-tests/gguf/"

// beside reads files of a folder as if they lay beside weights.
func beside(folder string) func(string, int64) ([]byte, error) {
	return func(name string, _ int64) ([]byte, error) {
		b, err := os.ReadFile(filepath.Join(folder, name))
		if errors.Is(err, os.ErrNotExist) {
			return nil, fault.New(fault.NotFound, name)
		}
		return b, err
	}
}

type encoded struct {
	Text string
	IDs  []int
}

func encodings(t *testing.T) []encoded {
	t.Helper()
	b, err := os.ReadFile("testdata/tokens.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []encoded
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 60 {
		t.Fatalf("%d texts", len(all))
	}
	return all
}

// Texts become the tokens that Hugging Face's tokenizers makes of them, and these the texts again.
func TestTokenizer(t *testing.T) {
	tokens, err := ReadTokenizer(beside(tokenizers + "tokenizer-llama3"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range encodings(t) {
		if got := tokens.Encode(want.Text); !slices.Equal(got, want.IDs) {
			t.Errorf("%q gives %v, want %v", want.Text, got, want.IDs)
		}
		var back strings.Builder
		for _, id := range want.IDs[1:] {
			back.WriteString(tokens.Decode(id))
		}
		if back.String() != want.Text {
			t.Errorf("%v gives %q, want %q", want.IDs, back.String(), want.Text)
		}
	}
	if !slices.Equal(tokens.ends, []int{291, 292}) {
		t.Errorf("texts end with %v", tokens.ends)
	}
}

// Meta's form of the same tokenizer gives the same tokens; its special ones follow the ranks.
func TestTokenizerOfRanks(t *testing.T) {
	tokens, err := ReadTokenizer(beside(tokenizers + "tokenizer-tiktoken"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range encodings(t) {
		if strings.Contains(want.Text, "<|eot_id|>") { // another id in this form
			continue
		}
		if got := tokens.Encode(want.Text); !slices.Equal(got, want.IDs) {
			t.Errorf("%q gives %v, want %v", want.Text, got, want.IDs)
		}
	}
}

// Tokenizers of other kinds are refused.
func TestTokenizerRefuses(t *testing.T) {
	if _, err := ReadTokenizer(beside(tokenizers + "tokenizer-llama2")); err == nil || !strings.Contains(err.Error(), "-prompt-ids") {
		t.Errorf("Llama 2's tokenizer.json: %v", err)
	}
	if _, err := ReadTokenizer(beside("../../pytorch-tests/llama/meta-q8")); err == nil || !strings.Contains(err.Error(), "-prompt-ids") {
		t.Errorf("sentencepiece: %v", err)
	}
	if _, err := ReadTokenizer(beside(t.TempDir())); err == nil || !strings.Contains(err.Error(), "-prompt-ids") {
		t.Errorf("none: %v", err)
	}
	for _, text := range []string{
		"{", `{}`,
		`{"pre_tokenizer": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"日": 0}}}`,
		`{"pre_tokenizer": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 3, "ba": 2}, "merges": ["a b", "b a"]}}`,
		`{"normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"a": 0}}}`,
	} {
		if _, err := parseTokenizer([]byte(text)); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}

// A prompt of words is continued with the words of the tokens that its ids are continued with.
func TestCommandContinuesText(t *testing.T) {
	dir := t.TempDir()
	for to, from := range map[string]string{
		"consolidated.00.pth": "llama/meta-q8/consolidated.00.pth", "consolidated.01.pth": "llama/meta-q8/consolidated.01.pth",
		"params.json": "llama/meta-q8/params.json", "tokenizer.json": "gguf/tokenizer-llama3/tokenizer.json",
	} {
		b, err := os.ReadFile("../../pytorch-tests/" + from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tokens, err := ReadTokenizer(beside(dir))
	if err != nil {
		t.Fatal(err)
	}
	prompt := encodings(t)[0]
	var ids, text strings.Builder
	if err := run(t.Context(), []string{"-weights", dir, "-prompt-ids", joined(prompt.IDs, ","), "-n", "8"}, &ids); err != nil {
		t.Fatal(err)
	}
	want := prompt.Text
	for _, field := range strings.Fields(ids.String()) {
		id, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(tokens.ends, id) {
			break
		}
		want += tokens.Decode(id)
	}
	if err := run(t.Context(), []string{"-weights", dir, "-prompt", prompt.Text, "-n", "8"}, &text); err != nil {
		t.Fatal(err)
	}
	if text.String() != want+"\n" || len(want) == len(prompt.Text) {
		t.Errorf("printed %q, want %q", text.String(), want)
	}
}
