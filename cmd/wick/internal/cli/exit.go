package cli

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
	"github.com/wick-ml/wick/fault"
)

// The exit codes of every command. They are a promise: see "wick help".
const (
	exitDone        = 0   // done
	exitNo          = 1   // the answer is "no": differences, findings, a plan that does not match
	exitEnvironment = 2   // usage, or what the system refused: no such file, permission, disk full …
	exitMalformed   = 3   // the bytes break their own format
	exitUnsupported = 4   // sound bytes that are something else, not supported, or over a limit
	exitInterrupted = 130 // Ctrl-C or SIGTERM
	exitCut         = 141 // whoever read a file's bytes from stdout went away, as SIGPIPE has it
)

// errNo ends a command whose answer is "no" and that has said why on stdout.
var errNo = errors.New("no")

// exitCode returns the code for the error that ended a command.
func exitCode(err error) int {
	switch {
	case err == nil, errors.Is(err, syscall.EPIPE):
		return exitDone // whoever read the output has seen enough of it
	case errors.Is(err, errNo):
		return exitNo
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	var e *fault.Error
	if !errors.As(err, &e) {
		return exitEnvironment
	}
	return exitCodeOf(e)
}

func exitCodeOf(e *fault.Error) int {
	switch e.Kind {
	case fault.Mismatch:
		return exitNo
	case fault.Malformed, fault.Checksum:
		return exitMalformed
	case fault.NotFound: // a part of the container, or what was asked for
		if e.Record != "" {
			return exitMalformed
		}
		return exitEnvironment
	case fault.Limit, fault.Unsupported, fault.Collision, fault.NoData:
		return exitUnsupported
	default:
		return exitEnvironment
	}
}

// describe turns any error into the one form that is printed.
func describe(err error) *fault.Error {
	if errors.Is(err, context.Canceled) { // whatever it interrupted
		return &fault.Error{Kind: kindInterrupted, Found: "interrupted"}
	}
	var e *fault.Error
	if errors.As(err, &e) {
		return withFlags(e)
	}
	var p *fs.PathError
	switch {
	case errors.As(err, &p):
		return &fault.Error{Kind: kindOfSystem(err), File: p.Path, Found: p.Err.Error()}
	default:
		return &fault.Error{Kind: kindOfSystem(err), Found: err.Error()}
	}
}

// Kinds that only a command has.
const (
	kindInterrupted fault.Kind = "interrupted"
	kindBug         fault.Kind = "bug"
)

func kindOfSystem(err error) fault.Kind {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.NotFound
	}
	return fault.IO
}

// errorLine is the one line that a person reads.
func errorLine(err error) string {
	e := describe(err)
	text := e.Error()
	if systemText(err) {
		text = where(e) + fault.Clean(e.Found, 300)
		if e.Need != "" {
			text += "; need " + fault.Clean(e.Need, 300)
		}
		if e.Cure != "" {
			text += " (" + fault.Clean(e.Cure, 300) + ")"
		}
	}
	return "wick: " + strings.ReplaceAll(text, "\n", " ")
}

func where(e *fault.Error) string {
	if e.File == "" {
		return ""
	}
	return fault.Clean(e.File, 300) + ": "
}

// systemText reports whether an error's own words need no heading: it came from
// the system or from the command line and not from a file's data.
func systemText(err error) bool {
	var e *fault.Error
	if errors.Is(err, context.Canceled) || !errors.As(err, &e) {
		return true
	}
	switch e.Kind {
	case fault.Usage, fault.Ambiguous, kindInterrupted, kindBug:
		return true
	case fault.NotFound:
		return e.Record == ""
	default:
		return false
	}
}

// errorJSON is the one line that a program reads.
func errorJSON(err error) []byte {
	var outer jsonout.Object
	outer.Raw("error", errorObject(err))
	return append(outer.Bytes(), '\n')
}

// errorObject is an error as JSON, with every key.
func errorObject(err error) []byte {
	e := describe(err)
	var o jsonout.Object
	o.String("kind", string(e.Kind))
	o.StringOrNull("file", e.File)
	o.StringOrNull("record", shortText(e.Record))
	if e.HasOffset {
		o.Int("offset", e.Offset)
	} else {
		o.Null("offset")
	}
	o.StringOrNull("path", shortText(e.Path))
	o.StringOrNull("found", shortText(found(e)))
	o.StringOrNull("need", shortText(e.Need))
	o.StringOrNull("cure", shortText(e.Cure))
	return o.Bytes()
}

func found(e *fault.Error) string {
	if e.Err == nil {
		return e.Found
	}
	if e.Found == "" {
		return e.Err.Error()
	}
	return e.Found + ": " + e.Err.Error()
}

// maxErrorPart bounds each text of an error as JSON, bytes.
const maxErrorPart = 600

// shortText cuts a text that a file has made long. Escaping is JSON's.
func shortText(s string) string {
	if len(s) <= maxErrorPart {
		return s
	}
	head, tail := 2*maxErrorPart/3, len(s)-maxErrorPart/3
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + "…" + s[tail:]
}
