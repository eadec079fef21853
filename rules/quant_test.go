package rules

import (
	"errors"
	"testing"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// TestQuantizedSources holds that a tensor made of quantized ones stands for the same
// real numbers as they do, or is refused.
func TestQuantizedSources(t *testing.T) {
	const scheme = "per_tensor_affine"
	root := nested.NewMap("dict")
	for name, q := range map[string]*nested.Quant{
		"half": {Scheme: scheme, Scale: 0.5}, "same": {Scheme: scheme, Scale: 0.5}, "double": {Scheme: scheme, Scale: 2},
		"shifted":  {Scheme: scheme, Scale: 0.5, ZeroPoint: 1},
		"channels": {Scheme: "per_channel_affine", Scales: &nested.Tensor{Tensor: tensor.Of([]float64{1, 2})}, ZeroPoints: &nested.Tensor{Tensor: tensor.Of([]int64{0, 0})}},
	} {
		leaf := &nested.Tensor{Tensor: tensor.Of([]tensor.QInt8{1, 2, 3, 4}, 2, 2), Quant: q}
		if err := root.Set(nested.String(name), leaf); err != nil {
			t.Fatal(err)
		}
	}
	if err := root.Set(nested.String("ints"), &nested.Tensor{Tensor: tensor.Of([]int8{1, 2}, 1, 2)}); err != nil {
		t.Fatal(err)
	}
	for expr, want := range map[string]struct {
		quantized bool
		err       error
	}{
		"half | transpose":                              {quantized: true},
		"concat 0 (half, same)":                         {quantized: true},
		"concat 0 (half, double)":                       {err: fault.ErrUnsupported},
		"stack 0 (half, shifted)":                       {err: fault.ErrUnsupported},
		"concat 0 (half, channels)":                     {err: fault.ErrUnsupported},
		"channels | transpose":                          {err: fault.ErrUnsupported},
		"channels | cast int8 | transpose":              {},
		"half | cast int8":                              {},
		"concat 0 (half | cast int8, ints)":             {},
		"concat 0 (half | cast int8, double|cast int8)": {},
		"channels": {quantized: true},
	} {
		set, err := Parse("", "made = "+expr)
		if err != nil {
			t.Fatal(err)
		}
		out, _, err := set.Apply(root)
		if !errors.Is(err, want.err) {
			t.Errorf("%s: %v, want %v", expr, err, want.err)
		}
		if err != nil {
			continue
		}
		made, _ := out.(*nested.Map).Lookup("made")
		if got := made.(*nested.Tensor).Quant != nil; got != want.quantized {
			t.Errorf("%s: quantized %v, want %v", expr, got, want.quantized)
		}
	}
}
