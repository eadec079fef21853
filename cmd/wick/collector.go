package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// quiet is the heap, bytes, below which nobody looks for garbage: most commands
// end before they use as much, and looking took half of their time.
const quiet = 8 << 20

// pace is how much the heap may grow before it is looked through again, in
// percent of what was found in use. A heap of some megabytes is kept small: a
// command of a few thousand tensors then stays within what it promises. The tree
// of a million tensors lives as long as the command, and looking for garbage in it
// again and again took a third of the time of a listing and saved no memory.
func pace(inUse uint64) int {
	switch {
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

// paceCollector sets the pace after each collection from here on.
func paceCollector() {
	debug.SetGCPercent(pace(0))
	paceNext(pace(0))
}

// paceNext leaves garbage behind whose finalizer tells the next collection.
func paceNext(last int) {
	mark := new([16]byte) // large enough not to share a block with others
	runtime.SetFinalizer(mark, func(*[16]byte) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		next := pace(m.HeapAlloc)
		if next != last {
			debug.SetGCPercent(next)
		}
		paceNext(next)
	})
}

// small is the size, bytes, up to which a file keeps the whole command within
// smallLimit as far as collecting garbage can, and not within what its heap may
// grow to: a stranger's file of a megabyte or two must not take a machine's memory.
const (
	small      = 2 << 20
	smallLimit = 128 << 20
)

// limitSmall asks the collector to work harder where all files that the command
// line names are small. It says no word of what cannot be told: folders, pipes,
// addresses.
func limitSmall(args []string) {
	if onlySmall(args) {
		debug.SetMemoryLimit(smallLimit)
	}
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
