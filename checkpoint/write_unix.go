//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package checkpoint

import (
	"errors"
	"os"
	"syscall"
)

// lock marks the file as being written. The lock ends with the process,
// however that ends. It reports whether nobody else holds it; where the file
// system has no locks, nobody does.
func lock(f *os.File) bool {
	err := flock(f)
	return !errors.Is(err, syscall.EWOULDBLOCK)
}

// flock takes the lock of f. On an error nobody knows whether it is free.
func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// removeIfAbandoned removes a draft whose lock is free: its process is gone.
func removeIfAbandoned(name string) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return
	}
	if flock(f) == nil && sameFile(f, name) {
		_ = os.Remove(name) // what stays is for the next run
	}
	_ = f.Close() // nothing was written
}

// syncFolder makes a new name in a folder last.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func isFull(error) bool { return false }
