package rules

import (
	"slices"
	"strconv"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// form is how an operation's arguments are written.
type form uint8

const (
	formNumbers form = iota // A B …
	formNarrow              // A LO:HI
	formChunk               // A I of N
	formDType               // DTYPE
)

// verb is one view operation of the grammar. Adding one is adding a line to
// verbs.
type verb struct {
	form     form
	min, max int // numbers that it takes
	allowed  func(n int) bool
	apply    func(t *tensor.Tensor, a []int) (*tensor.Tensor, error)
}

const many = tensor.MaxDims + 1

var verbs = map[string]verb{
	"transpose": {max: 2, allowed: func(n int) bool { return n != 1 }, apply: transpose},
	"permute":   {max: many, apply: func(t *tensor.Tensor, a []int) (*tensor.Tensor, error) { return t.Permute(fromEnd(a, t.Dims())...) }},
	"reshape":   {max: many, apply: func(t *tensor.Tensor, a []int) (*tensor.Tensor, error) { return t.Reshape(a...) }},
	"flatten":   {max: 2, allowed: func(n int) bool { return n != 1 }, apply: flatten},
	"unflatten": {min: 2, max: many, apply: unflatten},
	"expand":    {max: many, apply: expand},
	"squeeze":   {max: 1, apply: squeeze},
	"unsqueeze": {min: 1, max: 1, apply: func(t *tensor.Tensor, a []int) (*tensor.Tensor, error) { return t.Unsqueeze(dim(a[0], t.Dims()+1)) }},
	"narrow":    {form: formNarrow, min: 3, max: 3, apply: narrow},
	"select":    {min: 2, max: 2, apply: choose},
	"chunk":     {form: formChunk, min: 3, max: 3, apply: chunk},
	"cast":      {form: formDType},
}

// verbNames are the operations in the order in which an error lists them.
var verbNames = []string{"transpose", "permute", "reshape", "flatten", "unflatten", "expand", "squeeze", "unsqueeze",
	"narrow", "select", "chunk", "cast"}

// Apply returns the view of t that the operation makes. It fails with
// [fault.ErrMismatch] when the tensor has not the shape for it, and with
// [fault.ErrUsage] when a parameter has no value.
func (o Op) Apply(t *tensor.Tensor, params Params) (*tensor.Tensor, error) {
	args, err := o.values(params)
	if err != nil {
		return nil, err
	}
	out, err := o.apply(t, args)
	if err != nil {
		return nil, fault.Wrap(fault.Mismatch, o.String()+" of "+t.String(), err)
	}
	return out, nil
}

func (o Op) apply(t *tensor.Tensor, args []int) (*tensor.Tensor, error) {
	if o.Verb == "cast" {
		return t.Cast(o.DType)
	}
	return verbs[o.Verb].apply(t, args)
}

// dim is a dimension that may count from the end.
func dim(a, dims int) int {
	if a < 0 {
		return a + dims
	}
	return a
}

func fromEnd(a []int, dims int) []int {
	out := slices.Clone(a)
	for i := range out {
		out[i] = dim(out[i], dims)
	}
	return out
}

// size returns dimension a and its size, or an error if there is none.
func size(t *tensor.Tensor, a int) (int, int, error) {
	d := dim(a, t.Dims())
	if d < 0 || d >= t.Dims() {
		return 0, 0, fault.New(fault.Mismatch, "no dimension "+strconv.Itoa(a))
	}
	return d, t.Shape()[d], nil
}

func transpose(t *tensor.Tensor, a []int) (*tensor.Tensor, error) {
	if len(a) == 0 {
		if t.Dims() != 2 {
			return nil, fault.New(fault.Mismatch, strconv.Itoa(t.Dims())+" dimensions").Needs("a matrix, or the two dimensions by number", "")
		}
		a = []int{0, 1}
	}
	a = fromEnd(a, t.Dims())
	return t.Transpose(a[0], a[1])
}

func flatten(t *tensor.Tensor, a []int) (*tensor.Tensor, error) {
	if len(a) == 0 {
		return t.Reshape(int(t.Len()))
	}
	first, _, err := size(t, a[0])
	if err != nil {
		return nil, err
	}
	last, _, err := size(t, a[1])
	if err != nil {
		return nil, err
	}
	if first > last {
		return nil, fault.New(fault.Mismatch, "dimension "+strconv.Itoa(first)+" after "+strconv.Itoa(last))
	}
	shape := t.Shape()
	joined := 1
	for _, n := range shape[first : last+1] {
		joined *= n
	}
	return t.Reshape(slices.Concat(shape[:first], []int{joined}, shape[last+1:])...)
}

func unflatten(t *tensor.Tensor, a []int) (*tensor.Tensor, error) {
	d, n, err := size(t, a[0])
	if err != nil {
		return nil, err
	}
	sizes := slices.Clone(a[1:])
	if err := infer(sizes, n); err != nil {
		return nil, err
	}
	shape := t.Shape()
	return t.Reshape(slices.Concat(shape[:d], sizes, shape[d+1:])...)
}

// infer fills the one -1 of sizes so that their product is n.
func infer(sizes []int, n int) error {
	hole, known, fits := -1, 1, true
	for i, s := range sizes {
		var ok bool
		switch {
		case s == -1 && hole < 0:
			hole = i
		case s < 0:
			fits = false
		default:
			known, ok = combine(known, s, false)
			fits = fits && ok
		}
	}
	if fits && hole >= 0 && known > 0 && n%known == 0 {
		sizes[hole], known = n/known, n
	}
	if !fits || known != n || hole >= 0 && sizes[hole] < 0 {
		return fault.New(fault.Mismatch, strconv.Itoa(n)+" does not split into "+tensor.ShapeString(sizes))
	}
	return nil
}

func expand(t *tensor.Tensor, a []int) (*tensor.Tensor, error) {
	a = slices.Clone(a)
	shape := t.Shape()
	for i := range a {
		if k := i - (len(a) - len(shape)); a[i] == -1 && k >= 0 {
			a[i] = shape[k]
		}
	}
	return t.Expand(a...)
}

func squeeze(t *tensor.Tensor, a []int) (*tensor.Tensor, error) {
	if len(a) == 1 {
		return t.Squeeze(dim(a[0], t.Dims()))
	}
	shape := slices.DeleteFunc(t.Shape(), func(n int) bool { return n == 1 })
	return t.Reshape(shape...)
}

func narrow(t *tensor.Tensor, a []int) (*tensor.Tensor, error) {
	d, n, err := size(t, a[0])
	if err != nil {
		return nil, err
	}
	hi := a[2]
	if hi == openBound {
		hi = n
	}
	return t.Narrow(d, dim(a[1], n), dim(hi, n))
}

func choose(t *tensor.Tensor, a []int) (*tensor.Tensor, error) {
	d, n, err := size(t, a[0])
	if err != nil {
		return nil, err
	}
	i := dim(a[1], n)
	if i < 0 || i >= n {
		return nil, fault.New(fault.Mismatch, "no part "+strconv.Itoa(a[1])+" of "+strconv.Itoa(n))
	}
	part, err := t.Narrow(d, i, i+1)
	if err != nil {
		return nil, err
	}
	return part.Squeeze(d)
}

func chunk(t *tensor.Tensor, a []int) (*tensor.Tensor, error) {
	d, n, err := size(t, a[0])
	if err != nil {
		return nil, err
	}
	i, parts := a[1], a[2]
	if parts < 1 || n%parts != 0 {
		return nil, fault.New(fault.Mismatch, strconv.Itoa(n)+" does not split into "+strconv.Itoa(parts)+" equal parts")
	}
	if i < 0 || i >= parts {
		return nil, fault.New(fault.Mismatch, "no part "+strconv.Itoa(i)+" of "+strconv.Itoa(parts))
	}
	return t.Narrow(d, n/parts*i, n/parts*(i+1))
}
