package wick_test

import (
	"errors"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// A map is gone after Close: a view of it would end the process.
func TestNoViewAfterClose(t *testing.T) {
	c, err := wick.Open(t.Context(), "pytorch-tests/demo-resnet/demo-resnet-torch2.15.pt", wick.Mmap())
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := c.Lookup("state_dict.conv1.weight")
	if err != nil {
		t.Fatal(err)
	}
	_, before := tensor.View[float32](leaf.Tensor)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = tensor.View[float32](leaf.Tensor)
	// Where nothing can be viewed, in another byte order or without maps, either will do.
	if !errors.Is(err, fault.ErrClosed) && (before == nil || !errors.Is(err, tensor.ErrNotViewable)) {
		t.Errorf("before Close %v, after it %v", before, err)
	}
}
