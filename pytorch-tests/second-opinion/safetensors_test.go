package opinion

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	other "github.com/nlpodyssey/safetensors"
	"pgregory.net/rapid"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// row is one tensor as a reader gave it.
type row struct {
	name, dtype, shape string
	data               []byte
}

// dtypes are the dtypes that both know.
var dtypes = map[other.DType]tensor.DType{
	other.BOOL: tensor.Bool, other.U8: tensor.U8, other.I8: tensor.I8, other.I16: tensor.I16, other.U16: tensor.U16, other.F16: tensor.F16,
	other.BF16: tensor.BF16, other.I32: tensor.I32, other.U32: tensor.U32, other.F32: tensor.F32, other.F64: tensor.F64, other.I64: tensor.I64,
	other.U64: tensor.U64,
}

func theirs(data []byte) ([]row, error) {
	st, err := other.Deserialize(data)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, x := range st.Tensors() {
		d, ok := dtypes[x.TensorView.DType()]
		if !ok {
			return nil, fmt.Errorf("dtype %v", x.TensorView.DType())
		}
		rows = append(rows, row{x.Name, d.String(), fmt.Sprint(x.TensorView.Shape()), x.TensorView.Data()})
	}
	return sorted(rows), nil
}

func ours(tb rapid.TB, data []byte) ([]row, error) {
	c, err := wick.OpenBytes(context.Background(), "test", data)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var rows []row
	for name, x := range c.Tensors() {
		var b bytes.Buffer
		if _, err := x.WriteTo(&b); err != nil {
			return nil, err
		}
		rows = append(rows, row{name, x.DType().String(), fmt.Sprint(x.Shape()), b.Bytes()})
	}
	return sorted(rows), nil
}

func sorted(rows []row) []row {
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	return rows
}

// agree fails unless both readers gave the same.
func agree(tb rapid.TB, a, b []row) {
	if len(a) != len(b) {
		tb.Fatalf("%d tensors and %d", len(a), len(b))
	}
	for i := range a {
		if a[i].name != b[i].name || a[i].dtype != b[i].dtype || a[i].shape != b[i].shape || !bytes.Equal(a[i].data, b[i].data) {
			tb.Fatalf("%q %s %s and %q %s %s", a[i].name, a[i].dtype, a[i].shape, b[i].name, b[i].dtype, b[i].shape)
		}
	}
}

// TestFixtures reads what the safetensors package of Python wrote.
func TestFixtures(t *testing.T) {
	raw, err := os.ReadFile("../safetensors/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Files map[string]struct{ Error any }
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for name, want := range all.Files {
		data, err := os.ReadFile(filepath.Join("../safetensors", name))
		if err != nil {
			t.Fatal(err)
		}
		a, err := ours(t, data)
		if (err != nil) != (want.Error != nil) {
			t.Errorf("%s: %v", name, err)
		}
		b, otherErr := theirs(data)
		if err == nil && otherErr == nil { // it knows no float8, and takes files with gaps
			compared++
			agree(t, a, b)
		}
	}
	if compared < 4 {
		t.Errorf("only %d files were read by both", compared)
	}
}

// tensors are random ones, of every dtype that both know.
var tensors = rapid.Custom(func(t *rapid.T) row {
	d := rapid.SampledFrom(slices.Sorted(maps.Keys(dtypes))).Draw(t, "dtype")
	shape := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 3).Draw(t, "shape")
	size := dtypes[d].Size()
	for _, n := range shape {
		size *= n
	}
	data := rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "data")
	if d == other.BOOL {
		for i := range data {
			data[i] &= 1
		}
	}
	return row{rapid.String().Draw(t, "name"), dtypes[d].String(), fmt.Sprint(shape), data}
})

// parse takes a row's dtype and shape apart.
func (r row) parse(t *rapid.T) (d other.DType, shape []uint64) {
	for theirs, ours := range dtypes {
		if ours.String() == r.dtype {
			d = theirs
		}
	}
	shape = []uint64{}
	for _, text := range strings.Fields(strings.Trim(r.shape, "[]")) {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		shape = append(shape, n)
	}
	return d, shape
}

// TestTheyReadOurs has wick write random tensors and the other one read them.
func TestTheyReadOurs(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		root := nested.NewMap("dict")
		for _, r := range rapid.SliceOfNDistinct(tensors, 0, 5, func(r row) string { return r.name }).Draw(t, "tensors") {
			d, shape := r.parse(t)
			spec := tensor.Spec{DType: dtypes[d], Storage: tensor.NewStorage(tensor.StorageSpec{Size: int64(len(r.data)), Memory: append([]byte{}, r.data...)})}
			for _, n := range shape {
				spec.Shape = append(spec.Shape, int64(n))
			}
			x, err := tensor.New(spec)
			if err != nil {
				t.Fatal(err)
			}
			if err := root.Set(nested.String(r.name), &nested.Tensor{Tensor: x}); err != nil {
				t.Fatal(err)
			}
		}
		out := filepath.Join(dir, "out.safetensors")
		plan, err := wick.PlanTree(root, wick.Limits{}, out, wick.Overwrite())
		if err != nil {
			t.Skip(err) // a name that is not allowed, such as __metadata__
		}
		if _, err := plan.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		a, err := ours(t, data)
		if err != nil {
			t.Fatal(err)
		}
		b, err := theirs(data)
		if err != nil {
			t.Fatal(err)
		}
		agree(t, a, b)
		if len(a) != root.Len() {
			t.Fatalf("%d tensors of %d", len(a), root.Len())
		}
	})
}

// TestWeReadTheirs is the way back.
func TestWeReadTheirs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		views := map[string]other.TensorView{}
		for _, r := range rapid.SliceOfNDistinct(tensors, 0, 5, func(r row) string { return r.name }).Draw(t, "tensors") {
			d, shape := r.parse(t)
			if len(shape) == 0 {
				continue // it refuses to write scalars, though it reads them
			}
			v, err := other.NewTensorView(d, shape, r.data)
			if err != nil {
				t.Fatal(err)
			}
			if r.name != "__metadata__" {
				views[r.name] = v
			}
		}
		data, err := other.Serialize(views, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := ours(t, data)
		if err != nil {
			t.Fatal(err)
		}
		b, err := theirs(data)
		if err != nil {
			t.Fatal(err)
		}
		agree(t, a, b)
		if len(a) != len(views) {
			t.Fatalf("%d tensors of %d", len(a), len(views))
		}
	})
}
