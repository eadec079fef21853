package numbers

import (
	"context"
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"

	"github.com/wick-ml/wick/tensor"
)

// Whole is what is exact of the statistics of integers, where a float64 rounds
// beyond 2^53.
type Whole struct {
	Min, Max, Sum *big.Int
}

// describeWhole reads a tensor of integers; ok is false for any other.
func describeWhole(ctx context.Context, t *tensor.Tensor, opts ...tensor.RunOption) (s *Stats, ok bool, err error) {
	signed := t.DType().Class() == tensor.IntClass
	if !signed && t.DType().Class() != tensor.UintClass {
		return nil, false, nil
	}
	wide := tensor.U64
	if signed {
		wide = tensor.I64
	}
	x, err := t.Cast(wide)
	if err != nil {
		return nil, true, err
	}
	c := counter{stats: &Stats{}, signed: signed}
	if _, err := tensor.Run(ctx, []tensor.Move{{From: x, To: tensor.Stream(&c)}}, opts...); err != nil {
		return nil, true, err
	}
	return c.done(), true, nil
}

// counter adds integers up in 128 bits, which is enough for any number of them that
// a file can hold.
type counter struct {
	stats    *Stats
	signed   bool
	min, max uint64
	hi, lo   uint64
	words    words
}

// Write takes the next bytes of little-endian words, in two's complement if they are
// signed.
func (c *counter) Write(p []byte) (int, error) { return c.words.write(p, c.add) }

// add takes whole words into account.
func (c *counter) add(p []byte) error {
	var floats [256]float64
	for len(p) > 0 {
		n := min(len(p)/8, len(floats))
		for i := range n {
			w := binary.LittleEndian.Uint64(p[8*i:])
			if i == 0 && c.stats.Count == 0 {
				c.min, c.max = w, w
			}
			c.one(w)
			floats[i] = c.float(w)
		}
		c.stats.Add(floats[:n])
		p = p[8*n:]
	}
	return nil
}

func (c *counter) one(w uint64) {
	if c.less(w, c.min) {
		c.min = w
	}
	if c.less(c.max, w) {
		c.max = w
	}
	var carry uint64
	c.lo, carry = bits.Add64(c.lo, w, 0)
	c.hi, _ = bits.Add64(c.hi, c.above(w), carry)
}

// above is the upper half of a word that is made 128 bits wide.
func (c *counter) above(w uint64) uint64 {
	if c.signed && int64(w) < 0 {
		return math.MaxUint64
	}
	return 0
}

func (c *counter) less(a, b uint64) bool {
	if c.signed {
		return int64(a) < int64(b)
	}
	return a < b
}

func (c *counter) float(w uint64) float64 {
	if c.signed {
		return float64(int64(w))
	}
	return float64(w)
}

func (c *counter) whole(w uint64) *big.Int {
	if c.signed {
		return big.NewInt(int64(w))
	}
	return new(big.Int).SetUint64(w)
}

// done settles the statistics: what can be exact is, and rounded once.
func (c *counter) done() *Stats {
	s := c.stats
	if s.Count == 0 {
		return s
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], c.hi)
	binary.BigEndian.PutUint64(b[8:], c.lo)
	sum := new(big.Int).SetBytes(b[:])
	if c.signed && int64(c.hi) < 0 {
		sum.Sub(sum, new(big.Int).Lsh(big.NewInt(1), 128))
	}
	s.Whole = &Whole{Min: c.whole(c.min), Max: c.whole(c.max), Sum: sum}
	s.Mean, _ = new(big.Rat).SetFrac(sum, big.NewInt(s.Count)).Float64()
	return s
}
