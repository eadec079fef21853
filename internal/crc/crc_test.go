package crc

import (
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"
)

// Update gives the sum of package hash/crc32, however the bytes are cut.
func TestUpdate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "bytes")
		at := rapid.IntRange(0, len(b)).Draw(t, "cut")
		if got, want := Update(Update(0, b[:at]), b[at:]), crc32.ChecksumIEEE(b); got != want {
			t.Fatalf("%08x, want %08x", got, want)
		}
	})
	long := make([]byte, 3<<20)
	for i := range long {
		long[i] = byte(i * i)
	}
	if got, want := Update(0, long), crc32.ChecksumIEEE(long); got != want {
		t.Errorf("%08x, want %08x", got, want)
	}
}

// Pieces in any order, some of them twice or within others, give the sum of all bytes
// if they cover them, and none otherwise.
func TestPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 1, 500).Draw(t, "bytes")
		var cuts [][2]int
		for at := 0; at < len(b); {
			end := rapid.IntRange(at+1, len(b)).Draw(t, "end")
			cuts = append(cuts, [2]int{at, end})
			if rapid.Bool().Draw(t, "a part of it too") {
				cuts = append(cuts, [2]int{at, rapid.IntRange(at, end).Draw(t, "part")})
			}
			at = end
		}
		var p Pieces
		whole := true
		missing := rapid.IntRange(0, 2*len(cuts)).Draw(t, "missing")
		for i, c := range rapid.Permutation(cuts).Draw(t, "order") {
			if i == missing && c[1] > c[0] {
				whole = false
				continue
			}
			p.Add(int64(c[0]), b[c[0]:c[1]])
		}
		sum, ok := p.Sum(int64(len(b)))
		if whole && (!ok || sum != crc32.ChecksumIEEE(b)) {
			t.Fatalf("%08x, %v, want %08x", sum, ok, crc32.ChecksumIEEE(b))
		}
		if ok && sum != crc32.ChecksumIEEE(b) {
			t.Fatalf("%08x of bytes that are not all there", sum)
		}
	})
}

func BenchmarkUpdate(b *testing.B) {
	data := make([]byte, 512<<10)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		Update(0, data)
	}
}
