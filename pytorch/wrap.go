package pytorch

import (
	"compress/bzip2"
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// wrapFormat is a compression around a whole file.
type wrapFormat struct {
	name  string
	magic string
	open  func(io.Reader) (io.Reader, func(), error)
}

// wrapFormats are the compressions that are taken off. What is inside is held
// in memory and opened with whatever format it has.
var wrapFormats = []wrapFormat{
	{"gzip", "\x1f\x8b\x08", openGzip},
	{"zstd", "\x28\xb5\x2f\xfd", openZstd},
	{"bzip2", "BZh", openBzip2},
}

func openGzip(r io.Reader) (io.Reader, func(), error) {
	z, err := gzip.NewReader(r)
	return z, func() {}, err
}

// maxZstdWindow is the most memory that one zstd stream may want to look back;
// what zstd itself takes without --long=31.
const maxZstdWindow = 128 << 20

func openZstd(r io.Reader) (io.Reader, func(), error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
	if err != nil {
		return nil, nil, err
	}
	return z, z.Close, nil
}

func openBzip2(r io.Reader) (io.Reader, func(), error) { return bzip2.NewReader(r), func() {}, nil }

// Name returns the compression's name.
func (f wrapFormat) Name() string { return f.name }

// Sniff looks for the magic number.
func (f wrapFormat) Sniff(head []byte, _ checkpoint.Source) bool { return hasPrefix(head, f.magic) }

// Open decompresses the file and opens what was inside.
func (f wrapFormat) Open(ctx context.Context, src checkpoint.Source, env *checkpoint.Env) (*checkpoint.Checkpoint, error) {
	r, done, err := f.open(&contextReader{ctx, io.NewSectionReader(src, 0, src.Size())})
	if err != nil {
		return nil, f.explain(err, 0)
	}
	defer done()
	var held chunks
	n, err := held.fill(r, inflateRoom(src.Size(), env.Limits))
	if errors.Is(err, errRoom) {
		// How long it is, nobody knows; DEFLATE cannot do more than this.
		return nil, tooBig(max(n, src.Size()*min(env.Limits.Inflate, 1<<20)), src.Size(), env.Limits)
	}
	if err != nil {
		return nil, f.explain(err, n)
	}
	inner := checkpoint.NewReaderAt(src.Name(), &held, n)
	c, err := env.Open(ctx, checkpoint.Owned(inner, src))
	if err != nil {
		return nil, err
	}
	return inside(c, f.name), nil
}

// inside returns c with the outer container as its format; what is inside is
// noted.
func inside(c *checkpoint.Checkpoint, outer string) *checkpoint.Checkpoint {
	notes := map[string]string{"inside": c.Info.Format}
	for key, value := range c.Info.Metadata {
		if key == "inside" {
			value = c.Info.Format + " around " + value
		}
		notes[key] = value
	}
	c.Info.Format, c.Info.Metadata = outer, notes
	return c
}

// inflateRoom is how many bytes may be held of a compressed whole: a quarter of
// what may be materialised whatever is present, and half of what each byte may
// become, so that a small bomb stays small; never more than InflateBytes.
func inflateRoom(present int64, l checkpoint.Limits) int64 {
	if present > l.InflateBytes {
		return l.InflateBytes
	}
	return min(l.ExpandFloor/4+present*max(l.Expand/2, 1), l.InflateBytes)
}

func (f wrapFormat) explain(err error, at int64) error {
	var known *fault.Error
	switch {
	case errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return fault.New(fault.Malformed, "a "+f.name+" stream that is cut short").At(at).
			Needs("a whole file", "the download is incomplete or was truncated; get it again")
	case errors.Is(err, gzip.ErrChecksum) || errors.Is(err, zstd.ErrCRCMismatch):
		return fault.Wrap(fault.Checksum, "a "+f.name+" stream whose checksum is wrong", err).At(at).Needs("a sound file", "get it again")
	case errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return fault.NewLimit("zstd window", maxZstdWindow+1, maxZstdWindow)
	default:
		return fault.Wrap(fault.Malformed, "a "+f.name+" stream that cannot be read", err).At(at).Needs("a sound file", "get it again")
	}
}

// contextReader ends when its context does.
type contextReader struct {
	ctx context.Context // of one call of Open
	r   io.Reader
}

// Read reads, unless the context is done.
func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// system is a caller's reader: what fails there is no fault of the bytes, whatever
// a decompressor would make of it.
type system struct{ r io.Reader }

// Read reads on.
func (s system) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	return n, fault.ReadFailed(err)
}

// chunks is a run of bytes of which nobody knew the length. Growing it copies
// nothing, so that it never takes more than it holds.
type chunks struct {
	list [][]byte
	size int64
}

const chunkSize = 1 << 20

// errRoom is the end of a reader that gives more than may be held.
var errRoom = errors.New("more than may be held")

// fill reads r to its end, at most so many bytes.
func (c *chunks) fill(r io.Reader, most int64) (int64, error) {
	for {
		chunk := make([]byte, chunkSize)
		n, err := io.ReadFull(r, chunk)
		c.list, c.size = append(c.list, chunk[:n:n]), c.size+int64(n)
		switch {
		case c.size > most:
			return c.size, errRoom
		case errors.Is(err, io.EOF):
			return c.size, nil
		case errors.Is(err, io.ErrUnexpectedEOF) && n > 0:
			// Either the end, or a stream that was cut: the next read tells.
			if _, err = r.Read(make([]byte, 1)); errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return c.size, nil
			}
			return c.size, err
		case err != nil:
			return c.size, err
		}
	}
}

// tooBig says that size bytes are too many of what takes present bytes, and
// which limit would have to be raised to what.
func tooBig(size, present int64, l checkpoint.Limits) error {
	most := inflateRoom(present, l)
	e := fault.NewLimit("inflate bytes", size, l.InflateBytes)
	if most < l.InflateBytes {
		e = fault.NewLimit("expand", max(2*size/max(present, 1), l.Expand+1), l.Expand)
	}
	e.Found = "compressed data that grows beyond " + strconv.FormatInt(most, 10) + " bytes"
	return e
}

// ReadAt reads as [io.ReaderAt] does.
func (c *chunks) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) && off >= 0 && off < c.size {
		k := copy(p[n:], c.list[off/chunkSize][off%chunkSize:])
		n, off = n+k, off+int64(k)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
