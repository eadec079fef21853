package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// quick makes retries quick.
func quick(o *options) { o.pause = time.Millisecond }

// file is a file on a test server, and what is odd about the server.
type file struct {
	mu       sync.Mutex
	data     []byte
	etag     string
	modified time.Time
	odd      func(w http.ResponseWriter, r *http.Request, n int) bool // answers the n-th request itself if it returns true
	n        atomic.Int64
	ranges   []string // of all requests
}

func (f *file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := int(f.n.Add(1))
	f.mu.Lock()
	f.ranges = append(f.ranges, r.Header.Get("Range"))
	data, etag, modified, odd := f.data, f.etag, f.modified, f.odd
	f.mu.Unlock()
	if odd != nil && odd(w, r, n) {
		return
	}
	if etag != "" {
		w.Header().Set("ETag", etag)
	}
	http.ServeContent(w, r, "", modified, bytes.NewReader(data))
}

func (f *file) change(data []byte, etag string, modified time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.data, f.etag, f.modified = data, etag, modified
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL + "/file.pt"
}

// noise is n bytes that are all different from their neighbours.
func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}

func open(t *testing.T, url string, opts ...Option) checkpoint.Source {
	t.Helper()
	src, err := Open(t.Context(), url, append([]Option{quick, Hub("", "")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = src.Close() })
	return src
}

func readAll(src checkpoint.Source, piece int) ([]byte, error) {
	var all bytes.Buffer
	_, err := io.CopyBuffer(struct{ io.Writer }{&all}, struct{ io.Reader }{io.NewSectionReader(src, 0, src.Size())}, make([]byte, piece))
	return all.Bytes(), err
}

var sizes = []int{1, 100, blockBytes - 1, blockBytes, blockBytes + 1, 3*blockBytes + 77, 40*blockBytes + 5}

func TestReadsWhatTheServerHas(t *testing.T) {
	for _, size := range sizes {
		f := &file{data: noise(size), etag: `"one"`}
		url := serve(t, f)
		for _, piece := range []int{1000, 64 << 10, 700_000, 5 << 20} {
			if piece == 1000 && size > 4*blockBytes {
				continue
			}
			src := open(t, url, CacheBytes(leastCache))
			if src.Size() != int64(size) || !checkpoint.IsDistant(src) {
				t.Errorf("size %d, distant %v; want %d", src.Size(), checkpoint.IsDistant(src), size)
			}
			got, err := readAll(src, piece)
			if err != nil || !bytes.Equal(got, f.data) {
				t.Errorf("%d bytes by %d: other bytes (%d), %v", size, piece, len(got), err)
			}
		}
	}
}

func TestReadAtAnyPlace(t *testing.T) {
	f := &file{data: noise(9*blockBytes + 3), modified: time.Unix(1e9, 0)}
	src := open(t, serve(t, f), CacheBytes(leastCache))
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(worker)))
			for range 200 {
				off := r.Int64N(src.Size())
				p := make([]byte, 1+r.IntN(1<<(1+r.IntN(21))))
				n, err := src.ReadAt(p, off)
				want := f.data[off:min(off+int64(len(p)), src.Size())]
				if !bytes.Equal(p[:n], want) || (err != nil) != (len(want) < len(p)) || err != nil && !errors.Is(err, io.EOF) {
					t.Errorf("ReadAt(%d bytes, %d): %d bytes, %v", len(p), off, n, err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, off := range []int64{-1, src.Size(), src.Size() + 1, 1 << 62} {
		if n, err := src.ReadAt(make([]byte, 1), off); n != 0 || err == nil {
			t.Errorf("ReadAt at %d: %d, %v", off, n, err)
		}
	}
}

// TestEachByteOnce holds that a file read in order is fetched once, by few
// requests.
func TestEachByteOnce(t *testing.T) {
	f := &file{data: noise(30 << 20), etag: `"one"`}
	src := open(t, serve(t, f))
	if got, err := readAll(src, 64<<10); err != nil || !bytes.Equal(got, f.data) {
		t.Fatal(len(got), err)
	}
	requests, fetched := src.(*source).Requests()
	if fetched != int64(len(f.data)) || requests > 20 {
		t.Errorf("%d bytes in %d requests", fetched, requests)
	}
}

// TestReadAheadIsNotInVain holds that what was read ahead is still there when it
// is wanted, with the smallest cache and readers in several places. How the two
// readers take turns decides whether a block or four are fetched again; nearly
// every one is where reading ahead and the cache work against each other.
func TestReadAheadIsNotInVain(t *testing.T) {
	f := &file{data: noise(48 << 20), etag: `"one"`}
	src := open(t, serve(t, f), CacheBytes(leastCache))
	var wg sync.WaitGroup
	for worker := range int64(2) {
		wg.Go(func() {
			half := src.Size() / 2
			if _, err := io.Copy(io.Discard, struct{ io.Reader }{io.NewSectionReader(src, worker*half, half)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if requests, fetched := src.(*source).Requests(); fetched > int64(len(f.data))*5/4 || requests > 150 {
		t.Errorf("%d bytes of %d in %d requests", fetched, len(f.data), requests)
	}
}

// TestManyReadersFetchOnce holds that readers of the same bytes share a request.
func TestManyReadersFetchOnce(t *testing.T) {
	f := &file{data: noise(8 << 20), etag: `"one"`}
	src := open(t, serve(t, f))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got, err := readAll(src, 100_000); err != nil || !bytes.Equal(got, f.data) {
				t.Error(len(got), err)
			}
		})
	}
	wg.Wait()
	if _, fetched := src.(*source).Requests(); fetched != int64(len(f.data)) {
		t.Errorf("%d bytes fetched of %d", fetched, len(f.data))
	}
}

// TestCacheIsBounded holds that a source keeps no more than it may, whatever is
// read how.
func TestCacheIsBounded(t *testing.T) {
	size := int64(200 << 20)
	o, err := newOptions([]Option{quick, CacheBytes(leastCache)})
	if err != nil {
		t.Fatal(err)
	}
	c := newCache(t.Context(), zeros{}, size, o)
	defer c.Close()
	var wg sync.WaitGroup
	most := atomic.Int64{}
	for worker := range int64(4) {
		wg.Go(func() {
			p := make([]byte, 300_000)
			for off := worker * size / 4; off < (worker+1)*size/4-int64(len(p)); off += int64(len(p)) {
				if _, err := c.ReadAt(p, off); err != nil {
					t.Error(err)
					return
				}
				c.mu.Lock()
				memory := len(c.spare)
				for _, b := range c.blocks {
					if b.data != nil {
						memory++
					}
				}
				most.Store(max(most.Load(), int64(memory)))
				c.mu.Unlock()
			}
		})
	}
	wg.Wait()
	if limit := int64(leastCache/blockBytes) + 4*3; most.Load() > limit { // each of four readers holds up to three
		t.Errorf("%d blocks, want at most %d", most.Load(), limit)
	}
}

// TestSourcesShareTheirCache holds that thirty shards keep no more than one
// file, and give back all when they are closed.
func TestSourcesShareTheirCache(t *testing.T) {
	both := Together(quick, CacheBytes(leastCache))
	o, err := newOptions([]Option{both})
	if err != nil {
		t.Fatal(err)
	}
	var srcs []checkpoint.Source
	for range 30 {
		src, err := NewSource(t.Context(), "zeros", 5<<20, zeros{}, both)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(src, 100_000); err != nil {
			t.Fatal(err)
		}
		srcs = append(srcs, src)
	}
	o.pool.mu.Lock()
	if o.pool.kept > leastCache/blockBytes || o.pool.kept == 0 {
		t.Errorf("%d blocks are kept", o.pool.kept)
	}
	o.pool.mu.Unlock()
	for _, src := range srcs {
		src.Close()
	}
	if o.pool.kept != 0 || o.pool.lru.Len() != 0 {
		t.Errorf("%d blocks are left, %d in order", o.pool.kept, o.pool.lru.Len())
	}
}

// zeros are ranges of zero bytes.
type zeros struct{}

func (zeros) Range(_ context.Context, _, n int64) (io.ReadCloser, error) {
	return io.NopCloser(io.LimitReader(zeroReader{}, n)), nil
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestFewRequestsForAHeader holds that a header longer than the first block
// takes one more request, however long it is.
func TestFewRequestsForAHeader(t *testing.T) {
	for _, header := range []int{1000, 2 << 20, 20 << 20} {
		f := &file{data: noise(25 << 20), etag: `"one"`}
		src := open(t, serve(t, f))
		for _, p := range [][]byte{make([]byte, 8), make([]byte, header)} {
			if _, err := src.ReadAt(p, 0); err != nil {
				t.Fatal(err)
			}
		}
		requests, fetched := src.(*source).Requests()
		if requests > 2 || fetched > int64(header)+2*blockBytes {
			t.Errorf("a header of %d: %d requests, %d bytes", header, requests, fetched)
		}
	}
}

// aborting cuts answers off after some bytes of their body.
func aborting(after func(n int) int) func(http.ResponseWriter, *http.Request, int) bool {
	return func(w http.ResponseWriter, r *http.Request, n int) bool {
		most := after(n)
		if most < 0 {
			return false
		}
		f := r.Context().Value(http.ServerContextKey).(*http.Server).Handler.(*file)
		w.Header().Set("ETag", f.etag)
		http.ServeContent(&cutWriter{ResponseWriter: w, left: most}, r, "", time.Time{}, bytes.NewReader(f.data))
		return true
	}
}

type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) Write(p []byte) (int, error) {
	n, _ := c.ResponseWriter.Write(p[:min(len(p), c.left)])
	if c.left -= n; c.left == 0 && n < len(p) {
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	return n, nil
}

func TestCutConnectionsAreResumed(t *testing.T) {
	cases := map[string]func(n int) int{
		"every second at once":       func(n int) int { return n%2*1_000_000 - 1 + n%2 },
		"each after 100,000 bytes":   func(int) int { return 100_000 },
		"each after 5,000 bytes":     func(int) int { return 5_000 },
		"four in a row with nothing": func(n int) int { return map[bool]int{true: 0, false: -1}[n%5 != 0] },
	}
	many := Retries(1000) // which of the requests at the same time get through is left to chance
	for name, after := range cases {
		size := 3 << 20
		if name == "each after 5,000 bytes" {
			size = 20_000 // little progress counts as little
		}
		f := &file{data: noise(size), etag: `"one"`, odd: aborting(after)}
		src := open(t, serve(t, f), many)
		got, err := readAll(src, 64<<10)
		if err != nil || !bytes.Equal(got, f.data) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func TestShortRangesAreGoneOnWith(t *testing.T) {
	f := &file{data: noise(2 << 20), etag: `"one"`}
	f.odd = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		var a, b int
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &a, &b); err != nil {
			t.Error(err)
		}
		b = min(b, a+99_999, len(f.data)-1) // the server has ranges of 100,000 bytes and no longer ones
		w.Header().Set("ETag", f.etag)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", a, b, len(f.data)))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(f.data[a : b+1])
		return true
	}
	src := open(t, serve(t, f))
	if got, err := readAll(src, 64<<10); err != nil || !bytes.Equal(got, f.data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestRetries(t *testing.T) {
	status := func(code int, until int) func(http.ResponseWriter, *http.Request, int) bool {
		return func(w http.ResponseWriter, _ *http.Request, n int) bool {
			if n <= until {
				w.WriteHeader(code)
			}
			return n <= until
		}
	}
	for _, c := range []struct {
		code, times, requests int
		want                  error
	}{
		{503, 3, 4, nil}, {500, 1, 2, nil}, {502, 1, 2, nil}, {504, 1, 2, nil}, {429, 2, 3, nil}, {408, 1, 2, nil},
		{503, 100, DefaultRetries + 1, fault.ErrIO},
		{404, 100, 1, fault.ErrNotFound}, {410, 100, 1, fault.ErrNotFound},
		{401, 100, 1, fault.ErrIO}, {403, 100, 1, fault.ErrIO}, {400, 100, 1, fault.ErrIO}, {501, 100, 1, fault.ErrIO},
	} {
		f := &file{data: noise(1000), odd: status(c.code, c.times)}
		src, err := Open(t.Context(), serve(t, f), quick, Hub("", ""))
		if !errors.Is(err, c.want) || int(f.n.Load()) != c.requests {
			t.Errorf("%d for %d times: %v after %d requests, want %v after %d", c.code, c.times, err, f.n.Load(), c.want, c.requests)
		}
		if err == nil {
			src.Close()
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "2": 2 * time.Second, "-1": 0, "junk": 0, "99999999": time.Hour, "Wed, 21 Oct 2015 07:28:00 GMT": 0} {
		if got := retryAfter(&http.Response{Header: http.Header{"Retry-After": {text}}}); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestChangedFiles holds that no read mixes two versions of a file.
func TestChangedFiles(t *testing.T) {
	old, fresh := noise(2<<20), noise(4 << 20)[2<<20:]
	day := time.Unix(1e9, 0)
	stubborn := func(w http.ResponseWriter, r *http.Request, _ int) bool {
		r.Header.Del("If-Range") // a server that does not know it
		return false
	}
	cases := map[string]struct{ before, after *file }{
		"another ETag":              {&file{data: old, etag: `"one"`}, &file{data: fresh, etag: `"two"`}},
		"another ETag, no If-Range": {&file{data: old, etag: `"one"`, odd: stubborn}, &file{data: fresh, etag: `"two"`}},
		"another weak ETag":         {&file{data: old, etag: `W/"one"`}, &file{data: fresh, etag: `W/"two"`}},
		"another time":              {&file{data: old, modified: day}, &file{data: fresh, modified: day.Add(time.Hour)}},
		"another time, no If-Range": {&file{data: old, modified: day, odd: stubborn}, &file{data: fresh, modified: day.Add(time.Hour)}},
		"another size":              {&file{data: old}, &file{data: append(fresh, 1)}},
		"cut short":                 {&file{data: old}, &file{data: fresh[:1<<20]}},
		"empty":                     {&file{data: old}, &file{data: nil}},
	}
	for name, c := range cases {
		src := open(t, serve(t, c.before))
		c.before.change(c.after.data, c.after.etag, c.after.modified)
		p := make([]byte, 100)
		if n, err := src.ReadAt(p, 1<<20+1<<19); n != 0 || !errors.Is(err, fault.ErrChanged) {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
		if n, err := src.ReadAt(p, 5); n != len(p) || err != nil || !bytes.Equal(p, old[5:105]) {
			t.Errorf("%s: what was read before: %d bytes, %v", name, n, err)
		}
		p = make([]byte, 1<<20)
		if n, err := src.ReadAt(p, 0); err == nil || !bytes.Equal(p[:n], old[:n]) {
			t.Errorf("%s: a read of both: %d bytes, %v", name, n, err)
		}
	}
	f := &file{data: old, etag: `"one"`}
	src := open(t, serve(t, f))
	f.change(old, `W/"one"`, time.Time{}) // compressed on its way
	if got, err := readAll(src, 64<<10); err != nil || !bytes.Equal(got, old) {
		t.Errorf("an ETag that became weak: %d bytes, %v", len(got), err)
	}
}

// flaky are ranges that fail at times.
type flaky struct {
	data  []byte
	calls atomic.Int64
	fail  func(n int64) error
}

func (f *flaky) Range(_ context.Context, off, n int64) (io.ReadCloser, error) {
	if err := f.fail(f.calls.Add(1)); err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(f.data[off : off+n])), nil
}

func TestNewSource(t *testing.T) {
	dead := errors.New("dead")
	f := &flaky{data: noise(3 << 20), fail: func(n int64) error {
		if n%2 == 1 {
			return Temporary(dead)
		}
		return nil
	}}
	var last atomic.Int64
	src, err := NewSource(t.Context(), "store:x", int64(len(f.data)), f, quick, Retries(1000), Progress(func(n int64) { last.Store(max(last.Load(), n)) }))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if got, err := readAll(src, 100_000); err != nil || !bytes.Equal(got, f.data) || last.Load() != int64(len(f.data)) {
		t.Errorf("%d bytes, %d reported, %v", len(got), last.Load(), err)
	}
	for name, fail := range map[string]error{"temporary": Temporary(dead), "for good": dead} {
		f := &flaky{data: f.data, fail: func(int64) error { return fail }}
		src, err := NewSource(t.Context(), "store:x", 100, f, quick, Retries(2))
		if err != nil {
			t.Fatal(err)
		}
		_, err = src.ReadAt(make([]byte, 1), 0)
		if want := map[string]int64{"temporary": 3, "for good": 1}[name]; !errors.Is(err, dead) || f.calls.Load() != want {
			t.Errorf("%s: %v after %d calls, want %d", name, err, f.calls.Load(), want)
		}
		src.Close()
	}
	if _, err := NewSource(t.Context(), "x", -1, f); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("a negative size: %v", err)
	}
	if _, err := NewSource(t.Context(), "x", 1, f, Timeout(-1)); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("a negative timeout: %v", err)
	}
	if Temporary(nil) != nil {
		t.Error("no error became one")
	}
}
