package shards

import (
	"slices"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// Listed returns an index of shards as the folder of the files that it names, for
// what reads files rather than tensors. The folder owns src. A source that is no index, or one without a folder
// around it, is returned as it is. An index that cannot be read fails as opening it
// does; src is then still the caller's.
func Listed(src checkpoint.Source, limits checkpoint.Limits) (checkpoint.Source, error) {
	near, ok := src.(checkpoint.Siblings)
	if _, isFolder := src.(checkpoint.Folder); isFolder || !ok {
		return src, nil
	}
	head, err := checkpoint.Head(src)
	if err != nil || !looksLikeIndex(head) {
		return src, err
	}
	x, err := readIndex(src, limits.Default())
	if err != nil {
		return src, fault.InFile(err, src.Name())
	}
	return listed{src, near, x.files}, nil
}

// listed is an index and the shards that it names.
type listed struct {
	checkpoint.Source
	checkpoint.Siblings
	files []string
}

// List returns the names of the shards, sorted.
func (l listed) List() ([]string, error) { return slices.Sorted(slices.Values(l.files)), nil }
