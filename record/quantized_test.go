package record_test

import (
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// A quantized tensor in parts that contradict each other is malformed.
func TestQuantizedPartsThatDoNotFit(t *testing.T) {
	const ints, scheme = `"int_repr":{"$tensor":{"dtype":"int8","shape":[2],"data":[1,2]}}`, `"scheme":"per_tensor_affine"`
	const halves = `"int_repr":{"$tensor":{"dtype":"uint8","shape":[2],"data":[1,2]}},"dtype":"quint4x2"`
	const floats = `{"$tensor":{"dtype":"float64","shape":[2],"data":[1,2]}}`
	open1 := func(members string) error {
		_, err := open(t.Context(), []byte(`{"wick":{"version":1},"root":{"$wick.quantized":[{`+members+`}]}}`))
		return err
	}
	if err := open1(ints + `,"dtype":"qint8",` + scheme + `,"scale":0.5,"zero_point":3`); err != nil {
		t.Error(err)
	}
	if err := open1(halves + `,"shape":[4]`); err != nil {
		t.Error(err)
	}
	for name, members := range map[string]string{
		"nothing":           ``,
		"no integers":       `"dtype":"qint8"`,
		"no dtype":          ints,
		"another dtype":     ints + `,"dtype":"quint8"`,
		"no quantized one":  ints + `,"dtype":"int8"`,
		"no scale":          ints + `,"dtype":"qint8",` + scheme,
		"an integer scale":  ints + `,"dtype":"qint8",` + scheme + `,"scale":1,"zero_point":3`,
		"a float zero":      ints + `,"dtype":"qint8",` + scheme + `,"scale":0.5,"zero_point":3.0`,
		"no axis":           ints + `,"dtype":"qint8",` + scheme + `,"scale":` + floats + `,"zero_point":` + floats,
		"an axis below":     ints + `,"dtype":"qint8",` + scheme + `,"scale":` + floats + `,"zero_point":` + floats + `,"axis":-1`,
		"one zero":          ints + `,"dtype":"qint8",` + scheme + `,"scale":` + floats + `,"zero_point":0,"axis":0`,
		"no shape":          halves,
		"a shape of text":   halves + `,"shape":["a"]`,
		"a negative shape":  halves + `,"shape":[-4]`,
		"a shape too small": halves + `,"shape":[2]`,
		"a shape too large": halves + `,"shape":[1000000000]`,
	} {
		if err := open1(members); fault.KindOf(err) != fault.Malformed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Quantized tensors that are shared or that lie anywhere are taken apart where they
// are, and the tree that is written stays as it was.
func TestQuantizedInATree(t *testing.T) {
	q := leafOf([]int8{1, 2})
	v, err := open(t.Context(), []byte(`{"wick":{"version":1},"root":{"$wick.quantized":[{"int_repr":{"$tensor":{"dtype":"int8","shape":[2],"data":[1,2]}},"dtype":"qint8","scheme":"s","scale":0.5,"zero_point":3}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	root := mapOf("dict", nested.String("a"), nested.NewList("tuple", v.Root, q), nested.String("b"), &nested.Opaque{Class: "c", Reason: "r", Members: mapOf("dict", nested.String("q"), v.Root)})
	before := describe(t, root)
	for _, target := range targets {
		c, err := open(t.Context(), unpack(t, save(t, target, root, checkpoint.RecordHeader{})))
		if err != nil {
			t.Fatal(target.Name(), err)
		}
		if got := describe(t, c.Root); got != before || describe(t, root) != before {
			t.Errorf("%s: got\n%s\nwant\n%s", target.Name(), got, before)
		}
	}
}
