package remote

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// visits remembers what a server was asked, and with which token.
type visits struct {
	mu   sync.Mutex
	list []visit
}

type visit struct{ path, authorization string }

func (v *visits) log(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.mu.Lock()
		v.list = append(v.list, visit{r.URL.EscapedPath(), r.Header.Get("Authorization")})
		v.mu.Unlock()
		h.ServeHTTP(w, r)
	})
}

func (v *visits) paths() (paths []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.list {
		paths = append(paths, one.path)
	}
	return paths
}

// hubFiles is a hub with one model, whose files come from a second server as
// from a content network.
func hubFiles(t *testing.T, files map[string]*file, api string) (endpoint string, hubSaw, cdnSaw *visits) {
	t.Helper()
	hubSaw, cdnSaw = new(visits), new(visits)
	cdn := httptest.NewServer(cdnSaw.log(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := files[strings.TrimPrefix(r.URL.Path, "/blobs/")]
		if f == nil || r.URL.Query().Get("Signature") != "s3cret" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		f.ServeHTTP(w, r)
	})))
	t.Cleanup(cdn.Close)
	hub := httptest.NewServer(hubSaw.log(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") && api != "" {
			_, _ = w.Write([]byte(api))
			return
		}
		_, name, ok := strings.Cut(r.URL.EscapedPath(), "/org/model/resolve/")
		_, name, _ = strings.Cut(name, "/")
		if !ok || files[name] == nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		http.Redirect(w, r, cdn.URL+"/blobs/"+name+"?Signature=s3cret", http.StatusFound)
	})))
	t.Cleanup(hub.Close)
	return hub.URL, hubSaw, cdnSaw
}

// TestTokenStaysAtTheHub holds that nobody but the endpoint sees the token, and
// that reads after the first go straight to where the hub led.
func TestTokenStaysAtTheHub(t *testing.T) {
	f := &file{data: noise(2 << 20), etag: `"one"`}
	endpoint, hubSaw, cdnSaw := hubFiles(t, map[string]*file{"w.pt": f}, "")
	for _, name := range []string{"hf://org/model/w.pt", "HF://org/model@main/w.pt", endpoint + "/org/model/resolve/main/w.pt", endpoint + "/org/model/blob/main/w.pt"} {
		hubSaw.list, cdnSaw.list = nil, nil
		src := open(t, name, Hub(endpoint, "t0ken"))
		if got, err := readAll(src, 100_000); err != nil || !bytes.Equal(got, f.data) {
			t.Fatalf("%s: %d bytes, %v", name, len(got), err)
		}
		if len(hubSaw.list) != 1 || len(cdnSaw.list) < 2 {
			t.Errorf("%s: the hub was asked %d times, the content network %d times", name, len(hubSaw.list), len(cdnSaw.list))
		}
		if hubSaw.list[0] != (visit{"/org/model/resolve/main/w.pt", "Bearer t0ken"}) {
			t.Errorf("%s: the hub saw %v", name, hubSaw.list[0])
		}
		for _, v := range cdnSaw.list {
			if v.authorization != "" {
				t.Errorf("%s: the content network saw %v", name, v)
			}
		}
	}
	hubSaw.list = nil
	open(t, "hf://org/model/w.pt", Hub(endpoint, ""))
	if hubSaw.list[0].authorization != "" {
		t.Errorf("without a token the hub saw %v", hubSaw.list[0])
	}
	other := &visits{}
	elsewhere := httptest.NewServer(other.log(f))
	defer elsewhere.Close()
	open(t, elsewhere.URL+"/w.pt", Hub(endpoint, "t0ken"))
	if other.list[0].authorization != "" {
		t.Errorf("another server saw %v", other.list[0])
	}
}

// TestEnvironment holds that HF_ENDPOINT and HF_TOKEN are read.
func TestEnvironment(t *testing.T) {
	endpoint, hubSaw, _ := hubFiles(t, map[string]*file{"w.pt": {data: noise(10)}}, "")
	t.Setenv("HF_ENDPOINT", endpoint+"/")
	t.Setenv("HF_TOKEN", " t0ken\n")
	src, err := Open(t.Context(), "hf://org/model/w.pt", quick)
	if err != nil {
		t.Fatal(err)
	}
	src.Close()
	if hubSaw.list[0] != (visit{"/org/model/resolve/main/w.pt", "Bearer t0ken"}) {
		t.Errorf("the hub saw %v", hubSaw.list[0])
	}
	for _, bad := range []string{"not a url", "ftp://host", "https://", "http://[::1"} {
		t.Setenv("HF_ENDPOINT", bad)
		if _, err := Open(t.Context(), "hf://org/model/w.pt", quick); !errors.Is(err, fault.ErrUsage) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestTokenFile holds that HF_TOKEN_PATH names a file with a token, which is not
// read where a token is given, need not be there, and holds nothing else.
func TestTokenFile(t *testing.T) {
	endpoint, hubSaw, _ := hubFiles(t, map[string]*file{"w.pt": {data: noise(10)}}, "")
	t.Setenv("HF_ENDPOINT", endpoint)
	name := filepath.Join(t.TempDir(), "token")
	for _, c := range []struct {
		file, token string
		opts        []Option
		want        string
		err         error
	}{
		{file: "fr0mfile\n", want: "Bearer fr0mfile"},
		{file: "fr0mfile\n", token: "t0ken", want: "Bearer t0ken"},
		{file: "fr0mfile\n", opts: []Option{Hub(endpoint, "")}},
		{},
		{file: "two words", err: fault.ErrUsage},
		{file: strings.Repeat("x", 5000), err: fault.ErrUsage},
	} {
		t.Setenv("HF_TOKEN", c.token)
		t.Setenv("HF_TOKEN_PATH", name)
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if c.file != "" {
			if err := os.WriteFile(name, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before := len(hubSaw.list)
		src, err := Open(t.Context(), "hf://org/model/w.pt", append(c.opts, quick)...)
		if c.err != nil {
			if !errors.Is(err, c.err) || strings.Contains(err.Error(), "two words") {
				t.Errorf("%.20q: %v", c.file, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		src.Close()
		if got := hubSaw.list[before].authorization; got != c.want {
			t.Errorf("%.20q, %q: the hub saw %q, want %q", c.file, c.token, got, c.want)
		}
	}
}

// TestSignaturesThatExpire holds that the hub is asked again when the place that
// it led to refuses.
func TestSignaturesThatExpire(t *testing.T) {
	f := &file{data: noise(4 << 20), etag: `"one"`}
	endpoint, hubSaw, _ := hubFiles(t, map[string]*file{"w.pt": f}, "")
	src := open(t, "hf://org/model/w.pt", Hub(endpoint, ""))
	expired := true
	f.mu.Lock()
	f.odd = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if expired {
			expired = false
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		return false
	}
	f.mu.Unlock()
	p := make([]byte, 100)
	if _, err := src.ReadAt(p, 3<<20); err != nil || !bytes.Equal(p, f.data[3<<20:][:100]) {
		t.Errorf("%v", err)
	}
	if len(hubSaw.list) != 2 {
		t.Errorf("the hub was asked %d times", len(hubSaw.list))
	}
}

func TestRepositoryAsAFolder(t *testing.T) {
	commit := strings.Repeat("0123456789abcdef", 2)
	files := map[string]*file{"a.json": {data: []byte("a")}, "sub/b%20c.pt": {data: []byte("b")}}
	endpoint, hubSaw, _ := hubFiles(t, files, `{"sha": "`+commit+`", "siblings": [{"rfilename": "sub/b c.pt"}, {"rfilename": "a.json"}], "more": 1}`)
	src := open(t, "hf://org/model@v1", Hub(endpoint, ""))
	folder, ok := src.(checkpoint.Folder)
	if !ok {
		t.Fatalf("%T is no folder", src)
	}
	names, err := folder.List()
	if err != nil || !slices.Equal(names, []string{"a.json", "sub/b c.pt"}) {
		t.Fatalf("%q, %v", names, err)
	}
	one, err := folder.Sibling("a.json")
	if err != nil || one.Name() != "hf://org/model@v1/a.json" {
		t.Fatal(one, err)
	}
	defer one.Close()
	if _, err := folder.Sibling("missing.pt"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if _, err := folder.Sibling("../x"); !errors.Is(err, fault.ErrMalformed) {
		t.Errorf("%v", err)
	}
	want := []string{"/api/models/org/model/revision/v1", "/org/model/resolve/" + commit + "/a.json", "/org/model/resolve/" + commit + "/missing.pt"}
	if got := hubSaw.paths(); !slices.Equal(got, want) {
		t.Errorf("the hub was asked for\n%q, want\n%q", got, want)
	}
	if n, err := folder.ReadAt(make([]byte, 1), 0); n != 0 || err == nil || folder.Size() != 0 {
		t.Errorf("%d bytes of a folder", n)
	}
}

// TestRepositoryWithoutAList holds what is found on servers that only give files.
func TestRepositoryWithoutAList(t *testing.T) {
	for _, c := range []struct{ have, want []string }{
		{[]string{"model.safetensors", "pytorch_model.bin", "config.json"}, []string{"config.json", "model.safetensors"}},
		{[]string{"model.safetensors.index.json", "pytorch_model.bin"}, []string{"model.safetensors.index.json"}},
		{[]string{"pytorch_model.bin", "pytorch_model.bin.index.json"}, []string{"pytorch_model.bin"}},
		{[]string{"pytorch_model.bin.index.json"}, []string{"pytorch_model.bin.index.json"}},
		{[]string{"other.pt"}, nil},
	} {
		files := map[string]*file{}
		for _, name := range c.have {
			files[name] = &file{data: []byte("x")}
		}
		endpoint, _, _ := hubFiles(t, files, "")
		names, err := open(t, "hf://org/model", Hub(endpoint, "")).(checkpoint.Folder).List()
		if !slices.Equal(names, c.want) || (err == nil) != (c.want != nil) || err != nil && !errors.Is(err, fault.ErrNotFound) {
			t.Errorf("%q: %q, %v", c.have, names, err)
		}
	}
}

func TestRepositoryThatIsOdd(t *testing.T) {
	for name, c := range map[string]struct {
		api  string
		want error
	}{
		"more files than allowed": {`{"siblings": [{"rfilename": "a"}, {"rfilename": "b"}, {"rfilename": "c"}]}`, fault.ErrLimit},
		"no JSON":                 {"<html>", fault.ErrNotFound}, // and then none of the usual files either
		"a file that leaves":      {`{"siblings": [{"rfilename": "../../x"}]}`, nil},
	} {
		endpoint, _, _ := hubFiles(t, nil, c.api)
		folder := open(t, "hf://org/model", Hub(endpoint, ""), Limits(checkpoint.Limits{Shards: 2})).(checkpoint.Folder)
		if _, err := folder.List(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if _, err := folder.Sibling("../../x"); err == nil {
			t.Errorf("%s: a sibling outside of the repository", name)
		}
		if err := checkpoint.GuardOf(folder).Acquire(); err != nil || !checkpoint.IsDistant(folder) {
			t.Errorf("%s: %v", name, err)
		}
		if err := checkpoint.GuardOf(folder).Release(); err != nil {
			t.Error(err)
		}
	}
}

func TestSameHost(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"https://hub.example/x", "https://HUB.example:443/y", true},
		{"http://hub.example", "http://hub.example:80", true},
		{"https://hub.example", "http://hub.example", false},
		{"https://hub.example", "https://hub.example:8443", false},
		{"https://hub.example", "https://cdn.hub.example", false},
		{"https://hub.example", "https://hub.example.org", false},
	} {
		a, errA := url.Parse(c.a)
		b, errB := url.Parse(c.b)
		if errA != nil || errB != nil || sameHost(a, b) != c.want || sameHost(b, a) != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, !c.want)
		}
	}
}

func TestHubThatRefuses(t *testing.T) {
	for status, want := range map[int]error{401: fault.ErrIO, 403: fault.ErrIO, 404: fault.ErrNotFound, 500: fault.ErrIO} {
		hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Error-Message", "Repository not found")
			w.WriteHeader(status)
		}))
		_, err := open(t, "hf://org/model", Hub(hub.URL, "t0ken"), Retries(1)).(checkpoint.Folder).List()
		if !errors.Is(err, want) || strings.Contains(err.Error(), "t0ken") {
			t.Errorf("%d: %v", status, err)
		}
		_, err = Open(t.Context(), "hf://org/model/x.pt", quick, Hub(hub.URL, ""), Retries(1))
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "hf://org/model/x.pt") || !strings.Contains(err.Error(), "Repository not found") {
			t.Errorf("%d: %v", status, err)
		}
		hub.Close()
	}
}

func TestHubNames(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for name, want := range map[string]string{
		"hf://org/model/w.pt":                "/org/model/resolve/main/w.pt",
		"hf://org/model/sub/dir/w.pt":        "/org/model/resolve/main/sub/dir/w.pt",
		"hf://org/model@v1.0/w.pt":           "/org/model/resolve/v1.0/w.pt",
		"hf://org/model@" + commit + "/w.pt": "/org/model/resolve/" + commit + "/w.pt",
		"hf://org/model@refs/pr/7/sub/w.pt":  "/org/model/resolve/refs%2Fpr%2F7/sub/w.pt",
		"hf://org/model@feature%2Fx/w.pt":    "/org/model/resolve/feature%2Fx/w.pt",
		"hf://models/org/model/w.pt":         "/org/model/resolve/main/w.pt",
		"hf://datasets/org/data/w.pt":        "/datasets/org/data/resolve/main/w.pt",
		"hf://gpt2@main/w.pt":                "/gpt2/resolve/main/w.pt",
		"hf://org/model/a b#1@2.pt":          "/org/model/resolve/main/a%20b%231@2.pt",
		"hf://org/model@main/w?.pt":          "/org/model/resolve/main/w%3F.pt",
		"hf://org/model":                     "",
		"hf://org/model/":                    "",
		"hf://org/model@v1":                  "",
		"hf://org/model@v1/":                 "",
		"hf://gpt2":                          "",
	} {
		h, err := newHub("https://hub.example/base/", "")
		if err != nil {
			t.Fatal(err)
		}
		loc, err := locate(name, h)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case want == "" && loc.url != nil || want != "" && (loc.url == nil || loc.url.String() != "https://hub.example/base"+want):
			t.Errorf("%s: %v, want %s", name, loc.url, want)
		}
	}
	for _, name := range []string{"hf://", "hf:///", "hf://org//w.pt", "hf://org/model@/w.pt", "hf://@v1", "hf://org/../x", "hf://org/mo?del/x", "hf://org/model@%zz/x",
		"http://", "http:///x", "http://[::1/x", "https://ho st/x", "s3://bucket/key", "gs://b/k", "azblob://c/k", "file:///x", "ftp://host/x"} {
		if _, err := Open(t.Context(), name, quick, Hub("", "")); !errors.Is(err, fault.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIsURL(t *testing.T) {
	for name, want := range map[string]bool{
		"http://x": true, "HTTPS://x": true, "hf://a/b": true, "s3+x.y-1://b": true,
		"x": false, "./http://x": false, "C://x": false, "": false, "://x": false, "1x://y": false, "a b://x": false, "http:/x": false,
	} {
		if IsURL(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

func TestRedact(t *testing.T) {
	for name, want := range map[string]string{
		"https://host/a/b.pt":                             "https://host/a/b.pt",
		"https://user:s3cret@host:8080/a.pt":              "https://host:8080/a.pt",
		"https://us@er:s3cret@host/a@b.pt":                "https://host/a@b.pt",
		"https://host/a.pt?X-Amz-Signature=s3cret&x=1#s3": "https://host/a.pt?…",
		"https://host?token=s3cret":                       "https://host?…",
		"https://host#s3cret":                             "https://host",
		"https://user:s3cret@host":                        "https://host",
		"hf://org/model@v1/w.pt":                          "hf://org/model@v1/w.pt",
		"s3://key:s3cret@bucket/x?secret=s3cret":          "s3://bucket/x?…",
		"model.pt":                                        "model.pt",
	} {
		if got := Redact(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestNoSecretsInErrors fails in every way there is with a URL full of secrets.
func TestNoSecretsInErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/loop":
			http.Redirect(w, r, "/loop?s3cret", http.StatusFound)
		case "/bad":
			w.Header().Set("Location", "http://s3cret:s3cret@[::1/?s3cret")
			w.WriteHeader(http.StatusFound)
		case "/dead":
			w.Header().Set("Location", "http://s3cret:s3cret@127.0.0.1:1/?s3cret")
			w.WriteHeader(http.StatusFound)
		case "/ftp":
			w.Header().Set("Location", "ftp://s3cret@host/?s3cret")
			w.WriteHeader(http.StatusFound)
		case "/cut":
			raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")(w, r, 1)
		case "/silent":
			<-r.Context().Done()
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for _, path := range []string{"/loop", "/bad", "/dead", "/ftp", "/cut", "/silent", "/other", "/%zz"} {
		for _, scheme := range []string{"http", "https"} {
			name := scheme + "://s3cret:s3cret@" + host + path + "?key=s3cret#s3cret"
			_, err := Open(t.Context(), name, quick, Retries(1), Timeout(100*time.Millisecond), Hub("", ""))
			if err == nil || strings.Contains(err.Error(), "s3cret") || fault.KindOf(err) == "" {
				t.Errorf("%s %s: %v", scheme, path, err)
			}
		}
	}
	_, err := Open(t.Context(), "http://host.invalid/x", quick, Hub("", ""), Transport(&http.Transport{Proxy: func(*http.Request) (*url.URL, error) {
		return nil, errors.New(`invalid proxy address "http://s3cret"`) // as net/http has it
	}}))
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v", err)
	}
}

func TestPasswordsStayWithTheirHost(t *testing.T) {
	f := &file{data: noise(100)}
	there, here := &visits{}, &visits{}
	second := httptest.NewServer(there.log(f))
	defer second.Close()
	first := httptest.NewServer(here.log(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/file.pt":
			http.Redirect(w, r, "/moved", http.StatusMovedPermanently)
		default:
			http.Redirect(w, r, second.URL+"/away", http.StatusTemporaryRedirect)
		}
	})))
	defer first.Close()
	open(t, strings.Replace(first.URL, "://", "://user:s3cret@", 1)+"/file.pt", Hub("", ""))
	if len(here.list) != 2 || here.list[0].authorization == "" || here.list[1].authorization == "" {
		t.Errorf("the host itself saw %v", here.list)
	}
	if len(there.list) != 1 || there.list[0].authorization != "" {
		t.Errorf("another host saw %v", there.list)
	}
}

func TestRedirectsThatAreRefused(t *testing.T) {
	f := &file{data: noise(100)}
	plainServer := httptest.NewServer(f)
	defer plainServer.Close()
	to := ""
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	}))
	defer secure.Close()
	for _, to = range []string{plainServer.URL, "file:///etc/passwd", "", "://", "/around"} {
		_, err := Open(t.Context(), secure.URL, quick, Hub("", ""), Transport(secure.Client().Transport))
		if !errors.Is(err, fault.ErrIO) || f.n.Load() != 0 {
			t.Errorf("to %q: %v", to, err)
		}
	}
}

func TestSiblings(t *testing.T) {
	var saw visits
	server := httptest.NewServer(saw.log(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "missing") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(r.URL.RawQuery))
	})))
	defer server.Close()
	src := open(t, server.URL+"/a/dir%2Fwith/model.index.json?sig=1", Hub("", ""))
	near, ok := src.(checkpoint.Siblings)
	if !ok {
		t.Fatal("no siblings")
	}
	s, err := near.Sibling("sub/b c%.bin")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, err := readAll(s, 10); string(got) != "sig=1" || err != nil {
		t.Errorf("query %q, %v", got, err)
	}
	if want := server.URL + "/a/dir%2Fwith/sub/b c%.bin?…"; s.Name() != want {
		t.Errorf("it is called %s, want %s", s.Name(), want)
	}
	if got := saw.paths()[1]; got != "/a/dir%2Fwith/sub/b%20c%25.bin" {
		t.Errorf("the server saw %s", got)
	}
	for name, want := range map[string]error{"missing.bin": fault.ErrNotFound, "../x": fault.ErrMalformed, "/x": fault.ErrMalformed, `a\..\..\x`: fault.ErrMalformed, "": fault.ErrMalformed} {
		if _, err := near.Sibling(name); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
