package remote

// readAhead finds out who reads in order, and how far to read ahead of them.
// Several do at once, such as the workers of a conversion, each in a part of the
// file of its own.
type readAhead struct {
	streams []stream
	clock   int // counts steps
}

// stream is one reader in order.
type stream struct {
	next   int64 // the block behind what it read last
	ahead  int64 // the block behind what was fetched for it
	window int64 // blocks to read ahead
	steps  int   // how often it went on
	used   int   // when it last did
}

const (
	patience   = 2 // steps before it counts as reading in order: a header is read in one
	maxStreams = 16
	maxWindow  = 32 // blocks: 8 MiB
	activeFor  = 16 // steps of others, after which a stream no longer counts
)

// moved tells of a read of blocks [i, j) and returns the blocks [from, to) that
// should be fetched for the reads to come, and whether the read was one in order.
// limit is how many blocks are kept.
func (r *readAhead) moved(i, j int64, limit int) (from, to int64, inOrder bool) {
	s := r.find(i)
	if s == nil {
		s = r.start(i)
	} else if j > s.next {
		s.steps++
	}
	inOrder = s.steps >= patience
	if j <= s.next { // the same block again
		return j, j, inOrder
	}
	r.clock++
	s.used, s.next, s.ahead = r.clock, j, max(s.ahead, j)
	if !inOrder {
		return j, j, false
	}
	s.window = min(max(2*s.window, 2*(j-i)), maxWindow, int64(limit/(2*r.active())))
	if s.ahead-j > s.window/2 {
		return j, j, true
	}
	from, to = s.ahead, j+s.window
	s.ahead = max(s.ahead, to)
	return from, to, true
}

// find returns the stream that a read at block i continues, nil if none: it may
// begin in the last block again, and anywhere in what was fetched for it.
func (r *readAhead) find(i int64) *stream {
	for k := range r.streams {
		if s := &r.streams[k]; i >= s.next-1 && i <= max(s.ahead, s.next) {
			return s
		}
	}
	return nil
}

// start begins a stream at block i, in the place of the one that waited longest.
// Workers that share a file out take turns at its next part: one who begins a
// little ahead of another goes on as that one did.
func (r *readAhead) start(i int64) *stream {
	fresh := stream{next: i, ahead: i}
	oldest := 0
	for k := range r.streams {
		s := &r.streams[k]
		if s.steps >= patience && i > s.next && i < s.ahead+2*maxWindow {
			fresh.steps, fresh.window = s.steps, s.window
		}
		if s.used < r.streams[oldest].used {
			oldest = k
		}
	}
	if len(r.streams) < maxStreams {
		r.streams = append(r.streams, fresh)
		return &r.streams[len(r.streams)-1]
	}
	r.streams[oldest] = fresh
	return &r.streams[oldest]
}

// active counts the streams that share what can be kept.
func (r *readAhead) active() int {
	n := 0
	for k := range r.streams {
		if r.clock-r.streams[k].used < activeFor {
			n++
		}
	}
	return max(n, 1)
}
