package listing

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/cmd/wick/internal/rows"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// many is a checkpoint of n tensors, every second in a storage of its own.
func many(t testing.TB, n int) *checkpoint.Checkpoint {
	t.Helper()
	root := nested.NewMap("dict")
	shared := tensor.NewStorage(tensor.StorageSpec{Name: "shared", Size: 4, Memory: make([]byte, 4)})
	for i := range n {
		storage := shared
		if i%2 == 0 {
			storage = tensor.NewStorage(tensor.StorageSpec{Name: strconv.Itoa(i), Size: 4, Memory: make([]byte, 4)})
		}
		x, err := tensor.New(tensor.Spec{Storage: storage, DType: tensor.F32, Shape: []int64{1}})
		if err != nil {
			t.Fatal(err)
		}
		if err := root.Set(nested.String("layers."+strconv.Itoa(i)), &nested.Tensor{Tensor: x, Class: "torch.Tensor"}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := checkpoint.New(root, checkpoint.Info{}, &checkpoint.Env{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAllocations bounds what a row costs: its strides, and its share of blocks.
func TestAllocations(t *testing.T) {
	for _, n := range []int{5_000, 50_000} {
		c := many(t, n)
		allocs := testing.AllocsPerRun(1, func() {
			l, err := Of(c)
			if err != nil {
				t.Fatal(err)
			}
			w := bufio.NewWriter(io.Discard)
			if err := l.WriteJSON(w); err != nil || w.Flush() != nil {
				t.Fatal(err)
			}
		}) / float64(n)
		if allocs > 1.1 {
			t.Errorf("%.2f allocations for each of %d rows", allocs, n)
		}
	}
}

// TestBlocksKeepTheOrder writes more rows than one worker takes at a time.
func TestBlocksKeepTheOrder(t *testing.T) {
	const n = 3*rows.Block + 17
	l, err := Of(many(t, n))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	w := bufio.NewWriter(&text)
	if err := l.WriteJSON(w); err != nil || w.Flush() != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text.String(), "\n")
	for i := range n {
		if want := `"name":"layers.` + strconv.Itoa(i) + `","`; !strings.Contains(lines[i+1], want) {
			t.Fatalf("row %d is %s", i, lines[i+1])
		}
		if comma := strings.HasSuffix(lines[i+1], ","); comma != (i < n-1) {
			t.Fatalf("row %d is %s", i, lines[i+1])
		}
	}
}

// TestStorageNames gives storages of one name in several files names of their own.
func TestStorageNames(t *testing.T) {
	root := nested.NewMap("dict")
	var storages []*tensor.Storage
	for i, name := range []string{"a", "b", "a", "a"} {
		s := tensor.NewStorage(tensor.StorageSpec{Name: name, Size: 4, Memory: make([]byte, 4)})
		storages = append(storages, s)
		for k := range 2 {
			x, err := tensor.New(tensor.Spec{Storage: s, DType: tensor.F32, Shape: []int64{1}})
			if err == nil {
				err = root.Set(nested.Int(10*k+i), &nested.Tensor{Tensor: x})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	c, err := checkpoint.New(root, checkpoint.Info{}, &checkpoint.Env{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Of(c)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"a", "b", "a#2", "a#3"} {
		if got := l.StorageName(storages[i]); got != want {
			t.Errorf("storage %d is called %s, want %s", i, got, want)
		}
	}
}

// BenchmarkJSON lists 100,000 tensors and writes them.
func BenchmarkJSON(b *testing.B) {
	c := many(b, 100_000)
	b.ReportAllocs()
	for b.Loop() {
		l, err := Of(c)
		if err == nil {
			w := bufio.NewWriter(io.Discard)
			err = errors.Join(l.WriteJSON(w), w.Flush())
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
