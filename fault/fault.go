// Package fault holds the one error type that every package of wick returns
// for trouble with data, and the sentinels that tell its kinds apart.
//
// A reader of hostile files must never blur three answers: the bytes break
// their own format ([ErrMalformed]), the bytes are sound but not for us
// ([ErrUnsupported]), and the bytes ask for more than the caller allowed
// ([ErrLimit]). Each kind has a sentinel for [errors.Is]; the details are in
// [Error], which [errors.As] finds.
package fault

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
)

// Kind says what sort of trouble an [Error] reports. Its text is the one that
// the command line prints as "kind".
type Kind string

// The kinds of faults.
const (
	Malformed   Kind = "malformed"   // the bytes break the rules of their own format
	Unsupported Kind = "unsupported" // recognised, but wick does not handle it
	Limit       Kind = "limit"       // over a limit of the caller's, see [Error.Max]
	Checksum    Kind = "checksum"    // stored and computed checksums differ
	NotFound    Kind = "notfound"    // a file, record, shard or name is absent
	Collision   Kind = "collision"   // two things claim one name
	Mismatch    Kind = "mismatch"    // two sides that must agree do not
	Ambiguous   Kind = "ambiguous"   // one name, several things
	Usage       Kind = "usage"       // the caller asked for something impossible
	IO          Kind = "io"          // the system failed underneath us
	Changed     Kind = "changed"     // the source changed after it was opened
	Closed      Kind = "closed"      // used after Close
	NoData      Kind = "nodata"      // a tensor that by nature has no bytes (meta device)
)

// Sentinels for errors.Is, one for each [Kind].
var (
	ErrMalformed   = errors.New("malformed")
	ErrUnsupported = errors.New("unsupported")
	ErrLimit       = errors.New("over a limit")
	ErrChecksum    = errors.New("checksum mismatch")
	ErrNotFound    = errors.New("not found")
	ErrCollision   = errors.New("collision")
	ErrMismatch    = errors.New("mismatch")
	ErrAmbiguous   = errors.New("ambiguous")
	ErrUsage       = errors.New("usage")
	ErrIO          = errors.New("input/output error")
	ErrChanged     = errors.New("changed since it was opened")
	ErrClosed      = errors.New("closed")
	ErrNoData      = errors.New("no data")
)

var sentinels = map[Kind]error{
	Malformed: ErrMalformed, Unsupported: ErrUnsupported, Limit: ErrLimit,
	Checksum: ErrChecksum, NotFound: ErrNotFound, Collision: ErrCollision,
	Mismatch: ErrMismatch, Ambiguous: ErrAmbiguous, Usage: ErrUsage, IO: ErrIO,
	Changed: ErrChanged, Closed: ErrClosed, NoData: ErrNoData,
}

// Error is a fault of the data, of a file, or of what was asked of it. Empty
// fields are unknown or do not apply. Texts that come from a file are escaped
// and cut when the error is printed, not when it is made.
type Error struct {
	Kind   Kind
	File   string // the file or source, as the caller named it
	Record string // the record in it, such as "archive/data/0"
	Offset int64  // byte offset in the record, else in the file; see HasOffset
	Opcode string // the pickle opcode at the offset
	Path   string // the flat name of the place in the tree
	Limit  string // for Kind Limit: the limit's name
	Value  int64  // for Kind Limit: the value met
	Max    int64  // for Kind Limit: the most that is allowed
	Found  string // what was found
	Need   string // what was needed instead
	Cure   string // what a person can do about it
	Err    error  // the cause, if another error

	// HasOffset tells an offset of zero from no offset.
	HasOffset bool
}

// What helps with files whose bytes contradict each other: any, those that end
// early, and those that no program writes.
const (
	GetAgain      = "the file is damaged: get it again"
	CutShort      = "the file was cut short or is damaged: get it again"
	MadeToDeceive = "the file is damaged or was made to deceive: get it again"
)

// New returns an error of the given kind that says what was found.
func New(kind Kind, found string) *Error { return &Error{Kind: kind, Found: found} }

// NewLimit returns an [ErrLimit] error for the limit called name, which the caller
// can raise.
func NewLimit(name string, value, limit int64) *Error {
	e := NewBound(name, value, limit)
	e.Cure = "raise the limit " + name + " if you trust the file"
	return e
}

// NewBound is [NewLimit] for a bound that no option raises.
func NewBound(name string, value, limit int64) *Error {
	return &Error{
		Kind: Limit, Limit: name, Value: value, Max: limit,
		Found: name + " " + strconv.FormatInt(value, 10),
		Need:  "at most " + strconv.FormatInt(limit, 10),
	}
}

// Wrap returns an error of the given kind around a cause.
func Wrap(kind Kind, found string, err error) *Error {
	return &Error{Kind: kind, Found: found, Err: err}
}

// ReadFailed returns the [ErrIO] error for err, which came out of a read. The end
// of what is read, a fault and the end of a context stay as they are.
func ReadFailed(err error) error {
	for _, known := range []error{nil, io.EOF, io.ErrUnexpectedEOF, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return err
		}
	}
	if KindOf(err) != "" {
		return err
	}
	return Wrap(IO, "read failed", err)
}

// In returns e with its file set, unless it already has one.
func (e *Error) In(file string) *Error {
	if e.File == "" {
		e.File = file
	}
	return e
}

// InRecord returns e with its record set, unless it already has one.
func (e *Error) InRecord(record string) *Error {
	if e.Record == "" {
		e.Record = record
	}
	return e
}

// At returns e with its offset set, unless it already has one.
func (e *Error) At(offset int64) *Error {
	if !e.HasOffset {
		e.Offset, e.HasOffset = offset, true
	}
	return e
}

// OnPath returns e with its tree path set, unless it already has one.
func (e *Error) OnPath(path string) *Error {
	if e.Path == "" {
		e.Path = path
	}
	return e
}

// InFile sets the file of the fault in err, unless it has one. It returns the fault
// without what was wrapped around it, and an error that is no fault as it is.
func InFile(err error, file string) error {
	return place(err, func(e *Error) *Error { return e.In(file) })
}

// InRecord is [InFile] for the record.
func InRecord(err error, record string) error {
	return place(err, func(e *Error) *Error { return e.InRecord(record) })
}

// At is [InFile] for the offset in bytes.
func At(err error, offset int64) error {
	return place(err, func(e *Error) *Error { return e.At(offset) })
}

// OnPath is [InFile] for the path in the tree.
func OnPath(err error, path string) error {
	return place(err, func(e *Error) *Error { return e.OnPath(path) })
}

func place(err error, set func(*Error) *Error) error {
	var e *Error
	if errors.As(err, &e) {
		return set(e)
	}
	return err
}

// Needs returns e with what was needed and the cure set.
func (e *Error) Needs(need, cure string) *Error {
	e.Need, e.Cure = need, cure
	return e
}

// Is reports whether target is the sentinel of e's kind.
func (e *Error) Is(target error) bool { return sentinels[e.Kind] == target }

// Unwrap returns the cause, nil if there is none.
func (e *Error) Unwrap() error { return e.Err }

// Error is one line: where, what was found, what was needed, the cure. It
// never holds control bytes and no part of it is longer than a few hundred
// characters, whatever the file held.
func (e *Error) Error() string {
	var b strings.Builder
	before := ""
	for _, where := range []string{e.File, e.place(), e.Path} {
		if where != "" && where != before { // a record may be called like its tensor
			before = where
			b.WriteString(Clean(where, maxPart) + ": ")
		}
	}
	b.WriteString(e.what())
	if e.Need != "" {
		b.WriteString("; need " + Clean(e.Need, maxPart))
	}
	if e.Cure != "" {
		b.WriteString(" (" + Clean(e.Cure, maxPart) + ")")
	}
	return b.String()
}

const maxPart = 300

func (e *Error) what() string {
	s := string(e.Kind)
	if text := sentinels[e.Kind]; text != nil {
		s = text.Error()
	}
	if e.Found != "" {
		s += ": " + Clean(e.Found, maxPart)
	}
	if e.Err != nil {
		s += ": " + Clean(e.Err.Error(), maxPart)
	}
	return s
}

// place is record@0xoffset with the opcode behind it.
func (e *Error) place() string {
	s := e.Record
	if e.HasOffset {
		s += "@0x" + strconv.FormatInt(e.Offset, 16)
	}
	if e.Opcode != "" {
		s += " " + e.Opcode
	}
	return s
}

// KindOf returns the kind of the first [Error] in err's chain, "" if none.
func KindOf(err error) Kind {
	if err == nil { // what is asked of each of a million tensors
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}
