// Package numbers looks at the values of tensors: their statistics, their
// distribution, how far two tensors are apart. Memory is bounded whatever the
// size of a tensor.
package numbers

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"sync"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// Real returns a tensor's elements as float64, converted while they are read;
// those of a quantized tensor are its integers. It fails with
// [fault.ErrUnsupported] on complex numbers.
func Real(t *tensor.Tensor) (*tensor.Tensor, error) {
	switch t.DType().Class() {
	case tensor.ComplexClass:
		return nil, fault.New(fault.Unsupported, "statistics of complex numbers").Needs("real numbers", "")
	case tensor.QuantClass:
		plain, ok := map[tensor.DType]tensor.DType{tensor.QI8: tensor.I8, tensor.QU8: tensor.U8, tensor.QI32: tensor.I32}[t.DType()]
		if !ok {
			plain = tensor.U8
		}
		whole, err := t.Cast(plain)
		if err != nil {
			return nil, err
		}
		return whole.Cast(tensor.F64)
	default:
		return t.Cast(tensor.F64)
	}
}

// Each calls f with the elements of a float64 tensor, in order and in pieces
// that are only valid during the call.
func Each(ctx context.Context, t *tensor.Tensor, f func([]float64) error, opts ...tensor.RunOption) error {
	_, err := tensor.Run(ctx, []tensor.Move{{From: t, To: tensor.Stream(Writer(f))}}, opts...)
	return err
}

// Writer returns a writer of packed little-endian float64s that calls f with
// them, in order and in pieces that are only valid during the call.
func Writer(f func([]float64) error) io.Writer { return &decoder{each: f} }

// words puts together the 8-byte words of what comes in pieces of any length.
type words struct {
	part []byte // the beginning of a word that is not whole yet
}

// write calls f with the whole words that are there now, in order.
func (w *words) write(p []byte, f func([]byte) error) (int, error) {
	n := len(p)
	if len(w.part) > 0 {
		take := min(8-len(w.part), len(p))
		w.part, p = append(w.part, p[:take]...), p[take:]
		if len(w.part) < 8 {
			return n, nil
		}
		if err := f(w.part); err != nil {
			return n, err
		}
		w.part = nil
	}
	whole := len(p) &^ 7
	w.part = append(w.part, p[whole:]...)
	if whole == 0 {
		return n, nil
	}
	return n, f(p[:whole])
}

// decoder turns little-endian bytes into float64s. There may be one for each of a
// million tensors: it keeps no buffer.
type decoder struct {
	each  func([]float64) error
	words words
}

// block is how many numbers are decoded at once.
const block = 1024

var blocks = sync.Pool{New: func() any { return new([block]float64) }}

// Write decodes the next bytes.
func (d *decoder) Write(p []byte) (int, error) { return d.words.write(p, d.decode) }

func (d *decoder) decode(p []byte) error {
	values := blocks.Get().(*[block]float64) //nolint:errcheck // the pool holds nothing else
	defer blocks.Put(values)
	for len(p) > 0 {
		k := min(len(p)/8, block)
		for i := range values[:k] {
			values[i] = math.Float64frombits(binary.LittleEndian.Uint64(p[8*i:]))
		}
		if err := d.each(values[:k]); err != nil {
			return err
		}
		p = p[8*k:]
	}
	return nil
}

// Stats describes the values of a tensor. Minimum, maximum, mean and deviation
// are those of the finite values.
type Stats struct {
	Count, NaN, PosInf, NegInf, Zero int64
	Min, Max                         float64
	Mean                             float64

	Whole *Whole // of integers, nil of other numbers and of none

	m2 float64 // sum of the squared distances from the mean
}

// Finite is the number of values that are neither NaN nor infinite.
func (s *Stats) Finite() int64 { return s.Count - s.NaN - s.PosInf - s.NegInf }

// Std is the standard deviation with Bessel's correction, as Tensor.std in
// torch has it: NaN for fewer than two values.
func (s *Stats) Std() float64 {
	if s.Finite() < 2 {
		return math.NaN()
	}
	return math.Sqrt(s.m2 / float64(s.Finite()-1))
}

// Add takes more values into account, by Welford's method.
func (s *Stats) Add(values []float64) {
	for _, v := range values {
		s.Count++
		switch {
		case math.IsNaN(v):
			s.NaN++
			continue
		case math.IsInf(v, 1):
			s.PosInf++
			continue
		case math.IsInf(v, -1):
			s.NegInf++
			continue
		case v == 0:
			s.Zero++
		}
		n := s.Finite()
		if n == 1 {
			s.Min, s.Max = v, v
		}
		s.Min, s.Max = min(s.Min, v), max(s.Max, v)
		d := v - s.Mean
		s.Mean += d / float64(n)
		s.m2 += d * (v - s.Mean)
	}
}

// Describe reads a tensor and returns the statistics of its values.
func Describe(ctx context.Context, t *tensor.Tensor, opts ...tensor.RunOption) (*Stats, error) {
	if s, ok, err := describeWhole(ctx, t, opts...); ok {
		return s, err
	}
	x, err := Real(t)
	if err != nil {
		return nil, err
	}
	s := &Stats{}
	err = Each(ctx, x, func(v []float64) error { s.Add(v); return nil }, opts...)
	return s, err
}

// Histogram counts the finite values between the smallest and the largest in
// bins of one width.
func Histogram(ctx context.Context, t *tensor.Tensor, s *Stats, bins int, opts ...tensor.RunOption) ([]int64, error) {
	x, err := Real(t)
	if err != nil {
		return nil, err
	}
	counts := make([]int64, bins)
	err = Each(ctx, x, func(values []float64) error {
		for _, v := range values {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				counts[bin(v, s.Min, s.Max, bins)]++
			}
		}
		return nil
	}, opts...)
	return counts, err
}

func bin(v, lo, hi float64, bins int) int {
	if hi <= lo {
		return bins / 2
	}
	// Halved first: the distance of two large numbers overflows.
	f := (v/2 - lo/2) / (hi/2 - lo/2) * float64(bins)
	return max(0, min(int(f), bins-1))
}

// Distance says how far the values of two tensors are apart.
type Distance struct {
	Differ  int64   // elements that are not equal; NaN equals NaN
	MaxAbs  float64 // the largest absolute difference
	MaxRel  float64 // the largest difference relative to the larger of the two magnitudes
	MeanAbs float64 // over all elements
	Squares float64 // sum of the squared differences
	First   float64 // sum of the squares of the first tensor's elements
}

// L2 is the length of the difference over the length of the first tensor.
func (d *Distance) L2() float64 {
	if d.Squares == 0 {
		return 0
	}
	return math.Sqrt(d.Squares) / math.Sqrt(d.First)
}

func (d *Distance) add(a, b []float64, count int64) {
	for i := range a {
		d.First += a[i] * a[i]
		if a[i] == b[i] || math.IsNaN(a[i]) && math.IsNaN(b[i]) {
			continue
		}
		d.Differ++
		abs := math.Abs(a[i] - b[i])
		if math.IsNaN(abs) {
			abs = math.Inf(1) // a number beside none
		}
		d.MaxAbs = max(d.MaxAbs, abs)
		d.MaxRel = max(d.MaxRel, abs/max(math.Abs(a[i]), math.Abs(b[i])))
		d.MeanAbs += abs / float64(count)
		d.Squares += abs * abs
	}
}

// Between reads two tensors of one shape side by side and measures how far
// their values are apart.
func Between(ctx context.Context, a, b *tensor.Tensor) (Distance, error) {
	var d Distance
	x, err := Real(a)
	if err != nil {
		return d, err
	}
	y, err := Real(b)
	if err != nil {
		return d, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left, right := pull(ctx, x), pull(ctx, y)
	defer func() { _ = left.Close() }()  // never fails; ends the run behind it
	defer func() { _ = right.Close() }() // as above
	buf := make([]byte, 2*pieceBytes)
	va, vb := make([]float64, pieceBytes/8), make([]float64, pieceBytes/8)
	for {
		n, err := readFloats(left, buf[:pieceBytes], va)
		if err != nil {
			return d, err
		}
		m, err := readFloats(right, buf[pieceBytes:], vb)
		if err != nil {
			return d, err
		}
		if n != m {
			return d, fault.New(fault.Mismatch, "two tensors of different sizes")
		}
		if n == 0 {
			return d, nil
		}
		d.add(va[:n], vb[:n], x.Len())
	}
}

const pieceBytes = 64 << 10

// pull runs a tensor into a pipe.
func pull(ctx context.Context, t *tensor.Tensor) *io.PipeReader {
	r, w := io.Pipe()
	go func() {
		_, err := tensor.Run(ctx, []tensor.Move{{From: t, To: tensor.Stream(w)}}, tensor.MaxMemory(1<<20))
		_ = w.CloseWithError(err) // never fails
	}()
	return r
}

// readFloats fills values as far as there are any and returns how many.
func readFloats(r io.Reader, buf []byte, values []float64) (int, error) {
	n, err := io.ReadFull(r, buf)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	for i := range n / 8 {
		values[i] = math.Float64frombits(binary.LittleEndian.Uint64(buf[8*i:]))
	}
	return n / 8, err
}
