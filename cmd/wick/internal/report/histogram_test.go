package report

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestHistogramCountsEachValueInItsBin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64(), 1, 200).Draw(t, "values")
		var h histogram
		for _, v := range values {
			h.add(v)
		}
		counts, lo, hi := h.trimmed()
		if math.IsInf(lo, 0) || math.IsInf(hi, 0) {
			t.Fatalf("from %g to %g", lo, hi)
		}
		// A value on the edge of two bins may be counted in either.
		slack := 4 * h.width * 1e-6
		first := slices.IndexFunc(h.counts[:], func(n int64) bool { return n > 0 })
		for i := range counts {
			from, to := 4*(h.lo+float64(first+i)*h.width), 4*(h.lo+float64(first+i+1)*h.width)
			if least, most := between(values, from+slack, to-slack), between(values, from-slack, to+slack); counts[i] < least || counts[i] > most {
				t.Fatalf("bin %d of %d, %g to %g, has %d values, want %d to %d", i, len(counts), from, to, counts[i], least, most)
			}
		}
		if counts[0] == 0 || counts[len(counts)-1] == 0 {
			t.Fatalf("empty bins at the ends: %v", counts)
		}
	})
}

func between(values []float64, from, to float64) (n int64) {
	for _, v := range values {
		if from <= v && v < to {
			n++
		}
	}
	return n
}

func TestHistogramOfExtremes(t *testing.T) {
	var h histogram
	for _, v := range []float64{0, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64} {
		h.add(v)
	}
	counts, _, _ := h.trimmed()
	n := int64(0)
	for _, c := range counts {
		n += c
	}
	if n != 4 {
		t.Errorf("%d of 4 values counted: %v", n, counts)
	}
}
