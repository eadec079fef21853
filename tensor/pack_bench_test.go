package tensor

import (
	"strconv"
	"testing"
)

// BenchmarkPack transposes float32 in a tile of wide rows, of which step is the length.
func BenchmarkPack(b *testing.B) {
	for _, step := range []int64{512, 528, 1024, 1040, 4096, 4112} {
		b.Run(strconv.FormatInt(step, 10), func(b *testing.B) {
			const rows = 256
			src, dst := make([]byte, rows*step*4), make([]byte, rows*step*4)
			loops := []loop{{rows, 1, step}, {int(step), rows, 1}}
			b.SetBytes(rows * step * 4)
			for b.Loop() {
				pack(dst, src, loops, 4)
			}
		})
	}
}
