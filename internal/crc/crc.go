// Package crc sums bytes as zip files do, by the CRC-32 of IEEE 802.3: few of them
// without tables, and many of them in pieces.
package crc

import (
	"encoding/binary"
	"hash/crc32"
	"sync"
)

// Update returns the sum of what sum is that of, followed by b. For what a small
// program embeds it does without the tables that package hash/crc32 allocates when
// it is first used: these take 8 KiB, more than a small record in all.
func Update(sum uint32, b []byte) uint32 {
	const few = 1 << 20
	if len(b) > few {
		return crc32.Update(sum, crc32.IEEETable, b)
	}
	slicingOnce.Do(makeSlicing)
	sum = ^sum
	for ; len(b) >= 8; b = b[8:] {
		sum ^= binary.LittleEndian.Uint32(b)
		sum = slicing[7][sum&255] ^ slicing[6][sum>>8&255] ^ slicing[5][sum>>16&255] ^ slicing[4][sum>>24] ^
			slicing[3][b[4]] ^ slicing[2][b[5]] ^ slicing[1][b[6]] ^ slicing[0][b[7]]
	}
	for _, c := range b {
		sum = slicing[0][byte(sum)^c] ^ sum>>8
	}
	return ^sum
}

// slicing holds at k the sums of each byte with k zero bytes behind it: eight bytes
// are summed at a time.
var (
	slicing     [8][256]uint32
	slicingOnce sync.Once
)

func makeSlicing() {
	slicing[0] = *crc32.IEEETable
	for k := 1; k < len(slicing); k++ {
		for i, sum := range slicing[k-1] {
			slicing[k][i] = slicing[0][byte(sum)] ^ sum>>8
		}
	}
}

// Combine returns the sum of two runs of bytes laid end to end: a is that of the
// first, b that of the second, which has n bytes. A CRC is linear over GF(2):
// appending zero bytes multiplies it with a matrix, one for each power of two of them
// (the method of zlib's crc32_combine).
func Combine(a, b uint32, n int64) uint32 {
	if a == 0 || n <= 0 {
		return a ^ b
	}
	for k := 0; n > 0; k, n = k+1, n>>1 {
		if n&1 != 0 {
			a = zeroBytes()[k].times(a)
		}
	}
	return a ^ b
}

type gf2 [32]uint32

func (m *gf2) times(v uint32) (sum uint32) {
	for i := 0; v != 0; i, v = i+1, v>>1 {
		if v&1 != 0 {
			sum ^= m[i]
		}
	}
	return sum
}

func (m *gf2) squared() (out gf2) {
	for i := range m {
		out[i] = m.times(m[i])
	}
	return out
}

// zeroBytes holds at k the matrix that advances a CRC-32 over 2^k zero bytes.
// Squaring takes longer than all else here, so it is done once.
var zeroBytes = sync.OnceValue(func() *[63]gf2 {
	var bit gf2
	bit[0] = crc32.IEEE
	for i := 1; i < 32; i++ {
		bit[i] = 1 << (i - 1)
	}
	for range 3 {
		bit = bit.squared()
	}
	powers := new([63]gf2)
	for k := range powers {
		powers[k] = bit
		bit = bit.squared()
	}
	return powers
})
