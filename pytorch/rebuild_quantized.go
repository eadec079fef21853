package pytorch

import (
	"strings"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// quantizedCalls are torch's functions that make quantized tensors.
var quantizedCalls = map[string]callFunc{
	"torch._utils._rebuild_qtensor": rebuildQuantized,
}

// rebuildQuantized is _rebuild_qtensor(storage, offset, size, stride,
// quantizer, requires_grad, hooks) with a quantizer of (scheme, scale, zero
// point) or (scheme, scales, zero points, axis).
func rebuildQuantized(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 7 {
		return nil, false
	}
	params, ok := args[4].(*nested.List)
	if !ok || len(params.Items) < 3 {
		return nil, false
	}
	quant, ok := quantizer(params.Items)
	if !ok {
		return nil, false
	}
	t, ok := l.dense(args[:4], tensor.Invalid, false, false)
	if !ok {
		return nil, false
	}
	if t.Err() == nil && quant.Scales != nil {
		if err := checkChannels(t.Tensor, quant); err != nil {
			t.Tensor = tensor.Unavailable(t.DType(), t.Shape(), err)
		}
	}
	t.Quant, t.RequiresGrad = quant, isTrue(args[5])
	return t, true
}

func quantizer(params []nested.Value) (*nested.Quant, bool) {
	scheme, ok := params[0].(nested.Symbol)
	if !ok || scheme.Class != "torch.qscheme" {
		return nil, false
	}
	q := &nested.Quant{Scheme: strings.TrimPrefix(scheme.Text, "torch.")}
	if len(params) == 3 {
		zero, isInt := params[2].(nested.Int)
		q.Scale, ok = floatOf(params[1])
		q.ZeroPoint = int64(zero)
		return q, ok && isInt
	}
	axis, isInt := params[3].(nested.Int)
	q.Axis = int(axis)
	if !isInt || axis < 0 || axis >= tensor.MaxDims {
		return nil, false
	}
	q.Scales, ok = channelValues(params[1], true)
	if !ok {
		return nil, false
	}
	floatZeros := strings.HasSuffix(q.Scheme, "float_qparams")
	q.ZeroPoints, ok = channelValues(params[2], floatZeros)
	// torch writes per_channel_affine for both schemes; float zero points tell.
	if ok && q.ZeroPoints.DType().Class() == tensor.FloatClass && q.Scheme == "per_channel_affine" {
		q.Scheme = "per_channel_affine_float_qparams"
	}
	return q, ok
}

// channelValues returns one number for each channel: a tensor, or a list as
// torch wrote it before 1.4.
func channelValues(v nested.Value, floats bool) (*nested.Tensor, bool) {
	switch v := v.(type) {
	case *nested.Tensor:
		return v, v.Tensor != nil
	case *nested.List:
		if floats {
			return listTensor(v, floatOf)
		}
		return listTensor(v, func(v nested.Value) (int64, bool) {
			n, ok := v.(nested.Int)
			return int64(n), ok
		})
	}
	return nil, false
}

func listTensor[T float64 | int64](list *nested.List, number func(nested.Value) (T, bool)) (*nested.Tensor, bool) {
	data := make([]T, len(list.Items))
	for i, item := range list.Items {
		n, ok := number(item)
		if !ok {
			return nil, false
		}
		data[i] = n
	}
	return &nested.Tensor{Tensor: tensor.Of(data), Class: classTensor}, true
}

// checkChannels proves that there is one scale and one zero point for each
// channel.
func checkChannels(t *tensor.Tensor, q *nested.Quant) error {
	shape := t.Shape()
	if q.Axis >= len(shape) || q.Scales.Len() != int64(shape[q.Axis]) || q.ZeroPoints.Len() != int64(shape[q.Axis]) {
		return wrongData("quantization scales " + tensor.ShapeString(q.Scales.Shape()) + " for a shape of " + tensor.ShapeString(shape))
	}
	return nil
}
