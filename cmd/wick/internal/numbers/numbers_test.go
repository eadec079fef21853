package numbers

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

func TestDescribe(t *testing.T) {
	x := tensor.Of([]float32{1, 2, 3, 4, 0, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}, 2, 4)
	s, err := Describe(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	// numpy: np.std([1,2,3,4,0], ddof=1) is 1.5811388300841898.
	if s.Count != 8 || s.NaN != 1 || s.PosInf != 1 || s.NegInf != 1 || s.Zero != 1 || s.Min != 0 || s.Max != 4 || s.Mean != 2 ||
		math.Abs(s.Std()-1.5811388300841898) > 1e-15 {
		t.Errorf("%+v, std %v", s, s.Std())
	}
	counts, err := Histogram(t.Context(), x, s, 4)
	if err != nil || !slices.Equal(counts, []int64{1, 1, 1, 2}) {
		t.Errorf("%v, %v", counts, err)
	}
}

func TestDescribeDTypes(t *testing.T) {
	for name, x := range map[string]*tensor.Tensor{
		"float16": tensor.Of([]tensor.Float16{0x3c00, 0x4000}), // 1, 2
		"int8":    tensor.Of([]int8{1, 2}), "uint64": tensor.Of([]uint64{1, 2}), "bool": tensor.Of([]bool{true, true}),
		"qint8": tensor.Of([]tensor.QInt8{1, 2}), "quint8": tensor.Of([]tensor.QUint8{1, 2}), "qint32": tensor.Of([]tensor.QInt32{1, 2}),
	} {
		s, err := Describe(t.Context(), x)
		if err != nil || s.Count != 2 || s.Min != 1 || s.Max > 2 {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	if _, err := Describe(t.Context(), tensor.Of([]complex64{1})); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("complex: %v", err)
	}
	one := &Stats{}
	one.Add([]float64{5})
	if !math.IsNaN(one.Std()) || one.Min != 5 {
		t.Errorf("%+v, std %v", one, one.Std())
	}
}

func TestBinOfExtremes(t *testing.T) {
	for _, c := range []struct {
		v, lo, hi float64
		want      int
	}{
		{-math.MaxFloat64, -math.MaxFloat64, math.MaxFloat64, 0},
		{math.MaxFloat64, -math.MaxFloat64, math.MaxFloat64, 9},
		{0, -math.MaxFloat64, math.MaxFloat64, 5},
		{3, 3, 3, 5},
		{5e-324, 0, 5e-324, 9},
	} {
		if got := bin(c.v, c.lo, c.hi, 10); got != c.want && !(c.hi == 5e-324 && got >= 0 && got < 10) {
			t.Errorf("bin(%v, %v, %v) = %d, want %d", c.v, c.lo, c.hi, got, c.want)
		}
	}
}

func TestBetween(t *testing.T) {
	nan := float32(math.NaN())
	a, b := tensor.Of([]float32{1, 2, nan, 4, 0}), tensor.Of([]float32{1, 2.5, nan, 2, 0})
	d, err := Between(t.Context(), a, b)
	if err != nil || d.Differ != 2 || d.MaxAbs != 2 || d.MaxRel != 0.5 || d.MeanAbs != 0.5 {
		t.Errorf("%+v, %v", d, err)
	}
	d, err = Between(t.Context(), tensor.Of([]float32{nan}), tensor.Of([]float32{1}))
	if err != nil || d.Differ != 1 || !math.IsInf(d.MaxAbs, 1) {
		t.Errorf("NaN beside a number: %+v, %v", d, err)
	}
}

// Pieces of any size decode to the same numbers.
func TestDecoder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "b")
		b = b[:len(b)/8*8]
		var got, want []float64
		whole := decoder{each: func(v []float64) error { want = append(want, v...); return nil }}
		_, _ = whole.Write(b)
		cut := decoder{each: func(v []float64) error { got = append(got, v...); return nil }}
		for rest := b; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if m, err := cut.Write(rest[:n]); m != n || err != nil {
				t.Fatal(m, err)
			}
			rest = rest[n:]
		}
		if len(want) != len(b)/8 || !slices.EqualFunc(got, want, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) }) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}
