package parsertest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	parser "github.com/gpustack/gguf-parser-go"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/tensor"
)

const fixtures = "../../pytorch-tests"

// info is a tensor as the gguf package of PyPI says it.
type info struct {
	Type   string
	Shape  []uint64
	SHA256 string
}

// write converts a folder of Llama's weights to GGUF.
func write(t *testing.T, folder, dtype string) string {
	t.Helper()
	c, err := wick.Open(t.Context(), filepath.Join(fixtures, "llama", folder))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	opt := wick.Quantize(dtype)
	if d, ok := tensor.ParseDType(dtype); ok {
		opt = wick.Precision(d)
	}
	out := filepath.Join(t.TempDir(), "out.gguf")
	if _, err := wick.Convert(t.Context(), c, out, opt); err != nil {
		t.Fatal(err)
	}
	return out
}

func parse(t *testing.T, file string) *parser.GGUFFile {
	t.Helper()
	g, err := parser.ParseGGUFFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestTensors holds the place, type, shape and bytes of every tensor.
func TestTensors(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(fixtures, "gguf", "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Files map[string]struct{ Tensors map[string]info } `json:"files_of_meta_q8"`
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Files) != 4 {
		t.Fatalf("%d files, want 4", len(want.Files))
	}
	for dtype, f := range want.Files {
		t.Run(dtype, func(t *testing.T) {
			path := write(t, "meta-q8", dtype)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			g := parse(t, path)
			if len(g.TensorInfos) != len(f.Tensors) {
				t.Errorf("%d tensors, want %d", len(g.TensorInfos), len(f.Tensors))
			}
			for _, got := range g.TensorInfos {
				w := f.Tensors[got.Name]
				slices.Reverse(w.Shape)
				start := uint64(g.TensorDataStartOffset) + got.Offset
				sum := sha256.Sum256(b[start : start+got.Bytes()])
				if got.Type.String() != w.Type || !slices.Equal(got.Dimensions, w.Shape) || hex.EncodeToString(sum[:]) != w.SHA256 || start%32 != 0 {
					t.Errorf("%s: %s %v at %d, want %v", got.Name, got.Type, got.Dimensions, start, w)
				}
			}
		})
	}
}

// TestHeader holds what the parser makes of the header: the architecture, the
// tokenizer, the type of the file, and what running it would take.
func TestHeader(t *testing.T) {
	for dtype, fileType := range map[string]string{"float32": "MOSTLY_F32", "float16": "MOSTLY_F16", "bfloat16": "MOSTLY_BF16", "q8_0": "MOSTLY_Q8_0"} {
		t.Run(dtype, func(t *testing.T) {
			g := parse(t, write(t, "meta-q8", dtype))
			m := g.Metadata()
			if m.Type != "model" || m.Architecture != "llama" || m.Name != "out" || m.FileType.String() != fileType || m.Alignment != 32 || m.QuantizationVersion != 2 || !m.LittleEndian {
				t.Errorf("metadata %+v", m)
			}
			a := g.Architecture()
			if a.BlockCount != 2 || a.EmbeddingLength != 32 || !slices.Equal(a.FeedForwardLength, []uint64{96, 96}) || a.AttentionHeadCount != 4 || a.AttentionHeadCountKV != 2 ||
				a.MaximumContextLength != 4096 || a.VocabularyLength != 300 || a.RoPEDimensionCount != 8 || a.RoPEFrequencyBase != 10000 {
				t.Errorf("architecture %+v", a)
			}
			k := g.Tokenizer()
			if k.Model != "llama" || k.TokensLength != 300 || k.BOSTokenID != 1 || k.EOSTokenID != 2 || k.UnknownTokenID != 0 {
				t.Errorf("tokenizer %+v", k)
			}
			if layers := g.Layers(); len(layers) == 0 {
				t.Error("no layers")
			}
			if e := g.EstimateLLaMACppRun(); e.Architecture != "llama" || e.ContextSize != 4096 {
				t.Errorf("estimate %+v", e)
			}
		})
	}
}

// TestWithoutTokenizer holds a file that was written without one, with tied
// embeddings.
func TestWithoutTokenizer(t *testing.T) {
	g := parse(t, write(t, "meta-tied-2shards", "float16"))
	if k := g.Tokenizer(); k.TokensLength != 0 {
		t.Errorf("tokenizer %+v", k)
	}
	if _, ok := g.TensorInfos.Get("output.weight"); ok {
		t.Error("an output layer beside the embedding that it is")
	}
	if g.Architecture().VocabularyLength != 32 {
		t.Errorf("a vocabulary of %d", g.Architecture().VocabularyLength)
	}
}
