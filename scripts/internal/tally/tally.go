// Package tally sums what a loader loaded and prints it in the one line that scripts/bench reads, so that programs
// in several languages can be seen to have loaded the same values.
//
// The checksum is the sum, modulo 2^64, of one number for each element of each tensor: the bits of the float32 of that
// value for a floating type of at most 32 bits, its own bits for a float64, the value in two's complement for an
// integer or a bool. It depends on neither order nor grouping, and a half widened to float32 counts like the half.
package tally

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
)

// Float32s returns the sum of the bits of values.
func Float32s(values []float32) uint64 {
	var even, odd uint64
	for ; len(values) >= 4; values = values[4:] {
		even += uint64(math.Float32bits(values[0])) + uint64(math.Float32bits(values[2]))
		odd += uint64(math.Float32bits(values[1])) + uint64(math.Float32bits(values[3]))
	}
	for _, v := range values {
		even += uint64(math.Float32bits(v))
	}
	return even + odd
}

// Ints returns the sum of values in two's complement.
func Ints[T ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64](values []T) uint64 {
	var sum uint64
	for _, v := range values {
		sum += uint64(v)
	}
	return sum
}

// Words returns the sum of the little-endian 32-bit words of b; a last word that is cut short is filled up with zeros.
// Of the bytes of float32 values it is what [Float32s] is of the values.
func Words(b []byte) uint64 {
	var low, high uint64
	for ; len(b) >= 16; b = b[16:] {
		v, w := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		low += v&math.MaxUint32 + w&math.MaxUint32
		high += v>>32 + w>>32
	}
	for ; len(b) > 0; b = b[min(4, len(b)):] {
		var word [4]byte
		copy(word[:], b)
		low += uint64(binary.LittleEndian.Uint32(word[:]))
	}
	return low + high
}

// Parallel adds up part(0) to part(parts-1), which run on all processors.
func Parallel(parts int, part func(i int) uint64) uint64 {
	var next, sum atomic.Uint64
	var workers sync.WaitGroup
	for range min(parts, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			var mine uint64
			for i := next.Add(1); i <= uint64(parts); i = next.Add(1) {
				mine += part(int(i) - 1)
			}
			sum.Add(mine)
		})
	}
	workers.Wait()
	return sum.Load()
}

// Result is what a measured program says of itself. Zero fields were not measured.
type Result struct {
	Checksum    string  `json:"checksum,omitempty"`     // hexadecimal, 16 digits
	Tensors     int     `json:"tensors,omitempty"`      // tensors loaded
	Values      int64   `json:"values,omitempty"`       // elements in the checksum
	LoadSeconds float64 `json:"load_seconds,omitempty"` // the load alone, without the process's start and the checksum
	AnonKiB     int64   `json:"anon_kib,omitempty"`     // anonymous memory at the end of the load
}

// Hex returns sum as Result.Checksum spells it.
func Hex(sum uint64) string { return fmt.Sprintf("%016x", sum) }

// Print writes r as one line of JSON.
func (r Result) Print(w io.Writer) error { return json.NewEncoder(w).Encode(r) }
