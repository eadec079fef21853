package remote

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// partial answers every request with a 206 of the given headers and body.
func partial(body string, headers ...string) func(http.ResponseWriter, *http.Request, int) bool {
	return func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(http.StatusPartialContent)
		_, _ = io.WriteString(w, body)
		return true
	}
}

func TestAnswersThatLie(t *testing.T) {
	cases := map[string]func(http.ResponseWriter, *http.Request, int) bool{
		"no Content-Range":  partial("0123456789"),
		"another start":     partial("0123456789", "Content-Range", "bytes 5-14/100"),
		"longer than asked": partial("0123456789", "Content-Range", "bytes 0-9999999/100000000"),
		"end before start":  partial("0123456789", "Content-Range", "bytes 9-0/100"),
		"end past total":    partial("0123456789", "Content-Range", "bytes 0-9/5"),
		"another unit":      partial("0123456789", "Content-Range", "lines 0-9/100"),
		"no number":         partial("0123456789", "Content-Range", "bytes 0-x/100"),
		"negative":          partial("0123456789", "Content-Range", "bytes -5-9/100"),
		"total beyond 2^63": partial("0123456789", "Content-Range", "bytes 0-9/99999999999999999999"),
		"several parts":     partial("--x\r\n", "Content-Type", "multipart/byteranges; boundary=x"),
		"gzip":              partial("0123456789", "Content-Range", "bytes 0-9/100", "Content-Encoding", "gzip"),
		"416 of a file":     status416("bytes */100"),
		"416 of nothing":    status416(""),
		"huge headers": func(w http.ResponseWriter, _ *http.Request, _ int) bool {
			for i := range 2000 {
				w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("x", 1000))
			}
			return false
		},
		"no HTTP": raw("SSH-2.0-OpenSSH_9\r\n"),
		"status of its own": func(w http.ResponseWriter, _ *http.Request, _ int) bool {
			w.WriteHeader(299)
			return true
		},
		"304": func(w http.ResponseWriter, _ *http.Request, _ int) bool {
			w.WriteHeader(http.StatusNotModified)
			return true
		},
	}
	for name, odd := range cases {
		f := &file{data: noise(1000), odd: odd}
		src, err := Open(t.Context(), serve(t, f), quick, Retries(1), Hub("", ""))
		if !errors.Is(err, fault.ErrIO) {
			t.Errorf("%s: %v, %v", name, src, err)
		}
	}
}

func status416(contentRange string) func(http.ResponseWriter, *http.Request, int) bool {
	return func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		w.Header().Set("Content-Range", contentRange)
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		return true
	}
}

// raw answers with bytes of its own and closes the connection.
func raw(text string) func(http.ResponseWriter, *http.Request, int) bool {
	return func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
		return true
	}
}

// TestLaterAnswersThatLie holds that each range is compared with what the first
// answer said.
func TestLaterAnswersThatLie(t *testing.T) {
	cases := map[string]struct {
		odd  func(http.ResponseWriter, *http.Request, int) bool
		want error
	}{
		"other bytes":   {partial("0123456789", "Content-Range", "bytes 0-9/2097152"), fault.ErrIO},
		"another total": {partial("0123456789", "Content-Range", "bytes 1048576-1048585/99999999"), fault.ErrChanged},
		"gzip":          {partial("0123456789", "Content-Range", "bytes 1048576-1048585/2097152", "Content-Encoding", "gzip"), fault.ErrIO},
		"416":           {status416("bytes */3"), fault.ErrChanged},
		"412": {func(w http.ResponseWriter, _ *http.Request, _ int) bool {
			w.WriteHeader(http.StatusPreconditionFailed)
			return true
		}, fault.ErrChanged},
		"no ranges any more": {func(_ http.ResponseWriter, r *http.Request, _ int) bool { r.Header.Del("Range"); return false }, fault.ErrIO},
		"gone": {func(w http.ResponseWriter, _ *http.Request, _ int) bool {
			w.WriteHeader(http.StatusNotFound)
			return true
		}, fault.ErrNotFound},
		"always short":        {raw("HTTP/1.1 206 OK\r\nContent-Range: bytes 1048576-1310719/2097152\r\nContent-Length: 262144\r\n\r\n"), fault.ErrIO},
		"nobody there":        {raw(""), fault.ErrIO},
		"a chunk that breaks": {raw("HTTP/1.1 206 OK\r\nContent-Range: bytes 1048576-1310719/2097152\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), fault.ErrIO},
	}
	for name, c := range cases {
		f := &file{data: noise(2 << 20)}
		src := open(t, serve(t, f), Retries(1))
		f.mu.Lock()
		f.odd = c.odd
		f.mu.Unlock()
		p := make([]byte, 100)
		if n, err := src.ReadAt(p, 1<<20); n != 0 || !errors.Is(err, c.want) {
			t.Errorf("%s: %d bytes, %v; want %v", name, n, err, c.want)
		}
		f.mu.Lock()
		f.odd = nil
		f.mu.Unlock()
		if n, err := src.ReadAt(p, 1<<20); err != nil || !bytes.Equal(p[:n], f.data[1<<20:][:100]) {
			t.Errorf("%s: a failed read is remembered: %d bytes, %v", name, n, err)
		}
	}
}

func TestEmptyFile(t *testing.T) {
	for name, odd := range map[string]func(http.ResponseWriter, *http.Request, int) bool{
		"200": nil,
		"416": status416("bytes */0"),
	} {
		src := open(t, serve(t, &file{odd: odd}))
		if n, err := src.ReadAt(make([]byte, 1), 0); src.Size() != 0 || n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %d bytes of %d, %v", name, n, src.Size(), err)
		}
	}
}

// TestSilentServers holds that a server which says nothing more is given up and
// asked again.
func TestSilentServers(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	wait := func(r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}
	cases := map[string]func(w http.ResponseWriter, r *http.Request, n int) bool{
		"no answer": func(_ http.ResponseWriter, r *http.Request, n int) bool {
			if n == 2 {
				wait(r)
			}
			return n == 2
		},
		"no more of it": func(w http.ResponseWriter, r *http.Request, n int) bool {
			if n == 2 {
				w.Header().Set("Content-Range", "bytes 262144-524287/1048576")
				w.Header().Set("Content-Length", "262144")
				w.WriteHeader(http.StatusPartialContent)
				w.(http.Flusher).Flush()
				wait(r)
			}
			return n == 2
		},
	}
	for name, odd := range cases {
		f := &file{data: noise(1 << 20), odd: odd}
		src := open(t, serve(t, f), Timeout(time.Second))
		if got, err := readAll(src, 100_000); err != nil || !bytes.Equal(got, f.data) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if f.n.Load() < 3 {
			t.Errorf("%s: nobody was silent", name)
		}
	}
	asked := 0
	silent := transport(func(r *http.Request) (*http.Response, error) {
		asked++ // here and not in a server, which a busy machine may not get to in time
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	if _, err := Open(t.Context(), "http://127.0.0.1/x.pt", quick, Retries(1), Timeout(50*time.Millisecond), Hub("", ""), Transport(silent)); !errors.Is(err, fault.ErrIO) || asked != 2 {
		t.Errorf("always silent: %v after %d requests", err, asked)
	}
}

// TestSlowServers holds that slow is not silent.
func TestSlowServers(t *testing.T) {
	f := &file{data: noise(300_000)}
	f.odd = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		w.Header().Set("Content-Range", "bytes 0-262143/300000")
		w.WriteHeader(http.StatusPartialContent)
		for at := 0; at < blockBytes; at += blockBytes / 8 {
			_, _ = w.Write(f.data[at : at+blockBytes/8])
			w.(http.Flusher).Flush()
			time.Sleep(400 * time.Millisecond)
		}
		return true
	}
	src := open(t, serve(t, f), Timeout(3*time.Second), Retries(0))
	p := make([]byte, blockBytes)
	if _, err := src.ReadAt(p, 0); err != nil || !bytes.Equal(p, f.data[:blockBytes]) {
		t.Error(err)
	}
}

// TestCancelEndsReads holds that a cancelled context ends what waits, with its
// own error, and that no goroutine stays behind.
func TestCancelEndsReads(t *testing.T) {
	before := runtime.NumGoroutine()
	hang := make(chan struct{})
	f := &file{data: noise(1 << 20), odd: func(_ http.ResponseWriter, r *http.Request, n int) bool {
		if n > 1 {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}
		return n > 1
	}}
	server := httptest.NewServer(f)
	ctx, cancel := context.WithCancel(t.Context())
	src, err := Open(ctx, server.URL+"/x", quick, Hub("", ""))
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := src.ReadAt(make([]byte, 10), 1<<19)
			failed <- err
		}()
	}
	for f.n.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	for range 2 {
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
	if _, err := src.ReadAt(make([]byte, 1), 0); !errors.Is(err, fault.ErrClosed) {
		t.Errorf("a read after Close: %v", err)
	}
	close(hang)
	server.Close()
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
	if _, err := Open(ctx, server.URL+"/x", quick, Hub("", "")); !errors.Is(err, context.Canceled) {
		t.Errorf("opened under a context that is done: %v", err)
	}
}

func TestCloseEndsReadAhead(t *testing.T) {
	f := &file{data: noise(64 << 20), etag: `"one"`}
	src, err := Open(t.Context(), serve(t, f), quick, Hub("", ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, io.NewSectionReader(src, 0, src.Size()), 3<<20); err != nil {
		t.Fatal(err)
	}
	guard := checkpoint.GuardOf(src)
	if err := guard.Acquire(); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- src.Close() }()
	if err := guard.Release(); err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := guard.Acquire(); !errors.Is(err, fault.ErrClosed) {
		t.Errorf("in use after Close: %v", err)
	}
}

// noRanges takes ranges from a server.
func noRanges(h http.Handler, change func(http.ResponseWriter)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Range")
		if change != nil {
			change(w)
		}
		h.ServeHTTP(w, r)
	})
}

func TestServerWithoutRanges(t *testing.T) {
	small, large := &file{data: noise(1 << 20)}, &file{data: noise(3 << 20)}
	src := open(t, serve(t, noRanges(small, nil)), Hold(2<<20))
	if got, err := readAll(src, 1000); err != nil || !bytes.Equal(got, small.data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if small.n.Load() != 1 || checkpoint.IsDistant(src) {
		t.Errorf("%d requests, distant %v", small.n.Load(), checkpoint.IsDistant(src))
	}
	url := serve(t, noRanges(large, nil))
	if _, err := Open(t.Context(), url, quick, Hold(2<<20), Hub("", "")); !errors.Is(err, ErrNoRanges) || !errors.Is(err, fault.ErrIO) {
		t.Fatalf("%v", err)
	}
	s, err := OpenStream(t.Context(), url, quick, Hub("", ""))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, large.data) || s.Size() != int64(len(got)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestServerWithoutRangesOrLength holds what comes in chunks only, as from
// programs that make their answers.
func TestServerWithoutRangesOrLength(t *testing.T) {
	chunked := func(data []byte) string {
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			_, _ = w.Write(data)
		}))
	}
	small := noise(unknownHold)
	if got, err := readAll(open(t, chunked(small)), 1000); err != nil || !bytes.Equal(got, small) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	large := noise(unknownHold + 1)
	if _, err := Open(t.Context(), chunked(large), quick, Hub("", "")); !errors.Is(err, ErrNoRanges) {
		t.Errorf("%v", err)
	}
	s, err := OpenStream(t.Context(), chunked(large), quick, Hub("", ""))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, large) || s.Size() != -1 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestCompressedStream(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 10_000)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(data)
	_ = z.Close()
	encoded := func(encoding string, body []byte) string {
		return serve(t, noRanges(&file{data: body}, func(w http.ResponseWriter) { w.Header().Set("Content-Encoding", encoding) }))
	}
	url := encoded("gzip", packed.Bytes())
	if _, err := Open(t.Context(), url, quick, Hub("", "")); !errors.Is(err, ErrNoRanges) {
		t.Errorf("%v", err)
	}
	s, err := OpenStream(t.Context(), url, quick, Hub("", ""))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	for name, url := range map[string]string{"br": encoded("br", data), "no gzip": encoded("gzip", data)} {
		if _, err := OpenStream(t.Context(), url, quick, Retries(1), Hub("", "")); !errors.Is(err, fault.ErrIO) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStreamThatIsCut(t *testing.T) {
	f := &file{data: noise(1 << 20), etag: `"one"`, odd: aborting(func(int) int { return 700_000 })}
	s, err := OpenStream(t.Context(), serve(t, f), quick, Hub("", ""))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(s)
	if !errors.Is(err, fault.ErrIO) || !bytes.Equal(got, f.data[:len(got)]) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, again := s.Read(make([]byte, 1)); !errors.Is(again, fault.ErrIO) {
		t.Errorf("a read after that: %v", again)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s, err = OpenStream(ctx, serve(t, &file{data: noise(64 << 20)}), quick, Hub("", ""))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, s); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestLyingLength holds what a Content-Length that is too long or too short
// does to a file of a server without ranges.
func TestLyingLength(t *testing.T) {
	long := raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
	if _, err := Open(t.Context(), serve(t, &file{odd: long}), quick, Retries(1), Hub("", "")); !errors.Is(err, fault.ErrIO) {
		t.Errorf("%v", err)
	}
	s, err := OpenStream(t.Context(), serve(t, &file{odd: long}), quick, Hub("", ""))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(s); string(got) != "short" || !errors.Is(err, fault.ErrIO) {
		t.Errorf("%q, %v", got, err)
	}
	huge := raw("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\nshort")
	if _, err := Open(t.Context(), serve(t, &file{odd: huge}), quick, Retries(1), Hub("", "")); !errors.Is(err, ErrNoRanges) {
		t.Errorf("%v", err)
	}
	src := open(t, serve(t, &file{odd: raw("HTTP/1.1 206 OK\r\nContent-Range: bytes 0-99/9223372036854775807\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 100))}), Retries(1))
	if _, err := src.ReadAt(make([]byte, 10), 1<<62); !errors.Is(err, fault.ErrIO) { // nothing of that size is held
		t.Errorf("%v", err)
	}
}

func TestProgressIsReported(t *testing.T) {
	f := &file{data: noise(5 << 20)}
	var last atomic.Int64
	src := open(t, serve(t, f), Progress(func(n int64) { last.Store(max(last.Load(), n)) }))
	if _, err := readAll(src, 1<<20); err != nil || last.Load() != int64(len(f.data)) {
		t.Errorf("%d, %v", last.Load(), err)
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // so that nobody listens there
	for _, url := range []string{"http://" + l.Addr().String() + "/x", "http://127.0.0.1:99999/x"} {
		if _, err := Open(t.Context(), url, quick, Hub("", "")); !errors.Is(err, fault.ErrIO) {
			t.Errorf("%s: %v", url, err)
		}
	}
	nowhere := transport(func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "host", IsNotFound: true}}
	})
	if _, err := Open(t.Context(), "http://host/x", Transport(nowhere), Hub("", "")); !errors.Is(err, fault.ErrIO) || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("%v", err)
	}
	secure := httptest.NewUnstartedServer(&file{data: noise(10)})
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of who hangs up
	secure.StartTLS()
	defer secure.Close()
	if _, err := Open(t.Context(), secure.URL, quick, Hub("", "")); !errors.Is(err, fault.ErrIO) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("%v", err)
	}
}

// transport answers requests by a function.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
