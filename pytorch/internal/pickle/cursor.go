package pickle

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// Cursor is a place in a pickle: it gives the bytes of one opcode after the
// other, from memory or from a reader. A reader is read in bounded chunks and
// never past what the current opcode needs plus one chunk; [Cursor.Rest] gives
// back what was read too far. A Cursor is not safe for concurrent use.
type Cursor struct {
	buf   []byte // unread bytes are buf[pos:]
	pos   int
	base  int64 // offset of buf[0] in the stream
	start int64 // offset of the pickle's first byte
	from  io.Reader

	present func() int64      // see Counts
	limits  checkpoint.Limits // of what present justifies
}

// chunk is how much is asked of a reader at a time.
const chunk = 64 << 10

// NewCursor returns a cursor over a pickle in memory, which it aliases.
func NewCursor(data []byte) *Cursor { return &Cursor{buf: data} }

// NewStream returns a cursor over a pickle that is read from r as it is
// needed. The end of the pickle is its STOP opcode, not the end of r.
func NewStream(r io.Reader) *Cursor { return &Cursor{from: r} }

// Offset returns where in its record the next byte lies.
func (c *Cursor) Offset() int64 { return c.base + int64(c.pos) }

// Skip sets the offset that errors and opcodes are counted from, for a pickle
// that does not begin its record.
func (c *Cursor) Skip(offset int64) {
	c.start += offset - c.Offset()
	c.base = offset - int64(c.pos)
}

// Counts has present say how many bytes came so far of a stream in which the
// pickle is compressed, and whose size nobody knows: they, and not what they
// inflate to, justify the size of its tree and of its longest text.
func (c *Cursor) Counts(present func() int64, limits checkpoint.Limits) {
	c.present, c.limits = present, limits.Default()
}

// came returns how many bytes justify what the pickle made so far.
func (c *Cursor) came() int64 {
	if c.present != nil {
		return c.present()
	}
	return c.taken()
}

// taken returns how many bytes of the pickle were taken.
func (c *Cursor) taken() int64 { return c.Offset() - c.start }

// remaining returns how many bytes are left, when that is known.
func (c *Cursor) remaining() (int64, bool) { return int64(len(c.buf) - c.pos), c.from == nil }

// Rest returns what follows: the bytes that were read but not taken, then the
// rest of the reader.
func (c *Cursor) Rest() io.Reader {
	if c.from == nil {
		return bytes.NewReader(c.buf[c.pos:])
	}
	return io.MultiReader(bytes.NewReader(c.buf[c.pos:]), c.from)
}

// rest returns the bytes that come next and are in memory already.
func (c *Cursor) rest() []byte { return c.buf[c.pos:] }

// take returns the next n bytes, which are valid until the next call.
func (c *Cursor) take(n int) ([]byte, error) {
	if len(c.buf)-c.pos < n {
		if err := c.fill(n); err != nil {
			return nil, err
		}
	}
	p := c.buf[c.pos : c.pos+n]
	c.pos += n
	return p, nil
}

// skip passes n bytes without making them available all at once.
func (c *Cursor) skip(n int64) error {
	for left := int64(len(c.buf) - c.pos); n > left; left = int64(len(c.buf) - c.pos) {
		c.pos, n = len(c.buf), n-left
		if err := c.fill(1); err != nil {
			return err
		}
	}
	c.pos += int(n)
	return nil
}

// fill makes n bytes available. It grows with the bytes that arrive, never
// with n alone: n is what the file claims.
func (c *Cursor) fill(n int) error {
	if c.from == nil {
		return c.cutShort(n)
	}
	c.base += int64(c.pos)
	left := copy(c.buf, c.buf[c.pos:])
	c.buf, c.pos = c.buf[:left], 0
	for len(c.buf) < n {
		had := len(c.buf)
		if cap(c.buf)-had < chunk { // twice as much as there is, for what is left behind is garbage
			c.buf = slices.Grow(c.buf, max(min(had, n-had), chunk))
		}
		c.buf = c.buf[:had+chunk]
		got, err := io.ReadAtLeast(c.from, c.buf[had:], 1)
		c.buf = c.buf[:had+got]
		if err != nil && got == 0 {
			return c.ended(n, err)
		}
		if err := c.justified(int64(len(c.buf))); err != nil {
			return err
		}
	}
	return nil
}

// justified fails when more is held of a compressed text than came justifies: it
// is going to be in the tree, and a second time here.
func (c *Cursor) justified(held int64) error {
	if c.present == nil {
		return nil
	}
	if present := c.present(); 2*held > room(c.limits, present) {
		return tooLarge(c.limits, 2*held, present)
	}
	return nil
}

func (c *Cursor) ended(n int, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return c.cutShort(n)
	}
	var known *fault.Error
	if errors.As(err, &known) { // compressed data that is damaged says so itself
		return err
	}
	return fault.Wrap(fault.IO, "read failed", err)
}

func (c *Cursor) cutShort(n int) error {
	return fault.New(fault.Malformed, "the pickle ends "+plural(n-(len(c.buf)-c.pos), "byte")+" too early").
		Needs("a pickle up to its STOP opcode", "the file was cut short; get it again")
}

// line returns the bytes up to the next newline, without it; at most limit of
// them.
func (c *Cursor) line(limit int64) ([]byte, error) {
	for seen := 0; ; {
		if i := bytes.IndexByte(c.buf[c.pos+seen:], '\n'); i >= 0 {
			p := c.buf[c.pos : c.pos+seen+i]
			c.pos += seen + i + 1
			return p, tooLong(int64(len(p)), limit)
		}
		seen = len(c.buf) - c.pos
		if err := tooLong(int64(seen), limit); err != nil {
			return nil, err
		}
		if err := c.fill(seen + 1); err != nil {
			return nil, err
		}
	}
}

func tooLong(n, limit int64) error {
	if n > limit {
		return fault.NewLimit("string bytes", n, limit)
	}
	return nil
}
