// Save writes ResNet-152 from structs in memory to a record, and prints the line that scripts/bench reads.
//
//	save copied FILE OUT    the structs are filled with copies of the checkpoint FILE
//	save mapped FILE OUT    their fields are the mapped file itself
//
// The time that it prints is that of the record alone: from the structs to the file with its name.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/scripts/internal/resnet"
	"github.com/wick-ml/wick/scripts/internal/tally"
	"github.com/wick-ml/wick/serde"
)

// way is how the structs come to their values.
type way struct {
	open []wick.Option
	load []serde.Option
}

var ways = map[string]way{
	"copied": {},
	"mapped": {open: []wick.Option{wick.Mmap()}, load: []serde.Option{serde.Alias()}},
}

func main() {
	if len(os.Args) != 4 {
		usage()
	}
	w, ok := ways[os.Args[1]]
	if !ok {
		usage()
	}
	if err := w.measure(os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "save:", err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: save copied|mapped FILE OUT")
	os.Exit(2)
}

func (w way) measure(name, out string) error {
	ctx := context.Background()
	c, err := wick.Open(ctx, name, w.open...)
	if err != nil {
		return err
	}
	var net resnet.Net
	if _, err := serde.Unmarshal(ctx, c.Root, &net, w.load...); err != nil {
		return err
	}
	begin := time.Now()
	if _, err := wick.Save(ctx, out, &net); err != nil {
		return err
	}
	result := tally.Result{LoadSeconds: time.Since(begin).Seconds()}
	if err := c.Close(); err != nil { // not before, for it takes a map away
		return err
	}
	return result.Print(os.Stdout)
}
