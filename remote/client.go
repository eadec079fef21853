package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/wick-ml/wick/fault"
)

const (
	maxRedirects  = 10
	maxHeaderSize = 1 << 20 // bytes of one answer's header
	drainBytes    = 16 << 10
)

// client makes requests: it follows redirects by its own rules, gives the token
// to the hub alone, and ends a request whose server falls silent.
type client struct {
	opts     *options
	hub      *hub
	http     http.RoundTripper // an http.Client would follow redirects, and quote secrets when it fails
	owned    *http.Transport   // whose connections end with the source, nil where the caller gave one
	requests atomic.Int64
	fetched  atomic.Int64
}

func newClient(opts []Option) (*client, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	c := &client{opts: o}
	if c.hub, err = newHub(o.endpoint, o.token); err != nil {
		return nil, err
	}
	if c.http = o.transport; c.http == nil {
		c.owned = newTransport(o.timeout)
		c.http = c.owned
	}
	return c, nil
}

// newTransport is the default one, of HTTP/1.1: several connections side by side
// are faster than one that several requests share.
func newTransport(timeout time.Duration) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    timeout,
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{},
		MaxIdleConns:           2 * maxFetches,
		MaxIdleConnsPerHost:    maxFetches,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeaderSize,
		DisableCompression:     true,
	}
}

func (c *client) close() {
	if c.owned != nil {
		c.owned.CloseIdleConnections()
	}
}

// count adds bytes that came.
func (c *client) count(n int) {
	total := c.fetched.Add(int64(n))
	if c.opts.progress != nil && n > 0 {
		c.opts.progress(total)
	}
}

// get requests u, follows redirects, and returns the answer, whatever its
// status, with the URL that gave it. Its errors say whether they are temporary.
func (c *client) get(ctx context.Context, u *url.URL, header http.Header) (*http.Response, *url.URL, error) {
	for range maxRedirects + 1 {
		resp, err := c.getOne(ctx, u, header)
		if err != nil {
			return nil, nil, err
		}
		if !isRedirect(resp.StatusCode) {
			return resp, u, nil
		}
		_, _ = io.CopyN(io.Discard, resp.Body, drainBytes) // so that the connection can be used again
		_ = resp.Body.Close()
		if u, err = target(u, resp.Header.Get("Location")); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fault.New(fault.IO, "more than "+strconv.Itoa(maxRedirects)+" redirects").
		Needs("a URL that leads to a file", "the server sends in circles; check the URL")
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	default:
		return false
	}
}

// target is where a redirect leads. The password of a URL goes along within its
// own host only.
func target(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	switch {
	case err != nil || location == "" || to.Host == "" || to.Scheme != "http" && to.Scheme != "https":
		return nil, fault.New(fault.IO, "a redirect to no sound URL").Needs("an http or https URL", "check the URL")
	case from.Scheme == "https" && to.Scheme == "http":
		return nil, fault.New(fault.IO, "a redirect from https to http at "+to.Host).
			Needs("https all the way", "give the http URL yourself if you trust the network")
	}
	if to.User = nil; sameHost(from, to) {
		to.User = from.User
	}
	return to, nil
}

// getOne makes one request.
func (c *client) getOne(ctx context.Context, u *url.URL, header http.Header) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		cancel(nil)
		return nil, fault.New(fault.Usage, "no sound URL").Needs("https://HOST/PATH", "")
	}
	for key, values := range header {
		req.Header[key] = values
	}
	req.Header.Set("User-Agent", "wick")
	req.Header.Set("Accept-Encoding", "identity")
	password, _ := u.User.Password()
	switch {
	case u.User != nil:
		req.SetBasicAuth(u.User.Username(), password)
	case c.hub.token != "" && c.hub.owns(u):
		req.Header.Set("Authorization", "Bearer "+c.hub.token)
	}
	c.requests.Add(1)
	silence := time.AfterFunc(c.opts.timeout, func() { cancel(errSilent) })
	resp, err := c.http.RoundTrip(req)
	silence.Stop()
	if err != nil {
		err = c.unreachable(ctx, err, u)
		cancel(nil)
		return nil, err
	}
	resp.Body = &body{ReadCloser: resp.Body, client: c, ctx: ctx, cancel: cancel, silence: silence}
	return resp, nil
}

var errSilent = errors.New("the server has been silent for too long")

// body is an answer's body that ends when the server falls silent.
type body struct {
	io.ReadCloser
	client  *client
	ctx     context.Context // of the request
	cancel  context.CancelCauseFunc
	silence *time.Timer
}

// Read reads on.
func (b *body) Read(p []byte) (int, error) {
	b.silence.Reset(b.client.opts.timeout)
	n, err := b.ReadCloser.Read(p)
	b.silence.Stop() // nobody is silent while nobody listens
	b.client.count(n)
	if err != nil && err != io.EOF && b.ctx.Err() != nil { //nolint:errorlint // the bare EOF is the end
		err = context.Cause(b.ctx)
	}
	return n, err
}

// Close ends the request.
func (b *body) Close() error {
	b.silence.Stop()
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}

// unreachable explains why a request had no answer.
func (c *client) unreachable(ctx context.Context, err error, u *url.URL) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errSilent) {
		return cause
	}
	if ctx.Err() != nil {
		err = errSilent
	}
	if strings.Contains(err.Error(), "proxy address") { // quotes the environment
		err = errors.New("the environment names no sound proxy")
	}
	e := fault.Wrap(fault.IO, u.Host+" cannot be reached", err)
	var unknown *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return e.Needs("", "check the host's name and the network")
	case errors.As(err, &certificate):
		return e.Needs("a certificate that this machine trusts", "")
	case strings.Contains(err.Error(), "server response headers exceeded"), strings.Contains(err.Error(), "proxy"):
		return e
	case errors.Is(err, syscall.ECONNREFUSED) && c.fetched.Load() == 0:
		return e.Needs("", "check the host, the port and the network")
	default:
		return Temporary(e.Needs("", "check the network"))
	}
}

// lost is what it means that a body ended with err.
func lost(err error) error {
	var known *fault.Error
	switch {
	case errors.As(err, &known), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("the connection was cut")
	}
	return fault.Wrap(fault.IO, "the transfer broke off", err).Needs("", "try again")
}

// refused explains an answer that has no content, by its status.
func (c *client) refused(resp *http.Response) error {
	status := httpStatus(resp.StatusCode)
	if text := resp.Header.Get("X-Error-Message"); text != "" { // of Hugging Face's hub
		status += ", " + text
	}
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound, code == http.StatusGone:
		return fault.Wrap(fault.NotFound, "no such file on the server ("+status+")", fs.ErrNotExist).Needs("", "check the URL")
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return fault.New(fault.IO, "the server refuses access ("+status+")").Needs("permission", c.permission(resp))
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500 && code != http.StatusNotImplemented:
		return after(fault.New(fault.IO, "the server cannot answer now ("+status+")").Needs("", "try again later"), retryAfter(resp))
	default:
		return fault.New(fault.IO, "the server answers "+status).Needs("the bytes of a file", "check the URL")
	}
}

// permission says how to get access.
func (c *client) permission(resp *http.Response) string {
	switch {
	case !c.hub.owns(resp.Request.URL):
		return "check the URL; what is signed in it may have expired"
	case c.hub.token == "":
		return "set HF_TOKEN to a token that may read it, and check the name"
	default:
		return "check the name, and that the token of HF_TOKEN may read it"
	}
}

// retryAfter is the pause that a server asks for, 0 if none.
func retryAfter(resp *http.Response) time.Duration {
	text := resp.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(max(seconds, 0), 3600)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}
