// Package checkpoint holds what every file format and every user of one have
// in common: where bytes come from ([Source]), how a format is added
// ([Format]), how much a stranger's file may ask for ([Limits]), what an opened
// file is ([Checkpoint]), and how a file is laid out and written ([Layout]).
package checkpoint

import (
	"io"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// Source is where a checkpoint's bytes are: a file, memory, a file of an
// [io/fs.FS], a remote object. It is safe for concurrent use.
type Source interface {
	// Name is what errors call it: the name the caller gave.
	Name() string
	// Size is the number of bytes.
	Size() int64
	io.ReaderAt
	io.Closer
}

// Folder is a [Source] that is a directory; its Size is 0 and ReadAt fails.
type Folder interface {
	Source
	Siblings
	// List returns the slash-separated names of the files below it, at most
	// Limits.Shards of them, sorted.
	List() ([]string, error)
}

// AllLister is an ability of a [Folder] whose List passes over what is no part of a
// checkpoint.
type AllLister interface {
	// ListAll is List with the files in hidden folders, and with what is no regular
	// file, such as a link to nothing: opening that fails. Links to folders that
	// are not below this one are in elsewhere, and are not entered; what links
	// inside lead to is listed where it is.
	ListAll() (files, elsewhere []string, err error)
}

// ListFolder returns a source as a folder and the names of the files below it. It
// fails with [fault.ErrUsage] on a file.
func ListFolder(src Source) (Folder, []string, error) {
	dir, ok := src.(Folder)
	if !ok {
		return nil, nil, fault.New(fault.Usage, "a file").Needs("a folder", "")
	}
	files, err := dir.List()
	return dir, files, err
}

// Siblings is an ability of a [Source] that has neighbours: the shards beside an
// index file, the files in a folder.
type Siblings interface {
	// Sibling opens the file of the given slash-separated relative name. It
	// refuses names that leave the folder. Symbolic links are followed.
	Sibling(name string) (Source, error)
}

// Lender is an ability of a [Source] whose bytes are all in memory: they can
// be used in place until it is closed and must not be written.
type Lender interface {
	Lend() []byte
}

// Pinned is an ability of a [Source] that can be closed or can change while it
// is read: its guard is put on every storage.
type Pinned interface {
	tensor.Guard
}

// Distant is an ability of a [Source], or of what [NewReaderAt] borrows, each
// read of which can be a round trip over a network. Formats put off what they can
// put off there: [IsDistant] asks. Such a source should keep what it read for
// the next read nearby.
type Distant interface {
	Distant() bool
}

// IsDistant reports whether reads of v, a [Source] or a reader, are round trips.
func IsDistant(v any) bool {
	d, ok := v.(Distant)
	return ok && d.Distant()
}
