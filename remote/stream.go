package remote

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/wick-ml/wick/fault"
)

type counter = atomic.Int64

// Stream is a file that comes once, from its beginning. It is read from one
// goroutine.
type Stream struct {
	name string
	size int64
	r    io.Reader
	body io.ReadCloser
	n    int64
	end  error // what the last Read returned
}

// OpenStream starts getting the whole file that a URL names, for servers without
// ranges: the first bytes of its content are what Read gives first. ctx is for the
// life of the stream. A connection that breaks cannot be resumed; it ends the
// stream with an [fault.ErrIO] error.
func OpenStream(ctx context.Context, name string, opts ...Option) (*Stream, error) {
	c, loc, err := begin(name, opts)
	if err != nil {
		return nil, err
	}
	if loc.url == nil {
		return nil, fault.New(fault.Usage, "a repository").In(loc.shown).Needs("a file", "")
	}
	var s *Stream
	err = c.opts.again(ctx, func() error {
		resp, _, err := c.get(ctx, loc.url, nil)
		if err != nil {
			return err
		}
		s, err = c.newStream(resp, loc.shown)
		return err
	})
	return s, fault.InFile(err, loc.shown)
}

func (c *client) newStream(resp *http.Response, name string) (*Stream, error) {
	if resp.StatusCode != http.StatusOK {
		defer func() { _ = resp.Body.Close() }()
		return nil, c.refused(resp)
	}
	s := &Stream{name: name, size: resp.ContentLength, body: resp.Body, r: resp.Body}
	switch encoding := strings.ToLower(resp.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
		return s, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(resp.Body)
		if err != nil {
			_ = resp.Body.Close()
			return nil, Temporary(lost(err))
		}
		s.r, s.size = z, -1
		return s, nil
	default:
		_ = resp.Body.Close()
		return nil, checkEncoding(resp)
	}
}

// Name returns the URL without its secrets.
func (s *Stream) Name() string { return s.name }

// Size returns the bytes that are to come, -1 if the server did not say.
func (s *Stream) Size() int64 { return s.size }

// Read reads on. The connection ends with the stream.
func (s *Stream) Read(p []byte) (int, error) {
	if s.end != nil {
		return 0, s.end
	}
	n, err := s.r.Read(p)
	s.n += int64(n)
	if err != nil {
		s.end = s.explain(err)
		_ = s.body.Close() // nothing is left to read
	}
	return n, s.end
}

func (s *Stream) explain(err error) error {
	if err == io.EOF { //nolint:errorlint // the bare EOF is the end
		return err
	}
	err = lost(err)
	var e *fault.Error
	if errors.As(err, &e) && e.Cure == "try again" {
		return e.In(s.name).At(s.n)
	}
	return err
}

// Close ends the transfer.
func (s *Stream) Close() error {
	if s.end == nil {
		s.end = fault.New(fault.Closed, "a read after Close").In(s.name)
	}
	return s.body.Close()
}
