package tensor

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// encode returns the elements of s as bytes in host order.
func encode[T Element](s []T) []byte {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.NativeEndian, s); err != nil {
		panic(fmt.Sprintf("BUG: wick/tensor: an element without a fixed size: %v", err))
	}
	return b.Bytes()
}

// decode fills s from bytes in host order; len(b) is the size of s. Any byte
// but 0 is true for a bool.
func decode[T Element](s []T, b []byte) {
	if flags, ok := any(s).([]bool); ok {
		for i := range flags {
			flags[i] = b[i] != 0
		}
		return
	}
	if _, err := binary.Decode(b, binary.NativeEndian, s); err != nil {
		panic(fmt.Sprintf("BUG: wick/tensor: decoding %d bytes: %v", len(b), err))
	}
}
