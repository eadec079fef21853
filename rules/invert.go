package rules

import (
	"slices"
	"strconv"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// Part is what an expression, read backwards, says of its source: all of it, or
// a range of one dimension.
type Part struct {
	Name   string
	Tensor *tensor.Tensor

	whole  bool
	axis   int
	lo, hi int
	of     int // the number of equal parts, 0 if it does not say
}

// Invert returns the part of the source that gives t when the expression is
// evaluated. It fails with [fault.ErrUnsupported] where the expression does not
// say what the source was: after a join, a reshape, an expand, a wildcard; and with
// [fault.ErrMismatch] where it gives nothing of t's shape. A cast is passed over:
// the source gets t's dtype.
func (e *Expr) Invert(t *tensor.Tensor, params Params) (Part, error) {
	if e.Name == nil || e.Name.Path != nil || !e.Name.pattern.IsLiteral() {
		return Part{}, e.oneWay("a join, a wildcard or an exact path")
	}
	part := Part{Name: e.Name.Text, Tensor: t, whole: true}
	for i, op := range slices.Backward(e.Ops) {
		args, err := op.values(params)
		if err != nil {
			return Part{}, err
		}
		if i == 0 && part.cut(op.Verb, args) {
			return part, op.fits(part.hi-part.lo, args)
		}
		before, err := op.invert(part.Tensor, args)
		if err != nil {
			return Part{}, err
		}
		if before == nil {
			return Part{}, e.oneWay(op.String())
		}
		if again, err := op.Apply(before, params); err != nil || !slices.Equal(again.Shape(), part.Tensor.Shape()) {
			return Part{}, fault.New(fault.Mismatch, "writing back through "+op.String()+": "+part.Tensor.String()).Needs("what it gives", "")
		}
		part.Tensor = before
	}
	return part, nil
}

// fits fails on a range of another size than a narrow takes.
func (o Op) fits(n int, args []int) error {
	if o.Verb != "narrow" || args[2] < 0 || args[2] == openBound || args[2]-args[1] == n {
		return nil
	}
	return fault.New(fault.Mismatch, "writing back through "+o.String()+": "+strconv.Itoa(n)+" indices").Needs(strconv.Itoa(args[2]-args[1]), "")
}

func (e *Expr) oneWay(why string) error {
	return fault.New(fault.Unsupported, "writing back through "+e.String()+": "+why+" has no way back").
		Needs("transpose, permute, squeeze A, unsqueeze, unflatten, or parts that a narrow, select or chunk takes first", "")
}

// values are the operation's numbers.
func (o Op) values(params Params) ([]int, error) {
	args := make([]int, len(o.Args))
	for i, n := range o.Args {
		v, err := n.Value(params)
		if err != nil {
			return nil, err
		}
		args[i] = v
	}
	return args, nil
}

// invert undoes one operation. It returns nil where there is no way back.
func (o Op) invert(t *tensor.Tensor, a []int) (*tensor.Tensor, error) {
	switch {
	case o.Verb == "cast":
		return t, nil
	case o.Verb == "transpose":
		return transpose(t, a)
	case o.Verb == "permute":
		back := make([]int, len(a))
		for to, from := range fromEnd(a, t.Dims()) {
			if from < 0 || from >= len(a) {
				return nil, nil //nolint:nilnil // the caller says that there is no way back
			}
			back[from] = to
		}
		return t.Permute(back...)
	case o.Verb == "squeeze" && len(a) == 1:
		return t.Unsqueeze(dim(a[0], t.Dims()+1))
	case o.Verb == "unsqueeze":
		return t.Squeeze(dim(a[0], t.Dims()))
	case o.Verb == "unflatten":
		first := dim(a[0], t.Dims()-len(a)+2)
		return flatten(t, []int{first, first + len(a) - 2})
	default:
		return nil, nil //nolint:nilnil // the caller says that there is no way back
	}
}

// cut makes a narrow, a select or a chunk, the first operation, a range; ok is
// false for others, and for ranges that count from an end that is not known.
func (p *Part) cut(verb string, a []int) bool {
	switch verb {
	case "narrow", "chunk":
		axis, n, err := size(p.Tensor, a[0])
		if err != nil {
			return false
		}
		if verb == "chunk" {
			p.axis, p.lo, p.hi, p.of = axis, a[1]*n, (a[1]+1)*n, a[2]
		} else {
			p.axis, p.lo, p.hi = axis, a[1], a[1]+n
		}
	case "select":
		t, err := p.Tensor.Unsqueeze(dim(a[0], p.Tensor.Dims()+1))
		if err != nil {
			return false
		}
		p.Tensor, p.axis, p.lo, p.hi = t, dim(a[0], t.Dims()), a[1], a[1]+1
	default:
		return false
	}
	p.whole = false
	return p.lo >= 0
}

// JoinParts returns the tensor that the parts make. It fails with
// [fault.ErrUnsupported] when they do not cover it from its beginning, each
// element once; an end that nothing tells is taken to be where the last part
// ends.
func JoinParts(parts []Part) (*tensor.Tensor, error) {
	if len(parts) == 1 && parts[0].whole {
		return parts[0].Tensor, nil
	}
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b Part) int { return a.lo - b.lo })
	end := 0
	ts := make([]*tensor.Tensor, len(parts))
	for i, p := range parts {
		if p.whole || p.axis != parts[0].axis || p.lo != end || p.of != parts[0].of {
			return nil, uncovered(p)
		}
		ts[i], end = p.Tensor, p.hi
	}
	if of := parts[0].of; of != 0 && of != len(parts) {
		return nil, uncovered(parts[0])
	}
	return tensor.Concat(parts[0].axis, ts...)
}

func uncovered(p Part) error {
	return fault.New(fault.Unsupported, "writing "+p.Name+" from its parts: they leave out or repeat some of it at "+strconv.Itoa(p.lo)).
		Needs("parts that cover it, each element once", "")
}
