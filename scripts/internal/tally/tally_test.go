package tally

import (
	"encoding/binary"
	"math"
	"testing"
)

func TestSumsAgree(t *testing.T) {
	// 1.0 and -2.0 have the bits 3f800000 and c0000000.
	values := []float32{1, -2, 0, 1, -2, 1, 1}
	const want = 4*0x3f800000 + 2*0xc0000000
	var packed []byte
	for _, v := range values {
		packed = binary.LittleEndian.AppendUint32(packed, math.Float32bits(v))
	}
	if got := Float32s(values); got != want {
		t.Errorf("Float32s = %#x, want %#x", got, uint64(want))
	}
	if got := Words(packed); got != want {
		t.Errorf("Words = %#x, want %#x", got, uint64(want))
	}
	if got := Parallel(len(values), func(i int) uint64 { return Float32s(values[i : i+1]) }); got != want {
		t.Errorf("Parallel = %#x, want %#x", got, uint64(want))
	}
}

func TestWordsFillsTheLastWord(t *testing.T) {
	if got := Words([]byte{1, 0, 0, 0, 2, 1}); got != 1+0x102 {
		t.Errorf("Words = %#x, want 0x103", got)
	}
}

func TestIntsAreTwosComplement(t *testing.T) {
	if got := Ints([]int8{-1, 3}); got != 2 {
		t.Errorf("Ints = %d, want 2", got)
	}
}
