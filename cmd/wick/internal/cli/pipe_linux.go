package cli

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// widePipe asks for a pipe of a mebibyte instead of 64 KiB: writer and reader
// then wait for each other less often. The system may refuse; then nothing
// changes.
func widePipe(r io.Reader) io.Reader {
	if f, ok := r.(*os.File); ok {
		_, _ = unix.FcntlInt(f.Fd(), unix.F_SETPIPE_SZ, 1<<20) // advice
	}
	return r
}
