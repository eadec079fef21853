package crc

import (
	"cmp"
	"hash/crc32"
	"slices"
	"sync"
)

// Pieces gathers the sum of a run of bytes from pieces of it that pass by in any
// order. The zero Pieces is ready for use. It is safe for concurrent use.
type Pieces struct {
	mu     sync.Mutex
	list   []piece
	joined bool // sum and covers are those of the list: a million tensors can share one run
	sum    uint32
	covers int64
}

type piece struct {
	offset, size int64
	sum          uint32
}

// Add notes bytes of the run that begin at offset.
func (p *Pieces) Add(offset int64, b []byte) {
	one := piece{offset, int64(len(b)), crc32.ChecksumIEEE(b)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list, p.joined = append(p.list, one), false
}

// Sum returns the sum of all size bytes of the run, ok false unless the pieces cover
// them end to end. Of pieces at the same offset the longest counts.
func (p *Pieces) Sum(size int64) (sum uint32, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.joined {
		p.join()
	}
	return p.sum, p.covers == size
}

func (p *Pieces) join() {
	slices.SortFunc(p.list, func(a, b piece) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(b.size, a.size))
	})
	p.joined, p.sum, p.covers = true, 0, 0
	for _, one := range p.list {
		if one.offset == p.covers {
			p.sum = Combine(p.sum, one.sum, one.size)
			p.covers += one.size
		}
	}
}
