//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

// ignoreBrokenPipe makes a write to a reader that has gone an error, which ends
// the command in order, not the end of the process with its temporary files
// left behind.
func ignoreBrokenPipe() { signal.Ignore(syscall.SIGPIPE) }
