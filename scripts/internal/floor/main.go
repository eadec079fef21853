//go:build linux

// Floor is the least that loading a file can cost on this machine: one fresh allocation of the file's size under
// huge-page advice, filled by two parallel reads, and a checksum of all values. It knows nothing of the file's format.
//
//	floor FILE
//
// Its checksum is that of the whole file taken as 32-bit words, so it differs from that of the tensors in it, but
// costs the same for each byte.
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wick-ml/wick/scripts/internal/tally"
)

// halves is how many reads run in parallel.
const halves = 2

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: floor FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(name string) error {
	begin := time.Now()
	memory, err := load(name)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	sum := tally.Parallel(halves, func(i int) uint64 { return tally.Words(half(memory, i)) })
	return tally.Result{Checksum: tally.Hex(sum), Values: int64(len(memory) / 4), LoadSeconds: took.Seconds()}.Print(os.Stdout)
}

// load returns the bytes of the file in memory of its own, which lasts as long as the process.
func load(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	memory, err := unix.Mmap(-1, 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("allocating: %w", err)
	}
	if err := unix.Madvise(memory, unix.MADV_HUGEPAGE); err != nil {
		return nil, fmt.Errorf("advising huge pages: %w", err)
	}
	return memory, errors.Join(readHalves(file, memory), file.Close())
}

func readHalves(file *os.File, memory []byte) error {
	failed := make(chan error, halves)
	for i := range halves {
		go func() {
			part := half(memory, i)
			_, err := file.ReadAt(part, int64(i)*int64(len(half(memory, 0))))
			failed <- err
		}()
	}
	return errors.Join(<-failed, <-failed)
}

// half returns one of two parts; the first is a whole number of words.
func half(memory []byte, i int) []byte {
	middle := len(memory) / 2 &^ 63
	if i == 0 {
		return memory[:middle]
	}
	return memory[middle:]
}
