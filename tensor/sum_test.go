package tensor

import (
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"
)

// SumCRC32 is the sum of package hash/crc32, however the bytes are cut.
func TestSumCRC32(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "bytes")
		at := rapid.IntRange(0, len(b)).Draw(t, "cut")
		if got, want := SumCRC32(SumCRC32(0, b[:at]), b[at:]), crc32.ChecksumIEEE(b); got != want {
			t.Fatalf("%08x, want %08x", got, want)
		}
	})
	long := make([]byte, 3<<20)
	for i := range long {
		long[i] = byte(i * i)
	}
	if got, want := SumCRC32(0, long), crc32.ChecksumIEEE(long); got != want {
		t.Errorf("%08x, want %08x", got, want)
	}
}

func BenchmarkSumCRC32(b *testing.B) {
	data := make([]byte, 512<<10)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		SumCRC32(0, data)
	}
}
