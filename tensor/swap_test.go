package tensor

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSwapBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		component := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "component")
		b := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "bytes")
		want := bytes.Clone(b)
		for c := range slices.Chunk(want[:len(b)/component*component], component) {
			slices.Reverse(c)
		}
		got := bytes.Clone(b)
		swapBytes(got, component)
		if !bytes.Equal(got, want) {
			t.Fatalf("swapBytes(%x, %d) = %x, want %x", b, component, got, want)
		}
	})
}

func BenchmarkSwapBytes(b *testing.B) {
	data := make([]byte, 1<<20)
	for _, d := range []DType{F16, F32, F64} {
		b.Run(d.String(), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				swapBytes(data, d.Component())
			}
		})
	}
}
