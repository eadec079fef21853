package tensor

import (
	"errors"
	"math"
	"testing"

	"github.com/wick-ml/wick/fault"
)

func TestSameIsTheSameElementsOfTheSameStorage(t *testing.T) {
	data := []float32{0, 1, 2, 3, 4, 5}
	a := Of(data, 2, 3)
	s, _, _, _ := a.Strided()
	over := func(spec Spec) *Tensor {
		u, err := New(spec)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	cast := func(v *Tensor, d DType) *Tensor { return must(v.Cast(d)) }
	if !cast(a, F16).Same(cast(a, F16)) {
		t.Error("the same conversions are not the same")
	}
	flipped, err := a.Transpose(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	back, err := flipped.Transpose(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !a.Same(a) || !a.Same(back) || !a.Same(over(Spec{Storage: s, DType: F32, Shape: []int64{2, 3}})) {
		t.Error("the same elements are not the same")
	}
	for what, u := range map[string]*Tensor{
		"another storage": Of(data, 2, 3),
		"transposed":      flipped,
		"another shape":   over(Spec{Storage: s, DType: F32, Shape: []int64{6}}),
		"another dtype":   over(Spec{Storage: s, DType: I32, Shape: []int64{2, 3}}),
		"negated":         over(Spec{Storage: s, DType: F32, Shape: []int64{2, 3}, Neg: true}),
		"rounded between": cast(cast(a, F16), F32),
		"a part":          over(Spec{Storage: s, DType: F32, Shape: []int64{2, 1}, Offset: 1}),
	} {
		if a.Same(u) || u.Same(a) {
			t.Errorf("%s is the same", what)
		}
	}
}

func TestRoomLimitsWhatZeroStridesMake(t *testing.T) {
	wide, err := Of([]float32{1}, 1).Expand(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if err := Room([]*Tensor{wide}, wide.Bytes(), Expansion(64, 1<<20)); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("4 MiB of 4 bytes: %v", err)
	}
	if err := Room([]*Tensor{wide}, wide.Bytes(), Expansion(64, 4<<20)); err != nil {
		t.Errorf("within the floor: %v", err)
	}
	if err := Room(nil, mostBytes+1, Expansion(64, math.MaxInt64)); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("more than a process can have: %v", err)
	}
	if err := Room(nil, math.MaxInt64, Expansion(64, math.MaxInt64)); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("more than a slice can hold: %v", err)
	}
}
