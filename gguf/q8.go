package gguf

import (
	"encoding/binary"
	"io"
	"math"

	"github.com/wick-ml/wick/tensor"
)

// The shape of a block of Q8_0: block_q8_0 in ggml's ggml-common.h.
const (
	q8Elements = 32
	q8Bytes    = 2 + q8Elements // the scale, float16, and the numbers
)

// Q8 appends the Q8_0 form of one block of 32 numbers to b: a scale as float16,
// and 32 integers of 8 bits that are multiples of it. It rounds halves away from
// zero and is equal, bit for bit, to quantize_row_q8_0_ref in ggml's ggml-quants.c
// for finite numbers; a block with a NaN or an infinity has such a scale and
// zeros.
func Q8(b []byte, block *[q8Elements]float32) []byte {
	most := uint32(0) // bits of the largest magnitude; a NaN is larger than an infinity
	for _, v := range block {
		most = max(most, math.Float32bits(v)&^(1<<31))
	}
	d, inverse := math.Float32frombits(most)/127, float32(0)
	if d != 0 {
		inverse = 1 / d
	}
	var out [q8Bytes]byte
	binary.LittleEndian.PutUint16(out[:], uint16(tensor.Float16From(d)))
	if most < infinity && math.Float32bits(inverse) < infinity {
		for i, v := range block {
			out[q8Bytes-q8Elements+i] = byte(round(float32(v * inverse)))
		}
	}
	return append(b, out[:]...)
}

const infinity = 0x7F800000 // its bits

// round is roundf of C for numbers of a block, from -127 to 127: in float64 the
// half is added without an error. It has no branch, which signs would mislead.
func round(v float32) int8 { return int8(float64(v) + math.Copysign(0.5, float64(v))) }

// q8Writer turns packed little-endian float32 into blocks.
type q8Writer struct {
	w       io.Writer
	pending []byte // of an unfinished block
	out     []byte
}

func newQ8Writer(w io.Writer) io.WriteCloser { return &q8Writer{w: w} }

// Write takes float32 and writes the blocks that they complete.
func (q *q8Writer) Write(p []byte) (int, error) {
	const in = 4 * q8Elements
	n := len(p)
	q.out = q.out[:0]
	if len(q.pending) > 0 {
		take := min(in-len(q.pending), len(p))
		q.pending = append(q.pending, p[:take]...)
		p = p[take:]
		if len(q.pending) < in {
			return n, nil
		}
		q.block(q.pending)
		q.pending = q.pending[:0]
	}
	for ; len(p) >= in; p = p[in:] {
		q.block(p[:in])
	}
	q.pending = append(q.pending, p...)
	if _, err := q.w.Write(q.out); err != nil {
		return 0, err
	}
	return n, nil
}

func (q *q8Writer) block(p []byte) {
	var block [q8Elements]float32
	for i := range block {
		block[i] = math.Float32frombits(binary.LittleEndian.Uint32(p[4*i:]))
	}
	q.out = Q8(q.out, &block)
}

// Close ends the tensor, whose rows are whole blocks.
func (q *q8Writer) Close() error { return nil }
