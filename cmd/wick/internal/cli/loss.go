package cli

import (
	"strings"

	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
	"github.com/wick-ml/wick/tensor"
)

// lossText says what became of the numbers that a dtype could not hold, "" when
// there were none.
func lossText(l tensor.Loss) string {
	var parts []string
	for _, one := range []struct {
		n      int64
		became string
	}{
		{l.Infinite(), " too large for the dtype became infinite"},
		{l.Saturated, " too large for the dtype became ±448"},
		{l.NaN, " too large for the dtype became NaN"},
		{l.Unsigned, " that the dtype has no sign or zero for became positive"},
	} {
		if one.n > 0 {
			parts = append(parts, human.Plural(int(one.n), "number")+one.became)
		}
	}
	return strings.Join(parts, ", ")
}

// lossJSON counts the same: those of "overflow", by what they became.
func lossJSON(l tensor.Loss) []byte {
	var o jsonout.Object
	o.Int("infinite", l.Infinite())
	o.Int("saturated", l.Saturated)
	o.Int("nan", l.NaN)
	o.Int("unsigned", l.Unsigned)
	return o.Bytes()
}
