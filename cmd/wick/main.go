// Command wick reads PyTorch checkpoints without Python: it lists, verifies and
// converts them. "wick help" says how.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/wick-ml/wick/cmd/wick/internal/cli"
)

// grace is how long an interrupted command may take to clean up. It ends even
// where a write hangs that nothing can cancel, such as to a pipe that nobody
// reads.
const grace = 3 * time.Second

func main() {
	limit := int64(0)
	if os.Getenv("GOMEMLIMIT") == "" {
		limit = limitOf(os.Args[1:])
	}
	if os.Getenv("GOGC") == "" {
		paceCollector(limit)
	}
	// A fault of wick is one line too. Who hunts it sets GOTRACEBACK, which wins.
	debug.SetTraceback("none")
	ignoreBrokenPipe()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop() // a second Ctrl-C ends it at once
		time.Sleep(grace)
		_, _ = os.Stderr.WriteString("wick: interrupted\n") // nobody waits for it
		os.Exit(130)
	})
	code := cli.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
