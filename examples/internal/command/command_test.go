package command

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, test := range []struct {
		args  []string
		want  error
		tells string
	}{
		{[]string{"-image", "cat.jpg"}, nil, ""},
		{nil, errUsage, "flag needed: -image\nUsage of test:"},
		{[]string{"-picture", "cat.jpg"}, errUsage, "not defined: -picture\nUsage of test:"},
		{[]string{"-h"}, flag.ErrHelp, "Usage of test:"},
	} {
		var told strings.Builder
		flags := flag.NewFlagSet("test", flag.ContinueOnError)
		flags.SetOutput(&told)
		flags.String("image", "", "file")
		if err := Parse(flags, test.args, "image"); !errors.Is(err, test.want) {
			t.Errorf("%v gives the error %v, not %v", test.args, err, test.want)
		}
		if !strings.Contains(told.String(), test.tells) {
			t.Errorf("%v tells %q", test.args, told.String())
		}
	}
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	if err := Parse(flags, []string{"-x"}); err == nil {
		t.Error("a flag that is not there was taken")
	}
}
