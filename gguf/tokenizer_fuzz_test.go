package gguf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wick-ml/wick/fault"
)

// FuzzTokenizers holds that no tokenizer crashes, claims more tokens than the model
// has rows, or fails otherwise than as a fault of the file. Seen to catch: a set
// without its bound and a take that trusted its length.
func FuzzTokenizers(f *testing.F) {
	for _, name := range []string{"llama/meta-q8/tokenizer.model", "gguf/tokenizer-tiktoken/tokenizer.model", "gguf/tokenizer-llama2/tokenizer.json", "gguf/tokenizer-llama3/tokenizer.json"} {
		b, err := os.ReadFile(filepath.Join("../pytorch-tests", filepath.FromSlash(name)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte(`{"x": 299}`), []byte(`{"bos_token": {"content": "<s>"}, "added_tokens_decoder": {"298": {"content": "y", "special": true}}}`))
	}
	f.Add([]byte("\n\xff\xff\x03"), []byte(`{"x": 5000}`), []byte(`{}`))
	f.Add([]byte("\n\x03\n\x01a"), []byte(`{"x": 5000}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, b, added, config []byte) {
		const rows = 300
		for _, name := range []string{"tokenizer.model", "tokenizer.json"} {
			files := map[string][]byte{name: b, "added_tokens.json": added, "tokenizer_config.json": config}
			v, err := readVocabulary(func(name string, _ int64) ([]byte, error) {
				if b, ok := files[name]; ok {
					return b, nil
				}
				return nil, fault.New(fault.NotFound, name)
			}, rows)
			if err != nil {
				if k := fault.KindOf(err); k != fault.Malformed && k != fault.Mismatch && k != fault.Limit {
					t.Fatalf("an error of kind %q: %v", k, err)
				}
				continue
			}
			if len(v.tokens) > rows {
				t.Fatalf("%d tokens", len(v.tokens))
			}
			p := &pairs{}
			v.write(p, rows)
		}
	})
}
