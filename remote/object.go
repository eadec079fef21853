package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/wick-ml/wick/fault"
)

// ErrNoRanges is the cause of [Open]'s error about a file that is too large to
// be held in memory and whose server gives it from its beginning only.
var ErrNoRanges = errors.New("the server has no ranges")

// object is one version of a file on a web server.
type object struct {
	client *client
	origin *url.URL // what the name means
	size   int64
	etag   string // "" if the server gave none
	time   string // of modification, as the server wrote it

	mu sync.Mutex
	at *url.URL // where redirects led
}

// first is what the first answer brought.
type first struct {
	*object        // nil when the server has no ranges
	head    []byte // the file's first bytes, as many as came
	whole   []byte // the whole file, of a server without ranges; nil if it is too large
	size    int64  // of the file, -1 if the server does not say
}

// probe gets the first n bytes of a file, and all that the server says of it.
func (c *client) probe(ctx context.Context, u *url.URL, n int64) (*first, error) {
	var f *first
	err := c.opts.again(ctx, func() error {
		resp, at, err := c.get(ctx, u, http.Header{"Range": {byteRange(0, n)}})
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		f, err = c.meet(resp, u, at, n)
		return err
	})
	return f, err
}

func byteRange(off, n int64) string {
	return "bytes=" + strconv.FormatInt(off, 10) + "-" + strconv.FormatInt(off+n-1, 10)
}

// meet reads the first answer.
func (c *client) meet(resp *http.Response, origin, at *url.URL, n int64) (*first, error) {
	o := &object{client: c, origin: origin, at: at, etag: resp.Header.Get("ETag"), time: resp.Header.Get("Last-Modified")}
	switch resp.StatusCode {
	case http.StatusPartialContent:
		return o.meetRange(resp, n)
	case http.StatusOK:
		return c.meetWhole(resp)
	case http.StatusRequestedRangeNotSatisfiable:
		if r, ok := parseContentRange(resp.Header.Get("Content-Range")); ok && r.total == 0 {
			return &first{object: o}, nil // an empty file has no first byte
		}
	}
	return nil, c.refused(resp)
}

func (o *object) meetRange(resp *http.Response, n int64) (*first, error) {
	r, err := checkRange(resp, 0, n)
	if err != nil {
		return nil, err
	}
	if r.total < 0 {
		return &first{size: -1}, nil // ranges of a file that has no end are none
	}
	o.size = r.total
	head, err := io.ReadAll(io.LimitReader(resp.Body, r.last+1))
	if err != nil && len(head) == 0 {
		return nil, Temporary(lost(err))
	}
	return &first{object: o, head: head, size: r.total}, nil // what is missing will be asked for
}

// unknownHold bounds what is held of a file whose size the server does not say.
const unknownHold = 1 << 20

// meetWhole holds a small file of a server without ranges.
func (c *client) meetWhole(resp *http.Response) (*first, error) {
	if err := checkEncoding(resp); err != nil {
		return &first{size: -1}, nil //nolint:nilerr // the stream will undo the encoding, or say what it is
	}
	size, most := resp.ContentLength, c.opts.hold
	if size < 0 {
		most = min(most, unknownHold)
	}
	if size > most || most == 0 && size != 0 {
		return &first{size: size}, nil
	}
	whole, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return nil, Temporary(lost(err))
	case int64(len(whole)) > most:
		return &first{size: -1}, nil
	}
	return &first{whole: append([]byte{}, whole...), size: int64(len(whole))}, nil
}

// Range requests n bytes from off, which exist.
func (o *object) Range(ctx context.Context, off, n int64) (io.ReadCloser, error) {
	header := http.Header{"Range": {byteRange(off, n)}}
	if condition := o.condition(); condition != "" {
		header.Set("If-Range", condition)
	}
	resp, err := o.get(ctx, header)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK && header.Get("If-Range") != "" && o.same(resp) {
		// The server cannot tell that it is the same version: its ETag became a weak one, or its clock is coarse.
		_ = resp.Body.Close()
		header.Del("If-Range")
		if resp, err = o.get(ctx, header); err != nil {
			return nil, err
		}
	}
	if err := o.check(resp, off, n); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp.Body, nil
}

// condition is what If-Range says: a weak ETag would match nothing (RFC 9110,
// 13.1.5).
func (o *object) condition() string {
	switch {
	case o.etag == "":
		return o.time
	case strings.HasPrefix(o.etag, "W/"):
		return ""
	default:
		return o.etag
	}
}

// same reports whether nothing tells an answer with the whole file from the
// version that was opened.
func (o *object) same(resp *http.Response) bool {
	return !o.differs(resp) && (resp.ContentLength < 0 || resp.ContentLength == o.size)
}

// get goes straight to where redirects led, and through them again when that
// place no longer gives the file: what is signed in its URL expires.
func (o *object) get(ctx context.Context, header http.Header) (*http.Response, error) {
	o.mu.Lock()
	at := o.at
	o.mu.Unlock()
	resp, _, err := o.client.get(ctx, at, header)
	if err != nil || *at == *o.origin || resp.StatusCode < 400 || resp.StatusCode >= 500 || resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		return resp, err
	}
	_ = resp.Body.Close()
	resp, at, err = o.client.get(ctx, o.origin, header)
	if err == nil {
		o.mu.Lock()
		o.at = at
		o.mu.Unlock()
	}
	return resp, err
}

// check proves that an answer has the bytes that were asked for, of the version
// that was opened.
func (o *object) check(resp *http.Response, off, n int64) error {
	switch resp.StatusCode {
	case http.StatusPartialContent:
	case http.StatusOK:
		if !o.same(resp) {
			return changed()
		}
		return fault.New(fault.IO, "the server has ceased to answer with ranges").Needs("the range that was asked for", "try again, or download the file")
	case http.StatusRequestedRangeNotSatisfiable, http.StatusPreconditionFailed:
		return changed()
	default:
		return o.client.refused(resp)
	}
	if o.differs(resp) {
		return changed()
	}
	r, err := checkRange(resp, off, n)
	if err == nil && r.total >= 0 && r.total != o.size {
		return changed()
	}
	return err
}

// differs reports whether an answer is of another version. Servers that
// compress turn strong ETags into weak ones.
func (o *object) differs(resp *http.Response) bool {
	etag := resp.Header.Get("ETag")
	if o.etag != "" && etag != "" {
		return strings.TrimPrefix(etag, "W/") != strings.TrimPrefix(o.etag, "W/")
	}
	t := resp.Header.Get("Last-Modified")
	return o.time != "" && t != "" && o.time != t
}

func changed() error {
	return fault.New(fault.Changed, "the server has another version of it").
		Needs("a file that stays as it is", "read it again")
}

// contentRange is a Content-Range of bytes.
type contentRange struct{ start, last, total int64 } // start and last -1 for none, total -1 if unknown

// parseContentRange reads "bytes 0-9/100", "bytes 0-9/*" and "bytes */100".
func parseContentRange(text string) (contentRange, bool) {
	r := contentRange{-1, -1, -1}
	unit, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	span, total, ok := strings.Cut(strings.TrimSpace(rest), "/")
	if !ok || !strings.EqualFold(unit, "bytes") {
		return r, false
	}
	if total != "*" && !parseNumber(total, &r.total) {
		return r, false
	}
	if span == "*" {
		return r, true
	}
	start, last, _ := strings.Cut(span, "-")
	ok = parseNumber(start, &r.start) && parseNumber(last, &r.last) && r.start <= r.last && (r.total < 0 || r.last < r.total)
	return r, ok
}

func parseNumber(text string, to *int64) bool {
	n, err := strconv.ParseUint(text, 10, 63)
	*to = int64(n)
	return err == nil
}

// checkRange proves that a partial answer begins where it must and is not longer
// than what was asked for. It may be shorter.
func checkRange(resp *http.Response, off, n int64) (contentRange, error) {
	if err := checkEncoding(resp); err != nil {
		return contentRange{}, err
	}
	text := resp.Header.Get("Content-Range")
	r, ok := parseContentRange(text)
	if !ok || r.start != off || r.last >= off+n {
		if text == "" {
			text = "no Content-Range but " + resp.Header.Get("Content-Type")
		}
		return r, fault.New(fault.IO, "the server answers other bytes than asked for ("+text+")").
			Needs(byteRange(off, n), "download the file and open it from disk")
	}
	return r, nil
}

func checkEncoding(resp *http.Response) error {
	encoding := resp.Header.Get("Content-Encoding")
	if encoding == "" || strings.EqualFold(encoding, "identity") {
		return nil
	}
	return fault.New(fault.IO, "the server sends the file in the encoding "+encoding).
		Needs("the bytes as they are", "download the file and open it from disk")
}
