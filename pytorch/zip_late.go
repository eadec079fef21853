package pytorch

import (
	"io"
	"sort"
	"sync"

	"github.com/wick-ml/wick/checkpoint"
)

// lateProof puts off the proof of local headers where each read is a round
// trip: ten thousand headers far apart would be ten thousand of them, and
// listing a file needs none. A record is proved before its first byte is handed
// out, when its header comes in the same block as its data.
//
// Until then only the directory is known, and not where the data begin. The
// directory leaves little choice, so storages get the place that is to be
// expected, and reads of a storage through lateProof go to the proved one,
// whether the two are equal or not.
type lateProof struct {
	*archive
	mu     sync.Mutex
	proved map[*entry]proof
}

// proof is what reading a local header showed.
type proof struct {
	data int64
	err  error
}

// locate proves an entry and returns where its data begin. Only a verdict on
// the header is kept: after a failed read the next call reads again.
func (l *lateProof) locate(e *entry) (int64, error) {
	l.mu.Lock()
	p, ok := l.proved[e]
	l.mu.Unlock()
	if ok {
		return p.data, p.err
	}
	k := l.at(e.header)
	head := make([]byte, min(int64(lenLocal+len(e.name)+headerSlack), l.directory-e.header))
	if err := readFull(l.src, head, e.header); err != nil {
		return -1, err
	}
	p.data, p.err = l.proveOne(e, head, l.limit(k))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proved[e] = p
	return p.data, p.err
}

// at returns the number, by place, of the entry that off lies in or behind, -1
// in front of the first.
func (l *lateProof) at(off int64) int {
	return sort.Search(len(l.byPlace), func(k int) bool { return l.entries[l.byPlace[k]].header > off }) - 1
}

// storageAlignment is where torch lets storages begin
// (caffe2/serialize/inline_container.h, kFieldAlignment).
const storageAlignment = 64

// expected is where the data of the k-th entry by place should begin, as far as
// the directory tells: they end at the next header, or at a data descriptor in
// front of it. It lies inside the entry's own bytes, and with all of its data.
func (a *archive) expected(k int) int64 {
	e := &a.entries[a.byPlace[k]]
	least, last := e.header+lenLocal+int64(len(e.name)), a.limit(k)-e.stored
	if e.flags&flagDescriptor == 0 {
		return last
	}
	for _, descriptor := range []int64{lenDescriptor, 16, 20, 12} {
		if at := last - descriptor; at >= least && at%storageAlignment == 0 {
			return at
		}
	}
	return least
}

// ReadAt reads where storages expect their bytes. What lies between records is
// zero.
func (l *lateProof) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		n, err := l.readOne(p[done:], off+int64(done))
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// readOne reads bytes of one entry, or the gap in front of one.
func (l *lateProof) readOne(p []byte, off int64) (int, error) {
	k := l.at(off)
	if off < 0 || off >= l.directory {
		return 0, io.EOF
	}
	next := l.directory
	if k+1 < len(l.byPlace) {
		next = l.expected(k + 1)
	}
	if k >= 0 {
		e := &l.entries[l.byPlace[k]]
		begin := l.expected(k)
		switch {
		case off < begin:
			next = begin
		case off < begin+e.stored:
			data, err := l.locate(e)
			if err != nil {
				return 0, err
			}
			n := min(int64(len(p)), begin+e.stored-off)
			return l.src.ReadAt(p[:n], data+off-begin)
		}
	}
	n := min(int64(len(p)), next-off)
	clear(p[:n])
	return int(n), nil
}

// Distant repeats what the source is.
func (l *lateProof) Distant() bool { return true }

// putOff arranges for late proofs where reads are far, and reports whether it did.
func (a *archive) putOff() bool {
	if a.late == nil && checkpoint.IsDistant(a.src) {
		a.late = &lateProof{archive: a, proved: map[*entry]proof{}}
	}
	return a.late != nil
}

// data is where the bytes of an entry begin that is usable.
func (a *archive) data(e *entry) int64 {
	if a.late == nil {
		return e.data
	}
	a.late.mu.Lock()
	defer a.late.mu.Unlock()
	if p, ok := a.late.proved[e]; ok {
		return p.data
	}
	return -1
}
