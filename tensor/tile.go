package tensor

import "slices"

// Strided and joined tensors move in tiles: boxes of the tensor whose packed
// elements fit a worker's buffer.
//
//	storage, by columns        tensor, by rows
//	┌──┬──┬──┬──┐              ┌───────┬───────┐
//	│██│██│  │  │  one read    │███████│       │  one write
//	│██│██│  │  │  for each    │███████│       │  for each
//	│  │  │  │  │  column of   ├───────┼───────┤  row of the
//	│  │  │  │  │  the tile    │       │       │  tile
//	└──┴──┴──┴──┘              └───────┴───────┘
//
// A tile as high as it is wide has the fewest of both: of a matrix that is
// cut into bands of rows instead, each element can be a read of its own.

// tileBytes is how much of a tensor one task moves.
const tileBytes = 8 << 20

// What one read, one write and one copy in memory cost, against each other.
const (
	readCost  = 4
	writeCost = 40
	copyCost  = 1
)

// tileTask moves a box of a strided or joined tensor, whose first element is
// at lo of the job's.
type tileTask struct {
	job *job
	t   *Tensor
	lo  []int
}

func (t *tileTask) size() int64 { return t.t.Bytes() }

func (t *tileTask) do(w *worker) {
	if err := w.moveTile(t.job, t.t, t.lo); err != nil {
		w.run.failMove(t.job.index, err)
	}
}

// appendTiles cuts a strided job into tasks, for workers with that much room.
func appendTiles(out []task, j *job, t *Tensor, lo []int, room int64) []task {
	var parts []tile
	if t.Bytes() > max(tileBytes, room) {
		parts = j.cut(t, lo, room)
	}
	if parts == nil {
		return append(out, &tileTask{j, t, lo})
	}
	for _, part := range parts {
		out = appendTiles(out, j, part.t, part.lo, room)
	}
	return out
}

// moveTile moves a box of a job whose first element is at lo.
func (w *worker) moveTile(j *job, t *Tensor, lo []int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	room := w.roomFor(j, t)
	if t.sourceBytes() <= room {
		return w.fillTile(j, t, lo)
	}
	parts := j.cut(t, lo, room)
	if parts == nil {
		return w.fillTile(j, t, lo)
	}
	for _, part := range parts {
		if err := w.moveTile(j, part.t, part.lo); err != nil {
			return err
		}
	}
	return nil
}

// roomFor is how many bytes of a box a worker can move at once.
func (w *worker) roomFor(j *job, t *Tensor) int64 {
	if len(t.walks) > 1 && j.to.mem == nil {
		return min(w.room, w.step) // put together in a buffer of its own
	}
	return w.room
}

// sourceBytes is the size of a box's elements before or after conversion,
// whichever is more.
func (t *Tensor) sourceBytes() int64 {
	n := t.Bytes()
	for i := range t.walks {
		n = max(n, t.Len()*int64(t.walks[i].dtype.Size()))
	}
	return n
}

// cut halves a box, roughly, where its halves cost the least, and so that the
// pieces that come of halving on just fill room; nil if it cannot be halved. A
// writer that takes the elements in order gets pieces along the outermost dimension.
func (j *job) cut(t *Tensor, lo []int, room int64) (parts []tile) {
	least := int64(0)
	for d, n := range t.shape {
		if n < 2 {
			continue
		}
		at := middle(n, t.sourceBytes(), room)
		first, err := t.Narrow(d, 0, at)
		second, err2 := t.Narrow(d, at, n)
		if err != nil || err2 != nil {
			continue
		}
		if c := j.cost(first) * int64(n) / int64(at); parts == nil || c < least {
			behind := slices.Clone(lo)
			behind[d] += at
			parts, least = []tile{{first, lo}, {second, behind}}, c
		}
		if j.to.stream != nil {
			break
		}
	}
	return parts
}

// middle is where n indices of bytes in all are cut so that both sides are
// whole numbers of pieces that fit room, if one index does.
func middle(n int, bytes, room int64) int {
	pieces := int((bytes + room - 1) / room)
	each := (n + max(pieces, 1) - 1) / max(pieces, 1)
	if pieces < 2 || each < 2 {
		return n / 2
	}
	return min((pieces+1)/2*each, n-1)
}

// cost estimates the reads and writes of a box.
func (j *job) cost(t *Tensor) (c int64) {
	each := int64(writeCost)
	if j.to.mem != nil {
		each = copyCost
	}
	for i := range t.walks {
		if t.walks[i].storage.spec.File != nil {
			c += readCost * planGather(loopsOf(&t.walks[i]), int64(t.walks[i].dtype.Size())).reads
		}
	}
	return c + each*newRuns(j.t.shape, nil, t.shape, 1).count()
}

// tile is a box of a tensor that begins at lo of it.
type tile struct {
	t  *Tensor
	lo []int
}

// fillTile moves a box that fits. Several walks are put together first where
// their elements would be many small writes.
func (w *worker) fillTile(j *job, t *Tensor, lo []int) error {
	if len(t.walks) == 1 || j.to.mem != nil {
		for i := range t.walks {
			if err := w.moveWalk(j, &t.walks[i], lo); err != nil {
				return err
			}
		}
		return nil
	}
	out := w.buf(tileBuf, int(t.Bytes()))
	for i := range t.walks {
		if err := w.fillWalk(j, t, &t.walks[i], out); err != nil {
			return err
		}
	}
	r := newRuns(j.t.shape, lo, t.shape, t.dtype.Size())
	for len(out) > 0 {
		at, n := r.next(len(out))
		if err := j.to.emit(at, out[:n]); err != nil {
			return err
		}
		w.run.delivered(int64(n))
		out = out[n:]
	}
	return nil
}

// moveWalk reads one walk of a box that begins at lo, and gives its elements to
// the sink.
func (w *worker) moveWalk(j *job, wk *walk, lo []int) error {
	packed, err := w.pack(wk)
	if err != nil {
		return err
	}
	from := slices.Clone(lo)
	for d := range from {
		from[d] += wk.lo[d]
	}
	in, out := wk.dtype.Size(), j.t.dtype.Size()
	r := newRuns(j.t.shape, from, wk.size, out)
	for len(packed) > 0 {
		at, n := r.next(len(packed) / in * out)
		n = n / out * in
		if err := w.hand(j, wk, at, packed[:n], true); err != nil {
			return err
		}
		packed = packed[n:]
	}
	return nil
}

// fillWalk reads one walk and stores its converted elements in its box of out,
// which is all of t.
func (w *worker) fillWalk(j *job, t *Tensor, wk *walk, out []byte) error {
	packed, err := w.pack(wk)
	if err != nil {
		return err
	}
	elements, loss, err := w.convert(wk, packed, true, j.to.order(), nil)
	if err != nil {
		return err
	}
	j.lose(loss)
	r := newRuns(t.shape, wk.lo, wk.size, t.dtype.Size())
	for len(elements) > 0 {
		at, n := r.next(len(elements))
		copy(out[at:], elements[:n])
		elements = elements[n:]
	}
	return nil
}

// runs goes through the elements of a box of a row-major tensor: they lie in
// runs of its bytes.
type runs struct {
	shape, lo, size []int // of the dimensions that tell runs apart, and the one inside
	index           []int
	unit            int // bytes of one index of the last of them
	left            int // of the run that was begun
	at              int64
}

func newRuns(shape, lo, size []int, elem int) *runs {
	dims := len(shape)
	for dims > 1 && size[dims-1] == shape[dims-1] {
		dims--
		elem *= shape[dims]
	}
	r := &runs{shape: shape[:dims], lo: lo, size: size[:dims], unit: elem}
	r.index = make([]int, max(dims-1, 0))
	return r
}

// count is how many runs there are.
func (r *runs) count() int64 { return product(r.size[:len(r.index)]) }

// next returns where the next bytes of the box lie in the tensor, at most most
// of them. Behind the last run it begins again.
func (r *runs) next(most int) (at int64, n int) {
	if r.left == 0 {
		r.begin()
	}
	at, n = r.at, min(most, r.left)
	r.at += int64(n)
	if r.left -= n; r.left == 0 {
		advance(r.index, r.size)
	}
	return at, n
}

func (r *runs) begin() {
	last := len(r.index)
	if len(r.shape) == 0 { // a scalar
		r.at, r.left = 0, r.unit
		return
	}
	at := int64(0)
	for d, i := range r.index {
		at = at*int64(r.shape[d]) + int64(r.lo[d]+i)
	}
	r.at = (at*int64(r.shape[last]) + int64(r.lo[last])) * int64(r.unit)
	r.left = r.size[last] * r.unit
}
