package arith_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/wick-ml/wick/arith"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch"
	"github.com/wick-ml/wick/tensor"
)

var ctx = context.Background()

type fixture struct {
	Tensors []struct {
		Name   string
		SHA256 string `json:"dequantized_sha256"`
	}
	Opaque []struct {
		Path  string
		Dense *struct {
			DType, SHA256 string
			Shape         []int
		}
	}
}

func fixtures(t *testing.T, dir string) map[string]fixture {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../pytorch-tests", dir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Files map[string]fixture }
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	return list.Files
}

// TestDequantize compares with torch's own dequantize, bit for bit.
func TestDequantize(t *testing.T) {
	compared := 0
	for file, want := range fixtures(t, "quantized") {
		c, err := pytorch.Open(ctx, filepath.Join("../pytorch-tests/quantized", file))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, w := range want.Tensors {
			if w.SHA256 == "" {
				continue
			}
			q, err := c.Lookup(w.Name)
			if err != nil {
				t.Fatal(file, err)
			}
			d, err := arith.Dequantize(q, arith.Limits{})
			if err != nil {
				t.Fatal(file, w.Name, err)
			}
			if got := digest(t, d.Tensor); got != w.SHA256 {
				t.Errorf("%s %s: %s, torch has %s", file, w.Name, got, w.SHA256)
			}
			compared++
		}
	}
	if compared < 20 {
		t.Fatalf("%d tensors compared, there were more", compared)
	}
}

func digest(t *testing.T, v *tensor.Tensor) string {
	t.Helper()
	h := sha256.New()
	if _, err := v.WriteTo(h); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// TestDensify compares with torch's own to_dense.
func TestDensify(t *testing.T) {
	compared := 0
	for file, want := range fixtures(t, "sparse") {
		c, err := pytorch.Open(ctx, filepath.Join("../pytorch-tests/sparse", file))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		dense := map[string]*nested.Tensor{}
		err = c.Walk(func(p nested.Path, v nested.Value) error {
			if o, ok := v.(*nested.Opaque); ok && o.Class == "torch.Tensor" {
				d, err := arith.Densify(ctx, o, arith.Limits{Expand: 64, Floor: 1 << 20})
				dense[p.String()] = d
				return err
			}
			return nil
		})
		if err != nil {
			t.Fatal(file, err)
		}
		for _, w := range want.Opaque {
			if w.Dense == nil {
				continue
			}
			d := dense[w.Path]
			if d == nil || d.DType().String() != w.Dense.DType || digest(t, d.Tensor) != w.Dense.SHA256 {
				t.Errorf("%s %s: %v differs from torch", file, w.Path, d)
			}
			compared++
		}
	}
	if compared < 10 {
		t.Fatalf("%d tensors compared, there were more", compared)
	}
}

func TestTrees(t *testing.T) {
	c, err := pytorch.Open(ctx, "../pytorch-tests/quantized/per_tensor-torch2.15.pt")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	root, err := arith.DequantizeTree(c.Root, arith.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	before, after := 0, 0
	count := func(n *int) nested.Visitor {
		return func(_ nested.Path, v nested.Value) error {
			if l, ok := v.(*nested.Tensor); ok && l.DType().Class() == tensor.QuantClass {
				*n++
			}
			return nil
		}
	}
	if err := errors.Join(nested.Walk(c.Root, nested.WalkLimits{}, count(&before)), nested.Walk(root, nested.WalkLimits{}, count(&after))); err != nil {
		t.Fatal(err)
	}
	if before == 0 || after != 0 {
		t.Errorf("%d quantized before, %d after", before, after)
	}
}

func coo(size []nested.Value, indices []int64, n int, values []float32) *nested.Opaque {
	members, state := nested.NewMap("dict"), nested.NewMap("dict")
	_ = members.Set(nested.Component("indices"), &nested.Tensor{Tensor: tensor.Of(indices, len(size), n)})
	_ = members.Set(nested.Component("values"), &nested.Tensor{Tensor: tensor.Of(values)})
	_ = state.Set(nested.String("size"), nested.NewList("torch.Size", size...))
	return &nested.Opaque{Class: "torch.Tensor", Reason: "torch.sparse_coo", Members: members, State: state}
}

// repeated is a sparse vector of n elements at one place, all of which are one number.
func repeated(n int, size int64) *nested.Opaque {
	o := coo([]nested.Value{nested.Int(size)}, nil, 0, nil)
	members := nested.NewMap("dict")
	set := func(name string, t *tensor.Tensor, shape ...int) {
		long, err := t.Expand(shape...)
		if err != nil {
			panic(err)
		}
		_ = members.Set(nested.Component(name), &nested.Tensor{Tensor: long})
	}
	set("indices", tensor.Of([]int64{0}, 1, 1), 1, n)
	set("values", tensor.Of([]float32{1}), n)
	o.Members = members
	return o
}

// A tree of many sparse tensors over the same few bytes is as large as all of them.
func TestDensifyTreeIsBoundedAsAWhole(t *testing.T) {
	limits := arith.Limits{Expand: 64, Floor: 1 << 20}
	one := func() nested.Value { return coo([]nested.Value{nested.Int(1 << 16)}, []int64{3}, 1, []float32{1}) }
	root := nested.NewList("list", one(), one(), one(), one())
	if _, err := arith.DensifyTree(ctx, root, limits); err != nil {
		t.Error(err)
	}
	root.Items = append(root.Items, one())
	if _, err := arith.DensifyTree(ctx, root, limits); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("1.25 MiB of 60 bytes: %v", err)
	}
}

// repeatedQuant is a quantized vector of n elements, all of which are one number of 4 bytes.
func repeatedQuant(t *testing.T, n int) *nested.Tensor {
	t.Helper()
	s := tensor.NewStorage(tensor.StorageSpec{Size: 4, Memory: make([]byte, 4)})
	v, err := tensor.New(tensor.Spec{Storage: s, DType: tensor.QI32, Shape: []int64{int64(n)}, Strides: []int64{0}})
	if err != nil {
		t.Fatal(err)
	}
	return &nested.Tensor{Tensor: v, Quant: &nested.Quant{Scheme: "per_tensor_affine", Scale: 1}}
}

// The floats that few integers become are bounded before one is computed, in a tree all together.
func TestDequantizeIsBounded(t *testing.T) {
	const half = 1 << 17 // elements of half a MiB
	limits := arith.Limits{Expand: 64, Floor: 1 << 20}
	tree := func(sizes ...int) (nested.Value, error) {
		root := nested.NewList("list")
		for _, n := range sizes {
			root.Items = append(root.Items, repeatedQuant(t, n))
		}
		return arith.DequantizeTree(root, limits)
	}
	if _, err := tree(half, half); err != nil {
		t.Error(err)
	}
	if _, err := tree(half, half, 1); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("more than a MiB of 12 bytes: %v", err)
	}
	if _, err := tree(1 << 30); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("4 GiB of 4 bytes: %v", err)
	}
	if _, err := arith.Dequantize(repeatedQuant(t, 1<<26+1), arith.Limits{}); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("256 MiB and 4 bytes by default: %v", err)
	}
}

// stopped is a writer that takes nothing.
type stopped struct{ error }

func (s stopped) Write([]byte) (int, error) { return 0, s.error }

// What a caller allows can be read, also where it is more than the default.
func TestDequantizeTakesTheCallersLimits(t *testing.T) {
	d, err := arith.Dequantize(repeatedQuant(t, 1<<26+1), arith.Limits{Floor: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	if _, err := d.WriteTo(stopped{enough}); !errors.Is(err, enough) {
		t.Errorf("the first block: %v", err)
	}
}

// TestDensifyLies holds components that contradict each other.
func TestDensifyLies(t *testing.T) {
	limits := arith.Limits{Expand: 64, Floor: 1 << 20}
	for name, tt := range map[string]struct {
		o    *nested.Opaque
		want error
	}{
		"an index past the end":  {coo([]nested.Value{nested.Int(2)}, []int64{2}, 1, []float32{1}), fault.ErrMalformed},
		"a negative index":       {coo([]nested.Value{nested.Int(2)}, []int64{-1}, 1, []float32{1}), fault.ErrMalformed},
		"fewer values":           {coo([]nested.Value{nested.Int(2)}, []int64{0, 1}, 2, []float32{1}), fault.ErrMalformed},
		"a negative size":        {coo([]nested.Value{nested.Int(-2)}, []int64{0}, 1, []float32{1}), fault.ErrMalformed},
		"a huge size":            {coo([]nested.Value{nested.Int(1 << 30)}, []int64{0}, 1, []float32{1}), fault.ErrLimit},
		"components that repeat": {repeated(1<<16, 1<<21), fault.ErrLimit},
		"no sparse tensor":       {&nested.Opaque{Class: "x.Y"}, fault.ErrUsage},
	} {
		if _, err := arith.Densify(ctx, tt.o, limits); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}
