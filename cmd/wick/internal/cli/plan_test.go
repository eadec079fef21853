package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wick-ml/wick/cmd/wick/internal/gen"
)

// sourceFile writes Go source to a file of a new folder.
func sourceFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "net.go")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const taggerSource = `package p

import (
	n "github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/tensor"
)

type Tagger[T any] struct {
	Embedding n.Embedding[T]
	Encoder   map[string]tensor.Array[T]
	LSTM      n.LSTM[T]
	Rest      struct{ Later string } ` + "`torch:\"-\"`" + `
	Base
	Head *Head
}

type Base struct {
	GRU  n.GRU[float32]
	Cell *n.LSTMCell[float32] // optional
	note string
}

type Half = Tagger[tensor.Float16]

type Net struct {
	All Tagger[float32] ` + "`torch:\", inline\"`" + `
}

type Head struct {
	Weight []float32 ` + "`torch:\"weight, shape 5 2\"`" + `
	Bias   [5]float32
}

type Wrong struct {
	Embedding n.Embedding[float32]
	Encodr    map[string][]float32
	Head      struct{ Weight [2][2]float32; Bias []uint8; Scale []float32 }
}

type Loop struct{ Next *Loop }

type Odd struct{ F func() }
`

// A struct that fits, one that does not, and rules, as people and as programs
// see them.
func TestPlanOutput(t *testing.T) {
	file := sourceFile(t, taggerSource)
	lstm := fixture("model-families/lstm-torch2.15.pt")
	for _, c := range []struct {
		golden string
		code   int
		args   []string
	}{
		{"plan-struct.golden", 0, []string{"--struct", file, "--type", "Net", lstm}},
		{"plan-half.golden", 0, []string{"--struct", file, "--type", "Half", lstm}},
		{"plan-wrong.golden", 1, []string{"--struct", file, "--type", "Wrong", lstm}},
		{"plan-wrong-json.golden", 1, []string{"--json", "--struct", file, "--type", "Wrong", lstm}},
		{"plan-rules.golden", 0, []string{"--rename", "embedding.{rest...} -> emb.{rest...}", "--exclude", "gru", "--dtype", "float16", lstm}},
		{"plan-rules-json.golden", 0, []string{"--json", "--include", "head", "--include", "cell", lstm}},
		{"plan-unmatched.golden", 1, []string{"--include", "head", "--rename", "nothing -> something", lstm}},
		{"plan-key.golden", 1, []string{"--key", "stat_dict", fixture("lightning/lightning-torch2.15.ckpt")}},
		{"plan-key-json.golden", 1, []string{"--json", "--key", "stat_dict", fixture("lightning/lightning-torch2.15.ckpt")}},
		{"plan-names.golden", 0, []string{"--names", "gguf", "--dtype", "float16", llamas + "/hf-2shards"}},
		{"plan-dequantize.golden", 0, []string{"--dequantize", "--rename", "w -> v", fixture("quantized/per_tensor-torch2.15.pt")}},
		{"plan-collision.golden", 1, []string{"--rename", "head.{x} -> head.weight", lstm}},
	} {
		t.Run(c.golden, func(t *testing.T) {
			got := runFiles(t, append([]string{"plan"}, c.args...)...)
			if got.code != c.code || got.err != "" {
				t.Fatalf("exit %d: %s%s", got.code, got.out, got.err)
			}
			if strings.Contains(c.golden, "json") && !json.Valid([]byte(got.out)) {
				t.Error("no JSON")
			}
			golden(t, c.golden, got.out)
		})
	}
}

// A plan names the tensors that convert writes under the same flags.
func TestPlanIsWhatConvertWrites(t *testing.T) {
	type row struct {
		Name, DType string
		Shape       []int
	}
	rows := func(args ...string) (doc struct{ Tensors []row }) {
		t.Helper()
		if err := json.Unmarshal([]byte(runFiles(t, args...).out), &doc); err != nil {
			t.Fatal(args, err)
		}
		slices.SortFunc(doc.Tensors, func(a, b row) int { return strings.Compare(a.Name, b.Name) })
		return doc
	}
	for _, args := range [][]string{
		{"--names", "hf", "--dtype", "float16", llamas + "/meta-2shards"},
		{"--names", "meta", "--config", llamas + "/meta-2shards/params.json", llamas + "/hf-2shards/model.safetensors"},
		{"--names", "gguf", "--rename", "model.{rest...} -> model.{rest...}", llamas + "/hf-2shards"},
		{"--dequantize", fixture("quantized/per_channel-torch2.15.pt")},
		{"--densify", "--exclude", "int", fixture("sparse/coo-torch2.15.pt")},
	} {
		out := filepath.Join(t.TempDir(), "out.safetensors")
		convert(t, append(slices.Clone(args), out)...)
		plan, written := rows(append([]string{"plan", "--json"}, args...)...), rows("ls", "--json", out)
		if !reflect.DeepEqual(plan, written) || len(plan.Tensors) == 0 {
			t.Errorf("%v: planned %v\nwritten %v", args, plan, written)
		}
	}
}

// What gen writes, plan reads: the code for every family fits its checkpoint,
// with the rules that stand beside the type.
func TestPlanOfGen(t *testing.T) {
	for _, args := range [][]string{
		{fixture("model-families/resnet50-torch2.15.pt")},
		{"--plain", fixture("model-families/vision-torch2.15.pt")},
		{"--key", "state_dict", "--dtype", "float16", fixture("lightning/lightning-torch2.15.ckpt")},
		{fixture("nested-tree/collisions-torch2.15.pt")},
		{"--key", "state_dict.layer1", fixture("demo-resnet/demo-resnet-torch2.15.pt")}, // a list
	} {
		out := filepath.Join(t.TempDir(), "net.go")
		file := args[len(args)-1]
		if got := runFiles(t, append([]string{"gen", "--type", "Net", "-o", out}, args...)...); got.code != 0 {
			t.Fatalf("gen: exit %d, %s", got.code, got.err)
		}
		if got := runFiles(t, "plan", "--struct", out, file); got.code != 0 || !strings.Contains(got.out, "it fits: ") {
			t.Errorf("%v: exit %d, %s%s", args, got.code, got.out, got.err)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	file := sourceFile(t, taggerSource)
	lstm := fixture("model-families/lstm-torch2.15.pt")
	big := filepath.Join(t.TempDir(), "model.pt")
	if err := errors.Join(os.WriteFile(big, nil, 0o600), os.Truncate(big, gen.MaxSource+1)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"plan"}, 2, "plan needs FILE"},
		{[]string{"plan", lstm}, 2, "plan needs rules or a struct"},
		{[]string{"plan", "--struct", file + "x", lstm}, 2, "no such file"},
		{[]string{"plan", "--struct", file, "--type", "Netz", lstm}, 2, "did you mean Net?"},
		{[]string{"plan", "--struct", file, "--type", "Loop", lstm}, 4, "contains itself"},
		{[]string{"plan", "--struct", file, "--type", "Odd", lstm}, 4, "line "},
		{[]string{"plan", "--struct", file, lstm}, 4, "Tagger with 0 type arguments"},
		{[]string{"plan", "--struct", lstm, lstm}, 2, "no Go source"},
		{[]string{"plan", "--struct", big, lstm}, 2, "model.pt is no Go file"},
		{[]string{"plan", "--rules", "no-such.rules", lstm}, 2, "no rule file"},
		{[]string{"plan", "--rename", "a ->", lstm}, 2, "--rename"},
		{[]string{"plan", "--key", "a", "none.pt"}, 2, "no such file"},
		{[]string{"plan", "--names", "hg", llamas + "/hf-2shards"}, 2, "no names of a Llama are called hg"},
		{[]string{"plan", "--names", "hf", "--config", "none.json", lstm}, 2, "none.json"},
	} {
		got := runFiles(t, c.args...)
		if got.code != c.code || !strings.Contains(got.err, c.says) || strings.Count(got.err, "\n") != 1 || got.out != "" {
			t.Errorf("%v: exit %d, %s%s", c.args, got.code, got.out, got.err)
		}
	}
}

// A name that a terminal has no room for keeps its end.
func TestSqueeze(t *testing.T) {
	const name = "model.layers.10.self_attn.q_proj.weight"
	for _, width := range []int{16, 24, 38} {
		got := squeezed(name, width)
		if textWidth(got) != width || !strings.HasSuffix(got, "j.weight") || !strings.HasPrefix(got, "model") {
			t.Errorf("width %d: %s", width, got)
		}
	}
	if got := squeezed(name, 39); got != name {
		t.Error(got)
	}
}
