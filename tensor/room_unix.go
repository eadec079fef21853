//go:build unix && !aix && !solaris

package tensor

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// systemHas asks the system for so many bytes and gives them back. No page of
// them is touched. Where addresses are scarce, one range of all proves nothing.
func systemHas(size int64) bool {
	if strconv.IntSize < 64 {
		return true
	}
	b, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return false
	}
	return unix.Munmap(b) == nil
}
