//go:build nounsafe

package tensor

// The twin of unsafe.go that never sees memory as another type. Callers fall
// back to copying through encoding/binary.

func bytesOf[T Element](s []T) ([]byte, bool) { return nil, false }

func viewAs[T Element](b []byte) ([]T, bool) { return nil, false }

func misalignment(b []byte, align int64) int64 { return 0 }

// StringBytes returns a copy of the bytes of s.
func StringBytes(s string) []byte { return []byte(s) }
