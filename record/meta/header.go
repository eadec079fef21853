package meta

import (
	"strconv"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/internal/strictjson"
)

// Version is the version of the record form that this package writes. Readers
// take every version up to it, and pass over members that they do not know.
const Version = 1

// Member is a member of a record's header that is a text.
type Member struct {
	Key  string
	Text *string
}

// Members returns those members of a header that are texts, in the order in which
// files have them.
func Members(h *checkpoint.RecordHeader) [3]Member {
	return [3]Member{{"type", &h.Type}, {"precision", &h.Precision}, {"writer", &h.Writer}}
}

// ReadMember reads the value of a member of a header; ok is false, and the value
// left, where a header has no member of that key.
func ReadMember(r *strictjson.Reader, key string, h *checkpoint.RecordHeader) (ok bool, err error) {
	if key == "version" {
		n, err := r.Uint()
		h.Version = int(min(n, 1<<30))
		return true, err
	}
	for _, m := range Members(h) {
		if m.Key == key {
			*m.Text, err = r.Text()
			return true, err
		}
	}
	return false, nil
}

// CheckVersion returns an [fault.ErrUnsupported] error for a record of a later
// form than [Version], and a malformed one for a version that never was.
func CheckVersion(h checkpoint.RecordHeader) error {
	switch {
	case h.Version > Version:
		return fault.New(fault.Unsupported, "record version "+strconv.Itoa(h.Version)+writtenBy(h)).
			Needs("version "+strconv.Itoa(Version)+" or lower", "use a newer wick")
	case h.Version < 1:
		return fault.New(fault.Malformed, "record version "+strconv.Itoa(h.Version)+writtenBy(h)).
			Needs("version 1 to "+strconv.Itoa(Version), fault.GetAgain)
	}
	return nil
}

// Check compares what a record says of itself with what its reader expects. A
// side that says nothing agrees. It fails with [fault.ErrMismatch], naming both.
func Check(found, want checkpoint.RecordHeader) error {
	if differ(found.Type, want.Type) {
		return fault.New(fault.Mismatch, "a record of "+found.Type+writtenBy(found)).
			Needs("a record of "+want.Type, "read it into the type that it was written from, or write it again")
	}
	if differ(found.Precision, want.Precision) {
		return fault.New(fault.Mismatch, "a record in "+found.Precision+" precision"+writtenBy(found)).
			Needs(want.Precision+" precision", "convert the record, or read it in its own precision")
	}
	return nil
}

func differ(a, b string) bool { return a != "" && b != "" && a != b }

func writtenBy(h checkpoint.RecordHeader) string {
	if h.Writer == "" {
		return ""
	}
	return " written by " + h.Writer
}

// told is in front of the keys of checkpoint.Info.Metadata under which a reader
// tells what a record says of itself, and keyVersion the one that makes it a record.
const (
	told       = "wick."
	keyVersion = told + "version"
)

// Tell puts the header into a checkpoint's metadata.
func Tell(h checkpoint.RecordHeader, info *checkpoint.Info) {
	if info.Metadata == nil {
		info.Metadata = map[string]string{}
	}
	info.Metadata[keyVersion] = strconv.Itoa(h.Version)
	for _, m := range Members(&h) {
		if *m.Text != "" {
			info.Metadata[told+m.Key] = *m.Text
		}
	}
	if h.Writer != "" {
		info.Producer = h.Writer
	}
}

// Told returns the header that a checkpoint's metadata tells; ok is false when
// the checkpoint is no record.
func Told(info checkpoint.Info) (h checkpoint.RecordHeader, ok bool) {
	version, err := strconv.Atoi(info.Metadata[keyVersion])
	h.Version = version
	for _, m := range Members(&h) {
		*m.Text = info.Metadata[told+m.Key]
	}
	return h, err == nil
}
