package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

const demoFile = fixtures + "/demo-resnet/demo-resnet-torch2.15.pt"

// What is converted is there bit for bit, by the command's own word and by the
// sums that torch gave.
func TestConvertAndVerify(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.safetensors")
	got := runFiles(t, "convert", demoFile, out)
	if got.code != 0 || got.out != "" || !strings.Contains(got.err, "122 tensors") || !strings.Contains(got.err, "left out 12 other values") {
		t.Fatalf("exit %d, stdout %q, stderr %q", got.code, got.out, got.err)
	}
	if got = runFiles(t, "verify", demoFile, out); got.code != 0 || !strings.Contains(got.out, "all 122 tensors are the same") {
		t.Errorf("exit %d, stdout %q, stderr %q", got.code, got.out, got.err)
	}
	sums := map[string]string{}
	for _, row := range tensorRows(t, runFiles(t, "ls", "--json", "--sha256", out).out) {
		sums[row.Name] = row.SHA256
	}
	want := torchSums(t)
	for name, sum := range want {
		if sums[name] != sum {
			t.Errorf("%s has the sum %s, torch says %s", name, sums[name], sum)
		}
	}
	if len(want) == 0 || len(sums) != len(want) {
		t.Errorf("%d tensors, torch has %d", len(sums), len(want))
	}
}

// torchSums is what torch says of the demo's tensors.
func torchSums(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(fixtures + "/demo-resnet/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Files map[string]struct {
			Tensors []struct{ Name, SHA256 string }
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, row := range doc.Files[filepath.Base(demoFile)].Tensors {
		sums[row.Name] = row.SHA256
	}
	return sums
}

func TestConvertFlags(t *testing.T) {
	x := func(values ...float32) nested.Value { return lazy(tensor.Of(values)) }
	root := mapOf(t,
		str("epoch"), nested.Int(3),
		str("sd"), mapOf(t, str("module.a.w"), x(1.5), str("module.a.n"), lazy(tensor.Of([]int64{7})), str("module.b.w"), x(2)),
		str("other"), x(9))
	ruleFile := filepath.Join(t.TempDir(), "map.rules")
	if err := os.WriteFile(ruleFile, []byte("key sd\nstrip module.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		flags []string
		want  string // name and dtype of what is written, by name
	}{
		{"none", nil, "other:float32 sd.module.a.n:int64 sd.module.a.w:float32 sd.module.b.w:float32"},
		{"key", []string{"--key", "sd"}, "module.a.n:int64 module.a.w:float32 module.b.w:float32"},
		{"exact key", []string{"--key", `["sd"]`}, "module.a.n:int64 module.a.w:float32 module.b.w:float32"},
		{"include", []string{"--include", "sd.module.a", "--include", "other"}, "other:float32 sd.module.a.n:int64 sd.module.a.w:float32"},
		{"exclude", []string{"--exclude", "**.w"}, "other:float32 sd.module.a.n:int64"},
		{"rename pattern", []string{"--key", "sd", "--rename", "module.{rest...} -> {rest...}"}, "a.n:int64 a.w:float32 b.w:float32"},
		{"rename expression", []string{"--key", "sd", "--rename", `/^module\.(\w)/ -> "${1}1"`}, "a1.n:int64 a1.w:float32 b1.w:float32"},
		{"two renames", []string{"--include", "other", "--rename", "other -> a", "--rename", "a -> b"}, "b:float32"},
		{"dtype", []string{"--key", "sd", "--dtype", "bfloat16"}, "module.a.n:int64 module.a.w:bfloat16 module.b.w:bfloat16"},
		{"rules", []string{"--rules", ruleFile}, "a.n:int64 a.w:float32 b.w:float32"},
		{"max memory and fsync", []string{"--include", "other", "--max-memory", "1MiB", "--fsync"}, "other:float32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.safetensors")
			trees := map[string]nested.Value{"m.pt": root}
			if got := runTrees(t.Context(), trees, append(append([]string{"convert"}, c.flags...), "m.pt", out)...); got.code != 0 {
				t.Fatalf("exit %d, stderr %q", got.code, got.err)
			}
			var doc struct {
				Tensors []struct{ Name, DType string }
			}
			if err := json.Unmarshal([]byte(runFiles(t, "ls", "--json", "--sort", "name", out).out), &doc); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, row := range doc.Tensors {
				names = append(names, row.Name+":"+row.DType)
			}
			if strings.Join(names, " ") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(names, " "), c.want)
			}
		})
	}
}

func TestConvertToStream(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.safetensors")
	if got := runFiles(t, "convert", demoFile, out); got.code != 0 {
		t.Fatal(got.err)
	}
	file, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	got := runFiles(t, "convert", "--to", "safetensors", demoFile, "-")
	if got.code != 0 || got.out != string(file) {
		t.Errorf("exit %d, %d bytes, want the %d of the file", got.code, len(got.out), len(file))
	}
}

func TestConvertJSON(t *testing.T) {
	x := lazy(tensor.Of([]float32{1, 2}))
	trees := map[string]nested.Value{"m.pt": mapOf(t, str("w"), x, str("tied"), x, str("epoch"), nested.Int(1))}
	out := filepath.Join(t.TempDir(), "o.safetensors")
	got := runTrees(t.Context(), trees, "convert", "--json", "m.pt", out)
	var doc struct {
		Format   string
		Tensors  int
		Bytes    int
		Copies   []struct{ Name, Of string }
		LeftOut  []struct{ Path, Type string } `json:"left_out"`
		Verified int
	}
	if err := json.Unmarshal([]byte(got.out), &doc); err != nil {
		t.Fatalf("%v: %q, %q", err, got.out, got.err)
	}
	if got.code != 0 || got.err != "" || doc.Format != "safetensors" || doc.Tensors != 2 || doc.Bytes != 16 ||
		len(doc.Copies) != 1 || len(doc.LeftOut) != 1 || doc.LeftOut[0].Path != "epoch" || doc.LeftOut[0].Type != "int" {
		t.Errorf("exit %d, %s %s", got.code, got.out, got.err)
	}
}

// What cannot be written is refused before a byte is, and leaves nothing behind.
func TestConvertRefuses(t *testing.T) {
	x := lazy(tensor.Of([]float32{1}))
	good := mapOf(t, str("w"), x)
	quantized := &nested.Tensor{Tensor: tensor.Of([]tensor.QInt8{1}), Class: "torch.Tensor", Quant: &nested.Quant{Scheme: "per_tensor_affine", Scale: 1}}
	meta := lazy(tensor.Unavailable(tensor.F32, []int{1}, fault.New(fault.NoData, "meta")))
	gone := lazy(tensor.Unavailable(tensor.F32, []int{1}, fault.New(fault.NotFound, "no such record").InRecord("data/1")))
	outside := lazy(tensor.Unavailable(tensor.F32, []int{1}, fault.New(fault.Malformed, "a view out of bounds")))
	collision := mapOf(t, str("a.b"), x, str("a"), mapOf(t, str("b"), lazy(tensor.Of([]float32{2}))))
	for _, c := range []struct {
		name string
		root nested.Value
		args []string // OUT stands for a new path, OLD for a file that exists
		code int
		want string
	}{
		{"collision", collision, []string{"m.pt", "OUT"}, 4, "a.b"},
		{"quantized", mapOf(t, str("q"), quantized), []string{"m.pt", "OUT"}, 4, "qint8"},
		{"meta", mapOf(t, str("m"), meta), []string{"m.pt", "OUT"}, 4, "without data"},
		{"missing record", mapOf(t, str("w"), gone), []string{"m.pt", "OUT"}, 3, "no such record"},
		{"out of bounds", mapOf(t, str("w"), outside), []string{"m.pt", "OUT"}, 3, "out of bounds"},
		{"output exists", good, []string{"m.pt", "OLD"}, 2, "--force"},
		{"output is a folder", good, []string{"--force", "m.pt", "DIR/x.safetensors/"}, 2, ""},
		{"no such folder", good, []string{"m.pt", "DIR/none/x.safetensors"}, 2, "no such file"},
		{"unknown extension", good, []string{"m.pt", "DIR/x.foo"}, 2, ".safetensors"},
		{"unknown format", good, []string{"--to", "safetensor", "m.pt", "OUT"}, 2, "did you mean safetensors?"},
		{"stream without format", good, []string{"m.pt", "-"}, 2, "--to"},
		{"stream and json", good, []string{"--json", "--to", "safetensors", "m.pt", "-"}, 2, "--json"},
		{"nothing left", good, []string{"--exclude", "w", "m.pt", "OUT"}, 2, "no tensor is left"},
		{"no such key", good, []string{"--key", "v", "m.pt", "OUT"}, 2, "no key v"},
		{"broken pattern", good, []string{"--include", "/(/", "m.pt", "OUT"}, 2, ""},
		{"broken rename", good, []string{"--rename", "a", "m.pt", "OUT"}, 2, "--rename"},
		{"no such dtype", good, []string{"--dtype", "float17", "m.pt", "OUT"}, 2, "float17"},
		{"no such rules", good, []string{"--rules", "nosuch", "m.pt", "OUT"}, 2, "nosuch"},
		{"odd size", good, []string{"--max-memory", "many", "m.pt", "OUT"}, 2, "--max-memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			old := filepath.Join(dir, "old.safetensors")
			if err := os.WriteFile(old, []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"convert"}
			for _, arg := range c.args {
				args = append(args, strings.NewReplacer("OUT", filepath.Join(dir, "new.safetensors"), "OLD", old, "DIR", dir).Replace(arg))
			}
			got := runTrees(t.Context(), map[string]nested.Value{"m.pt": c.root}, args...)
			if got.code != c.code || got.out != "" || !strings.Contains(got.err, c.want) || c.code != 0 && lastLines(got.err) != 1 {
				t.Errorf("exit %d, stdout %q, stderr %q", got.code, got.out, got.err)
			}
			onlyOld(t, dir)
		})
	}
}

// lastLines counts the lines on stderr that are no warnings.
func lastLines(stderr string) int {
	n := 0
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "warning: ") {
			n++
		}
	}
	return n
}

// onlyOld checks that a folder holds old.safetensors as it was and nothing else.
func onlyOld(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "old.safetensors"))
	if len(entries) != 1 || err != nil || string(b) != "kept" {
		t.Errorf("left behind: %v, old is %q", entries, b)
	}
}

// A read that ends in an interrupt leaves no file, and the old one stays.
func TestConvertInterrupted(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old.safetensors")
	if err := os.WriteFile(old, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := tensor.NewStorage(tensor.StorageSpec{Name: "data/0", Size: 64 << 20, File: cancelling{cancel}})
	root := mapOf(t, str("w"), strided(t, s, []int64{16 << 20}, nil, 0))
	got := runTrees(ctx, map[string]nested.Value{"m.pt": root}, "convert", "--json", "--force", "m.pt", old)
	if got.code != 130 || got.out != "" || errorKind(t, got.err) != "interrupted" {
		t.Errorf("exit %d, stdout %q, stderr %q", got.code, got.out, got.err)
	}
	onlyOld(t, dir)
}

// cancelling is a file whose reading the user interrupts.
type cancelling struct{ cancel context.CancelFunc }

func (c cancelling) ReadAt(p []byte, _ int64) (int, error) {
	c.cancel()
	return len(p), nil
}

// A file that is cut short while it is read breaks its own format.
func TestConvertShortRecord(t *testing.T) {
	s := tensor.NewStorage(tensor.StorageSpec{Name: "data/0", Size: 8, File: bytes.NewReader(make([]byte, 5))})
	root := mapOf(t, str("w"), strided(t, s, []int64{2}, nil, 0))
	dir := t.TempDir()
	got := runTrees(t.Context(), map[string]nested.Value{"m.pt": root}, "convert", "--json", "m.pt", filepath.Join(dir, "o.safetensors"))
	if got.code != 3 || errorKind(t, got.err) != "malformed" {
		t.Errorf("exit %d, stderr %q", got.code, got.err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestConvertDiskFull(t *testing.T) {
	var errs bytes.Buffer
	a := &app{streams: newStreams(strings.NewReader(""), fullDisk{}, &errs), getenv: os.Getenv}
	a.open = func(context.Context, string, openOptions) (*checkpoint.Checkpoint, error) {
		return checkpoint.New(mapOf(t, str("w"), lazy(tensor.Of(make([]float32, 1<<16)))), checkpoint.Info{}, &checkpoint.Env{}, nil)
	}
	if code := a.run(t.Context(), []string{"convert", "--to", "safetensors", "m.pt", "-"}); code != 2 || !strings.Contains(errs.String(), "no space left") {
		t.Errorf("exit %d, %q", code, errs.String())
	}
}

// A wrong checksum ends a conversion; --salvage goes on and still says so.
func TestConvertSalvage(t *testing.T) {
	bad := filepath.Join(fixtures, "broken", "bad_crc-torch2.15.pt")
	dir := t.TempDir()
	out := filepath.Join(dir, "o.safetensors")
	if got := runFiles(t, "convert", bad, out); got.code != 3 || !strings.Contains(got.err, "checksum") {
		t.Errorf("exit %d, %s", got.code, got.err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if got := runFiles(t, "convert", "--salvage", bad, out); got.code != 3 || !strings.Contains(got.err, "1 tensor written under a wrong checksum") {
		t.Errorf("--salvage: exit %d, %s", got.code, got.err)
	}
	if got := runFiles(t, "ls", "--json", out); len(tensorRows(t, got.out)) != 2 {
		t.Errorf("--salvage wrote %s", got.out)
	}
}

func TestSizeFlag(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "64MiB": 64 << 20, "5GB": 5e9, "1.5k": 1536, "2 g": 2 << 30, "10b": 10} {
		var s size
		if err := s.Set(text); err != nil || int64(s) != want {
			t.Errorf("%s is %d, %v, want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "-1", "0", "many", "1XB", "1e30", "NaN", "inf"} {
		var s size
		if err := s.Set(text); err == nil {
			t.Errorf("%q is %d", text, s)
		}
	}
}

// A record in safetensors keeps what the plain form has no room for, and what a
// smaller dtype loses is said.
func TestConvertRecordAndLoss(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "all.safetensors")
	got := runFiles(t, "convert", "--record", demoFile, out)
	if got.code != 0 || strings.Contains(got.err, "left out") {
		t.Fatalf("exit %d, %q", got.code, got.err)
	}
	want, have := runFiles(t, "ls", "--json", demoFile), runFiles(t, "ls", "--json", out)
	values := func(text string) string {
		var doc struct{ Values json.RawMessage }
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		return string(doc.Values)
	}
	if values(have.out) != values(want.out) || len(values(want.out)) < 100 {
		t.Errorf("values %s, want %s", values(have.out), values(want.out))
	}
	wide := filepath.Join(dir, "wide.json")
	text := `{"wick":{"version":1},"root":{"w":{"$tensor":{"dtype":"float32","shape":[3],"data":[1,70000,-1e30]}}}}`
	if err := os.WriteFile(wide, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got = runFiles(t, "convert", "--dtype", "float16", wide, filepath.Join(dir, "half.safetensors"))
	if got.code != 0 || !strings.Contains(got.err, "2 numbers too large for the dtype became infinite") {
		t.Errorf("exit %d, %q", got.code, got.err)
	}
	got = runFiles(t, "convert", "--json", "--dtype", "float16", wide, filepath.Join(dir, "half.cbor"))
	if got.code != 0 || !strings.Contains(got.out, `"overflow":2,"overflow_to":{"infinite":2,"saturated":0,"nan":0,"unsigned":0}`) {
		t.Errorf("exit %d, %q, %q", got.code, got.out, got.err)
	}
	for dtype, became := range map[string]string{
		"float8_e4m3fn":   "; 2 numbers too large for the dtype became ±448",
		"float8_e5m2":     "; 2 numbers too large for the dtype became infinite",
		"float8_e4m3fnuz": "; 2 numbers too large for the dtype became NaN",
		"float8_e8m0fnu":  "; 1 number that the dtype has no sign or zero for became positive",
	} {
		got := runFiles(t, "convert", "--dtype", dtype, wide, filepath.Join(dir, dtype+".cbor"))
		if got.code != 0 || !strings.HasSuffix(got.err, became+"\n") {
			t.Errorf("%s: exit %d, %q", dtype, got.code, got.err)
		}
	}
}
