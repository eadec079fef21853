package pickle

import (
	"encoding/binary"
	"math"

	"github.com/wick-ml/wick/checkpoint"
)

// Slots says which slots of the memo a pickle reads again. Python's pickler
// remembers every tuple, list and object that it writes, in case it meets it
// once more; of a million tensors it reads back a handful of names. What is not
// read back need not be kept.
type Slots struct{ read bitmap }

// Skim reads a pickle without carrying it out and returns which slots of its memo
// are read. It returns nil, which stands for all of them, when the pickle is not
// sound, is over the limits, or writes a slot twice: [Load] says what is wrong.
func Skim(c *Cursor, limits checkpoint.Limits) *Slots {
	s := skimmer{cursor: c, limits: limits.Default()}
	for s.opcodes <= s.limits.Opcodes {
		s.quick()
		switch code, ok := s.step(); {
		case !ok || c.taken() > s.limits.PickleBytes:
			return nil
		case code == STOP:
			return &Slots{s.read}
		}
	}
	return nil
}

// quick passes the instructions that are short and lie in memory whole, up to the
// first one that could end the pickle or be wrong.
func (s *skimmer) quick() {
	c := s.cursor
	at := c.pos
	for ; at+longest <= len(c.buf); s.opcodes++ {
		b := c.buf[at : at+longest : at+longest]
		n := quickLen[b[0]]
		if n == 0 || !s.plain(b) {
			break
		}
		at += int(n)
	}
	c.pos = at
}

// plain notes what a short instruction does to the memo. It is false for one that
// is left to step.
func (s *skimmer) plain(b []byte) bool {
	switch Opcode(b[0]) {
	case STOP, MEMOIZE:
		return false
	case BINPUT, LONG_BINPUT, BINGET, LONG_BINGET:
		i := int64(b[1])
		if n := quickLen[b[0]]; n == longest {
			i = int64(binary.LittleEndian.Uint32(b[1:]))
		}
		if Opcode(b[0]) == BINPUT || Opcode(b[0]) == LONG_BINPUT {
			if s.written.has(i) || !s.written.near(i, s.count+1) {
				return false
			}
			return s.write(i)
		}
		return s.read.set(i, s.count)
	}
	return true
}

// reads reports whether slot i is read after it was written.
func (s *Slots) reads(i int64) bool { return s == nil || s.read.has(i) }

type skimmer struct {
	cursor        *Cursor
	limits        checkpoint.Limits
	written, read bitmap
	count         int64 // of slots written
	opcodes       int64
}

// step passes one instruction.
func (s *skimmer) step() (code Opcode, ok bool) {
	p, err := s.cursor.take(1)
	if err != nil {
		return 0, false
	}
	s.opcodes++
	code = Opcode(p[0])
	switch kind := instructions[code].argument; kind {
	case noArgument:
		ok = code.known() && (code != MEMOIZE || s.write(s.count))
	case oneLine, twoLines:
		ok = s.lines(code, kind)
	case bytes1, bytes4, bytes8, bytesInt4:
		ok = s.counted(kind)
	default:
		ok = s.fixed(code, kind)
	}
	return code, ok
}

func (s *skimmer) write(i int64) bool {
	s.count++
	return s.written.add(i, s.count)
}

func (s *skimmer) fixed(code Opcode, kind argument) bool {
	p, err := s.cursor.take(widths[kind])
	if err != nil {
		return false
	}
	switch code {
	case BINPUT:
		return s.write(int64(p[0]))
	case LONG_BINPUT:
		return s.write(int64(binary.LittleEndian.Uint32(p)))
	case BINGET:
		return s.read.set(int64(p[0]), s.count)
	case LONG_BINGET:
		return s.read.set(int64(binary.LittleEndian.Uint32(p)), s.count)
	}
	return true
}

func (s *skimmer) counted(kind argument) bool {
	p, err := s.cursor.take(widths[kind])
	if err != nil {
		return false
	}
	var n uint64
	for i, b := range p {
		n |= uint64(b) << (8 * i)
	}
	return n <= math.MaxInt64 && s.cursor.skip(int64(n)) == nil
}

// lines passes text. Protocol 0 spells the slots of its memo; its pickles are
// small and keep all of them.
func (s *skimmer) lines(code Opcode, kind argument) bool {
	if code == PUT || code == GET {
		return false
	}
	for range 1 + int(kind-oneLine) {
		if _, err := s.cursor.line(s.limits.StringBytes); err != nil {
			return false
		}
	}
	return true
}

// bitmap is a set of slots, as large as the slots that were written justify.
type bitmap []uint64

const sparse = 64 // slots from here on must be as dense as those of a pickler

// add adds i, which must be new; count is how many there are then.
func (b *bitmap) add(i, count int64) bool { return !b.has(i) && b.set(i, count) }

// set adds i. It is false for one that is far beyond count slots.
func (b *bitmap) set(i, count int64) bool {
	if !b.near(i, count) {
		return false
	}
	for i/64 >= int64(len(*b)) {
		*b = append(*b, 0)
	}
	(*b)[i/64] |= 1 << (i % 64)
	return true
}

// near reports whether i is not far beyond count slots.
func (b bitmap) near(i, count int64) bool { return i <= 4*count+sparse }

func (b bitmap) has(i int64) bool {
	return i/64 < int64(len(b)) && b[i/64]>>(i%64)&1 == 1
}
