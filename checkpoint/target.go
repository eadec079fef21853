package checkpoint

import (
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// Target is a file format that a tree can be written in. Adding one is writing
// one of these and naming it in the list of the root package.
type Target interface {
	// Name is the format's short name, as [Format.Name] says it.
	Name() string
	// Extensions are the endings of file names that ask for this format, with
	// their dots: ".safetensors", ".cbor.gz".
	Extensions() []string
	// Plan lays the tree out from metadata alone. Everything that the format
	// cannot hold is found here, before a byte moves: an [fault.ErrUnsupported],
	// [fault.ErrCollision] or [fault.ErrLimit] error that names the place in the
	// tree and the cure. The tree must not change until the output is written.
	Plan(root nested.Value, opts TargetOptions) (*Output, error)
}

// TargetOptions is what a caller may ask of a [Target]. The zero value asks for
// the format's plain form.
type TargetOptions struct {
	// Name is the file name of the output without folders, from which shards
	// take theirs.
	Name string
	// Limits bounds the walk through the tree. Zero fields have their defaults.
	Limits Limits
	// Record makes a record of the file: it holds all of the tree, says what
	// wrote it, and has checksums. Formats that cannot do without are records
	// always. Nil asks for the tensors alone.
	Record *RecordHeader
	// Metadata is free text for formats that have room for it.
	Metadata map[string]string
	// ShardBytes is the most that one file should hold, bytes; 0 is no bound.
	// A tensor is never cut, so a large one can make its file larger.
	ShardBytes int64
	// Align is the alignment of the first tensor byte in the file, a power of
	// two of at least 8, for formats that leave a choice; 0 is the format's own.
	Align int
	// DType is the dtype, or the form of its own, that a [Caster] stores tensors
	// of floats in; "" keeps theirs. Other targets never see one.
	DType string
	// Beside reads files that lie with the weights, such as a model's config; nil
	// where there is no such place.
	Beside Beside
}

// Caster is an ability of a [Target] that chooses by itself in which form
// tensors of floats are stored, as formats of quantized weights do. It writes no
// records.
type Caster interface {
	// CheckDType fails with [fault.ErrUsage] unless the target can store floats
	// in the dtype or form of this name.
	CheckDType(name string) error
}

// RecordHeader is what a record file says of itself.
type RecordHeader struct {
	Version   int    // of the record's own form; written by wick, 0 in requests
	Type      string // name of the Go type that the record was made from, "" if none
	Precision string // "full", "half", "bfloat16", "double"; "" in requests for what the tensors have, in files for mixed ones
	Writer    string // what wrote it, such as "wick 0.1.0"
}

// Output is what a [Target] plans to write: one file, or shards and their
// index.
type Output struct {
	Files  []OutputFile
	Report Report
}

// OutputFile is one file of an [Output].
type OutputFile struct {
	Name   string // without folders; "" is the file that the caller named
	Layout *Layout
	Index  bool // it only lists the other files
}

// Report says what a written file holds and what it does not.
type Report struct {
	Tensors int   // leaves written
	Bytes   int64 // their packed bytes
	LeftOut []LeftOut
	Copies  []Copy
	Notes   []string // what else a person should know, a clause each
}

// LeftOut is a value of the tree that the file has no room for.
type LeftOut struct {
	Path string // flat name
	Type string // Python's name of its type
}

// Copy is a tensor that was one with another and is written a second time.
type Copy struct{ Name, Of string }

// FindTarget returns the target whose extension the file name ends with, the
// longest if there are several; letters may be upper case. It fails with
// [fault.ErrUsage] when there is none.
func FindTarget(targets []Target, file string) (Target, error) {
	var best Target
	longest, known := 0, []string{}
	for _, t := range targets {
		for _, ext := range t.Extensions() {
			known = append(known, ext)
			if len(ext) > longest && strings.HasSuffix(strings.ToLower(file), ext) {
				best, longest = t, len(ext)
			}
		}
	}
	if best == nil {
		return nil, fault.New(fault.Usage, "an output name that says no format").In(file).
			Needs("one of "+strings.Join(known, " "), "name the format with wick.As")
	}
	return best, nil
}
