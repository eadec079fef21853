//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package checkpoint

import (
	"math"
	"os"
	"syscall"

	"github.com/wick-ml/wick/fault"
)

// mapFile maps size bytes of f privately: a program that writes to its
// parameters must not change the file, and must not die of it either.
func mapFile(f *os.File, size int64) ([]byte, error) {
	if size == 0 {
		return []byte{}, nil
	}
	if size > math.MaxInt {
		return nil, fault.NewBound("bytes that this machine can map", size, math.MaxInt)
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE, mapFlags)
	if err != nil {
		return nil, fault.Wrap(fault.IO, "cannot be mapped", err)
	}
	return b, nil
}

func unmap(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return syscall.Munmap(b)
}
