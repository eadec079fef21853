// Package cli is the command line of wick: one file for each command, and what
// they share. What a command prints as JSON, and the exit codes, are promises.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// Run runs one command line without the program's name and returns its exit
// code. Data goes to stdout, everything else to stderr. Cancelling ctx
// interrupts the command: it removes what it has half written and the code is
// 130. Run never panics.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{streams: newStreams(stdin, stdout, stderr), getenv: os.Getenv, open: openFile}
	return a.run(ctx, args)
}

// app is one run of the command.
type app struct {
	*streams
	getenv func(string) string
	// open opens what a command line calls FILE.
	open func(ctx context.Context, name string, o openOptions) (*checkpoint.Checkpoint, error)

	quiet   bool
	verbose bool
	color   string
	limits  []string
	spool   string // folder for what a stream cannot give in order
	shards  joinFlags
	memory  int64  // --max-memory of a command that has it
	fetched []*far // what was opened

	bytesOut bool // stdout gets the bytes of a file, which are useless when cut
	streamed bool // a server had no ranges: its file comes once
}

func (a *app) run(ctx context.Context, args []string) (code int) {
	json := wantsJSON(args)
	err := a.execute(ctx, args)
	for _, f := range a.fetched {
		f.remarks()
	}
	if flushed := a.out.Flush(); err == nil || exitCode(err) == exitNo && flushed != nil {
		err = flushed
	}
	a.report(err, json)
	if a.bytesOut && errors.Is(err, syscall.EPIPE) {
		return exitCut
	}
	return exitCode(err)
}

// execute runs the command and turns a panic, which is a fault of wick, into an
// error: nobody is ever shown a stack trace.
func (a *app) execute(ctx context.Context, args []string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &fault.Error{Kind: kindBug, Found: "BUG: " + fmt.Sprint(p), Cure: "please report it with the command and, if you may, the file"}
		}
	}()
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return cureFor(cmd, err)
}

// report prints the error that ended the command, if there is one to print.
func (a *app) report(err error, json bool) {
	if errors.Is(err, errNo) || exitCode(err) == exitDone {
		return
	}
	line := []byte(errorLine(err) + "\n")
	if json {
		line = errorJSON(err)
	}
	_, _ = a.err.Write(line) // there is nobody left to tell
}

// wantsJSON reports whether errors too are to be JSON. It looks at the raw
// arguments, since the error may be about them.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.ContainsFunc(args, func(arg string) bool {
		return arg == "--json" || arg == "--jsonl" || strings.HasPrefix(arg, "--json=") && arg != "--json=false"
	})
}

// usage returns an error about the command line.
func usage(cmd *cobra.Command, found string) error {
	return fault.New(fault.Usage, found).Needs("", "see "+cmd.CommandPath()+" --help")
}

// args checks the number of arguments: names lists them as the usage line does,
// most is -1 for any number.
func argCount(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage(cmd, cmd.Name()+" needs "+names)
		case most >= 0 && len(args) > most:
			return usage(cmd, cmd.Name()+" takes "+names+" and nothing more: "+args[most])
		}
		return nil
	}
}

// inputArgs is argCount for arguments that are all read: standard input can be
// one of them.
func inputArgs(least, most int, names string) cobra.PositionalArgs {
	count := argCount(least, most, names)
	return func(cmd *cobra.Command, args []string) error {
		if err := count(cmd, args); err != nil {
			return err
		}
		if len(args) > 1 && args[0] == "-" && args[1] == "-" {
			return fault.New(fault.Usage, stdinName+" can be read once").Needs("", "give a file in place of one -")
		}
		return nil
	}
}
