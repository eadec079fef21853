package pytorch

import (
	"context"
	"errors"
	"io"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
	"github.com/wick-ml/wick/tensor"
)

// Decoder reads a checkpoint from a stream in one pass: a pipe, an HTTP body,
// standard input. [NewDecoder] returns as soon as the tree is known, before it
// waits for the first byte of a tensor; then one [Decoder.Run], or whatever else
// moves tensors ([tensor.Run], a conversion, the plan of a struct), takes the tensors as they
// come, in the stream's order and in bounded memory.
//
// Files of torch.save can be read so, those before torch 1.6 too, and with gzip, zstd or bzip2
// around them. What has its bytes in another order (TorchScript, a zip file that was
// packed again) is held in memory first, as far as [Spool] allows. A Decoder is
// used from one goroutine.
type Decoder struct {
	checkpoint *checkpoint.Checkpoint
}

// NewDecoder reads the metadata from the head of r, and nothing behind it. It
// borrows r, which must not be used by others until the run is over. Errors are
// those of [Open], and call the input "stream"; [OpenStream] takes a name and a
// context.
func NewDecoder(r io.Reader, opts ...Option) (*Decoder, error) {
	o, err := checkpoint.NewOptions(opts...)
	if err != nil {
		return nil, err
	}
	c, err := OpenStream(context.Background(), "stream", r, Formats(), o)
	if err != nil {
		return nil, err
	}
	return &Decoder{c}, nil
}

// Checkpoint returns the checkpoint, with its tree, whose tensors are still to come: each of its
// storages can be read once, by the one run that takes all that is wanted.
func (d *Decoder) Checkpoint() *checkpoint.Checkpoint { return d.checkpoint }

// Run takes the rest of the stream and moves the tensors that moves name to
// their sinks as they come. Its end proves the stream: it fails with
// [fault.ErrMalformed] when the directory behind the tensors says something else
// than what came, and with [fault.ErrChecksum] on a wrong checksum; then what the
// sinks got must not be used. It can be called once.
func (d *Decoder) Run(ctx context.Context, moves []tensor.Move, opts ...tensor.RunOption) (tensor.Stats, error) {
	return tensor.Run(ctx, moves, opts...)
}

// Close releases what a spooled stream was kept in.
func (d *Decoder) Close() error { return d.checkpoint.Close() }

// OpenStream opens what comes from r: in one pass where its format allows it, else
// held in memory or in a temporary file and opened with the first of formats that
// recognises it. name is what errors call it.
func OpenStream(ctx context.Context, name string, r io.Reader, formats []checkpoint.Format, o checkpoint.Options) (*checkpoint.Checkpoint, error) {
	s := &stream{ctx: ctx, name: name, formats: formats, opts: o}
	s.in = newStreamReader(&arrivingReader{&contextReader{ctx, system{r}}, &s.came})
	s.env = s.opts.Env()
	c, err := s.open()
	if err != nil {
		s.unwrap()
		return nil, fault.InFile(err, name)
	}
	return c, nil
}

// stream is a checkpoint that comes once.
type stream struct {
	ctx     context.Context // of the call that opened it
	name    string
	formats []checkpoint.Format
	opts    checkpoint.Options
	env     *checkpoint.Env
	in      *streamReader
	came    int64 // bytes that came in all, before anything is inflated
	wraps   []wrapFormat
	undo    []func() // ends the decompressors

	storages map[string]*arrival     // by the names of their records
	record   func(key string) string // the name of a storage's record
	loader   *loader
	info     checkpoint.Info
	rest     func(*tensor.Feed) error // feeds all that follows
	used     bool
}

// cursor reads a pickle, whose tree may be as large as what came justifies.
func (s *stream) cursor(r io.Reader) *pickle.Cursor {
	c := pickle.NewStream(r)
	c.Counts(func() int64 { return s.came }, s.env.Limits)
	return c
}

// arrivingReader adds up what it reads.
type arrivingReader struct {
	r io.Reader
	n *int64
}

// Read reads on.
func (c *arrivingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	*c.n += int64(n)
	return n, err
}

// arrival is a storage that is to come.
type arrival struct {
	storage *tensor.Storage
	ref     storageRef
	came    bool
}

// maxWraps is how many compressions may lie around one another.
const maxWraps = 4

// open recognises what comes, by its first bytes.
func (s *stream) open() (*checkpoint.Checkpoint, error) {
	s.storages = map[string]*arrival{}
	s.loader = &loader{limits: s.env.Limits, storage: s.storage}
	for {
		head, err := s.in.peek(lenLocal)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, s.in.ended(err)
		}
		if unwrapped, err := s.wrap(head); err != nil {
			return nil, err
		} else if unwrapped {
			continue
		}
		switch {
		case zipFormat{}.Sniff(head, nil):
			return s.openZip()
		case legacyFormat{}.Sniff(head, nil) && !s.isTarToo():
			return s.openLegacy()
		default:
			return s.spool("a format that cannot be read in order")
		}
	}
}

// isTarToo reports whether stacked pickles are a tar as well. Of those that are
// not, it looks at no byte behind the pickles.
func (s *stream) isTarToo() bool {
	head, err := s.in.peek(tarSumEnd)
	if err != nil {
		return false // too short for either, which is said where it is read
	}
	if _, ok := looseNumber(head[tarSum:]); !ok {
		return false
	}
	head, err = s.in.peek(tarBlock)
	return err == nil && isTar(head)
}

// wrap takes one compression off.
func (s *stream) wrap(head []byte) (bool, error) {
	for _, f := range wrapFormats {
		if !f.Sniff(head, nil) {
			continue
		}
		if err := checkpoint.At("nesting", int64(len(s.wraps)+1), maxWraps); err != nil {
			return false, err
		}
		r, done, err := f.open(s.in)
		if err != nil {
			return false, f.explain(err, 0)
		}
		s.wraps, s.undo = append(s.wraps, f), append(s.undo, done)
		s.in = newStreamReader(&unwrapped{r, f})
		return true, nil
	}
	return false, nil
}

// unwrapped is a decompressor whose errors say what they mean.
type unwrapped struct {
	r io.Reader
	f wrapFormat
}

// Read reads on.
func (u *unwrapped) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // the bare EOF is the end, a wrapped one is none
		err = u.f.explain(err, 0)
	}
	return n, err
}

func (s *stream) unwrap() {
	for _, done := range s.undo {
		done()
	}
	s.undo = nil
}

// storage makes a storage of the size that the pickle states, which is proved by
// its bytes when they come.
func (s *stream) storage(ref storageRef) (*tensor.Storage, error) {
	name := s.record(ref.Key)
	size, ok := ref.Bytes()
	if !ok {
		return nil, badSize(ref, name)
	}
	st := tensor.NewStorage(tensor.StorageSpec{Name: name, Size: size, Order: tensor.LittleEndian, Stream: s})
	s.storages[name] = &arrival{storage: st, ref: ref}
	return st, nil
}

// finish makes the checkpoint of a tree whose tensors are still to come.
func (s *stream) finish(root nested.Value) (*checkpoint.Checkpoint, error) {
	s.info.Name, s.info.Producer = s.name, "torch"
	s.info.Storages, s.info.Globals = s.loader.storages, s.loader.globals
	c, err := checkpoint.New(root, s.info, s.env.Following(s.came), func() error { s.unwrap(); return nil })
	if err != nil {
		return nil, err
	}
	for i := range s.wraps {
		c = inside(c, s.wraps[len(s.wraps)-1-i].name)
	}
	return c, nil
}

// Run is the one pass over the tensors.
func (s *stream) Run(ctx context.Context, moves []tensor.Move, opts ...tensor.RunOption) (tensor.Stats, error) {
	if s.used {
		return tensor.Stats{}, fault.InFile(gone(), s.name)
	}
	if s.opts.SpoolDir != "" {
		opts = append(opts, tensor.Spool(s.opts.SpoolDir))
	}
	feed, err := tensor.NewFeed(ctx, moves, opts...)
	if err != nil {
		return tensor.Stats{}, err
	}
	s.used = true
	defer s.unwrap()
	if err := s.rest(feed); err != nil {
		stats, err := feed.Abort(err)
		return stats, fault.InFile(err, s.name)
	}
	stats, err := feed.Close()
	return stats, fault.InFile(err, s.name)
}

func gone() error {
	return fault.New(fault.Unsupported, "bytes that have gone by").
		Needs("one run for all tensors of a stream", "save the stream to a file, and open that")
}

// complete proves that all storages came and that nothing follows.
func (s *stream) complete() error {
	for _, a := range s.storages {
		if !a.came && a.storage.Size() > 0 {
			return fault.New(fault.Malformed, "a storage that is missing").InRecord(a.storage.Name()).
				Needs("all storages that the pickle names", "the file is damaged or incomplete; get it again")
		}
	}
	return nil
}

// spool keeps the whole stream and opens what was kept.
func (s *stream) spool(why string) (*checkpoint.Checkpoint, error) {
	src, err := hold(s.name, s.in, &s.opts, why)
	if err != nil {
		return nil, err
	}
	s.unwrap()
	c, err := checkpoint.Open(s.ctx, src, s.formats, s.opts)
	if err != nil {
		return nil, err
	}
	for i := range s.wraps {
		c = inside(c, s.wraps[len(s.wraps)-1-i].name)
	}
	return c, nil
}
