package remote

import (
	"container/list"
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/wick-ml/wick/fault"
)

const (
	blockBytes  = 256 << 10 // of a block: a round trip's worth at 2.5 MB/s and 100 ms
	runBlocks   = 16        // of one request at most
	directBytes = 2 << 20   // from so many on a read goes straight to the caller's memory
	leastCache  = 4 << 20
	maxFetches  = 8 // requests at a time
)

// Ranges is a remote object that can be read by ranges. It must be safe for
// concurrent use.
type Ranges interface {
	// Range starts reading n bytes from off, all of which lie in the object. What
	// it returns may end early: then the rest is asked for. An error that
	// [Temporary] marks is met with another try. It must fail with
	// [fault.ErrChanged] when the object is no longer the one that was opened.
	Range(ctx context.Context, off, n int64) (io.ReadCloser, error)
}

// pool is what the sources of one checkpoint share, such as the shards behind an
// index: what they keep is bounded together.
type pool struct {
	limit int           // blocks
	slots chan struct{} // one for each request that may run

	mu    sync.Mutex // of the caches too
	kept  int        // blocks, waiting and filled
	lru   list.List  // filled ones, the least recently used first
	spare [][]byte   // memory of blocks that went
}

func newPool(bytes int64) *pool {
	p := &pool{limit: int(bytes / blockBytes), slots: make(chan struct{}, maxFetches)}
	p.lru.Init()
	return p
}

// cache is an [io.ReaderAt] over ranges. It keeps blocks, reads ahead of who
// reads in order, and fetches each block once, however many wait for it.
//
//	waiting   a fetch will fill it; readers wait on ready
//	filled    in lru, may go when nobody copies from it
//	failed    in no map any more; who waited for it has its error
type cache struct {
	*pool
	opts   *options
	ranges Ranges
	size   int64
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	closed bool
	blocks map[int64]*block // waiting and filled
	ahead  readAhead
}

// block is blockBytes of the object, fewer at its end.
type block struct {
	of    *cache
	index int64
	ready chan struct{} // closed when data or err is there
	data  []byte
	have  int // bytes of data that came
	err   error
	users int // who waits for it or copies from it

	passed bool // whether somebody who reads in order has it behind
	place  *list.Element
}

// newCache returns a cache whose reads end when ctx does.
func newCache(ctx context.Context, r Ranges, size int64, o *options) *cache {
	c := &cache{pool: o.pool, opts: o, ranges: r, size: size, blocks: map[int64]*block{}}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	return c
}

// Distant reports true.
func (c *cache) Distant() bool { return true }

// Close ends what is being fetched.
func (c *cache) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(closedError())
	c.wg.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.blocks { // all of them are filled, or failed and gone
		c.drop(b)
	}
	return nil
}

func closedError() error { return fault.New(fault.Closed, "a read after Close") }

// put keeps the first bytes of the object, which came without being asked for:
// whole blocks of them.
func (c *cache) put(head []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := int64(0); i*blockBytes < c.size; i++ {
		n := c.bytesOf(i)
		if int64(len(head)) < n {
			return
		}
		b := c.add(i)
		b.data, b.have = append(c.memory(), head[:n]...), int(n)
		close(b.ready)
		b.place = c.lru.PushBack(b)
		head = head[n:]
	}
}

// bytesOf is the size of a block.
func (c *cache) bytesOf(i int64) int64 { return min(blockBytes, c.size-i*blockBytes) }

// ReadAt reads as [io.ReaderAt] does.
func (c *cache) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= c.size && len(p) > 0 {
		return 0, io.EOF
	}
	short := int64(len(p)) > c.size-off
	if short {
		p = p[:c.size-off]
	}
	n, err := c.read(p, off)
	if err == nil && short {
		err = io.EOF
	}
	return n, err
}

func (c *cache) read(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		at, rest := off+int64(done), p[done:]
		i, j := at/blockBytes, (at+int64(len(rest))-1)/blockBytes+1
		if len(rest) >= directBytes {
			j = i + c.held(i)
		}
		var n int
		var err error
		if i == j {
			n, err = c.direct(rest, at)
		} else {
			n, err = c.copyBlocks(rest, at, i, min(j, i+runBlocks))
		}
		if done += n; err != nil {
			return done, err
		}
	}
	return done, nil
}

// held counts the blocks from i on that are here or on their way.
func (c *cache) held(i int64) (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.blocks[i+n] != nil {
		n++
	}
	return n
}

// direct reads into the caller's memory.
func (c *cache) direct(p []byte, off int64) (int, error) {
	d := &direct{p: p}
	err := c.download(d, off, int64(len(p)))
	return d.done, err
}

// direct is a destination in the caller's memory.
type direct struct {
	p    []byte
	done int
}

func (d *direct) room() []byte { return d.p[d.done:] }
func (d *direct) took(n int)   { d.done += n }

// copyBlocks copies what p covers of the blocks [i, j).
func (c *cache) copyBlocks(p []byte, off, i, j int64) (int, error) {
	blocks, err := c.want(i, j)
	if err != nil {
		return 0, err
	}
	defer c.done(blocks)
	n := 0
	for _, b := range blocks {
		select {
		case <-b.ready:
		case <-c.ctx.Done():
			return n, context.Cause(c.ctx)
		}
		if b.err != nil {
			return n, b.err
		}
		from := off + int64(n) - b.index*blockBytes
		n += copy(p[n:], b.data[from:])
	}
	return n, nil
}

// want returns blocks [i, j), in use, and has the missing ones fetched, and what
// lies ahead of a reader in order.
func (c *cache) want(i, j int64) ([]*block, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, closedError()
	}
	var wanted, missing []*block
	for k := i; k < j; k++ {
		b := c.blocks[k]
		switch {
		case b == nil:
			b = c.add(k)
			missing = append(missing, b)
		case b.place != nil:
			c.lru.MoveToBack(b.place)
		}
		b.users++
		wanted = append(wanted, b)
	}
	from, to, inOrder := c.ahead.moved(i, j, c.limit)
	if inOrder {
		c.pass(c.blocks[i-1])
		for _, b := range wanted[:len(wanted)-1] {
			b.passed = true
		}
	}
	for k := from; k < min(to, (c.size+blockBytes-1)/blockBytes) && c.makeRoom(); k++ {
		if c.blocks[k] == nil {
			missing = append(missing, c.add(k))
		}
	}
	c.start(missing)
	return wanted, nil
}

// pass lets a block go before those that were read ahead: who reads in order has
// it behind.
func (p *pool) pass(b *block) {
	if b != nil && b.users == 0 && b.place != nil {
		p.lru.MoveToFront(b.place)
	}
}

// start fetches waiting blocks, neighbours together.
func (c *cache) start(missing []*block) {
	for len(missing) > 0 {
		n := 1
		for n < len(missing) && n < runBlocks && missing[n].index == missing[n-1].index+1 {
			n++
		}
		run := slices.Clone(missing[:n])
		missing = missing[n:]
		c.wg.Go(func() { c.fetch(run) })
	}
}

// add makes a waiting block. It may go beyond the limit where a reader cannot do
// without.
func (c *cache) add(k int64) *block {
	c.makeRoom()
	b := &block{of: c, index: k, ready: make(chan struct{})}
	c.blocks[k] = b
	c.kept++
	return b
}

// makeRoom lets go of what was used least recently, by whichever source, until
// there is room for a block, and reports whether there is.
func (p *pool) makeRoom() bool {
	for e := p.lru.Front(); e != nil && p.kept >= p.limit; {
		b, next := e.Value.(*block), e.Next() //nolint:errcheck // the list holds blocks
		if b.users == 0 {
			p.drop(b)
		}
		e = next
	}
	return p.kept < p.limit
}

// drop forgets a block. Its memory is used again, unless somebody copies from it
// still, who reads while the source is closed.
func (p *pool) drop(b *block) {
	delete(b.of.blocks, b.index)
	p.kept--
	if b.place != nil {
		p.lru.Remove(b.place)
		b.place = nil
	}
	if b.users == 0 && b.data != nil {
		p.spare = append(p.spare, b.data[:0])
	}
}

// memory returns empty memory for a block.
func (p *pool) memory() []byte {
	if n := len(p.spare); n > 0 {
		m := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return m
	}
	return make([]byte, 0, blockBytes)
}

// done ends the use of blocks.
func (c *cache) done(blocks []*block) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range blocks {
		if b.users--; b.passed {
			c.pass(b)
		}
	}
}

// fetch fills neighbouring blocks by one request, or by several where they
// break off.
func (c *cache) fetch(run []*block) {
	first, last := run[0].index, run[len(run)-1].index
	f := &filling{cache: c, run: run}
	off := first * blockBytes
	err := c.download(f, off, last*blockBytes+c.bytesOf(last)-off)
	if err == nil && len(f.run) > 0 {
		err = io.ErrUnexpectedEOF // download promises that it is not
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range f.run {
		b.err = err
		c.drop(b) // who comes later may try again
		close(b.ready)
	}
}

// filling is a destination in blocks. They are ready one by one.
type filling struct {
	cache *cache
	run   []*block // those that are not ready
}

func (f *filling) room() []byte {
	b := f.run[0]
	n := f.cache.bytesOf(b.index)
	if b.data == nil {
		f.cache.mu.Lock()
		b.data = f.cache.memory()[:n]
		f.cache.mu.Unlock()
	}
	return b.data[b.have:]
}

func (f *filling) took(n int) {
	b := f.run[0]
	if b.have += n; b.have < len(b.data) {
		return
	}
	f.run = f.run[1:]
	f.cache.mu.Lock()
	defer f.cache.mu.Unlock()
	b.place = f.cache.lru.PushBack(b)
	close(b.ready)
}

// destination takes bytes in order.
type destination interface {
	room() []byte // for the next bytes; not empty while bytes are missing
	took(n int)
}

// fairShare is what an answer must bring to count as no failure at all.
const fairShare = 64 << 10

// download reads n bytes from off. It goes on where an answer broke off, at once
// if that had brought something, and gives up when several in a row did not.
func (c *cache) download(to destination, off, n int64) error {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
	for try := 0; n > 0; {
		came, err := c.attempt(to, off, n)
		off, n = off+came, n-came
		if n == 0 {
			return nil
		}
		var t *temporary
		switch {
		case c.ctx.Err() != nil:
			return context.Cause(c.ctx)
		case !errors.As(err, &t):
			return err
		case came >= fairShare:
			try = 0
			continue
		case try >= c.opts.retries:
			return plain(err)
		}
		if err := c.opts.wait(c.ctx, try, t.after); err != nil {
			return err
		}
		try++
	}
	return nil
}

// attempt is one request. An answer that ends early is a temporary error.
func (c *cache) attempt(to destination, off, n int64) (came int64, err error) {
	body, err := c.ranges.Range(c.ctx, off, n)
	if err != nil {
		return 0, err
	}
	defer func() { _ = body.Close() }() // what it could fail with, reading has said
	for came < n {
		room := to.room()
		k, err := body.Read(room[:min(int64(len(room)), n-came)])
		if k > 0 {
			to.took(k)
			came += int64(k)
		}
		if err != nil && came < n {
			return came, Temporary(lost(err))
		}
	}
	return came, nil
}
