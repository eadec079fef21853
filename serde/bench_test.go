package serde

import (
	"context"
	"strconv"
	"testing"

	"github.com/wick-ml/wick/nested"
)

// stateDict is a flat dict of n tensors of one element, six to a layer.
func stateDict(tb testing.TB, n int) nested.Value {
	tb.Helper()
	m := nested.NewMap("collections.OrderedDict")
	one := val(counted(0, 1).Tensor())
	for i := range n {
		name := "layers." + strconv.Itoa(i/6) + "." + string(rune('a'+i%6)) + ".weight"
		if err := m.Set(nested.String(name), one); err != nil {
			tb.Fatal(err)
		}
	}
	return m
}

type benchLayer struct{ A, B, C, D, E, F *affine }

func benchmarkPlan(b *testing.B, n int) {
	root := stateDict(b, n)
	b.ReportAllocs()
	for b.Loop() {
		var model struct{ Layers []benchLayer }
		if _, err := NewPlan(root, &model); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/tensor")
}

func BenchmarkPlan932(b *testing.B)    { benchmarkPlan(b, 932) }
func BenchmarkPlan10000(b *testing.B)  { benchmarkPlan(b, 10_000) }
func BenchmarkPlan100000(b *testing.B) { benchmarkPlan(b, 100_000) }

func BenchmarkUnmarshal932(b *testing.B) {
	root := stateDict(b, 932)
	b.ReportAllocs()
	for b.Loop() {
		var model struct{ Layers []benchLayer }
		if _, err := Unmarshal(context.Background(), root, &model); err != nil {
			b.Fatal(err)
		}
	}
}
