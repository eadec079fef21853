// Package logits compares what two programs made of the same input.
package logits

import (
	"fmt"
	"math"
	"slices"

	"github.com/wick-ml/wick/examples/internal/imagenet"
)

// Bound is how far logits may be from those that are wanted.
type Bound struct {
	Relative float64 // the largest |got − wanted| / |wanted|
	// Floor is the share of the largest logit that counts as |wanted| where a wanted logit is less: one near zero is a
	// difference of large numbers and says nothing of how exact these are.
	Floor float64
}

// Bounds of the examples.
var (
	// Float32 holds between programs that compute with the same weights in float32 and add in another order.
	Float32 = Bound{Relative: 1e-4, Floor: 0.01}
	// Half holds between float32 arithmetic on half weights and PyTorch's own half arithmetic on them, which rounds to
	// 11 bits after every layer: 3 % of the largest logit.
	Half = Bound{Relative: 0.03, Floor: 1}
)

// Same returns an error unless all rows of classes logits have the same five largest in the same order and are within
// the bound.
func Same(got, want []float32, classes int, bound Bound) error {
	if err := Close(got, want, classes, bound); err != nil {
		return err
	}
	for row := 0; row < len(want); row += classes {
		g, w := imagenet.Top(got[row:row+classes], 5), imagenet.Top(want[row:row+classes], 5)
		if !slices.Equal(g, w) {
			return fmt.Errorf("row %d: the five largest logits are %v, not %v", row/classes, g, w)
		}
	}
	return nil
}

// Close returns an error unless all logits are within the bound.
func Close(got, want []float32, classes int, bound Bound) error {
	if len(got) != len(want) || len(want) == 0 || len(want)%classes != 0 {
		return fmt.Errorf("%d logits, not %d in rows of %d", len(got), len(want), classes)
	}
	for row := 0; row < len(want); row += classes {
		d := difference(got[row:row+classes], want[row:row+classes], bound.Floor)
		if !(d <= bound.Relative) { // also when it is NaN
			return fmt.Errorf("row %d: a logit is off by %.2g, more than %.2g", row/classes, d, bound.Relative)
		}
	}
	return nil
}

// difference returns the largest relative difference of a row, or NaN if one is.
func difference(got, want []float32, floor float64) float64 {
	var largest, worst float64
	for _, w := range want {
		largest = max(largest, math.Abs(float64(w)))
	}
	for i, w := range want {
		worst = max(worst, math.Abs(float64(got[i])-float64(w))/max(math.Abs(float64(w)), largest*floor))
	}
	return worst
}
