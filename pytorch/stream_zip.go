package pytorch

import (
	"errors"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/flate"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// A zip file in order: local header, data, data descriptor, and again; the
// directory at the end. torch leaves sizes and checksums out of local headers,
// they come in the descriptor. How long a record is must be known before:
//
//	data.pkl    ends with its STOP opcode
//	data/KEY    is as long as the pickle says
//	deflated    data say themselves where they end
//	others      are short: they end where a descriptor fits what came

const (
	sigDescriptor = 0x08074b50
	lenDescriptor = 24 // with its signature and sizes of 64 bits
	maxUnsized    = 1 << 20
)

// zipStream is the zip file behind a stream.
type zipStream struct {
	*stream
	top     string
	next    *local  // a header that was read ahead of its record
	entries []entry // what came
}

// local is a record that begins.
type local struct {
	entry
	sized bool
}

func (s *stream) openZip() (*checkpoint.Checkpoint, error) {
	head, err := s.in.peek(lenLocal)
	if err != nil {
		return nil, s.in.ended(err)
	}
	n := lenLocal + int(le16(head, 26))
	if head, err = s.in.peek(n); err != nil {
		return nil, s.in.ended(err)
	}
	name := string(head[lenLocal:])
	if !isMainPickle(name) || le32(head, 0) != sigLocal {
		return s.spool("a zip file whose first record is not its data.pkl")
	}
	n += int(le16(head, 28))
	if head, err = s.in.peek(n + len(scriptStart)); err == nil && string(head[n:]) == scriptStart {
		return s.spool("a TorchScript archive, whose constants stand behind its pickle")
	}
	z := &zipStream{stream: s, top: strings.TrimSuffix(name, "data.pkl")}
	s.info.Format, s.info.Metadata = "zip", map[string]string{}
	s.record = func(key string) string { return z.top + "data/" + key }
	return z.openPickle()
}

// openPickle reads data.pkl and the small records behind it, up to the header
// of the first storage.
func (z *zipStream) openPickle() (*checkpoint.Checkpoint, error) {
	main, err := z.header()
	if err != nil {
		return nil, err
	}
	z.loader.record, z.loader.present = main.name, 0
	root, err := z.load(main)
	if err != nil {
		return nil, err
	}
	if err := z.prelude(); err != nil {
		return nil, err
	}
	z.rest = z.feed
	return z.finish(root)
}

// header reads a local header; nil at the directory.
func (z *zipStream) header() (*local, error) {
	if h := z.next; h != nil {
		z.next = nil
		return h, nil
	}
	if err := checkpoint.At("records", int64(len(z.entries)), z.env.Limits.Records); err != nil {
		return nil, err
	}
	head, err := z.in.peek(4)
	if err != nil {
		return nil, z.in.ended(err)
	}
	switch le32(head, 0) {
	case sigDirectory, sigEnd, sigEnd64:
		return nil, nil
	case sigLocal:
	default:
		return nil, fault.New(fault.Malformed, "no local header where one must be").At(z.in.off).
			Needs("one record after the other", fault.MadeToDeceive)
	}
	if head, err = z.in.peek(lenLocal); err != nil {
		return nil, z.in.ended(err)
	}
	length := lenLocal + int(le16(head, 26)) + int(le16(head, 28))
	if head, err = z.in.peek(length); err != nil {
		return nil, z.in.ended(err)
	}
	h, err := parseLocal(string(head), z.in.off)
	z.in.take(length)
	return h, err
}

func parseLocal(text string, at int64) (*local, error) {
	name := int(le16(text, 26))
	h := &local{entry: entry{
		name: text[lenLocal : lenLocal+name], flags: le16(text, 6), method: le16(text, 8), crc: le32(text, 14),
		stored: int64(le32(text, 18)), size: int64(le32(text, 22)), header: at, data: at + int64(len(text)),
	}}
	if err := widen(text[lenLocal+name:], &h.size, &h.stored); err != nil {
		return nil, inRecord(err, h.name, at)
	}
	h.sized = h.flags&flagDescriptor == 0 || h.stored != 0 || h.size != 0
	switch {
	case h.flags&(flagEncrypted|flagStrong|flagMasked) != 0:
		return nil, fault.New(fault.Unsupported, "an encrypted record").InRecord(h.name).
			Needs("a plain zip archive", "decrypt it first, for example by unpacking it with its password")
	case h.method != methodStored && h.method != methodDeflate:
		return nil, fault.New(fault.Unsupported, "compression method "+methodName(h.method)).InRecord(h.name).
			Needs("stored or deflated records", "unpack it and save it again")
	case h.sized && h.method == methodStored && h.size != h.stored:
		return nil, disagree(&h.entry, strconv.FormatInt(h.stored, 10)+" stored bytes", strconv.FormatInt(h.size, 10)+" bytes")
	}
	return h, nil
}

// body is the data of one record, with what is counted as it goes by.
type body struct {
	z    *zipStream
	h    *local
	r    io.Reader
	sum  uint32
	size int64 // bytes that came out
	most int64 // bytes that may come out, -1 if nobody knows
}

// body starts the data of a record. Size is what is known of its length, -1 if
// nothing is.
func (z *zipStream) body(h *local, size int64) *body {
	b := &body{z: z, h: h, most: size}
	switch {
	case h.method == methodDeflate:
		b.r = flate.NewReader(z.in)
		if h.sized {
			b.most = h.size
		}
	case h.sized:
		b.r, b.most = io.LimitReader(z.in, h.stored), h.size
	default:
		b.r = io.LimitReader(z.in, size)
	}
	return b
}

// Read reads on.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.sum = crc32.Update(b.sum, crc32.IEEETable, p[:n])
	b.size += int64(n)
	if b.most >= 0 && b.size > b.most && b.h.sized {
		return n, disagree(&b.h.entry, "more bytes than it says", strconv.FormatInt(b.most, 10)+" bytes")
	}
	return n, b.explain(err)
}

func (b *body) explain(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case err == nil || err == io.EOF: //nolint:errorlint // the bare EOF is the end
		return err
	case errors.As(err, &corrupt):
		return fault.Wrap(fault.Malformed, "compressed data that cannot be inflated", err).InRecord(b.h.name).
			Needs("sound DEFLATE data", fault.MadeToDeceive)
	default:
		return inRecord(b.z.in.ended(err), b.h.name, b.z.in.off)
	}
}

// end reads what is left and settles the record.
func (b *body) end() error {
	if _, err := io.Copy(io.Discard, b); err != nil {
		return err
	}
	return b.settle()
}

// settle compares what came with what the header or the descriptor says.
func (b *body) settle() error {
	h, z := b.h, b.z
	stored := z.in.off - h.data
	if h.flags&flagDescriptor != 0 {
		if err := z.descriptor(h, b.size, stored); err != nil {
			return err
		}
	}
	if h.size != b.size || h.stored != stored {
		return disagree(&h.entry, strconv.FormatInt(b.size, 10)+" bytes", strconv.FormatInt(h.size, 10)+" bytes")
	}
	z.entries = append(z.entries, h.entry)
	return nil
}

// checked is settle for a record that only this package reads.
func (b *body) checked() error {
	if b.h.crc != b.sum && b.h.hasSum() && !b.z.env.Salvage {
		return fault.New(fault.Checksum, "CRC-32 "+hex32(b.sum)).InRecord(b.h.name).
			Needs("CRC-32 "+hex32(b.h.crc), fault.GetAgain)
	}
	return nil
}

// descriptor reads a data descriptor: crc, stored, size, of 32 or 64 bits, behind a
// signature that may be missing.
func (z *zipStream) descriptor(h *local, size, stored int64) error {
	b, err := z.in.peek(lenDescriptor)
	if err != nil && !errors.Is(err, io.EOF) {
		return z.in.ended(err)
	}
	d, ok := fitDescriptor(b, size, stored)
	if !ok {
		return fault.New(fault.Malformed, "no data descriptor for "+strconv.FormatInt(size, 10)+" bytes").
			InRecord(h.name).At(z.in.off).Needs("a record as long as the pickle says", fault.MadeToDeceive)
	}
	if h.sized && (h.crc != 0 && d.crc != h.crc) {
		return disagree(&h.entry, "a data descriptor with another checksum", "")
	}
	h.crc, h.size, h.stored = d.crc, size, stored
	z.in.take(d.length)
	return nil
}

type descriptor struct {
	crc    uint32
	length int
}

// fitDescriptor finds the form of descriptor that says size and stored and has a
// header behind it, as far as b shows one.
func fitDescriptor(b []byte, size, stored int64) (descriptor, bool) {
	skip := 0
	if len(b) >= 4 && le32(b, 0) == sigDescriptor {
		skip = 4
	}
	fits := func(n int, haveStored, haveSize int64) (descriptor, bool) {
		end := skip + n
		ok := haveStored == stored && haveSize == size && (len(b) < end+2 || b[end] == 'P' && b[end+1] == 'K')
		return descriptor{le32(b, skip), end}, ok
	}
	if len(b) >= skip+12 {
		if d, ok := fits(12, int64(le32(b, skip+4)), int64(le32(b, skip+8))); ok {
			return d, true
		}
	}
	if len(b) >= skip+20 {
		return fits(20, le64(b, skip+4), le64(b, skip+12))
	}
	return descriptor{}, false
}
