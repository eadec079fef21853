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
		// In sixteenths, as the bins are: an edge of the values' own size may be no float64. A value on the edge of two bins may be
		// counted in either.
		slack := h.width * 1e-6
		first := slices.IndexFunc(h.counts[:], func(n int64) bool { return n > 0 })
		for i := range counts {
			from, to := h.lo+float64(first+i)*h.width, h.lo+float64(first+i+1)*h.width
			if least, most := partsBetween(values, from+slack, to-slack), partsBetween(values, from-slack, to+slack); counts[i] < least || counts[i] > most {
				t.Fatalf("bin %d of %d, %g to %g in sixteenths, has %d values, want %d to %d", i, len(counts), from, to, counts[i], least, most)
			}
		}
		if counts[0] == 0 || counts[len(counts)-1] == 0 {
			t.Fatalf("empty bins at the ends: %v", counts)
		}
	})
}

func partsBetween(values []float64, from, to float64) (n int64) {
	for _, v := range values {
		if p := v / part; from <= p && p < to {
			n++
		}
	}
	return n
}

func TestHistogramOfExtremes(t *testing.T) {
	var h histogram
	values := []float64{1.125, 0, math.MaxFloat64 / 2.4, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64}
	for _, v := range values {
		h.add(v)
	}
	counts, _, _ := h.trimmed()
	n := int64(0)
	for _, c := range counts {
		n += c
	}
	if n != int64(len(values)) {
		t.Errorf("%d of %d values counted: %v", n, len(values), counts)
	}
}
