package checkpoint

import (
	"errors"
	"os"
	"syscall"
)

// preallocate takes the room for size bytes, so that a full disk shows before
// anything is read. A file system that cannot say is left alone.
func preallocate(f *os.File, size int64) error {
	if size == 0 {
		return nil
	}
	for {
		err := syscall.Fallocate(int(f.Fd()), 0, 0, size)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case full(err):
			return err
		default:
			return f.Truncate(size)
		}
	}
}
