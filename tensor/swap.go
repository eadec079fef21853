package tensor

import (
	"encoding/binary"
	"math/bits"
)

// swapBytes reverses the bytes of each component of b in place. A component is
// 1, 2, 4 or 8 bytes, as [DType.Component] says: the parts of a complex number
// are swapped apart. Bytes behind the last whole component stay as they are.
func swapBytes(b []byte, component int) {
	b = swapVectors(b, component)
	switch component {
	case 2:
		swapTail(swapPairs(b), 2)
	case 4:
		swapTail(swapQuads(b), 4)
	case 8:
		swapTail(swapEights(b), 8)
	}
}

// The loops take four words of eight bytes a step, twice as fast as one when
// measured, and return what is left. A word is loaded and stored in the same
// order, whatever the host's is.

func swapPairs(b []byte) []byte {
	for ; len(b) >= 32; b = b[32:] {
		swapWordPairs(b)
		swapWordPairs(b[8:])
		swapWordPairs(b[16:])
		swapWordPairs(b[24:])
	}
	return b
}

func swapWordPairs(b []byte) {
	const low = 0x00ff00ff00ff00ff
	w := binary.LittleEndian.Uint64(b)
	binary.LittleEndian.PutUint64(b, w>>8&low|w&low<<8)
}

func swapQuads(b []byte) []byte {
	for ; len(b) >= 32; b = b[32:] {
		swapWordQuads(b)
		swapWordQuads(b[8:])
		swapWordQuads(b[16:])
		swapWordQuads(b[24:])
	}
	return b
}

func swapWordQuads(b []byte) {
	w := bits.ReverseBytes64(binary.LittleEndian.Uint64(b))
	binary.LittleEndian.PutUint64(b, bits.RotateLeft64(w, 32))
}

func swapEights(b []byte) []byte {
	for ; len(b) >= 32; b = b[32:] {
		swapWord(b)
		swapWord(b[8:])
		swapWord(b[16:])
		swapWord(b[24:])
	}
	return b
}

func swapWord(b []byte) {
	binary.LittleEndian.PutUint64(b, binary.BigEndian.Uint64(b))
}

func swapTail(b []byte, component int) {
	for ; len(b) >= component; b = b[component:] {
		for i, j := 0, component-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
	}
}
