package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wick-ml/wick/internal/bigzip"
)

const (
	soundFile   = "../../../../pytorch-tests/broken/sound-torch2.15.pt"
	shardFolder = "../../../../pytorch-tests/folders/index_safetensors-torch2.15"
)

// fileServer serves a folder of this tree, and counts bytes and requests.
type fileServer struct {
	*httptest.Server
	bytes, requests atomic.Int64
}

func serveFolder(t *testing.T, dir string, change func(http.ResponseWriter, *http.Request) http.ResponseWriter) *fileServer {
	t.Helper()
	s := &fileServer{}
	files := http.FileServer(http.Dir(dir))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		w = &countingWriter{w, s}
		if change != nil {
			w = change(w, r)
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

type countingWriter struct {
	http.ResponseWriter
	s *fileServer
}

func (c *countingWriter) Write(p []byte) (int, error) {
	c.s.bytes.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

// withoutRanges makes the server one that has none.
func withoutRanges(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	r.Header.Del("Range")
	return w
}

func runCLI(t *testing.T, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	code := Run(context.Background(), args, strings.NewReader(""), &out, &errs)
	return outcome{code, out.String(), errs.String()}
}

func TestConvertFromURL(t *testing.T) {
	dir := t.TempDir()
	local := filepath.Join(dir, "local.safetensors")
	if o := runCLI(t, "convert", soundFile, local); o.code != 0 {
		t.Fatal(o)
	}
	want, err := os.ReadFile(local)
	if err != nil {
		t.Fatal(err)
	}
	for way, change := range map[string]func(http.ResponseWriter, *http.Request) http.ResponseWriter{"ranges": nil, "no ranges": withoutRanges} {
		server := serveFolder(t, filepath.Dir(soundFile), change)
		out := filepath.Join(dir, way+".safetensors")
		if o := runCLI(t, "convert", server.URL+"/"+filepath.Base(soundFile), out); o.code != 0 {
			t.Fatal(way, o)
		}
		if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: another file, %v", way, err)
		}
	}
}

// bigServer serves a checkpoint that nobody holds, without ranges and without
// saying how long it is where chunked is set.
func bigServer(t *testing.T, f *bigzip.File, chunked bool) *fileServer {
	t.Helper()
	s := &fileServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		w = &countingWriter{w, s}
		if chunked {
			_, _ = io.Copy(w, io.NewSectionReader(f, 0, f.Size()))
			return
		}
		w.Header().Set("ETag", `"one"`)
		http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(f, 0, f.Size()))
	}))
	t.Cleanup(s.Close)
	return s
}

// TestListOfTenGigabytes holds that listing a remote file fetches less than a
// hundredth of it.
func TestListOfTenGigabytes(t *testing.T) {
	f := bigzip.New(1000, 2_700_000)
	server := bigServer(t, f, false)
	o := runCLI(t, "ls", "--jsonl", server.URL+"/big.pt")
	if o.code != 0 || strings.Count(o.out, "\"dtype\":\"float32\"") != 1000 {
		t.Fatalf("exit %d, %s", o.code, o.err)
	}
	if n, requests := server.bytes.Load(), server.requests.Load(); f.Size() < 10<<30 || n > f.Size()/100 || n > 2<<20 || requests > 8 {
		t.Errorf("%d bytes of %d in %d requests", n, f.Size(), requests)
	}
	before := server.bytes.Load()
	o = runCLI(t, "extract", server.URL+"/big.pt", "layer.500", "-o", filepath.Join(t.TempDir(), "x.raw"))
	if n := server.bytes.Load() - before; o.code != 0 || n > 3*4*2_700_000 {
		t.Errorf("one tensor: exit %d, %s, %d bytes", o.code, o.err, n)
	}
}

// TestLargeFileInOnePass holds that a file which is too large to be held comes
// through in one pass where the server has no ranges, with a word about it, and
// that what needs more than one pass says so.
func TestLargeFileInOnePass(t *testing.T) {
	f := bigzip.New(8, 100_000)
	ranges, chunked := bigServer(t, f, false), bigServer(t, f, true)
	want, got := runCLI(t, "ls", "--json", "--sha256", ranges.URL), runCLI(t, "ls", "--json", "--sha256", chunked.URL)
	if want.code != 0 || got.code != 0 || strings.ReplaceAll(got.out, chunked.URL, ranges.URL) != want.out {
		t.Errorf("exit %d, %s%s\nwant %v", got.code, got.err, got.out, want)
	}
	if !strings.Contains(got.err, "no range requests") || strings.Count(got.err, "\n") != 1 {
		t.Errorf("it says %q", got.err)
	}
	if o := runCLI(t, "--quiet", "ls", chunked.URL); o.code != 0 || o.err != "" {
		t.Errorf("quietly: %v", o)
	}
	if o := runCLI(t, "scan", chunked.URL); o.code != 2 || !strings.Contains(o.err, "download") || strings.Count(o.err, "\n") != 1 {
		t.Errorf("scan: %v", o)
	}
}

// TestShardsByURL opens an index on a server, whose shards lie beside it.
func TestShardsByURL(t *testing.T) {
	server := serveFolder(t, shardFolder, nil)
	indexes, err := filepath.Glob(filepath.Join(shardFolder, "*.index.json"))
	if err != nil || len(indexes) != 1 {
		t.Fatal(indexes, err)
	}
	url := server.URL + "/" + filepath.Base(indexes[0])
	want, got := runCLI(t, "ls", "--json", "--sha256", indexes[0]), runCLI(t, "ls", "--json", "--sha256", url)
	if got.code != 0 || strings.ReplaceAll(got.out, url, indexes[0]) != want.out {
		t.Errorf("exit %d, %s%s\nwant %s", got.code, got.err, got.out, want.out)
	}
}

// TestHubByName opens a repository and a file of it on a hub.
func TestHubByName(t *testing.T) {
	const repo = "/org/model/resolve/main/"
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutPrefix(r.URL.Path, repo)
		if !ok || r.Header.Get("Authorization") != "Bearer t0ken" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		http.ServeFile(w, r, filepath.Join(shardFolder, filepath.Base(name)))
	}))
	defer hub.Close()
	t.Setenv("HF_ENDPOINT", hub.URL)
	t.Setenv("HF_TOKEN", "t0ken")
	want := runCLI(t, "ls", shardFolder)
	for _, name := range []string{"hf://org/model", "hf://org/model/model.safetensors.index.json"} {
		if got := runCLI(t, "ls", name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	t.Setenv("HF_TOKEN", "")
	o := runCLI(t, "ls", "--json", "hf://org/model")
	var e struct {
		Error struct{ Kind, File, Found, Cure string }
	}
	if err := json.Unmarshal([]byte(o.err), &e); err != nil || o.code != 2 || e.Error.Kind != "notfound" || e.Error.File != "hf://org/model" {
		t.Errorf("%v, %v", o, err)
	}
}

// TestURLErrors holds the exit codes of the network, and that errors are one
// line without secrets.
func TestURLErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/html":
			_, _ = io.WriteString(w, "<!DOCTYPE html><html>Sign in</html>")
		case "/cut":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "PK")
		case "/403":
			w.WriteHeader(http.StatusForbidden)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	host := strings.Replace(server.URL, "://", "://user:s3cret@", 1)
	for name, code := range map[string]int{
		host + "/missing?sig=s3cret": 2, host + "/403?sig=s3cret": 2, host + "/html?sig=s3cret": 4, host + "/cut?sig=s3cret": 2,
		"http://": 2, "ftp://host/x": 2, "s3://bucket/key": 2,
	} {
		for _, args := range [][]string{{"ls", name}, {"ls", "--json", name}, {"-v", "info", name}, {"scan", name}, {"convert", name, filepath.Join(t.TempDir(), "x.safetensors")}} {
			o := runCLI(t, args...)
			if o.code != code || strings.Contains(o.err+o.out, "s3cret") || args[0] != "-v" && strings.Count(o.err, "\n") != 1 {
				t.Errorf("%v: exit %d, want %d: %s", args, o.code, code, o.err)
			}
			if strings.Contains(name, "/cut") {
				break // trying again takes seconds
			}
		}
	}
}

// TestVerboseSaysWhatWasFetched holds the numbers that --verbose gives.
func TestVerboseSaysWhatWasFetched(t *testing.T) {
	server := serveFolder(t, filepath.Dir(soundFile), nil)
	o := runCLI(t, "-v", "ls", server.URL+"/"+filepath.Base(soundFile)+"?key=s3cret")
	if o.code != 0 || !strings.Contains(o.err, "in 1 request\n") || strings.Contains(o.err, "s3cret") {
		t.Errorf("%v", o)
	}
	if server.requests.Load() != 1 {
		t.Errorf("%d requests", server.requests.Load())
	}
}

// TestNoSecretsInOutput runs all commands on a URL that holds secrets.
func TestNoSecretsInOutput(t *testing.T) {
	server := serveFolder(t, filepath.Dir(soundFile), nil)
	url := strings.Replace(server.URL, "://", "://user:s3cret@", 1) + "/" + filepath.Base(soundFile) + "?sig=s3cret#s3cret"
	dir := t.TempDir()
	page, code := filepath.Join(dir, "page.html"), filepath.Join(dir, "code.go")
	names := strings.Fields(runCLI(t, "ls", soundFile).out)
	first := names[slices.Index(names, "STORAGE")+1]
	for _, args := range [][]string{
		{"ls"}, {"ls", "--json"}, {"ls", "--jsonl"}, {"tree"}, {"info"}, {"info", "--json"}, {"verify"}, {"verify", "--json"}, {"scan"}, {"scan", "--json"},
		{"disasm"}, {"disasm", "--json"}, {"gen", "--package", "p"}, {"plan", "--exclude", "none"}, {"plan", "--json", "--exclude", "none"},
		{"diff", "--json", url}, {"verify", "--json", url}, {"report", "-o", page}, {"ls", "no-such-name"}, {"disasm", "--record", "none"}, {url},
	} {
		o := runCLI(t, append(append([]string{"-v"}, args...), url)...)
		if strings.Contains(o.out+o.err, "s3cret") {
			t.Errorf("%v: %s%s", args, o.out, o.err)
		}
	}
	for _, args := range [][]string{
		{"convert", "--json", url, filepath.Join(dir, "x.safetensors")}, {"pack", "--package", "p", "--json", url, code},
		{"show", "--json", url, first}, {"extract", url, first, "-o", filepath.Join(dir, "x.raw")},
	} {
		if o := runCLI(t, append([]string{"-v"}, args...)...); o.code != 0 || strings.Contains(o.out+o.err, "s3cret") {
			t.Errorf("%v: exit %d, %s%s", args, o.code, o.out, o.err)
		}
	}
	for _, name := range []string{page, code} {
		if b, err := os.ReadFile(name); err != nil || bytes.Contains(b, []byte("s3cret")) {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
}
