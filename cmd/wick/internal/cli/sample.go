package cli

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/cmd/wick/internal/numbers"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

const (
	maxWhole      = 1000 // elements of a tensor that is printed in full, as numpy's threshold
	edge          = 3    // elements at each end of a dimension otherwise, as numpy's edgeitems
	maxSampleDims = 6
)

// sample is what is printed of a tensor's values: all of a small one, the
// corners of a large one.
type sample struct {
	whole bool
	shape []int  // of what was read
	cut   []bool // dimensions whose middle was left out
	texts []string
	reals []float64 // beside texts, where they are floats
	bools bool

	complexes []complex128 // beside texts, where they are complex
}

func newSample(ctx context.Context, t *tensor.Tensor) (*sample, error) {
	if err := checkDims(t); err != nil {
		return nil, err
	}
	s := &sample{whole: t.Len() <= maxWhole, cut: make([]bool, t.Dims())}
	if !s.whole {
		var err error
		if t, err = s.corners(t); err != nil {
			return nil, err
		}
	}
	s.shape = t.Shape()
	return s, s.read(ctx, t)
}

// corners keeps the ends of every long dimension, one item each of those outside
// the last two.
func (s *sample) corners(t *tensor.Tensor) (*tensor.Tensor, error) {
	for d, n := range t.Shape() {
		keep := s.edge(d)
		if n <= 2*keep {
			continue
		}
		head, err := t.Narrow(d, 0, keep)
		if err != nil {
			return nil, err
		}
		tail, err := t.Narrow(d, n-keep, n)
		if err != nil {
			return nil, err
		}
		if t, err = tensor.Concat(d, head, tail); err != nil {
			return nil, err
		}
		s.cut[d] = true
	}
	return t, nil
}

// edge is how many items are kept at each end of a dimension.
func (s *sample) edge(dim int) int {
	if dim < len(s.cut)-2 {
		return 1
	}
	return edge
}

func (s *sample) read(ctx context.Context, t *tensor.Tensor) error {
	switch t.DType().Class() {
	case tensor.ComplexClass:
		return s.readComplex(ctx, t)
	case tensor.IntClass:
		return s.readInts(ctx, t)
	case tensor.UintClass:
		return s.readUints(ctx, t)
	}
	x, err := numbers.Real(t)
	if err != nil {
		return err
	}
	err = numbers.Each(ctx, x, func(v []float64) error { s.reals = append(s.reals, v...); return nil })
	if err != nil {
		return err
	}
	s.spell(t.DType())
	return nil
}

// readInts keeps what a float64 would round.
func (s *sample) readInts(ctx context.Context, t *tensor.Tensor) error {
	values := make([]int64, t.Len())
	_, err := tensor.Run(ctx, []tensor.Move{{From: t, To: tensor.Into(values)}})
	for _, v := range values {
		s.texts = append(s.texts, strconv.FormatInt(v, 10))
	}
	return err
}

func (s *sample) readUints(ctx context.Context, t *tensor.Tensor) error {
	values := make([]uint64, t.Len())
	_, err := tensor.Run(ctx, []tensor.Move{{From: t, To: tensor.Into(values)}})
	for _, v := range values {
		s.texts = append(s.texts, strconv.FormatUint(v, 10))
	}
	return err
}

// readComplex keeps the parts, which are spelled in one form.
func (s *sample) readComplex(ctx context.Context, t *tensor.Tensor) error {
	s.complexes = make([]complex128, t.Len())
	_, err := tensor.Run(ctx, []tensor.Move{{From: t, To: tensor.Into(s.complexes)}})
	parts := make([]float64, 0, 2*len(s.complexes))
	for _, v := range s.complexes {
		parts = append(parts, real(v), imag(v))
	}
	spell := speller(parts)
	for _, v := range s.complexes {
		im := spell(imag(v))
		if im[0] != '-' {
			im = "+" + im
		}
		s.texts = append(s.texts, spell(real(v))+im+"j")
	}
	return err
}

// spell writes the numbers in one form.
func (s *sample) spell(d tensor.DType) {
	if d.Class() == tensor.BoolClass {
		s.bools = true
		for _, v := range s.reals {
			s.texts = append(s.texts, map[bool]string{true: "True", false: "False"}[v != 0])
		}
		return
	}
	spell := speller(s.reals)
	if d.Class() != tensor.FloatClass { // the integers of quantized tensors
		spell = func(v float64) string { return realText(v, 'f', 0) }
	}
	for _, v := range s.reals {
		s.texts = append(s.texts, spell(v))
	}
}

// speller chooses the form of floats as torch does: whole ones as "3.", others with
// four decimals, or all with exponents when some are too large for that, or would
// be zeros.
func speller(values []float64) func(float64) string {
	most, least, whole := 0.0, math.Inf(1), true
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		whole = whole && v == math.Trunc(v)
		if a := math.Abs(v); a > 0 {
			most, least = max(most, a), min(least, a)
		}
	}
	switch {
	case whole && most < 1e8:
		return func(v float64) string { return strings.TrimSuffix(realText(v, 'f', 1), "0") }
	case most >= 1e6 || most > 0 && most < 1e-3 || least < 5e-5:
		return func(v float64) string { return realText(v, 'e', 4) }
	default:
		return func(v float64) string { return realText(v, 'f', 4) }
	}
}

func realText(v float64, format byte, digits int) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 0):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(v, 'f', -1, 64)), "+")
	}
	return strconv.FormatFloat(v, format, digits, 64)
}

// text prints the values in brackets as numpy does, in lines of at most so many
// columns, if they have to be broken at all.
func (s *sample) text(columns int) string {
	if len(s.texts) == 0 {
		return "[]"
	}
	p := printer{sample: s, columns: columns}
	for _, text := range s.texts {
		p.width = max(p.width, len(text))
	}
	p.print(0, 0, len(s.texts))
	return p.b.String()
}

// printer prints the values of a sample.
type printer struct {
	*sample
	b       strings.Builder
	columns int
	width   int  // of an element
	used    int  // columns of the line so far
	spaced  bool // a space is owed before the next element
}

// print writes the elements [lo, hi) as the dimension dim and those inside it.
func (p *printer) print(dim, lo, hi int) {
	if dim == len(p.shape) {
		p.element(strings.Repeat(" ", p.width-len(p.texts[lo])) + p.texts[lo])
		return
	}
	p.write("[")
	n := p.shape[dim]
	for i := range n {
		if i > 0 {
			p.separate(dim)
		}
		if p.cut[dim] && i == p.edge(dim) {
			p.element("…")
			p.separate(dim)
		}
		step := (hi - lo) / n
		p.print(dim+1, lo+i*step, lo+(i+1)*step)
	}
	p.write("]")
}

func (p *printer) write(text string) {
	p.b.WriteString(text)
	p.used += textWidth(text)
}

// element writes an element, on a new line where the line has no room for it, the
// brackets that close behind it, and the space before it.
func (p *printer) element(text string) {
	begins := len(p.shape) + columnGap
	switch w := textWidth(text); {
	case !p.spaced:
	case p.used > begins && p.used+1+w+len(p.shape) > p.columns:
		p.newline(len(p.shape))
	default:
		p.write(" ")
	}
	p.spaced = false
	p.write(text)
}

func (p *printer) newline(indent int) {
	p.b.WriteByte('\n')
	p.used = 0
	p.write(strings.Repeat(" ", indent))
}

// separate owes a space inside a row, and writes new lines between rows and blocks.
func (p *printer) separate(dim int) {
	last := len(p.shape) - 1
	if dim == last {
		p.spaced = true
		return
	}
	p.b.WriteString(strings.Repeat("\n", min(last-dim, 2)-1))
	p.newline(dim + 1)
}

// json is the values in row-major order.
func (s *sample) json() []byte {
	b := []byte{'['}
	for i, text := range s.texts {
		if i > 0 {
			b = append(b, ',')
		}
		switch {
		case s.bools:
			b = strconv.AppendBool(b, s.reals[i] != 0)
		case s.reals != nil:
			b = jsonout.AppendFloat(b, s.reals[i])
		case s.complexes != nil:
			b, _ = listing.AppendValue(b, nested.Complex(s.complexes[i]))
		default:
			b = append(b, text...)
		}
	}
	return append(b, ']')
}
