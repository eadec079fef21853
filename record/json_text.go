package record

import (
	"encoding/binary"
	"io"
	"math"
	"strconv"

	"github.com/wick-ml/wick/internal/strictjson"
	"github.com/wick-ml/wick/tensor"
)

// spelling is how JSON says the elements of a dtype: numbers, or text for what
// is no number. No bit is lost.
type spelling struct {
	size  int                                                  // bytes of one element
	write func(dst, packed []byte) []byte                      // appends one element
	read  func(dst []byte, r *strictjson.Reader) (bool, error) // fills one element; false if it is out of range
}

// spellingOf returns the spelling of a dtype and how many elements of it make
// one of the tensor's.
func spellingOf(d tensor.DType) (s spelling, parts int, ok bool) {
	by, parts, ok := carrier(d)
	if !ok {
		return spelling{}, 0, false
	}
	if d == tensor.BF16 || d == tensor.Bool {
		by = d
	}
	switch by {
	case tensor.F64, tensor.F32, tensor.F16, tensor.BF16:
		s = floatSpelling(by)
	case tensor.Bool:
		s = boolSpelling
	default:
		s = intSpelling(by)
	}
	return s, parts, true
}

func load(packed []byte) uint64 {
	switch len(packed) {
	case 1:
		return uint64(packed[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(packed))
	case 4:
		return uint64(binary.LittleEndian.Uint32(packed))
	default:
		return binary.LittleEndian.Uint64(packed)
	}
}

func store(dst []byte, bits uint64) {
	for i := range dst {
		dst[i] = byte(bits >> (8 * i))
	}
}

func intSpelling(d tensor.DType) spelling {
	size := d.Size()
	signed := d.Class() == tensor.IntClass
	return spelling{
		size: size,
		write: func(dst, packed []byte) []byte {
			bits := load(packed)
			if signed {
				return strconv.AppendInt(dst, int64(bits<<(64-8*size))>>(64-8*size), 10)
			}
			return strconv.AppendUint(dst, bits, 10)
		},
		read: func(dst []byte, r *strictjson.Reader) (bool, error) {
			text, err := r.Number()
			if err != nil {
				return false, err
			}
			if signed {
				n, err := strconv.ParseInt(string(text), 10, 8*size)
				store(dst, uint64(n))
				return err == nil, nil
			}
			n, err := strconv.ParseUint(string(text), 10, 8*size)
			store(dst, n)
			return err == nil, nil
		},
	}
}

// boolSpelling keeps the bytes that are neither 0 nor 1 as numbers.
var boolSpelling = spelling{
	size: 1,
	write: func(dst, packed []byte) []byte {
		if packed[0] > 1 {
			return strconv.AppendUint(dst, uint64(packed[0]), 10)
		}
		return strconv.AppendBool(dst, packed[0] == 1)
	},
	read: func(dst []byte, r *strictjson.Reader) (bool, error) {
		if r.Kind() == strictjson.Number {
			n, err := r.Uint()
			dst[0] = byte(n)
			return n < 256, err
		}
		b, err := r.Bool()
		dst[0] = 0
		if b {
			dst[0] = 1
		}
		return true, err
	},
}

// floatBits is a float dtype through a float64, which holds all of its values.
type floatBits struct {
	bits   int                                      // of the shortest decimal
	value  func(bits uint64) float64                // of a stored element
	stored func(text []byte) (bits uint64, ok bool) // of a decimal
	nan    uint64                                   // the one that "nan" says
}

var floats = map[tensor.DType]floatBits{
	tensor.F64: {64, math.Float64frombits, func(s []byte) (uint64, bool) {
		f, err := strconv.ParseFloat(string(s), 64)
		return math.Float64bits(f), err == nil
	}, 0x7ff8000000000000},
	tensor.F32: {32, func(b uint64) float64 { return float64(math.Float32frombits(uint32(b))) }, func(s []byte) (uint64, bool) {
		f, err := strconv.ParseFloat(string(s), 32)
		return uint64(math.Float32bits(float32(f))), err == nil
	}, 0x7fc00000},
	tensor.F16: {32, func(b uint64) float64 { return float64(tensor.Float16(b).Float32()) }, func(s []byte) (uint64, bool) {
		f, err := strconv.ParseFloat(string(s), 32)
		h := tensor.Float16From(float32(f))
		return uint64(h), err == nil && !math.IsInf(float64(h.Float32()), 0)
	}, 0x7e00},
	tensor.BF16: {32, func(b uint64) float64 { return float64(tensor.BFloat16(b).Float32()) }, func(s []byte) (uint64, bool) {
		f, err := strconv.ParseFloat(string(s), 32)
		h := tensor.BFloat16From(float32(f))
		return uint64(h), err == nil && !math.IsInf(float64(h.Float32()), 0)
	}, 0x7fc0},
}

// floatSpelling writes the shortest decimal that gives the same bits again,
// "inf", "-inf" and "nan", and other NaNs as the bits of the element: "0x…".
func floatSpelling(d tensor.DType) spelling {
	f, size := floats[d], d.Size()
	return spelling{
		size: size,
		write: func(dst, packed []byte) []byte {
			bits := load(packed)
			switch v := f.value(bits); {
			case bits == f.nan:
				return append(dst, `"nan"`...)
			case math.IsNaN(v):
				return append(strconv.AppendUint(append(dst, `"0x`...), bits, 16), '"')
			case math.IsInf(v, 1):
				return append(dst, `"inf"`...)
			case math.IsInf(v, -1):
				return append(dst, `"-inf"`...)
			default:
				return strconv.AppendFloat(dst, v, 'g', -1, f.bits)
			}
		},
		read: func(dst []byte, r *strictjson.Reader) (bool, error) {
			if r.Kind() == strictjson.String {
				return f.readText(dst, r)
			}
			text, err := r.Number()
			if err != nil {
				return false, err
			}
			bits, ok := f.stored(text)
			store(dst, bits)
			return ok, nil
		},
	}
}

func (f *floatBits) readText(dst []byte, r *strictjson.Reader) (bool, error) {
	text, err := r.Text()
	if err != nil {
		return false, err
	}
	bits, ok := f.nan, text == "nan"
	if len(text) > 2 && text[:2] == "0x" {
		bits, err = strconv.ParseUint(text[2:], 16, 8*len(dst))
		ok = err == nil && math.IsNaN(f.value(bits))
	}
	if text == "inf" || text == "-inf" {
		sign := uint64(0)
		if text[0] == '-' {
			sign = 1 << (8*len(dst) - 1)
		}
		bits, ok = f.infinity()|sign, true
	}
	store(dst, bits)
	return ok, nil
}

// infinity is the quiet NaN without its highest bit of the fraction.
func (f *floatBits) infinity() uint64 { return f.nan & (f.nan << 1) }

// speller turns packed bytes into a JSON list, a line for each row.
type speller struct {
	out   io.Writer
	spell spelling
	row   int    // elements of a line, 0 for one line
	line  string // what a line begins with
	rest  []byte // of an element that came in pieces
	n     int
	buf   []byte
}

func newSpeller(out io.Writer, s spelling, row int, line string) *speller {
	return &speller{out: out, spell: s, row: row, line: line, buf: []byte{'['}}
}

// Write spells the elements of p.
func (w *speller) Write(p []byte) (int, error) {
	size := w.spell.size
	n := len(p)
	if len(w.rest) > 0 {
		take := min(size-len(w.rest), len(p))
		w.rest = append(w.rest, p[:take]...)
		if p = p[take:]; len(w.rest) < size {
			return n, nil
		}
		w.element(w.rest)
		w.rest = w.rest[:0]
	}
	for ; len(p) >= size; p = p[size:] {
		w.element(p[:size])
		if len(w.buf) > 1<<15 {
			if err := w.flush(); err != nil {
				return 0, err
			}
		}
	}
	w.rest = append(w.rest, p...)
	return n, w.flush()
}

func (w *speller) element(packed []byte) {
	if w.n > 0 {
		w.buf = append(w.buf, ',')
	}
	switch {
	case w.row > 0 && w.n%w.row == 0:
		w.buf = append(w.buf, w.line...)
	case w.n > 0:
		w.buf = append(w.buf, ' ')
	}
	w.buf = w.spell.write(w.buf, packed)
	w.n++
}

func (w *speller) flush() error {
	_, err := w.out.Write(w.buf)
	w.buf = w.buf[:0]
	return err
}

// Close ends the list.
func (w *speller) Close() error {
	w.buf = append(w.buf, ']')
	return w.flush()
}
