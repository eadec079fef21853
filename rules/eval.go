package rules

import (
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// Lookup returns the tensors that a name stands for, in natural order. Outside
// of concat and stack there must be exactly one.
type Lookup func(*Name) ([]*tensor.Tensor, error)

// Tensor returns the view that the expression makes of the tensors that lookup
// finds. No byte is read. It fails with lookup's errors, with
// [fault.ErrMismatch] when a shape does not fit an operation, and with
// [fault.ErrUsage] when a parameter has no value.
func (e *Expr) Tensor(lookup Lookup, params Params) (*tensor.Tensor, error) {
	ts, err := e.eval(lookup, params)
	if err != nil {
		return nil, err
	}
	if len(ts) != 1 {
		return nil, several(e, len(ts))
	}
	return ts[0], nil
}

func several(e *Expr, n int) error {
	if n == 0 {
		return fault.New(fault.NotFound, "nothing matches "+e.String())
	}
	return fault.New(fault.Ambiguous, "several tensors match "+e.String()).Needs("one", "join them with concat or stack, or name one")
}

// eval returns one tensor for each that the source stands for.
func (e *Expr) eval(lookup Lookup, params Params) ([]*tensor.Tensor, error) {
	ts, err := e.source(lookup, params)
	if err != nil {
		return nil, err
	}
	if len(e.Ops) == 0 {
		return ts, nil
	}
	out := make([]*tensor.Tensor, len(ts))
	for i, t := range ts {
		for _, op := range e.Ops {
			if t, err = op.Apply(t, params); err != nil {
				return nil, err
			}
		}
		out[i] = t
	}
	return out, nil
}

func (e *Expr) source(lookup Lookup, params Params) ([]*tensor.Tensor, error) {
	if e.Name != nil {
		return lookup(e.Name)
	}
	var parts []*tensor.Tensor
	for _, part := range e.Join.Parts {
		ts, err := part.eval(lookup, params)
		if err != nil {
			return nil, err
		}
		if len(ts) == 0 {
			return nil, several(part, 0)
		}
		parts = append(parts, ts...)
	}
	joined, err := e.Join.join(parts, params)
	if err != nil {
		return nil, err
	}
	return []*tensor.Tensor{joined}, nil
}

func (j *Join) join(parts []*tensor.Tensor, params Params) (*tensor.Tensor, error) {
	axis, err := j.Axis.Value(params)
	if err != nil {
		return nil, err
	}
	dims := parts[0].Dims()
	if j.Stack {
		dims++
	}
	axis = dim(axis, dims)
	if j.Stack {
		if parts, err = unsqueezeAll(parts, axis); err != nil {
			return nil, err
		}
	}
	t, err := tensor.Concat(axis, parts...)
	if err != nil {
		return nil, fault.Wrap(fault.Mismatch, j.String(), err)
	}
	return t, nil
}

func unsqueezeAll(parts []*tensor.Tensor, axis int) ([]*tensor.Tensor, error) {
	out := make([]*tensor.Tensor, len(parts))
	for i, p := range parts {
		t, err := p.Unsqueeze(axis)
		if err != nil {
			return nil, fault.Wrap(fault.Mismatch, "stack of "+p.String(), err)
		}
		out[i] = t
	}
	return out, nil
}
