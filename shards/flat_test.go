package shards

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// However a vector is cut into parts, its view is the reshaped whole.
func TestVectorView(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		shape := make([]int, r.IntN(5))
		n := 1
		for i := range shape {
			shape[i] = 1 + r.IntN(4)
			n *= shape[i]
		}
		whole := make([]float32, n+r.IntN(5))
		for i := range whole {
			whole[i] = float32(i)
		}
		var v vector
		for at := 0; at < len(whole); {
			end := min(len(whole), at+r.IntN(7))
			if err := v.add(tensor.Of(whole[at:end])); err != nil {
				t.Fatal(err)
			}
			at = end
		}
		lo := r.IntN(len(whole) - n + 1)
		got, err := v.view(lo, shape)
		if err != nil {
			t.Fatalf("%v of %d: %v", shape, len(whole), err)
		}
		values, err := tensor.Values[float32](t.Context(), got)
		if err != nil || !slices.Equal(values, whole[lo:lo+n]) || !slices.Equal(got.Shape(), shape) {
			t.Fatalf("%v of %d from %d: %v, %v", shape, len(whole), lo, values, err)
		}
	}
}

// Shapes that a file claims do not make more of a vector than there is.
func TestVectorRefuses(t *testing.T) {
	var v vector
	if err := errors.Join(v.add(tensor.Of([]float32{1, 2, 3})), v.add(tensor.Of([]float32{4, 5}))); err != nil {
		t.Fatal(err)
	}
	for _, shape := range [][]int{{6}, {-1}, {2, -3}, {1 << 30, 1 << 30, 1 << 30}, make([]int, 65)} {
		if _, err := v.view(0, shape); !errors.Is(err, fault.ErrMalformed) {
			t.Errorf("%v: %v", shape, err)
		}
	}
	for _, lo := range []int{6, -1, math.MinInt} { // gaps that a file claims can go beyond an int
		if _, err := v.view(lo, []int{0}); !errors.Is(err, fault.ErrMalformed) {
			t.Errorf("from %d on: %v", lo, err)
		}
	}
	if got, err := v.view(5, []int{0, 7}); err != nil || got.Len() != 0 {
		t.Errorf("an empty one: %v, %v", got, err)
	}
	for _, other := range []*tensor.Tensor{tensor.Of([]int64{1}), tensor.Of([]float32{1}, 1, 1)} {
		if err := v.add(other); !errors.Is(err, fault.ErrMalformed) {
			t.Errorf("%v: %v", other.Shape(), err)
		}
	}
}
