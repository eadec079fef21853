package arith

import (
	"context"
	"strings"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// DequantizeTree returns a tree in which every quantized tensor is replaced by
// its real numbers, see [Dequantize]; limits bounds all of them together. Nodes
// without one are shared with root.
func DequantizeTree(root nested.Value, limits Limits) (nested.Value, error) {
	b := newBudget(limits)
	return nested.Rewrite(root, func(v nested.Value) (nested.Value, error) {
		if t, ok := v.(*nested.Tensor); ok && t.Quant != nil && t.DType().Class() == tensor.QuantClass {
			return b.dequantize(t)
		}
		return nil, nil // kept
	})
}

// DensifyTree returns a tree in which every sparse tensor is replaced by its
// dense form, see [Densify]; limits bounds all of them together. Nodes without one
// are shared with root.
func DensifyTree(ctx context.Context, root nested.Value, limits Limits) (nested.Value, error) {
	b := newBudget(limits)
	return nested.Rewrite(root, func(v nested.Value) (nested.Value, error) {
		if o, ok := v.(*nested.Opaque); ok && strings.HasPrefix(o.Reason, "torch.sparse_") {
			return b.densify(ctx, o)
		}
		return nil, nil // kept
	})
}
