package record_test

import (
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/record"
)

// Opening a record allocates for its tree, not for the elements of its tensors:
// as often for a thousand as for fifty thousand.
func TestAllocationsDoNotDependOnLength(t *testing.T) {
	for _, target := range []checkpoint.Target{record.CBORTarget{}, record.JSONTarget{}} {
		opens := func(n int) float64 {
			data := make([]float32, n)
			for i := range data {
				data[i] = float32(i) / 7
			}
			file := save(t, target, mapOf("dict", nested.String("w"), leafOf(data)), checkpoint.RecordHeader{})
			return testing.AllocsPerRun(5, func() {
				if _, err := open(t.Context(), file); err != nil {
					t.Fatal(err)
				}
			})
		}
		if few, many := opens(1000), opens(50_000); many > few+2 {
			t.Errorf("%s: %v allocations for 1,000 elements and %v for 50,000", target.Name(), few, many)
		}
	}
}
