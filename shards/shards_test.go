package shards_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/fault"
)

const fixtures = "../pytorch-tests/folders"

type expected struct {
	Format  string
	Tensors []struct {
		Name, DType, SHA256 string
		Shape               []int
	}
	Error *struct{ Has []string }
}

// TestFolders opens the folders that real torch and safetensors wrote and
// compares every tensor with what torch says of it.
func TestFolders(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(fixtures, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases struct{ Files map[string]expected }
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	folders := 0
	for name, want := range cases.Files {
		path := filepath.Join(fixtures, filepath.FromSlash(name))
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			continue
		}
		folders++
		t.Run(name, func(t *testing.T) { checkFolder(t, path, want) })
	}
	if folders < 20 {
		t.Fatalf("%d folders, there were more", folders)
	}
}

func checkFolder(t *testing.T, path string, want expected) {
	c, err := wick.Open(context.Background(), path)
	if want.Error != nil {
		checkRefusal(t, err, want.Error.Has)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var got, need []string
	for name, tensor := range c.Tensors() {
		h := sha256.New()
		if _, err := tensor.WriteTo(h); err != nil {
			t.Fatal(err)
		}
		name = strings.TrimPrefix(strings.TrimPrefix(name, "consolidated.00.pth."), "consolidated.01.pth.")
		got = append(got, row(name, tensor.DType().String(), tensor.Shape(), hex.EncodeToString(h.Sum(nil))))
	}
	for _, w := range want.Tensors {
		need = append(need, row(w.Name, w.DType, w.Shape, w.SHA256))
	}
	slices.Sort(got)
	slices.Sort(need)
	if !slices.Equal(got, need) {
		t.Fatalf("tensors\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(need, "\n"))
	}
}

func row(name, dtype string, shape []int, sum string) string {
	b, _ := json.Marshal(shape)
	return name + " " + dtype + " " + string(b) + " " + sum
}

func checkRefusal(t *testing.T, err error, has []string) {
	t.Helper()
	if err == nil {
		t.Fatal("opened what must be refused")
	}
	if k := fault.KindOf(err); k != fault.Malformed && k != fault.Unsupported && k != fault.NotFound && k != fault.Ambiguous {
		t.Fatalf("kind %q of %v", k, err)
	}
	for _, pattern := range has {
		if !regexp.MustCompile(pattern).MatchString(err.Error()) {
			t.Errorf("the error does not speak of %s: %v", pattern, err)
		}
	}
}

// TestIndexLies holds what an index must not do.
func TestIndexLies(t *testing.T) {
	shard, err := os.ReadFile(filepath.Join(fixtures, "pytorch_model_bin-torch2.15", "pytorch_model.bin"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		index string
		want  error
	}{
		"itself as a shard":  {`{"weight_map": {"w": "m.index.json"}}`, fault.ErrMalformed},
		"one name twice":     {`{"weight_map": {"w": "a.bin", "w": "b.bin"}}`, fault.ErrMalformed},
		"a number as a file": {`{"weight_map": {"w": 7}}`, fault.ErrMalformed},
		"a list as the map":  {`{"weight_map": []}`, fault.ErrMalformed},
		"cut off":            {`{"weight_map": {"w": "a.bi`, fault.ErrMalformed},
		"a parent":           {`{"weight_map": {"w": "x/../../a.bin"}}`, fault.ErrMalformed},
		"NUL":                {`{"weight_map": {"w": "a.bin\u0000"}}`, fault.ErrMalformed},
		"a name not in it":   {`{"weight_map": {"nobody": "a.bin"}}`, fault.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "m.index.json"), []byte(tt.index))
			write(t, filepath.Join(dir, "a.bin"), shard)
			for _, path := range []string{dir, filepath.Join(dir, "m.index.json")} {
				if _, err := wick.Open(context.Background(), path); !errors.Is(err, tt.want) {
					t.Errorf("%s: %v, want %v", path, err, tt.want)
				}
			}
		})
	}
}

// TestSameNameInTwoShards holds that nobody's tensor is lost without a word.
func TestSameNameInTwoShards(t *testing.T) {
	dir := t.TempDir()
	shard, err := os.ReadFile(filepath.Join(fixtures, "pytorch_model_bin-torch2.15", "pytorch_model.bin"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "m-00001-of-00002.bin"), shard)
	if _, err := wick.Open(context.Background(), dir); !errors.Is(err, fault.ErrMalformed) {
		t.Errorf("a shard too few: %v", err)
	}
	write(t, filepath.Join(dir, "m-00002-of-00002.bin"), shard)
	if _, err := wick.Open(context.Background(), dir); !errors.Is(err, fault.ErrCollision) {
		t.Errorf("twice the same: %v", err)
	}
}

// TestPiecesLie holds that a tensor whose pieces are not all there is no tensor.
func TestPiecesLie(t *testing.T) {
	from := "../pytorch-tests/distributed/pieces-torch2.15"
	for name, tt := range map[string]struct {
		change func(dir string) error
		has    string
	}{
		"no first rank": {func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "shard-00001-model-00001-of-00002.safetensors")), os.Remove(filepath.Join(dir, "shard-00001-model-00002-of-00002.safetensors")))
		}, "of rank 1 is missing"},
		"half of a rank": {func(dir string) error {
			return os.Remove(filepath.Join(dir, "shard-00001-model-00001-of-00002.safetensors"))
		}, "leave a hole"},
		"places moved": {func(dir string) error {
			return edit(filepath.Join(dir, "shard-00002-model-00001-of-00002.safetensors"), `\"saved_offsets\": [3, 0]`, `\"saved_offsets\": [2, 0]`)
		}, "overlap"},
		"places of another length": {func(dir string) error {
			return edit(filepath.Join(dir, "shard-00002-model-00001-of-00002.safetensors"), `\"saved_offsets\": [3, 0]`, `\"saved_offsets\": [30  ]`)
		}, "nobody says where it belongs"},
		"no places": {func(dir string) error {
			return edit(filepath.Join(dir, "shard-00001-model-00001-of-00002.safetensors"), "DCP_SHARDING_INFO", "DCP_SHARDING_OFNI")
		}, "without DCP_SHARDING_INFO"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := errors.Join(os.CopyFS(dir, os.DirFS(from)), tt.change(dir)); err != nil {
				t.Fatal(err)
			}
			_, err := wick.Open(t.Context(), dir)
			if err == nil || !strings.Contains(err.Error(), tt.has) {
				t.Errorf("%v, want %q", err, tt.has)
			}
		})
	}
}

// edit puts one text in the place of another of the same length.
func edit(name, text, by string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if len(text) != len(by) || !strings.Contains(string(b), text) {
		return errors.New("no such text in " + name)
	}
	return os.WriteFile(name, []byte(strings.Replace(string(b), text, by, 1)), 0o600)
}

// TestConvertedModel holds that a model which a hub converted is read from its
// safetensors file, though the shards that it was made of still lie beside it.
func TestConvertedModel(t *testing.T) {
	dir := t.TempDir()
	single, err := os.ReadFile(filepath.Join(fixtures, "no_index_safetensors-torch2.15", "model-00001-of-00002.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "model.safetensors"), single)
	write(t, filepath.Join(dir, "pytorch_model.bin.index.json"), []byte(`{"weight_map": {"w": "missing.bin"}}`))
	write(t, filepath.Join(dir, "flax_model.msgpack.index.json"), []byte(`{"weight_map": {"w": "missing.msgpack"}}`))
	write(t, filepath.Join(dir, "tf_model.h5.index.json"), []byte(`{"weight_map": {"w": "missing.h5"}}`))
	c, err := wick.Open(t.Context(), dir)
	if err != nil || c.Info.Format != "safetensors" {
		t.Fatalf("%v, %v", c, err)
	}
	c.Close()
}

func TestSeveralCheckpoints(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.pt"), nil)
	write(t, filepath.Join(dir, "b.pt"), nil)
	if _, err := wick.Open(context.Background(), dir); !errors.Is(err, fault.ErrAmbiguous) {
		t.Errorf("%v", err)
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
