package tensor

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"

	"github.com/wick-ml/wick/fault"
)

// checksum gathers the CRC-32 of a storage from the pieces that pass by.
type checksum struct {
	mu     sync.Mutex
	pieces []piece
	joined bool // sum and covers are those of the pieces: a million tensors can share one storage
	sum    uint32
	covers int64
}

type piece struct {
	offset, size int64
	sum          uint32
}

func (c *checksum) add(p piece) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pieces, c.joined = append(c.pieces, p), false
}

// whole returns the sum of all size bytes if the pieces cover them end to end.
// Of pieces at the same offset, read for several moves, the longest counts.
func (c *checksum) whole(size int64) (sum uint32, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.joined {
		c.join()
	}
	return c.sum, c.covers == size
}

func (c *checksum) join() {
	slices.SortFunc(c.pieces, func(a, b piece) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(b.size, a.size))
	})
	c.joined, c.sum, c.covers = true, 0, 0
	for _, p := range c.pieces {
		if p.offset == c.covers {
			c.sum = CombineCRC32(c.sum, p.sum, p.size)
			c.covers += p.size
		}
	}
}

// track notes the storages of a job.
func (r *run) track(j *job) {
	for i := range j.t.walks {
		if s := j.t.walks[i].storage; r.sums[s] == nil {
			r.sums[s] = &checksum{}
		}
	}
}

// sum notes bytes of a storage that just passed by.
func (r *run) sum(s *Storage, off int64, b []byte) {
	if s.spec.HasCRC {
		r.sums[s].add(piece{off, int64(len(b)), crc32.ChecksumIEEE(b)})
	}
}

// checkOf is the worst outcome over the storages of a job.
func (r *run) checkOf(j *job) (Check, error) {
	worst, known := Verified, false
	for s := range j.t.Storages() {
		got, want, state := r.sumOf(s)
		switch {
		case state == Absent:
			continue
		case state == Unverified:
			worst = Unverified
		case got != want && r.salvage:
			return Failed, nil
		case got != want:
			return Failed, wrongSum(s, got, want)
		}
		known = true
	}
	if !known {
		return Absent, nil
	}
	return worst, nil
}

// goOver notes the wrong checksums of a job, once for each storage.
func (r *run) goOver(j *job) {
	for s := range j.t.Storages() {
		got, want, state := r.sumOf(s)
		if state != Verified || got == want || r.over[s] {
			continue
		}
		if r.over == nil {
			r.over = map[*Storage]bool{}
		}
		r.over[s] = true
		r.stats.Wrong = append(r.stats.Wrong, Wrong{s, got, want})
	}
}

// lateSum is a checksum that was computed, and the one that was stored, of a
// storage in a stream.
type lateSum struct{ got, want uint32 }

// sumOf returns both checksums of a storage and how much is known of them:
// Absent, Unverified or, if they can be compared, Verified.
func (r *run) sumOf(s *Storage) (got, want uint32, state Check) {
	if late, ok := r.late[s]; ok {
		return late.got, late.want, Verified
	}
	if !s.spec.HasCRC {
		return 0, 0, Absent
	}
	got, ok := r.sums[s].whole(s.Size())
	if !ok {
		return 0, 0, Unverified
	}
	return got, s.spec.CRC32, Verified
}

// SumCRC32 returns the CRC-32 (IEEE) of what sum is that of, followed by b. For
// what a small program embeds it does without the tables that package hash/crc32
// allocates when it is first used: these take 8 KiB, more than a small record in all.
func SumCRC32(sum uint32, b []byte) uint32 {
	const few = 1 << 20
	if len(b) > few {
		return crc32.Update(sum, crc32.IEEETable, b)
	}
	slicingOnce.Do(makeSlicing)
	sum = ^sum
	for ; len(b) >= 8; b = b[8:] {
		sum ^= binary.LittleEndian.Uint32(b)
		sum = slicing[7][sum&255] ^ slicing[6][sum>>8&255] ^ slicing[5][sum>>16&255] ^ slicing[4][sum>>24] ^
			slicing[3][b[4]] ^ slicing[2][b[5]] ^ slicing[1][b[6]] ^ slicing[0][b[7]]
	}
	for _, c := range b {
		sum = slicing[0][byte(sum)^c] ^ sum>>8
	}
	return ^sum
}

// slicing holds at k the sums of each byte with k zero bytes behind it: eight bytes
// are summed at a time.
var (
	slicing     [8][256]uint32
	slicingOnce sync.Once
)

func makeSlicing() {
	slicing[0] = *crc32.IEEETable
	for k := 1; k < len(slicing); k++ {
		for i, sum := range slicing[k-1] {
			slicing[k][i] = slicing[0][byte(sum)] ^ sum>>8
		}
	}
}

func wrongSum(s *Storage, got, want uint32) error {
	return s.locate(fault.New(fault.Checksum, fmt.Sprintf("CRC-32 is %08x", got))).
		Needs(fmt.Sprintf("%08x", want), "the file is damaged: get it again")
}

// extraChecks reads, under [Verify], the storages whose sums the moves left open.
func (r *run) extraChecks() {
	if !r.verify || r.ctx.Err() != nil {
		return
	}
	var tasks []task
	for s, c := range r.sums {
		if _, ok := c.whole(s.Size()); s.spec.HasCRC && !ok {
			tasks = append(tasks, &sumTask{s})
		}
	}
	r.work(tasks)
}

// sumTask reads one whole storage for its checksum alone.
type sumTask struct{ s *Storage }

func (t *sumTask) size() int64 { return t.s.Size() }

func (t *sumTask) do(w *worker) {
	if err := t.read(w); err != nil {
		w.failUsers(t.s, err)
	}
}

func (t *sumTask) read(w *worker) error {
	if t.s.Sequential() {
		in, err := w.open(t.s)
		if err != nil {
			return err
		}
		defer in.Close()
		return w.pass(t.s, in, nil)
	}
	buf := w.source(int(min(t.s.Size(), w.step)))
	for off := int64(0); off < t.s.Size() && w.ctx.Err() == nil; off += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), t.s.Size()-off)]
		if _, err := t.s.readFull(buf, off); err != nil {
			return err
		}
		w.run.read(int64(len(buf)))
		w.run.sum(t.s, off, buf)
	}
	return nil
}

// failUsers gives an error to every move that takes bytes from s.
func (w *worker) failUsers(s *Storage, err error) {
	for i, j := range w.run.jobs {
		if j == nil {
			continue
		}
		for used := range j.t.Storages() {
			if used == s {
				w.run.failMove(i, err)
			}
		}
	}
}

// CombineCRC32 returns the CRC-32 (IEEE) of two runs of bytes laid end to end:
// a is the sum of the first, b that of the second, which has n bytes. A CRC is
// linear over GF(2): appending zero bytes multiplies it with a matrix, one for
// each power of two of them (the method of zlib's crc32_combine).
func CombineCRC32(a, b uint32, n int64) uint32 {
	if a == 0 || n <= 0 {
		return a ^ b
	}
	for k := 0; n > 0; k, n = k+1, n>>1 {
		if n&1 != 0 {
			a = zeroBytes()[k].times(a)
		}
	}
	return a ^ b
}

type gf2 [32]uint32

func (m *gf2) times(v uint32) (sum uint32) {
	for i := 0; v != 0; i, v = i+1, v>>1 {
		if v&1 != 0 {
			sum ^= m[i]
		}
	}
	return sum
}

func (m *gf2) squared() (out gf2) {
	for i := range m {
		out[i] = m.times(m[i])
	}
	return out
}

// zeroBytes holds at k the matrix that advances a CRC-32 over 2^k zero bytes.
// Squaring takes longer than all else here, so it is done once.
var zeroBytes = sync.OnceValue(func() *[63]gf2 {
	var bit gf2
	bit[0] = crc32.IEEE
	for i := 1; i < 32; i++ {
		bit[i] = 1 << (i - 1)
	}
	for range 3 {
		bit = bit.squared()
	}
	powers := new([63]gf2)
	for k := range powers {
		powers[k] = bit
		bit = bit.squared()
	}
	return powers
})
