//go:build linux

// Touch takes memory from the kernel, writes to all of it and gives it back by exiting.
//
//	touch MIB
//
// A virtual machine whose free memory was returned to its host pays for getting it back: on one such machine the same
// program took 45 or 580 ms, as the last seconds had left it. scripts/bench runs touch before each program, so that
// all of them find memory in the same state.
package main

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "touch:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the MiB to touch")
	}
	mib, err := strconv.ParseUint(args[0], 10, 20)
	if err != nil {
		return err
	}
	memory, err := unix.Mmap(-1, 0, int(mib)<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	// Where huge pages are off the pages are small, and touched just as well.
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	return nil
}
