package pytorch

import (
	"context"
	"errors"
	"math"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
)

// innerFile is the name of a checkpoint in a byte string, for errors and
// storages.
const innerFile = "bytes in "

// loadFromBytes is _load_from_bytes(bytes), which calls torch.load: with a file
// of stacked pickles for each storage that was pickled without torch.save around
// it (torch/storage.py, __reduce__). What it holds stands in its place. Bytes
// that are no checkpoint, or a damaged one, stay an opaque call.
func loadFromBytes(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 1 {
		return nil, false
	}
	if !l.spendInner(byteLength(args[0])) { // before anything is copied
		return nil, false
	}
	data, ok := rawBytes(args[0], math.MaxInt64)
	if !ok {
		return nil, false
	}
	src := checkpoint.NewBytes(innerFile+l.record, data)
	inner := &loader{limits: l.limits, present: src.Size(), inner: l.inner, within: true}
	var root nested.Value
	var err error
	switch {
	case legacyFormat{}.Sniff(data, nil):
		root, err = newLegacyOpener(src, &checkpoint.Env{Limits: l.limits}, inner, pickle.NewCursor(data)).read()
	case zipFormat{}.Sniff(data, nil):
		root, err = openInnerZip(src, inner)
	default:
		return nil, false
	}
	l.inner = inner.inner
	if err != nil {
		return nil, false
	}
	l.waiting = l.waiting || inner.bare
	l.globals = append(l.globals, inner.globals...)
	return root, true
}

// openInnerZip reads what torch.save wrote, stored, not deflated: nothing in it
// is larger than what is there.
func openInnerZip(src checkpoint.Source, l *loader) (nested.Value, error) {
	limits := l.limits
	limits.Inflate = 1
	a, err := readArchive(src, limits)
	if err != nil {
		return nil, err
	}
	if err := a.prove(); err != nil {
		return nil, err
	}
	top, found, err := a.top()
	if err != nil || !found {
		return nil, firstFault(errors.Join(err, errNoPickle))
	}
	z := &zipOpener{ctx: context.Background(), archive: a, env: &checkpoint.Env{Limits: limits}, top: top}
	l.storage = z.loader().storage
	return z.tree(l)
}

var errNoPickle = errors.New("an archive without data.pkl")

// spendInner reports whether so many more bytes may be opened inside of the
// pickle: all together a few times as many as the file has, however often a call
// repeats and however deep checkpoints lie in one another.
func (l *loader) spendInner(n int64) bool {
	n = max(n, leastInner)
	if l.inner == 0 {
		l.inner = max(innerShare*l.present, minInner) + 1
	}
	if n >= l.inner {
		return false
	}
	l.inner -= n
	return true
}

const (
	innerShare = 4       // bytes that may be opened for each byte of the file
	minInner   = 4 << 20 // and at least this many, for streams, whose size nobody knows
	leastInner = 4 << 10 // what opening the smallest one counts as
)

// byteLength is about how many bytes a value has.
func byteLength(v nested.Value) int64 {
	switch b := v.(type) {
	case nested.Bytes:
		return int64(len(b))
	case nested.ByteArray:
		return int64(len(b))
	case nested.String:
		return int64(len(b))
	}
	return 0
}
