package attacks

import (
	"os"
	"syscall"
)

// peakMemory returns the most bytes of a process that were in memory at once.
func peakMemory(p *os.ProcessState) int64 {
	usage, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return int64(usage.Maxrss) << 10 //nolint:unconvert // 32 bits on some machines
}
