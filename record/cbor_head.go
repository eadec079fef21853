package record

import (
	"bufio"
	"encoding/binary"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// The major types of RFC 8949, section 3.1.
const (
	majorUint  = 0
	majorNint  = 1
	majorBytes = 2
	majorText  = 3
	majorArray = 4
	majorMap   = 5
	majorTag   = 6
	majorOther = 7 // floats and simple values
)

// The tags that records use.
const (
	tagBignum     = 2     // RFC 8949, 3.4.3; 3 for negative numbers
	tagObject     = 27    // an object with the name of its type and its arguments
	tagRowMajor   = 40    // RFC 8746, 3.1.1: [dimensions, typed array]
	tagSet        = 258   // a set, as other writers say it
	tagSelfDefine = 55799 // RFC 8949, 3.4.6: what follows is CBOR
)

// selfDefined is tagSelfDefine as the first bytes of a file.
const selfDefined = "\xd9\xd9\xf7"

// typedArrays are the little-endian tags of RFC 8746, table 1.
var typedArrays = map[tensor.DType]uint64{
	tensor.U8: 64, tensor.U16: 69, tensor.U32: 70, tensor.U64: 71,
	tensor.I8: 72, tensor.I16: 77, tensor.I32: 78, tensor.I64: 79,
	tensor.F16: 84, tensor.F32: 85, tensor.F64: 86,
}

// typedArray is what a tag says of the bytes behind it.
type typedArray struct {
	dtype tensor.DType
	order tensor.ByteOrder
}

// arrayOf gives the meaning of the tags of RFC 8746 that we can read: also the
// big-endian ones, four below their twins except for the signed bytes.
var arrayOf = func() map[uint64]typedArray {
	tags := map[uint64]typedArray{68: {tensor.U8, tensor.LittleEndian}} // clamped bytes
	for d, tag := range typedArrays {
		tags[tag] = typedArray{d, tensor.LittleEndian}
		if d.Size() > 1 {
			tags[tag-4] = typedArray{d, tensor.BigEndian}
		}
	}
	return tags
}()

// appendHead appends the first bytes of an item in their shortest form.
func appendHead(dst []byte, major byte, n uint64) []byte {
	major <<= 5
	switch {
	case n < 24:
		return append(dst, major|byte(n))
	case n < 1<<8:
		return append(dst, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(dst, major|27), n)
	}
}

// head is the start of an item: its major type and argument.
type head struct {
	major byte
	n     uint64
	raw   []byte // its own bytes, valid until the next read
}

// cursor reads a file from front to back and skips tensors. All other bytes
// go into a checksum.
type cursor struct {
	src  io.ReaderAt
	size int64
	at   int64 // of the next byte
	in   *bufio.Reader
	sum  uint32
	raw  [9]byte
}

func newCursor(src io.ReaderAt, size int64) *cursor {
	c := &cursor{src: src, size: size}
	c.skip(0)
	return c
}

// left is how many bytes there still are.
func (c *cursor) left() uint64 { return uint64(c.size - c.at) }

// skip goes n bytes ahead, which the caller has compared with left.
func (c *cursor) skip(n int64) {
	const ahead = 8 << 10 // little more than what stands between two big tensors
	if c.in != nil && n <= int64(c.in.Buffered()) {
		_, _ = c.in.Discard(int(n)) // what is buffered is there
	} else {
		section := io.NewSectionReader(c.src, c.at+n, c.size-c.at-n)
		if c.in == nil {
			c.in = bufio.NewReaderSize(section, int(min(ahead, max(c.size, 16))))
		} else {
			c.in.Reset(section)
		}
	}
	c.at += n
}

// read fills b and sums it.
func (c *cursor) read(b []byte) error {
	n, err := io.ReadFull(c.in, b)
	c.at += int64(n)
	c.sum = crc32.Update(c.sum, crc32.IEEETable, b[:n])
	if err == nil {
		return nil
	}
	if fault.KindOf(err) != "" {
		return err
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return c.broken("the file ends inside a value", "the whole file", "the file was cut off: get it again")
	}
	return fault.Wrap(fault.IO, "read failed", err).At(c.at)
}

// head reads the start of the next item.
func (c *cursor) head() (head, error) {
	if err := c.read(c.raw[:1]); err != nil {
		return head{}, err
	}
	h := head{major: c.raw[0] >> 5, raw: c.raw[:1]}
	switch info := c.raw[0] & 31; {
	case info < 24:
		h.n = uint64(info)
	case info < 28:
		width := 1 << (info - 24)
		h.raw = c.raw[:1+width]
		if err := c.read(h.raw[1:]); err != nil {
			return head{}, err
		}
		for _, b := range h.raw[1:] {
			h.n = h.n<<8 | uint64(b)
		}
	case info == 31:
		return head{}, fault.New(fault.Unsupported, "a value of indefinite length").At(c.at-1).
			Needs("definite lengths", "write the file with definite lengths")
	default:
		return head{}, c.broken("a reserved head "+strconv.Itoa(int(c.raw[0])), "CBOR as RFC 8949 has it", fault.GetAgain)
	}
	return h, c.fits(h)
}

// fits compares a claimed length with the bytes that are left: every item takes
// one byte at least.
func (c *cursor) fits(h head) error {
	least := h.n
	switch h.major {
	case majorMap:
		if h.n > 1<<62 {
			break
		}
		least = 2 * h.n
	case majorBytes, majorText, majorArray:
	default:
		return nil
	}
	if least <= c.left() {
		return nil
	}
	return c.broken("a length of "+strconv.FormatUint(h.n, 10)+" with "+strconv.FormatUint(c.left(), 10)+" bytes left",
		"as many bytes as it claims", "the file was cut off or is damaged: get it again")
}

// broken is a malformed error at the cursor.
func (c *cursor) broken(found, need, cure string) error {
	return fault.New(fault.Malformed, found).At(c.at).Needs(need, cure)
}

func crc32Of(before uint32, b []byte) uint32 { return crc32.Update(before, crc32.IEEETable, b) }
