package serde

import (
	"context"
	"math"
	"runtime"
	"strconv"
	"testing"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// allocated returns the bytes that f allocates, once the types it uses are
// known. The runtime counts those of the whole process, and its own goroutines
// allocate too: they can only add, so the least of several runs is f's.
func allocated(f func()) uint64 {
	f()
	least := uint64(math.MaxUint64)
	for range 5 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// fire is a layer of SqueezeNet's size: six tensors.
type fire struct{ Squeeze, Expand1, Expand3 affine }

// fires is the tree of n of them, each tensor of size elements.
func fires(tb testing.TB, n, size int) nested.Value {
	tb.Helper()
	m := nested.NewMap("dict")
	for i := range n {
		for _, name := range []string{"squeeze", "expand1", "expand3"} {
			for _, kind := range []string{".weight", ".bias"} {
				leaf := val(counted(i, size).Tensor())
				if err := m.Set(nested.String("layers."+strconv.Itoa(i)+"."+name+kind), leaf); err != nil {
					tb.Fatal(err)
				}
			}
		}
	}
	return m
}

func TestAliasingCopiesNothingAndAllocatesLittle(t *testing.T) {
	needViews(t)
	const layers, size = 9, 1 << 16
	root := fires(t, layers, size)
	var model struct{ Layers []fire }
	var r *Report
	n := allocated(func() { r = fillIn(t, root, &model, Alias()) })
	if r.Copied != 0 || r.Allocated != 0 || r.Aliased != layers*6*size*4 {
		t.Errorf("copied %d, allocated %d, aliased %d bytes", r.Copied, r.Allocated, r.Aliased)
	}
	if most := uint64(layers * 6 * 1000); n > most {
		t.Errorf("%d bytes allocated for %d tensors, want at most %d", n, layers*6, most)
	}
}

func TestASmallRecordAllocatesLittle(t *testing.T) {
	needViews(t)
	leaf := func(shape ...int) nested.Value { return val(counted(0, shape...).Tensor()) }
	root := dict("fc1", dict("weight", leaf(16, 32), "bias", leaf(16)), "fc2", dict("weight", leaf(16, 16), "bias", leaf(16)))
	var model struct{ FC1, FC2 affine }
	if n := allocated(func() { fillIn(t, root, &model, Alias()) }); n > 5<<10 {
		t.Errorf("%d bytes allocated for four tensors, want at most 5 KiB", n)
	}
}

func TestCopyingAllocatesTheTensorsOnce(t *testing.T) {
	needViews(t)
	const layers, size = 8, 1 << 18
	root := fires(t, layers, size)
	var model struct{ Layers []fire }
	var r *Report
	n := allocated(func() { r = fillIn(t, root, &model) })
	bytes := uint64(layers * 6 * size * 4)
	if uint64(r.Copied) != bytes || uint64(r.Plan.PeakBytes) != bytes {
		t.Errorf("copied %d, predicted %d, want %d bytes", r.Copied, r.Plan.PeakBytes, bytes)
	}
	if n > bytes+bytes/50 {
		t.Errorf("%d bytes allocated for %d bytes of tensors, want at most 2 %% more", n, bytes)
	}
}

// A plan is linear in the number of tensors: what it allocates for each does
// not grow with their number.
func TestPlansAreLinear(t *testing.T) {
	each := func(n int) float64 {
		root := fires(t, n, 1)
		return testing.AllocsPerRun(3, func() {
			var model struct{ Layers []fire }
			if _, err := NewPlan(root, &model); err != nil {
				t.Fatal(err)
			}
		}) / float64(n)
	}
	if few, many := each(100), each(1600); many > few*1.25 {
		t.Errorf("%.1f allocations for a layer among 100, %.1f among 1600", few, many)
	}
}

// A tree with a length that claims more than there is never makes memory: the
// tensor itself cannot be made.
func TestNoMemoryFromAClaimedLength(t *testing.T) {
	short := tensor.NewStorage(tensor.StorageSpec{Name: "data/0", Size: 4096, Memory: make([]byte, 4096)})
	_, err := tensor.New(tensor.Spec{Storage: short, DType: tensor.F32, Shape: []int64{758_360_262}})
	if err == nil {
		t.Fatal("a tensor of 3 GB over 4 KB")
	}
	broken := tensor.Unavailable(tensor.F32, []int{758_360_262}, err)
	var model struct{ W []float32 }
	n := allocated(func() {
		if _, err := Unmarshal(context.Background(), dict("w", val(broken)), &model); err == nil {
			t.Error("no error")
		}
	})
	if n > 64<<10 {
		t.Errorf("%d bytes allocated", n)
	}
}
