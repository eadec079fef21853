package tensor

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMakerMakesWhatNewMakes lays tensors of few layouts and of many, and uses one
// of each layout in all the ways that might change what it shares with others.
func TestMakerMakesWhatNewMakes(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11)) //nolint:gosec // the same tensors in each run
	values := make([]float32, 4096)
	for i := range values {
		values[i] = float32(i)
	}
	storage, _, _, _ := Of(values).Strided()
	var maker Maker
	var made, want []*Tensor
	for range 500 {
		spec := Spec{Storage: storage, DType: F32, Offset: random.Int64N(40)}
		for range random.IntN(5) {
			spec.Shape = append(spec.Shape, random.Int64N(5))
			spec.Strides = append(spec.Strides, random.Int64N(30))
		}
		if random.IntN(4) == 0 {
			spec.Strides = nil
		}
		m, err := maker.New(spec)
		if err != nil {
			t.Fatal(err)
		}
		w, err := New(spec)
		if err != nil {
			t.Fatal(err)
		}
		disturb(t, m)
		made, want = append(made, m), append(want, w)
	}
	for i := range made {
		checkAlike(t, made[i], want[i])
	}
	if maker.Len() != len(made) {
		t.Errorf("Len is %d, want %d", maker.Len(), len(made))
	}
}

func disturb(t *testing.T, x *Tensor) {
	t.Helper()
	for d := range x.Dims() {
		axes := make([]int, 0, x.Dims())
		for i := x.Dims() - 1; i >= 0; i-- {
			axes = append(axes, i)
		}
		_, err := x.Permute(axes...)
		if err == nil && x.Size(d) > 0 {
			_, err = x.Narrow(d, x.Size(d)-1, x.Size(d))
		}
		if err == nil {
			_, err = Concat(d, x, x)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := x.Cast(F16); err != nil {
		t.Fatal(err)
	}
}

func checkAlike(t *testing.T, got, want *Tensor) {
	t.Helper()
	gotStorage, gotStrides, gotOffset, _ := got.Strided()
	storage, strides, offset, _ := want.Strided()
	if gotStorage != storage || gotOffset != offset || !slices.Equal(gotStrides, strides) || !slices.Equal(got.Shape(), want.Shape()) {
		t.Fatalf("shape %v, strides %v, offset %d, want %v, %v, %d", got.Shape(), gotStrides, gotOffset, want.Shape(), strides, offset)
	}
	a, err := Values[float32](t.Context(), got)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Values[float32](t.Context(), want)
	if err != nil || !slices.Equal(a, b) {
		t.Fatalf("%v, want %v: %v", a, b, err)
	}
}

// TestMakerRefuses has a maker prove what New proves.
func TestMakerRefuses(t *testing.T) {
	storage, _, _, _ := Of(make([]float32, 4)).Strided()
	var maker Maker
	for _, spec := range []Spec{
		{Storage: storage, DType: F32, Shape: []int64{5}},
		{Storage: storage, DType: F32, Shape: []int64{-1}},
		{Storage: storage, DType: F32, Shape: []int64{2}, Strides: []int64{4}},
		{Storage: storage, DType: F32, Shape: []int64{2}, Strides: []int64{1, 1}},
	} {
		if x, err := maker.New(spec); err == nil {
			t.Errorf("%v was made of %v over 16 bytes", x, spec.Shape)
		}
	}
}

// TestMakerAllocations cuts tensors from blocks.
func TestMakerAllocations(t *testing.T) {
	storage, _, _, _ := Of(make([]float32, 64)).Strided()
	shape, strides := []int64{2, 3}, []int64{3, 1}
	var maker Maker
	one := func() {
		if _, err := maker.New(Spec{Storage: storage, DType: F32, Shape: shape, Strides: strides}); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		one()
	}
	if n := testing.AllocsPerRun(100, func() {
		for range 10 * makerBlock {
			one()
		}
	}); n > 11 {
		t.Errorf("%v allocations for ten blocks", n)
	}
}
