package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

func TestInfo(t *testing.T) {
	got := runTrees(t.Context(), map[string]nested.Value{"m.pt": model(t)}, "info", "m.pt")
	const want = `file      m.pt
format    zip, little-endian
writer    torch 2.15.0
tensors   4, 30 elements, 112 B
storages  2, 56 B
dtypes    float32: 3 tensors, 26 elements, 104 B
          float16: 1 tensor, 4 elements, 8 B
notes     2 share storage, 1 strided, 1 without data
also      13 plain values and 1 opaque object
convert   stops and writes nothing: state.meta is a tensor without data (meta) (leave it out with --exclude, or save the model with its weights loaded)

state         4 tensors, 30 elements, 112 B
epoch         3
seed          1180591620717411303424
loss          nan
lr            0.1
best          None
on            True
z             (1.5-2j)
rng           b'\x00\xff'
café          'grüße'
\xed\xa0\x80  '層'
(1, 'a')      torch.float16
0             7
args          1 plain value and 1 opaque object
`
	if got.code != 0 || got.out != want {
		t.Errorf("exit %d, got\n%s\nwant\n%s", got.code, got.out, want)
	}
}

func TestInfoJSON(t *testing.T) {
	got := runTrees(t.Context(), map[string]nested.Value{"m.pt": model(t)}, "info", "--json", "m.pt")
	var doc struct {
		Tensors, Storages, Shared, Strided, Values, Opaque, Faulty int
		NoData                                                     int   `json:"no_data"`
		Bytes, Elements                                            int64 //
		StorageBytes                                               int64 `json:"storage_bytes"`
		DTypes                                                     map[string]struct{ Tensors int }
	}
	if err := json.Unmarshal([]byte(got.out), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Tensors != 4 || doc.Storages != 2 || doc.Shared != 2 || doc.Strided != 1 || doc.NoData != 1 || doc.Values != 13 || doc.Opaque != 1 ||
		doc.Bytes != 112 || doc.StorageBytes != 56 || doc.Elements != 30 || doc.DTypes["float32"].Tensors != 3 {
		t.Errorf("%s", got.out)
	}
}

// info says which names a plain torch.load would import beyond the allow list.
func TestInfoNamesWhatIsNotAllowed(t *testing.T) {
	for name, want := range map[string]string{
		"odd-objects/hostile-torch2.15.pt":      "1 dangerous: posix.system (",
		"odd-objects/class_keys-torch2.15.pt":   "1 unknown: training.util.Config (",
		"demo-resnet/demo-resnet-torch2.15.pt":  "",
		"state-dict/data_parallel-torch2.15.pt": "",
		"odd-objects/enums-torch2.15.pt":        "3 unknown: training.util.",
		"torchscript/half-torch2.15.pt":         "",
	} {
		got := runFiles(t, "info", fixture(name))
		if got.code != 0 || strings.Contains(got.out, "\nimports ") != (want != "") || !strings.Contains(got.out, want) {
			t.Errorf("%s: exit %d, no %q: %s%s", name, got.code, want, got.out, got.err)
		}
	}
}

// info says which names collide and what convert does then.
func TestInfoOfACollision(t *testing.T) {
	x := lazy(tensor.Of([]float32{1}))
	trees := map[string]nested.Value{"m.pt": mapOf(t, str("a.b"), x, str("a"), mapOf(t, str("b"), x))}
	got := runTrees(t.Context(), trees, "info", "m.pt")
	const want = `convert   stops and writes nothing: a.b: two tensors have this name: ["a.b"] and ["a", "b"] ` +
		`(--rename '["a", "b"] -> ANOTHER' gives one another, --exclude '["a", "b"]' leaves one out)` + "\n"
	if got.code != 0 || !strings.Contains(got.out, want) {
		t.Errorf("exit %d, got\n%s\nwant\n%s", got.code, got.out, want)
	}
	for _, cure := range [][]string{{"--rename", `["a", "b"] -> ANOTHER`}, {"--exclude", `["a", "b"]`}} {
		if got := runTrees(t.Context(), trees, append(cure, "convert", "m.pt", filepath.Join(t.TempDir(), "m.safetensors"))...); got.code != 0 {
			t.Errorf("%s: exit %d, %s", cure, got.code, got.err)
		}
	}
}

// info foretells that convert refuses what expands too far, as it does.
func TestInfoOfAnExpansion(t *testing.T) {
	trees := map[string]nested.Value{"m.pt": mapOf(t, str("w"), strided(t, storage("data/0", 1), []int64{1 << 20, 1 << 10}, []int64{0, 0}, 0))}
	got := runTrees(t.Context(), trees, "info", "m.pt")
	if want := "convert   stops and writes nothing: 4.0 GiB made of 4 B (if you trust the file: --limit expansion=4294967296)\n"; got.code != 0 || !strings.Contains(got.out, want) {
		t.Errorf("exit %d, got\n%s\nwant\n%s", got.code, got.out, want)
	}
	if got := runTrees(t.Context(), trees, "convert", "m.pt", filepath.Join(t.TempDir(), "m.safetensors")); got.code != 4 || !strings.Contains(got.err, "--limit expansion=4294967296") {
		t.Errorf("exit %d, %s", got.code, got.err)
	}
}
