// Package rows makes the rows of long listings in parallel and keeps their order.
package rows

import (
	"io"
	"runtime"
	"sync"
)

// Block is how many rows one worker makes at a time.
const Block = 1 << 11

// Maker appends the text of row i. A worker has one of its own, so that it may keep
// what it needs for the next row.
type Maker func(b []byte, i int) []byte

// Write writes the rows 0 to n-1.
func Write(w io.Writer, n int, newMaker func() Maker) error {
	blocks := make([][]byte, workers(n))
	makers := make([]Maker, len(blocks))
	for k := range makers {
		makers[k] = newMaker()
	}
	for at := 0; at < n; at += Block * len(blocks) {
		each(len(blocks), func(k int) {
			blocks[k] = blocks[k][:0]
			from := min(at+k*Block, n)
			for i := from; i < min(from+Block, n); i++ {
				blocks[k] = makers[k](blocks[k], i)
			}
		})
		for _, b := range blocks {
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// Visit calls visitors with the rows 0 to n-1, each worker's own with a part of them, and
// returns them all.
func Visit[V interface{ Row(i int) }](n int, newVisitor func() V) []V {
	visitors := make([]V, workers(n))
	for k := range visitors {
		visitors[k] = newVisitor()
	}
	each(len(visitors), func(k int) {
		for i := k * n / len(visitors); i < (k+1)*n/len(visitors); i++ {
			visitors[k].Row(i)
		}
	})
	return visitors
}

func workers(n int) int { return min(runtime.GOMAXPROCS(0), (n+Block-1)/Block) }

func each(n int, f func(k int)) {
	if n == 1 {
		f(0)
		return
	}
	var working sync.WaitGroup
	for k := range n {
		working.Go(func() { f(k) })
	}
	working.Wait()
}
