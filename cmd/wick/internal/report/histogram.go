package report

import "math"

// bins is how many bins a histogram has at most.
const bins = 48

// part is what a histogram divides values by: a range that has just doubled over
// the largest float64s must be a float64 too.
const part = 16

// histogram counts values in one pass without knowing their range: whenever a
// value lies outside, two bins become one and the range doubles. Its range is
// that of sixteenths of the values.
type histogram struct {
	lo, width float64 // the width is 0 before the first value
	counts    [bins]int64
}

// add counts finite values.
func (h *histogram) add(v float64) {
	v /= part
	if h.width == 0 {
		h.begin(v)
	}
	i := (v - h.lo) / h.width
	for i < 0 || i >= bins {
		h.double(i < 0)
		i = (v - h.lo) / h.width
	}
	h.counts[int(i)]++
}

// begin puts the first value in the middle of a range that is narrow for its
// size: it doubles a few dozen times at most before it suits common weights.
func (h *histogram) begin(v float64) {
	h.width = math.Max(math.Abs(v)*0x1p-20, 0x1p-900)
	h.lo = v - h.width*bins/2
}

// double makes the range twice as wide, downwards or upwards.
func (h *histogram) double(down bool) {
	var wide [bins]int64
	from := 0
	if down {
		from = bins
		h.lo -= bins * h.width
	}
	for i, n := range h.counts {
		wide[(from+i)/2] += n
	}
	h.counts = wide
	h.width *= 2
}

// trimmed returns the counts from the first bin that is not empty to the last,
// and the range that they stand for.
func (h *histogram) trimmed() (counts []int64, lo, hi float64) {
	first, end := 0, len(h.counts)
	for first < end && h.counts[first] == 0 {
		first++
	}
	for end > first && h.counts[end-1] == 0 {
		end--
	}
	return h.counts[first:end], h.edge(first), h.edge(end)
}

// edge is where a bin begins; the outermost may lie beyond the largest float64.
func (h *histogram) edge(i int) float64 {
	const most = math.MaxFloat64
	return max(-most, min(most, part*(h.lo+float64(i)*h.width)))
}
