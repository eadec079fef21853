package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"

	"github.com/wick-ml/wick/cmd/wick/internal/human"
)

// slice takes a part of a tensor as Python writes it: "0:4,:" or "3,-1". A
// single index drops its dimension.
func slice(t *tensor.Tensor, text string) (*tensor.Tensor, error) {
	if text == "" {
		return t, nil
	}
	parts := rest(strings.Split(text, ","), t.Dims())
	if slices.ContainsFunc(parts, isEllipsis) {
		return nil, badSlice(text, "more than one ellipsis (...)")
	}
	if len(parts) > t.Dims() {
		return nil, badSlice(text, "more than "+human.Plural(t.Dims(), "dimension"))
	}
	dim := 0
	for _, part := range parts {
		lo, hi, single, wrong := bounds(strings.TrimSpace(part), t.Shape()[dim])
		if wrong != "" {
			return nil, badSlice(text, wrong)
		}
		var err error
		if t, err = t.Narrow(dim, lo, hi); err != nil {
			return nil, err
		}
		if !single {
			dim++
			continue
		}
		if t, err = t.Squeeze(dim); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func isEllipsis(part string) bool { return strings.TrimSpace(part) == "..." }

// rest puts all of as many dimensions as there are where "..." stands.
func rest(parts []string, dims int) []string {
	i := slices.IndexFunc(parts, isEllipsis)
	if i < 0 {
		return parts
	}
	all := make([]string, max(0, dims-len(parts)+1))
	for d := range all {
		all[d] = ":"
	}
	return slices.Replace(parts, i, i+1, all...)
}

// sliceHelp is what --slice knows of Python's slices.
const sliceHelp = "only this `part`, as in Python: an index or LO:HI for each dimension, such as 0:4,-1 or ...,0; no steps"

func badSlice(text, wrong string) error {
	return fault.New(fault.Usage, "--slice "+text+": "+wrong).Needs("", "write an index or LO:HI for each dimension, such as 0:4,: or -1")
}

// bounds reads LO:HI with either left out, or a single index, of a dimension of
// n, or says what is wrong. As in Python a range is cut to what there is and an index is not.
func bounds(text string, n int) (lo, hi int, single bool, wrong string) {
	left, right, isRange := strings.Cut(text, ":")
	if strings.Contains(right, ":") {
		return 0, 0, false, "a step, which wick does not take"
	}
	if lo, wrong = position(left, 0, n); wrong != "" {
		return 0, 0, false, wrong
	}
	if !isRange {
		if left == "" || lo < 0 || lo >= n {
			return 0, 0, false, "index " + text + " is outside of a dimension of " + strconv.Itoa(n)
		}
		return lo, lo + 1, true, ""
	}
	if hi, wrong = position(right, n, n); wrong != "" {
		return 0, 0, false, wrong
	}
	lo, hi = max(0, min(lo, n)), max(0, min(hi, n))
	return lo, max(lo, hi), false, ""
}

// position reads one bound, or says what is wrong; negative ones count from the
// end.
func position(text string, absent, n int) (i int, wrong string) {
	if text == "" {
		return absent, ""
	}
	i, err := strconv.Atoi(text)
	if err != nil {
		return 0, strconv.Quote(text) + " is no integer"
	}
	if i < 0 {
		i += n
	}
	return i, ""
}
