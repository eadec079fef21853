package tensor

import "encoding/binary"

// copyBools writes 1 for every byte of src but 0, as a Go bool in memory must be:
// files may hold others. dst may be src.
func copyBools(dst, src []byte) Loss {
	const (
		ones  = 0x0101010101010101
		lower = 0x7f7f7f7f7f7f7f7f
	)
	for ; len(src) >= 8 && len(dst) >= 8; dst, src = dst[8:], src[8:] {
		w := binary.LittleEndian.Uint64(src)
		// The sum carries into the upper bit of a byte unless its lower bits are 0.
		w = (w&lower + lower | w) >> 7 & ones
		binary.LittleEndian.PutUint64(dst, w)
	}
	for i, v := range src {
		dst[i] = 0
		if v != 0 {
			dst[i] = 1
		}
	}
	return Loss{}
}

// addBool adds the conversions from bool: all but the one to itself go through
// a byte of 0 or 1.
func (t *kernelTable) addBool() {
	t[Bool][Bool], t[Bool][U8] = copyBools, copyBools
	for to := Invalid + 1; to < dtypeCount; to++ {
		if to != Bool && to != U8 && t[U8][to] != nil {
			t[Bool][to] = t.through(Bool, U8, to).run
		}
	}
}
