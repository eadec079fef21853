package gorgonia

import (
	"errors"
	"slices"
	"testing"

	dense "gorgonia.org/tensor"

	"github.com/wick-ml/wick/tensor"
)

func TestOfAliases(t *testing.T) {
	a := tensor.Array[float32]{Shape: []int{2, 3}, Data: []float32{1, 2, 3, 4, 5, 6}}
	d, err := Of(a)
	if err != nil {
		t.Fatal(err)
	}
	if &d.Data().([]float32)[0] != &a.Data[0] {
		t.Error("the tensor has memory of its own")
	}
	a.Data[5] = 60
	product, err := d.MatVecMul(dense.New(dense.WithBacking([]float32{1, 0, 1})))
	if err != nil {
		t.Fatal(err)
	}
	if got := product.Data().([]float32); !slices.Equal(got, []float32{4, 64}) {
		t.Errorf("the product is %v", got)
	}
	if allocated := testing.AllocsPerRun(10, func() {
		if _, err := Of(a); err != nil {
			t.Fatal(err)
		}
	}); allocated > 12 {
		t.Errorf("%v allocations", allocated)
	}
}

func TestViewAliasesAndReadDoesNot(t *testing.T) {
	data := []float64{1, 2, 3, 4}
	square := tensor.Of(data, 2, 2)
	there, err := View[float64](square)
	if err != nil {
		t.Fatal(err)
	}
	own, err := Read[float32](t.Context(), square)
	if err != nil {
		t.Fatal(err)
	}
	data[0] = 10
	if got := there.Data().([]float64); got[0] != 10 {
		t.Error("the view has memory of its own")
	}
	if got := own.Data().([]float32); !slices.Equal(got, []float32{1, 2, 3, 4}) {
		t.Errorf("what was read is %v", got)
	}
	turned, err := square.Transpose(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := View[float64](turned); !errors.Is(err, tensor.ErrNotViewable) {
		t.Errorf("a transposed tensor in place: %v", err)
	}
}

func TestOfShapes(t *testing.T) {
	one, err := Of(tensor.Array[int64]{Shape: []int{}, Data: []int64{7}})
	if err != nil || !slices.Equal(one.Shape(), []int{1}) {
		t.Errorf("a number became %v: %v", one, err)
	}
	for _, a := range []tensor.Array[int64]{{}, {Shape: []int{0, 2}}, {Shape: []int{3}, Data: []int64{1}}} {
		if _, err := Of(a); err == nil {
			t.Errorf("%v became a tensor", a)
		}
	}
}
