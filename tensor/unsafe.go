//go:build !nounsafe

package tensor

import "unsafe"

// All of the module's use of package unsafe is here. The only thing it does is
// to see one slice of plain numbers, or a string, as bytes and back; safe.go is
// the twin that copies instead.

// bytesOf returns the memory of s as bytes in host order. It aliases s.
func bytesOf[T Element](s []T) ([]byte, bool) {
	if len(s) == 0 {
		return []byte{}, true
	}
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(zero))), true
}

// viewAs returns b as a slice of T in host order. It aliases b; ok is false
// when b is not aligned for T or its length is no multiple of T's size. A
// []bool is never made: its bytes could be others than 0 and 1.
func viewAs[T Element](b []byte) (s []T, ok bool) {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if _, isBool := any(zero).(bool); isBool || len(b)%size != 0 {
		return nil, false
	}
	if len(b) == 0 {
		return []T{}, true
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(p)%unsafe.Alignof(zero) != 0 {
		return nil, false
	}
	return unsafe.Slice((*T)(p), len(b)/size), true
}

// misalignment returns how many bytes of b precede the first that lies on a
// multiple of align.
func misalignment(b []byte, align int64) int64 {
	return -int64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (align - 1)
}

// StringBytes returns the bytes of s without copying them where the build
// allows it. They must never be written: those of a string that is embedded or
// a constant are in memory that cannot be, and the program ends with a fault
// that no recover catches.
func StringBytes(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s))
}
