package checkpoint

import (
	"errors"
	"os"
	"syscall"
)

// Windows does not remove a file that a process holds open: that is the lock.

func lock(*os.File) bool { return true }

func removeIfAbandoned(name string) { _ = os.Remove(name) }

// syncFolder has nothing to do: a folder cannot be flushed by itself.
func syncFolder(string) error { return nil }

// The codes of winerror.h for a disk without space.
const (
	errorHandleDiskFull = syscall.Errno(39)
	errorDiskFull       = syscall.Errno(112)
)

func isFull(err error) bool {
	return errors.Is(err, errorHandleDiskFull) || errors.Is(err, errorDiskFull)
}
