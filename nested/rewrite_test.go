package nested_test

import (
	"errors"
	"testing"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// double doubles ints and gives every tensor another dtype.
func double(v nested.Value) (nested.Value, error) {
	switch v := v.(type) {
	case nested.Int:
		return 2 * v, nil
	case *nested.Tensor:
		t, err := v.Cast(tensor.F64)
		return &nested.Tensor{Tensor: t}, err
	case nested.String:
		return nil, fault.New(fault.Unsupported, "a text")
	}
	return nil, nil
}

func TestRewrite(t *testing.T) {
	tied := &nested.Tensor{Tensor: tensor.Of([]float32{1})}
	same := nested.NewList("list", nested.Bool(true))
	both := nested.NewList("list", nested.Int(3))
	root := nested.NewList("tuple", tied, same, both, both, &nested.Opaque{Members: tied}, nested.F32s{})
	got, err := nested.Rewrite(root, double)
	if err != nil {
		t.Fatal(err)
	}
	out := got.(*nested.List).Items
	switch {
	case got == nested.Value(root) || root.Items[0] != nested.Value(tied) || both.Items[0] != nested.Value(nested.Int(3)):
		t.Error("the tree itself changed")
	case out[1] != nested.Value(same):
		t.Error("what has no change inside is not shared")
	case out[2] != out[3] || out[2].(*nested.List).Items[0] != nested.Value(nested.Int(6)):
		t.Errorf("one list became %v and %v", out[2], out[3])
	case out[0] != out[4].(*nested.Opaque).Members || out[0].(*nested.Tensor).DType() != tensor.F64:
		t.Error("tied tensors are not one any more")
	}
}

func TestRewriteOfNothing(t *testing.T) {
	root := nested.NewMap("dict")
	if err := root.Set(nested.Int(1), nested.NewList("list", nested.Bool(true), nested.F32s{})); err != nil {
		t.Fatal(err)
	}
	if got, err := nested.Rewrite(root, double); err != nil || got != nested.Value(root) {
		t.Errorf("another tree, or %v", err)
	}
}

func TestRewriteOfARing(t *testing.T) {
	ring := nested.NewList("list", nested.Int(1))
	ring.Items = append(ring.Items, ring)
	got, err := nested.Rewrite(ring, double)
	if err != nil {
		t.Fatal(err)
	}
	if out := got.(*nested.List); out.Items[0] != nested.Value(nested.Int(2)) || out.Items[1] != nested.Value(ring) {
		t.Errorf("%v", out.Items[0])
	}
}

func TestRewriteFails(t *testing.T) {
	root := nested.NewMap("dict")
	if err := root.Set(nested.String("a"), nested.NewList("list", nested.None{}, nested.String("b"))); err != nil {
		t.Fatal(err)
	}
	_, err := nested.Rewrite(root, double)
	var e *fault.Error
	if !errors.As(err, &e) || e.Path != "a.1" {
		t.Errorf("%v", err)
	}
	deep := nested.Value(nested.None{})
	for range nested.DefaultDepth + 2 {
		deep = nested.NewList("list", deep)
	}
	if _, err := nested.Rewrite(deep, double); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("%v", err)
	}
	deep = nested.None{}
	for range nested.DefaultDepth + 2 {
		deep = &nested.Opaque{Members: deep}
	}
	if _, err := nested.Rewrite(deep, double); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("opaque objects in each other: %v", err)
	}
}
