//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package checkpoint

import (
	"os"
	"runtime"

	"github.com/wick-ml/wick/fault"
)

func mapFile(*os.File, int64) ([]byte, error) {
	return nil, fault.New(fault.Unsupported, "a map of a file on "+runtime.GOOS).
		Needs("Linux, macOS or a BSD", "open it without the map option")
}

func unmap([]byte) error { return nil }
