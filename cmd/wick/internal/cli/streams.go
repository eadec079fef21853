package cli

import (
	"bufio"
	"io"
	"os"

	"golang.org/x/term"
)

// streams is where a command reads and writes, and what it knows of the
// terminal there.
type streams struct {
	in     io.Reader
	out    *bufio.Writer // data, and nothing else
	err    io.Writer     // everything else
	outTTY bool
	errTTY bool
	width  int // columns of the terminal on stdout, 0 when it is none
	colour bool
}

func newStreams(in io.Reader, out, errs io.Writer) *streams {
	s := &streams{in: in, out: bufio.NewWriterSize(out, 64<<10), err: errs, outTTY: isTerminal(out), errTTY: isTerminal(errs)}
	if s.outTTY {
		s.width = columns(out)
	}
	return s
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func columns(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// colours decides about colour: --color, then NO_COLOR and CLICOLOR_FORCE (see
// no-color.org and bixense.com/clicolors), then whether stdout is a terminal.
func (s *streams) colours(flag string, getenv func(string) string) {
	switch {
	case flag == "always":
		s.colour = true
	case flag == "never", getenv("NO_COLOR") != "":
		s.colour = false
	case getenv("CLICOLOR_FORCE") != "" && getenv("CLICOLOR_FORCE") != "0":
		s.colour = true
	default:
		s.colour = s.outTTY && getenv("TERM") != "dumb"
	}
}

// A style is an SGR parameter.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	blue   style = "34"
	cyan   style = "36"
)

// paint returns text in a style, or as it is where colour is off.
func (s *streams) paint(st style, text string) string {
	if !s.colour || st == plain || text == "" {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[0m"
}
