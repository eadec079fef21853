package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

func tree(pairs ...any) *nested.Map {
	m := nested.NewMap("dict")
	for i := 0; i < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		t, _ := pairs[i+1].(*tensor.Tensor)
		if err := m.Set(nested.String(name), &nested.Tensor{Tensor: t, Class: "torch.Tensor"}); err != nil {
			panic(err)
		}
	}
	return m
}

func file(t testing.TB, root nested.Value, opts checkpoint.TargetOptions) []byte {
	t.Helper()
	out, err := Target{}.Plan(root, opts)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := checkpoint.WriteStream(t.Context(), &b, out.Files[0].Layout); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(t testing.TB, b []byte) (*checkpoint.Checkpoint, error) {
	t.Helper()
	return checkpoint.Open(t.Context(), checkpoint.NewBytes("test", b), []checkpoint.Format{Format{}}, checkpoint.Options{})
}

func TestHeader(t *testing.T) {
	root := tree("b", tensor.Of([]float32{1, 2}, 1, 2), "i", tensor.Of([]int64{3}), "a", tensor.Of([]float32{4}), "n", tensor.Of([]bool{true}))
	got := file(t, root, checkpoint.TargetOptions{Metadata: map[string]string{"z": "1", "k": "é\n", "wick": "of another file", "wick.type": "x"}})
	want := `{"__metadata__":{"format":"pt","k":"é\n","z":"1"},"i":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},` +
		`"a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},"b":{"dtype":"F32","shape":[1,2],"data_offsets":[12,20]},` +
		`"n":{"dtype":"BOOL","shape":[1],"data_offsets":[20,21]}}`
	if head := strings.TrimRight(string(got[8:len(got)-21]), " "); head != want {
		t.Errorf("header\n%s\nwant\n%s", head, want)
	}
	if (len(got)-21)%8 != 0 {
		t.Error("the data is not aligned to 8 bytes")
	}
}

func TestAlign(t *testing.T) {
	root := tree("w", tensor.Of([]float32{1, 2}))
	for _, align := range []int{8, 64, 4096} {
		b := file(t, root, checkpoint.TargetOptions{Align: align, Record: &checkpoint.RecordHeader{}})
		if (len(b)-8)%align != 0 {
			t.Errorf("align %d: the data starts at %d", align, len(b)-8)
		}
		if _, err := open(t, b); err != nil {
			t.Errorf("align %d: %v", align, err)
		}
	}
	for _, align := range []int{-8, 4, 24} {
		if _, err := (Target{}).Plan(root, checkpoint.TargetOptions{Align: align}); fault.KindOf(err) != fault.Usage {
			t.Errorf("align %d: %v", align, err)
		}
	}
}

func TestUnsupported(t *testing.T) {
	cases := map[string]struct {
		root nested.Value
		opts checkpoint.TargetOptions
		kind fault.Kind
		path string
		has  string
	}{
		"complex128": {tree("c", tensor.Of([]complex128{1})), checkpoint.TargetOptions{}, fault.Unsupported, "c", "complex128"},
		"complex32":  {tree("c", tensor.Of([]tensor.Complex32{{}})), checkpoint.TargetOptions{}, fault.Unsupported, "c", ".cbor"},
		"reserved":   {tree("__metadata__", tensor.Of([]int8{1})), checkpoint.TargetOptions{}, fault.Unsupported, "__metadata__", "`rename`"},
		"metadata":   {tree(), checkpoint.TargetOptions{Metadata: map[string]string{"k": "\xff"}}, fault.Usage, "", "UTF-8"},
	}
	for name, c := range cases {
		_, err := Target{}.Plan(c.root, c.opts)
		var e *fault.Error
		if !errors.As(err, &e) || e.Kind != c.kind || e.Path != c.path || !strings.Contains(err.Error(), c.has) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A header beyond the format's bound would be a file that nobody opens.
func TestHeaderOverTheFormatsBound(t *testing.T) {
	root := nested.NewMap("dict")
	x := &nested.Tensor{Tensor: tensor.Of([]int8{1})}
	for i := range 100 {
		if err := root.Set(nested.String(fmt.Sprint(i)+strings.Repeat("n", 1<<20)), x); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Target{}.Plan(root, checkpoint.TargetOptions{})
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "wick.ShardBytes") {
		t.Errorf("a header of 105 MB: %v", err)
	}
	out, err := Target{}.Plan(root, checkpoint.TargetOptions{ShardBytes: 50, Name: "m.safetensors"})
	if err != nil || len(out.Files) != 3 {
		t.Errorf("in two shards and an index: %v", err)
	}
}

func TestShards(t *testing.T) {
	root := tree("a", tensor.Of(make([]float32, 10)), "b", tensor.Of(make([]float32, 30)), "c", tensor.Of(make([]uint8, 20)), "d", tensor.Of([]int64{7}))
	for _, name := range []string{"model.safetensors", "model.safetensors.index.json"} {
		out, err := Target{}.Plan(root, checkpoint.TargetOptions{Name: name, ShardBytes: 64})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		var files []checkpoint.File
		for _, f := range out.Files {
			files = append(files, checkpoint.File{Path: filepath.Join(dir, f.Name), Layout: f.Layout})
		}
		if _, err := checkpoint.WriteFiles(t.Context(), files, checkpoint.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		checkShards(t, dir)
	}
}

func checkShards(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "model.safetensors.index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index struct {
		Metadata  map[string]int64  `json:"metadata"`
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil || index.Metadata["total_size"] != 188 || len(index.WeightMap) != 4 {
		t.Errorf("index %s: %v", text, err)
	}
	want := map[int][]string{1: {"a"}, 2: {"b"}, 3: {"c", "d"}}
	for i, names := range want {
		shard := fmt.Sprintf("model-%05d-of-00003.safetensors", i)
		src, err := checkpoint.OpenFile(filepath.Join(dir, shard))
		if err != nil {
			t.Fatal(err)
		}
		c, err := checkpoint.Open(t.Context(), src, []checkpoint.Format{Format{}}, checkpoint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := slices.Sorted(slices.Values(c.Names()))
		c.Close()
		if !slices.Equal(got, names) {
			t.Errorf("%s holds %v, want %v", shard, got, names)
		}
		for _, name := range names {
			if index.WeightMap[name] != shard {
				t.Errorf("the index has %s in %s", name, index.WeightMap[name])
			}
		}
	}
}

// Dtypes that PyTorch lacks are rows that cannot be read; the others can.
func TestForeignDTypes(t *testing.T) {
	head := `{"a":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]},"b":{"dtype":"X1","shape":[2],"data_offsets":[3,4]},` +
		`"c":{"dtype":"U8","shape":[1],"data_offsets":[4,5]},"d":{"dtype":"F4","shape":[2,3],"data_offsets":[5,8]}}`
	b := append([]byte{byte(len(head)), byte(len(head) >> 8), 0, 0, 0, 0, 0, 0}, head+"\x00\x00\x00\x00\x07\x00\x00\x00"...)
	c, err := open(t, b)
	if err != nil {
		t.Fatal(err)
	}
	for name, leaf := range c.Tensors() {
		var out bytes.Buffer
		_, err := leaf.WriteTo(&out)
		if name == "c" && (err != nil || out.String() != "\x07") || name != "c" && fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%s: %q, %v", name, out.String(), err)
		}
	}
}

func TestSniff(t *testing.T) {
	for head, want := range map[string]bool{
		"\x02\x00\x00\x00\x00\x00\x00\x00{}": true, "\xff\xff\xff\x00\x00\x00\x00\x00{ \"a": true, "\x02\x00\x00\x00\x00\x00\x00\x00{": true,
		"\x02\x00\x00\x00\x00\x00\x00\x00[]": false, "\x80\x02}q\x00X\x01\x00{}": false, "": false, "\x02\x00\x00\x00\x00\x00\x00\x00": false,
		"\x02\x00\x00\x00\x00\x00\x00\x00{x": false,
	} {
		if got := (Format{}).Sniff([]byte(head), nil); got != want {
			t.Errorf("%q: %v", head, got)
		}
	}
}

// Time grows with the number of tensors: with its square, so many would not end.
func TestManyTensors(t *testing.T) {
	root := nested.NewMap("dict")
	x := &nested.Tensor{Tensor: tensor.Of([]int8{1})}
	const n = 100_000
	for i := range n {
		if err := root.Set(nested.Int(i), x); err != nil {
			t.Fatal(err)
		}
	}
	c, err := open(t, file(t, root, checkpoint.TargetOptions{}))
	if err != nil || c.Len() != n {
		t.Fatal(err)
	}
}

// FuzzSafetensors opens a file, writes what is in it and opens that: the same
// tensors, and no memory beyond what the file is worth. Seen to catch: readHeader
// without its comparison of the header's length with the file's.
func FuzzSafetensors(f *testing.F) {
	root := tree("a", tensor.Of([]float32{1, 2}, 1, 2), "b", tensor.Of([]tensor.Float4E2M1FNx2{1, 2}))
	f.Add(file(f, root, checkpoint.TargetOptions{}))
	f.Add(file(f, root, checkpoint.TargetOptions{Record: &checkpoint.RecordHeader{Type: "T"}}))
	written, err := filepath.Glob("../pytorch-tests/safetensors/*.safetensors")
	if err != nil || len(written) == 0 {
		f.Fatal("no fixtures", err)
	}
	for _, name := range written {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, err := open(t, b)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20+uint64(len(b))*2000 {
			t.Fatalf("%d bytes allocated for a file of %d", used, len(b))
		}
		if err != nil {
			if fault.KindOf(err) == "" {
				t.Fatalf("no fault: %v", err)
			}
			return
		}
		out, err := Target{}.Plan(c.Root, checkpoint.TargetOptions{})
		if err != nil {
			return // a name or a dtype that cannot be written
		}
		var second bytes.Buffer
		if _, err := checkpoint.WriteStream(t.Context(), &second, out.Files[0].Layout); err != nil {
			return // a wrong checksum
		}
		again, err := open(t, second.Bytes())
		if err != nil || again.Len() != c.Len() {
			t.Fatalf("written again it opens as %v", err)
		}
		for name, x := range c.Tensors() {
			if a, b := bytesOf(t, x), bytesOf(t, lookup(t, again, name)); a != b {
				t.Fatalf("%q was %q and is %q", name, a, b)
			}
		}
	})
}

func lookup(t *testing.T, c *checkpoint.Checkpoint, name string) *nested.Tensor {
	t.Helper()
	x, err := c.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// bytesOf is a tensor's dtype, shape and bytes.
func bytesOf(t *testing.T, x *nested.Tensor) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := x.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(x.DType(), x.Shape()) + b.String()
}
