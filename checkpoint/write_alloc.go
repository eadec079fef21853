//go:build !linux

package checkpoint

import "os"

// preallocate sets the file's size. Whether the room is there shows in writing.
func preallocate(f *os.File, size int64) error { return f.Truncate(size) }
