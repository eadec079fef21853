package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// What convert made under flags is the same under these flags, and differs
// without them.
func TestVerifyAndDiffTakeConvertsFlags(t *testing.T) {
	resnet := fixture("demo-resnet/demo-resnet-torch2.15.pt")
	for _, c := range []struct {
		name, in string
		flags    []string
		same     string
	}{
		{"key", resnet, []string{"--key", "state_dict"}, "all 122 tensors"},
		{"exact key", resnet, []string{"--key", `["state_dict"]`}, "all 122 tensors"},
		{"exclude", resnet, []string{"--exclude", "**.num_batches_tracked"}, "all 102 tensors"},
		{"include and rename", resnet, []string{"--include", "state_dict.fc", "--rename", "state_dict.fc.{rest} -> head.{rest}"}, "all 2 tensors"},
		{"rules", fixture("lightning/lightning-torch2.15.ckpt"), []string{"--rules", "lightning"}, ""},
		{"dtype", resnet, []string{"--dtype", "half"}, "all 122 tensors"},
		{"dequantize", fixture("quantized/per_channel-torch2.15.pt"), []string{"--dequantize"}, ""},
		{"densify", fixture("sparse/coo-torch2.15.pt"), []string{"--densify"}, ""},
		{"names", llamas + "/meta-2shards", []string{"--names", "hf"}, ""},
		{"names and dtype", llamas + "/meta-2shards", []string{"--names", "hf", "--dtype", "bfloat16"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.safetensors")
			run := func(code int, text string, args ...string) {
				t.Helper()
				if got := runFiles(t, args...); got.code != code || !strings.Contains(got.out, text) {
					t.Errorf("%v: exit %d, %s%s", args, got.code, got.out, got.err)
				}
			}
			with := func(command string) []string { return append([]string{command}, append(c.flags, c.in, out)...) }
			run(0, "", with("convert")...)
			run(0, c.same, with("verify")...)
			run(0, "no difference", with("diff")...)
			run(1, "differ", "verify", c.in, out)
			run(1, "difference", "diff", c.in, out)
		})
	}
}

// compared are a checkpoint and what --key state makes of it, with one value that
// another training changed.
func compared(t *testing.T) map[string]nested.Value {
	t.Helper()
	weight, bias := lazy(tensor.Of([]float32{1, 2})), lazy(tensor.Of([]float32{3}))
	other := lazy(tensor.Of([]float32{4}))
	state := mapOf(t, str("weight"), weight, str("bias"), bias)
	return map[string]nested.Value{
		"model.ckpt": mapOf(t, str("state"), state, str("epoch"), nested.Int(3), str("config"), mapOf(t, str("width"), nested.Int(8))),
		"model.st":   mapOf(t, str("weight"), weight, str("bias"), bias),
		"other.st":   mapOf(t, str("weight"), weight, str("bias"), other),
	}
}

func TestCompareBelowKey(t *testing.T) {
	var said strings.Builder
	for _, c := range []struct {
		line string
		code int
	}{
		{"verify --key state model.ckpt model.st", 0},
		{"verify --json --key state model.ckpt model.st", 0},
		{"verify --key state model.ckpt other.st", 1},
		{"verify model.ckpt model.st", 1},
		{"diff --key state model.ckpt model.st", 0},
		{"diff --key state --rename bias->b model.ckpt other.st", 1},
		{"verify --key stat model.ckpt model.st", 2},
		{"verify --key config model.ckpt model.st", 2},
		{"verify --key state --exclude none model.ckpt model.st", 0},
		{"verify --key state model.ckpt", 2},
		{"verify --densify --dtype half model.ckpt", 2},
		{"ls --key state model.ckpt", 0},
		{"ls --all --key config model.ckpt", 0},
		{"ls --key stat model.ckpt", 2},
		{"show --key state model.ckpt weight", 0},
		{"tree --key state model.ckpt", 0},
	} {
		got := runTrees(t.Context(), compared(t), strings.Fields(c.line)...)
		if got.code != c.code {
			t.Errorf("wick %s: exit %d, want %d", c.line, got.code, c.code)
		}
		said.WriteString("$ wick " + c.line + "\n" + got.out + got.err)
	}
	golden(t, "compare-key.golden", said.String())
}
