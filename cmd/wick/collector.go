package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"
)

// quiet is the heap, bytes, below which nobody looks for garbage: most commands
// end before they use as much, and looking took half of their time.
const quiet = 8 << 20

// pace is how much the heap may grow before it is looked through again, in
// percent of what was found in use. A heap of some megabytes is kept small: a
// command of a few thousand tensors then stays within what it promises. The tree
// of a million tensors lives as long as the command, and looking for garbage in it
// again and again took a third of the time of a listing and saved no memory. What
// has been looked through often makes garbage fast: doubling it costs little memory,
// and keeping it small nine tenths of the time.
func pace(inUse uint64, collections uint32) int {
	const often = 100
	switch {
	case collections > often && inUse < 32<<20:
		return 100
	case inUse < quiet/3:
		return 200 // of at least 4 MiB, the runtime's own minimum
	case inUse < quiet*10/13:
		return int(100 * (quiet - inUse) / inUse)
	case inUse < 32<<20:
		return 30
	case inUse < 128<<20:
		return 100
	default:
		return 400
	}
}

// paceCollector sets the pace after each collection from here on, and, where there
// is a limit, bytes, the limit beside it. 0 stands for none.
func paceCollector(limit int64) {
	first := pace(0, 0)
	debug.SetGCPercent(first)
	if limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	paceNext(first, limit)
}

// paceNext leaves garbage behind whose finalizer tells the next collection.
func paceNext(last int, limit int64) {
	mark := new([16]byte) // large enough not to share a block with others
	runtime.SetFinalizer(mark, func(*[16]byte) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		next := pace(m.HeapAlloc, m.NumGC)
		if next != last {
			debug.SetGCPercent(next)
		}
		if limit > 0 {
			debug.SetMemoryLimit(max(limit, above(m.HeapAlloc)))
		}
		paceNext(next, limit)
	})
}

// above is a limit for a heap that is in use: one below it would have the collector
// run without end, for nothing.
func above(inUse uint64) int64 { return int64(inUse)/8*9 + 12<<20 } //nolint:gosec // a heap is below 2^63

// small is the size, bytes, up to which a file keeps the whole command within
// smallLimit as far as collecting garbage can, and not within what its heap may
// grow to: a stranger's file of a megabyte or two must not take a machine's memory.
const (
	small      = 2 << 20
	smallLimit = 128 << 20
)

// limitOf is the limit for a command line: none unless all files that it names are
// small, or what it reads is a pipe, which may be. It says no word of folders and
// addresses.
func limitOf(args []string) int64 {
	if onlySmall(args) || slices.Contains(args, "-") {
		return smallLimit
	}
	return 0
}

// onlySmall reports whether args name files, all of them small.
func onlySmall(args []string) bool {
	found := false
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case err != nil: // a flag, a name, a file that is to be written
		case !info.Mode().IsRegular() || info.Size() > small:
			return false
		default:
			found = true
		}
	}
	return found
}
