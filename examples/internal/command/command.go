// Package command is what the programs of the examples have in common as commands.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// errUsage is an error that was told already, with the usage.
var errUsage = errors.New("usage")

// Main runs a program and exits: 0 when it is done, 1 with the error on one line, 2 after wrong flags. The programs leave
// nothing behind that an interrupt would have to tidy up.
func Main(name string, run func(ctx context.Context, args []string, out io.Writer) error) {
	err := run(context.Background(), os.Args[1:], os.Stdout)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Parse reads args into flags, of which those called required must be given. What is wrong with them is told, with the
// usage, where flags write.
func Parse(flags *flag.FlagSet, args []string, required ...string) error {
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return errors.Join(errUsage, err)
	}
	for _, name := range required {
		if flags.Lookup(name).Value.String() == "" {
			err := fmt.Errorf("flag needed: -%s", name)
			if _, printing := fmt.Fprintln(flags.Output(), err); printing != nil {
				return printing
			}
			flags.Usage()
			return errors.Join(errUsage, err)
		}
	}
	return nil
}
