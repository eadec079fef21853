package gguf_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/gguf"
	"github.com/wick-ml/wick/llama"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/tensor"
)

const (
	fixtures = "../pytorch-tests/gguf"
	models   = "../pytorch-tests/llama"
)

type vocabulary struct {
	Tokens []struct {
		Text  string
		Score float64
		Type  float64
	}
	Merges []string
	IDs    map[string]float64
	Add    map[string]bool
	Chat   *string
}

// expected is what the gguf package of PyPI says.
type expected struct {
	Q8    []struct{ In, Out string }
	Files map[string]struct {
		Tensors map[string]info
		Header  map[string]any
	} `json:"files_of_meta_q8"`
	Vocabularies map[string]vocabulary
	RopeFactors  []float64 `json:"rope_factors"`
}

func read(t *testing.T) expected {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(fixtures, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var e expected
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	if len(e.Q8) < 50 || len(e.Files) != 4 || len(e.Vocabularies) != 3 {
		t.Fatalf("%d blocks, %d files, %d vocabularies", len(e.Q8), len(e.Files), len(e.Vocabularies))
	}
	return e
}

// TestQ8 holds the quantizer against the one of numpy in the gguf package.
func TestQ8(t *testing.T) {
	for _, c := range read(t).Q8 {
		in, err := hex.DecodeString(c.In)
		if err != nil {
			t.Fatal(err)
		}
		var block [32]float32
		for i := range block {
			block[i] = math.Float32frombits(uint32(in[4*i]) | uint32(in[4*i+1])<<8 | uint32(in[4*i+2])<<16 | uint32(in[4*i+3])<<24)
		}
		if got := hex.EncodeToString(gguf.Q8(nil, &block)); got != c.Out {
			t.Errorf("%v\ngot  %s\nwant %s", block, got, c.Out)
		}
	}
}

// A block that no scale fits is told by its scale and has no wild numbers.
func TestQ8OfOddNumbers(t *testing.T) {
	for name, v := range map[string]float32{"NaN": float32(math.NaN()), "infinity": float32(math.Inf(1))} {
		block := [32]float32{1: v, 2: 5}
		b := gguf.Q8(nil, &block)
		if scale := tensor.Float16(uint16(b[0]) | uint16(b[1])<<8).Float32(); scale == scale && !math.IsInf(float64(scale), 0) {
			t.Errorf("%s: the scale %v", name, scale)
		}
		if !slices.Equal(b[2:], make([]byte, 32)) {
			t.Errorf("%s: the numbers %v", name, b[2:])
		}
	}
}

// convert writes a folder as GGUF and reads the file again.
func convert(t *testing.T, dir string, opts ...wick.ConvertOption) (*file, *wick.ConvertReport, error) {
	t.Helper()
	c, err := wick.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	out := filepath.Join(t.TempDir(), "out.gguf")
	report, err := wick.Convert(t.Context(), c, out, opts...)
	if err != nil {
		return nil, nil, err
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, b), report, nil
}

// TestFiles holds every tensor and every key of the header.
func TestFiles(t *testing.T) {
	for dtype, want := range read(t).Files {
		t.Run(dtype, func(t *testing.T) {
			opt := wick.Quantize(dtype)
			if d, ok := tensor.ParseDType(dtype); ok {
				opt = wick.Precision(d)
			}
			got, report, err := convert(t, filepath.Join(models, "meta-q8"), opt)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.tensors, want.Tensors) {
				t.Errorf("tensors\n%v\nwant\n%v", got.tensors, want.Tensors)
			}
			compareHeaders(t, got.header, want.Header)
			if len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "context") || report.Report.Tensors != len(want.Tensors) {
				t.Errorf("%d tensors, notes %q", report.Report.Tensors, report.Notes)
			}
		})
	}
}

func compareHeaders(t *testing.T, got, want map[string]any) {
	t.Helper()
	for key := range want {
		if !reflect.DeepEqual(got[key], want[key]) {
			t.Errorf("%s is %v, want %v", key, got[key], want[key])
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			t.Errorf("the key %s, which the package does not write", key)
		}
	}
}

// The same model under Hugging Face's names gives the same tensors: q and k go
// back to where they were.
func TestNamesDoNotMatter(t *testing.T) {
	meta := filepath.Join(models, "meta-q8")
	want, _, err := convert(t, meta)
	if err != nil {
		t.Fatal(err)
	}
	c, err := wick.Open(t.Context(), meta)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	dir := t.TempDir()
	asRecord := wick.AsRecord(checkpoint.RecordHeader{Type: "Llama"}) // which no GGUF file stays
	if _, err := wick.Convert(t.Context(), c, filepath.Join(dir, "m.safetensors"), wick.Names("hf"), asRecord); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "config.json", `{"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
		"rms_norm_eps": 1e-05, "max_position_embeddings": 4096}`)
	got, report, err := convert(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.tensors, want.tensors) {
		t.Error("other tensors than from Meta's names")
	}
	if len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "without a tokenizer") {
		t.Errorf("notes %q", report.Notes)
	}
	want.header["tokenizer.ggml.model"] = "no_vocab" // what llama.cpp loads a file without a tokenizer by
	for key, v := range got.header {
		if !reflect.DeepEqual(v, want.header[key]) {
			t.Errorf("%s is %v, want %v", key, v, want.header[key])
		}
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// withTokenizer makes a folder of the weights of meta-q8 and the files of another.
func withTokenizer(t *testing.T, from string) string {
	t.Helper()
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(models, "meta-q8"), from} {
		entries, err := os.ReadDir(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			b, err := os.ReadFile(filepath.Join(path, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if e.Name() != "tokenizer.model" || path == from {
				write(t, dir, e.Name(), string(b))
			}
		}
	}
	return dir
}

// TestVocabularies holds the tokenizers against what the gguf package reads from
// them.
func TestVocabularies(t *testing.T) {
	all := read(t).Vocabularies
	for name, want := range all {
		from := filepath.Join(fixtures, name)
		if name == "meta-q8" {
			from = filepath.Join(models, name)
		}
		t.Run(name, func(t *testing.T) {
			got, _, err := convert(t, withTokenizer(t, from))
			if err != nil {
				t.Fatal(err)
			}
			checkVocabulary(t, got.header, want)
			if name == "tokenizer-llama2" {
				checkScores(t, got.header, all["meta-q8"])
				return
			}
			for i, w := range want.Tokens {
				if s, ok := got.header["tokenizer.ggml.scores"].([]any); ok && s[i] != w.Score {
					t.Errorf("the score of %q is %v, want %v", w.Text, s[i], w.Score)
				}
			}
		})
	}
}

func checkVocabulary(t *testing.T, header map[string]any, want vocabulary) {
	t.Helper()
	texts, types := header["tokenizer.ggml.tokens"].([]any), header["tokenizer.ggml.token_type"].([]any)
	if len(texts) != 300 || len(types) != 300 {
		t.Fatalf("%d tokens, %d types, want one for each of the 300 rows", len(texts), len(types))
	}
	for i, w := range want.Tokens {
		// The package takes <unk> for a control token in tokenizer.json; llama.cpp's own reader of tokenizer.model does not.
		same := types[i] == w.Type || w.Text == "<unk>" && types[i] == 2.0
		if texts[i] != w.Text || !same {
			t.Errorf("token %d is %q of type %v, want %q of type %v", i, texts[i], types[i], w.Text, w.Type)
		}
	}
	for i := len(want.Tokens); i < 300; i++ {
		if types[i] != 5.0 {
			t.Errorf("token %d is %q of type %v, want an unused one", i, texts[i], types[i])
		}
	}
	merges := []string{}
	if list, ok := header["tokenizer.ggml.merges"].([]any); ok {
		for _, m := range list {
			merges = append(merges, m.(string))
		}
	}
	if !slices.Equal(merges, want.Merges) {
		t.Errorf("merges %q, want %q", merges, want.Merges)
	}
	keys := map[string]string{"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
	for name, id := range want.IDs {
		if got := header["tokenizer.ggml."+keys[name]+"_token_id"]; got != id {
			t.Errorf("the token %s is %v, want %v", name, got, id)
		}
	}
	for name, on := range want.Add {
		if got := header["tokenizer.ggml.add_"+name+"_token"]; got != on && name != "sep" {
			t.Errorf("add_%s_token is %v, want %v", name, got, on)
		}
	}
	if chat, _ := header["tokenizer.chat_template"].(string); want.Chat != nil && chat != *want.Chat {
		t.Errorf("the chat template %q", chat)
	}
}

// checkScores holds the scores that are worked out from merges against those that
// sentencepiece gave: what it merges first is merged first.
func checkScores(t *testing.T, header map[string]any, spm vocabulary) {
	t.Helper()
	scores := header["tokenizer.ggml.scores"].([]any)
	for i := range spm.Tokens {
		for k := range spm.Tokens {
			if spm.Tokens[i].Type == 1 && spm.Tokens[k].Type == 1 && spm.Tokens[i].Score < spm.Tokens[k].Score && scores[i].(float64) >= scores[k].(float64) {
				t.Fatalf("%q scores %v and %q %v, sentencepiece has %v and %v", spm.Tokens[i].Text, scores[i], spm.Tokens[k].Text, scores[k], spm.Tokens[i].Score, spm.Tokens[k].Score)
			}
		}
	}
}

// Llama 3's tokenizer.model of ranks gives the tokens and merges that the same
// vocabulary has in tokenizer.json.
func TestTiktoken(t *testing.T) {
	want := read(t).Vocabularies["tokenizer-llama3"]
	got, _, err := convert(t, withTokenizer(t, filepath.Join(fixtures, "tokenizer-tiktoken")))
	if err != nil {
		t.Fatal(err)
	}
	texts := got.header["tokenizer.ggml.tokens"].([]any)
	ranks := 0
	for i, w := range want.Tokens {
		if w.Type != 1 {
			break
		}
		ranks++
		if texts[i] != w.Text {
			t.Errorf("token %d is %q, want %q", i, texts[i], w.Text)
		}
	}
	var merges []string
	for _, m := range got.header["tokenizer.ggml.merges"].([]any) {
		merges = append(merges, m.(string))
	}
	if !slices.Equal(merges, want.Merges) {
		t.Errorf("merges %q, want %q", merges, want.Merges)
	}
	if texts[ranks] != "<|begin_of_text|>" || got.header["tokenizer.ggml.bos_token_id"] != float64(ranks) || got.header["tokenizer.ggml.pre"] != "llama-bpe" {
		t.Errorf("the token %v, bos %v, pre %v", texts[ranks], got.header["tokenizer.ggml.bos_token_id"], got.header["tokenizer.ggml.pre"])
	}
}

// The factors of Llama 3.1 are those that transformers computes in float32.
func TestRopeFactors(t *testing.T) {
	want := read(t).RopeFactors
	got := gguf.RopeFactors(llama.Scaling{Type: "llama3", Factor: 8, LowFactor: 1, HighFactor: 4, OriginalContext: 8192}, 500000, 64)
	if len(want) != 32 || len(got) != len(want) {
		t.Fatalf("%d factors, want %d", len(got), len(want))
	}
	for i := range want {
		if math.Abs(float64(got[i])-want[i]) > 1e-5*want[i] {
			t.Errorf("factor %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// A model with scaled frequencies has their factors in a tensor.
func TestScaledRope(t *testing.T) {
	dir := withTokenizer(t, filepath.Join(fixtures, "tokenizer-llama3"))
	write(t, dir, "params.json", `{"dim": 32, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "norm_eps": 1e-05, "rope_theta": 500000.0, "use_scaled_rope": true}`)
	got, _, err := convert(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if i := got.tensors["rope_freqs.weight"]; i.Type != "F32" || !slices.Equal(i.Shape, []int{4}) {
		t.Errorf("rope_freqs.weight is %v", i)
	}
	if got.header["llama.context_length"] != 131072.0 {
		t.Errorf("a context of %v", got.header["llama.context_length"])
	}
}

// TestRefuses holds what no GGUF file is written of, before a byte is.
func TestRefuses(t *testing.T) {
	const config = `{"dim": 32, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2}`
	drop, err := rules.Parse("drop", "drop layers.1.attention.wo.weight")
	if err != nil {
		t.Fatal(err)
	}
	repeat, err := rules.Parse("repeat", "tok_embeddings.weight = tok_embeddings.weight | narrow 0 0:1 | expand 5000000 -1")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files map[string]string
		opts  []wick.ConvertOption
		want  error
		path  string
		text  string
	}{
		"an unknown form":         {nil, []wick.ConvertOption{wick.Quantize("q4_0")}, fault.ErrUsage, "", "q4_0"},
		"a dtype it has not":      {nil, []wick.ConvertOption{wick.Precision(tensor.F64)}, fault.ErrUsage, "", "float64"},
		"a record":                {nil, []wick.ConvertOption{wick.AsRecord(checkpoint.RecordHeader{})}, fault.ErrUsage, "", "record"},
		"shards":                  {nil, []wick.ConvertOption{wick.ShardBytes(1000)}, fault.ErrUsage, "", "several files"},
		"a missing parameter":     {nil, []wick.ConvertOption{wick.WithRules(drop)}, fault.ErrMismatch, "blk.1.attn_output.weight", ""},
		"an endless embedding":    {nil, []wick.ConvertOption{wick.WithRules(repeat)}, fault.ErrLimit, "token_embd.weight", "tokens"},
		"kept shards":             {nil, []wick.ConvertOption{wick.KeepShards()}, fault.ErrMismatch, "consolidated.00.pth.tok_embeddings.weight", "wick.KeepShards()"},
		"another family":          {map[string]string{"params.json": `{"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "model_type": "gemma"}`}, nil, fault.ErrUnsupported, "", "gemma"},
		"a mixture of experts":    {map[string]string{"params.json": config[:len(config)-1] + `, "moe": {"num_experts": 8}}`}, nil, fault.ErrUnsupported, "", "mixture"},
		"too many tokens":         {map[string]string{"added_tokens.json": `{"x": 300}`}, nil, fault.ErrMismatch, "", "at most 300"},
		"a broken tokenizer":      {map[string]string{"tokenizer.model": "\n\xff\xff"}, nil, fault.ErrMalformed, "", "sentencepiece"},
		"a broken JSON tokenizer": {map[string]string{"tokenizer.model": "", "tokenizer.json": "{"}, nil, fault.ErrMalformed, "", "tokenizer"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := withTokenizer(t, filepath.Join(models, "meta-q8"))
			for file, text := range c.files {
				write(t, dir, file, text)
			}
			if text, ok := c.files["tokenizer.model"]; ok && text == "" {
				if err := os.Remove(filepath.Join(dir, "tokenizer.model")); err != nil {
					t.Fatal(err)
				}
			}
			_, _, err := convert(t, dir, c.opts...)
			var e *fault.Error
			if !errors.Is(err, c.want) || !errors.As(err, &e) || e.Path != c.path || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %v on %q with %q", err, c.want, c.path, c.text)
			}
		})
	}
}

// A tokenizer that GGUF has no form for is left out, and the notes say so.
func TestUnknownTokenizer(t *testing.T) {
	dir := withTokenizer(t, filepath.Join(fixtures, "tokenizer-llama2"))
	write(t, dir, "tokenizer.json", `{"model": {"type": "Unigram", "vocab": [["a", 0.0]]}}`)
	got, report, err := convert(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	for key, v := range got.header {
		if strings.HasPrefix(key, "tokenizer.") && (key != "tokenizer.ggml.model" || v != "no_vocab") {
			t.Errorf("the key %s: %v", key, v)
		}
	}
	if !slices.ContainsFunc(report.Notes, func(n string) bool { return strings.Contains(n, "Unigram") }) {
		t.Errorf("notes %q", report.Notes)
	}
}

func BenchmarkQ8(b *testing.B) {
	var block [32]float32
	for i := range block {
		block[i] = float32(i*i%37) - 18.25
	}
	out := make([]byte, 0, 34)
	b.SetBytes(128)
	for b.Loop() {
		out = gguf.Q8(out[:0], &block)
	}
}
