package remote

import (
	"context"
	"io"
	"net/url"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// Open opens the file, or the repository of a hub, that a URL names: http://…,
// https://… or hf://…. The source has [checkpoint.Siblings], which lie beside it on
// the same server, is a [checkpoint.Folder] for a whole repository, and is safe
// for concurrent use. Opening a file takes one request, which brings its first
// block too.
//
// ctx is for the life of the source: when it is done, so are all reads, with its
// error. Errors are [fault.ErrNotFound] for a file that is not there,
// [fault.ErrUsage] for a name that is no URL, [fault.ErrIO] for what network and
// server do; one that wraps [ErrNoRanges] means that [OpenStream] can read it.
func Open(ctx context.Context, name string, opts ...Option) (checkpoint.Source, error) {
	c, loc, err := begin(name, opts)
	if err != nil {
		return nil, err
	}
	if loc.url == nil {
		return c.openRepo(ctx, loc), nil
	}
	return c.open(ctx, loc)
}

// begin makes the client for a name and says what the name means.
func begin(name string, opts []Option) (*client, *location, error) {
	c, err := newClient(opts)
	if err != nil {
		return nil, nil, fault.InFile(err, Redact(name))
	}
	loc, err := locate(name, c.hub)
	return c, loc, err
}

// open opens one file.
func (c *client) open(ctx context.Context, loc *location) (checkpoint.Source, error) {
	f, err := c.probe(ctx, loc.url, blockBytes)
	if err != nil {
		return nil, fault.InFile(err, loc.shown)
	}
	src := &source{ctx: ctx, client: c, loc: loc}
	switch {
	case f.object != nil:
		cache := newCache(ctx, f.object, f.size, c.opts)
		cache.put(f.head)
		src.Source = checkpoint.Owned(checkpoint.NewReaderAt(loc.shown, cache, f.size), cache)
	case f.whole != nil:
		src.Source = checkpoint.NewBytes(loc.shown, f.whole)
	default:
		return nil, fault.Wrap(fault.IO, "only the whole file can be got", ErrNoRanges).In(loc.shown).
			Needs("a server that answers range requests", "download the file, or read it in one pass")
	}
	return src, nil
}

// NewSource returns a source over the size bytes of any remote object, with the
// cache, the read-ahead and the retries of this package. name is what errors
// call it, and ctx is for the life of the source, as with [Open]. The options
// about requests are without effect.
func NewSource(ctx context.Context, name string, size int64, r Ranges, opts ...Option) (checkpoint.Source, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, fault.InFile(err, name)
	}
	if size < 0 {
		return nil, fault.New(fault.Usage, "a negative size").In(name)
	}
	cache := newCache(ctx, &counted{Ranges: r, opts: o}, size, o)
	return checkpoint.Owned(checkpoint.NewReaderAt(name, cache, size), cache), nil
}

// source is a file on a server.
type source struct {
	checkpoint.Source
	ctx    context.Context // for its life
	client *client
	loc    *location
}

// Distant reports true, unless the file is held in memory.
func (s *source) Distant() bool { return checkpoint.IsDistant(s.Source) }

// Acquire lets Close wait until Release.
func (s *source) Acquire() error { return checkpoint.GuardOf(s.Source).Acquire() }

// Release ends the use. Each range that was read was compared with the version
// that was opened, so nothing is left to check.
func (s *source) Release() error { return checkpoint.GuardOf(s.Source).Release() }

// Requests returns how many requests were made so far, and the bytes of all
// bodies, together with those of its siblings.
func (s *source) Requests() (requests, bytes int64) {
	return s.client.requests.Load(), s.client.fetched.Load()
}

// Close waits for running reads and ends the connections that are idle.
func (s *source) Close() error {
	err := s.Source.Close()
	s.client.close()
	return err
}

// Sibling opens a file beside it. The query of the URL goes along.
func (s *source) Sibling(name string) (checkpoint.Source, error) {
	return checkpoint.OpenSibling(name, func(name string) (checkpoint.Source, error) {
		loc := &location{repo: s.loc.repo, url: beside(s.loc.url, name)}
		base, _, query := strings.Cut(s.loc.shown, "?")
		loc.shown = base[:strings.LastIndex(base, "/")+1] + name
		if query {
			loc.shown += "?…"
		}
		return s.client.open(s.ctx, loc)
	})
}

// beside is the URL of a file in the folder of another.
func beside(u *url.URL, name string) *url.URL {
	escaped := u.EscapedPath()
	b := *u
	b.RawPath = escaped[:strings.LastIndex(escaped, "/")+1] + (&url.URL{Path: name}).EscapedPath()
	b.Path, _ = url.PathUnescape(b.RawPath) // both parts were escaped by package url
	return &b
}

// counted reports progress for ranges that are not of this package.
type counted struct {
	Ranges
	opts  *options
	total counter
}

func (c *counted) Range(ctx context.Context, off, n int64) (io.ReadCloser, error) {
	body, err := c.Ranges.Range(ctx, off, n)
	if err != nil || c.opts.progress == nil {
		return body, err
	}
	return &countedBody{body, c}, nil
}

type countedBody struct {
	io.ReadCloser
	of *counted
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if total := b.of.total.Add(int64(n)); n > 0 {
		b.of.opts.progress(total)
	}
	return n, err
}
