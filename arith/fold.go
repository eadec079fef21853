package arith

import (
	"context"
	"math"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/tensor"
)

// Real is an element whose records this package computes with. All of it is done
// in float64 and rounded once.
type Real interface {
	float64 | float32 | tensor.Float16 | tensor.BFloat16
}

// FoldBatchNorm folds a batch norm in evaluation mode into the layer before it, so
// that the layer alone gives what both gave: a convolution or a linear layer, whose
// weight has the output channels first. bias may be empty and is made then. eps is
// the batch norm's, which checkpoints do not have: 1e-5 unless the model says
// otherwise. Norm is not changed, weight and bias get slices of their own.
//
// The result differs from torch's torch.nn.utils.fusion.fuse_conv_bn_weights, which
// computes in the parameters' own precision, by at most 4 units in the last place of
// each weight, and of the largest term that each bias is the sum of.
//
// It fails with [fault.ErrMismatch] when the shapes do not fit each other; layer and
// bias are as they were then.
func FoldBatchNorm[T Real](weight, bias *tensor.Array[T], norm *nn.BatchNorm[T], eps float64) error {
	return foldBatchNorm(weight, bias, norm, eps, 0)
}

// FoldBatchNormTransposed is [FoldBatchNorm] for a transposed convolution without
// groups, whose weight has the output channels second.
func FoldBatchNormTransposed[T Real](weight, bias *tensor.Array[T], norm *nn.BatchNorm[T], eps float64) error {
	return foldBatchNorm(weight, bias, norm, eps, 1)
}

func foldBatchNorm[T Real](weight, bias *tensor.Array[T], norm *nn.BatchNorm[T], eps float64, dim int) error {
	channels := len(norm.RunningVar.Data)
	if len(weight.Shape) <= dim || weight.Shape[dim] != channels || !complete(*weight) {
		return mismatch("a weight of shape "+tensor.ShapeString(weight.Shape), channels)
	}
	if bias.Data != nil && len(bias.Data) != channels {
		return mismatch("a bias of shape "+tensor.ShapeString(bias.Shape), channels)
	}
	scale, mean, beta, err := affine(norm, eps)
	if err != nil {
		return err
	}
	w, err := wide(weight.Data)
	if err != nil {
		return err
	}
	b := make([]float64, channels)
	if bias.Data != nil {
		if b, err = wide(bias.Data); err != nil {
			return err
		}
	}
	for c := range scale {
		b[c] = (b[c]-mean[c])*scale[c] + beta[c]
	}
	inner := product(weight.Shape[dim+1:])
	for i := range w {
		w[i] *= scale[i/inner%channels]
	}
	return assign(weight, w, bias, b)
}

// affine is what a batch norm in evaluation mode does to channel c:
// (x - mean[c]) * scale[c] + beta[c].
func affine[T Real](norm *nn.BatchNorm[T], eps float64) (scale, mean, beta []float64, err error) {
	channels := len(norm.RunningVar.Data)
	var parts [4][]float64
	for i, a := range []tensor.Array[T]{norm.Weight, norm.Bias, norm.RunningMean, norm.RunningVar} {
		if len(a.Data) != channels {
			return nil, nil, nil, mismatch("a batch norm with parts of other sizes", channels)
		}
		if parts[i], err = wide(a.Data); err != nil {
			return nil, nil, nil, err
		}
	}
	gamma, beta, mean, variance := parts[0], parts[1], parts[2], parts[3]
	scale = make([]float64, channels)
	for c := range scale {
		scale[c] = gamma[c] / math.Sqrt(variance[c]+eps)
	}
	return scale, mean, beta, nil
}

// assign rounds both results and assigns them, or neither.
func assign[T Real](weight *tensor.Array[T], w []float64, bias *tensor.Array[T], b []float64) error {
	newWeight, err := narrow[T](w)
	if err != nil {
		return err
	}
	newBias, err := narrow[T](b)
	if err != nil {
		return err
	}
	weight.Data = newWeight
	*bias = tensor.Array[T]{Shape: []int{len(b)}, Data: newBias}
	return nil
}

func mismatch(found string, channels int) error {
	return fault.New(fault.Mismatch, found+" beside a batch norm of "+tensor.ShapeString([]int{channels})).
		Needs("as many output channels as the batch norm has features", "")
}

// WeightNorm returns the weight that torch.nn.utils.weight_norm splits into a
// length g and a direction v (names weight_g and weight_v, or with
// torch.nn.utils.parametrizations original0 and original1): v scaled so that its
// slices along dim have the lengths g. dim is 0 unless the model says otherwise,
// and -1 for one length of the whole, as dim=None says in torch.
//
// The result differs from torch's, which computes in the parameters' own precision
// and adds in another order, by at most 8 units in the last place.
//
// It fails with [fault.ErrMismatch] when g has not one element for each slice.
func WeightNorm[T Real](g, v tensor.Array[T], dim int) (tensor.Array[T], error) {
	slices, inner := 1, 1
	if dim >= 0 && dim < len(v.Shape) {
		slices, inner = v.Shape[dim], product(v.Shape[dim+1:])
	}
	if dim < -1 || dim >= len(v.Shape) || len(g.Data) != slices || !complete(v) {
		return tensor.Array[T]{}, fault.New(fault.Mismatch, "lengths of shape "+tensor.ShapeString(g.Shape)+" for directions of shape "+tensor.ShapeString(v.Shape)).
			Needs("one length for each slice along the dimension", "see how the model was normed: dim is often 0, for transposed convolutions 1")
	}
	lengths, err := wide(g.Data)
	if err != nil {
		return tensor.Array[T]{}, err
	}
	w, err := wide(v.Data)
	if err != nil {
		return tensor.Array[T]{}, err
	}
	squares := make([]float64, slices)
	for i, x := range w {
		squares[i/inner%slices] += x * x
	}
	for i := range w {
		k := i / inner % slices
		w[i] *= lengths[k] / math.Sqrt(squares[k])
	}
	data, err := narrow[T](w)
	return tensor.Array[T]{Shape: append([]int{}, v.Shape...), Data: data}, err
}

// complete reports whether an array has the elements that its shape says.
func complete[T Real](a tensor.Array[T]) bool { return len(a.Data) == product(a.Shape) }

func product(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// wide returns a copy of the elements in float64, which holds all of them.
func wide[T Real](data []T) ([]float64, error) {
	return tensor.Values[float64](context.Background(), tensor.Of(data))
}

// narrow rounds to T, as torch does: what has 16 bits by way of float32.
func narrow[T Real](data []float64) ([]T, error) {
	return tensor.Values[T](context.Background(), tensor.Of(data))
}
