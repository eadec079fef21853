// Package emulators opens checkpoints in servers that others wrote to stand for
// object stores. It is a module of its own: their dependencies stay out of package
// cloud's.
package emulators

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/remote"
	"github.com/wick-ml/wick/remote/cloud"
)

const fixture = "../../../pytorch-tests/demo-resnet/demo-resnet-torch2.15.pt"

func model(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// seen notes which ranges a server was asked for.
type seen struct {
	http.Handler
	mu     sync.Mutex
	ranges []string
}

func (s *seen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if text := r.Header.Get("Range"); text != "" {
		s.ranges = append(s.ranges, text)
	}
	s.mu.Unlock()
	s.Handler.ServeHTTP(w, r)
}

// same compares the tensors of an object with those of the file that it is.
func same(t *testing.T, name string) {
	t.Helper()
	src, err := cloud.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := wick.OpenSource(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	want, err := wick.Open(t.Context(), fixture)
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	if got.Len() != want.Len() || got.Len() == 0 {
		t.Fatalf("%d tensors, want %d", got.Len(), want.Len())
	}
	for name, x := range want.Tensors() {
		y, err := got.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		var a, b bytes.Buffer
		if _, err := x.WriteTo(&a); err != nil {
			t.Fatal(err)
		}
		if _, err := y.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s differs", name)
		}
	}
}

// refused opens an object that is not there, or may not be seen.
func refused(t *testing.T, name string, kind error) {
	t.Helper()
	if src, err := cloud.Open(t.Context(), name, remote.Retries(0)); err == nil {
		t.Errorf("%s is there: %v", name, src.Close())
	} else if !errors.Is(err, kind) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%s: %v", name, err)
	}
}

func TestS3(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
	store := s3mem.New()
	if err := store.CreateBucket("models"); err != nil {
		t.Fatal(err)
	}
	data := model(t)
	if _, err := store.PutObject("models", "a/net.pt", map[string]string{}, bytes.NewReader(data), int64(len(data)), nil); err != nil {
		t.Fatal(err)
	}
	h := &seen{Handler: gofakes3.New(store).Server()}
	server := httptest.NewServer(h)
	defer server.Close()
	query := "?region=us-east-1&use_path_style=true&endpoint=" + server.URL
	same(t, "s3://models/a/net.pt"+query)
	if len(h.ranges) == 0 {
		t.Error("it was not asked for ranges")
	}
	refused(t, "s3://models/a/none.pt"+query, fault.ErrNotFound)
	refused(t, "s3://nowhere/net.pt"+query, fault.ErrNotFound)
}

// Without credentials the libraries' chain ends in an error, which says what is needed.
func TestS3WithoutCredentials(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	nothing := t.TempDir() + "/none"
	t.Setenv("AWS_CONFIG_FILE", nothing)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", nothing)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	server := httptest.NewServer(gofakes3.New(s3mem.New()).Server())
	defer server.Close()
	src, err := cloud.Open(t.Context(), "s3://models/net.pt?region=us-east-1&use_path_style=true&endpoint="+server.URL, remote.Retries(0))
	if err == nil {
		t.Fatal(src.Close())
	}
	if !errors.Is(err, fault.ErrIO) || !strings.Contains(err.Error(), "credentials") {
		t.Errorf("%v", err)
	}
}

func TestGoogle(t *testing.T) {
	h := &seen{}
	server := httptest.NewServer(h)
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	store, err := fakestorage.NewServerWithOptions(fakestorage.Options{
		PublicHost:     host, // where it answers requests for objects' bytes
		InitialObjects: []fakestorage.Object{{ObjectAttrs: fakestorage.ObjectAttrs{BucketName: "models", Name: "a/net.pt"}, Content: model(t)}},
		NoListener:     true,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Handler = store.HTTPHandler()
	t.Setenv("STORAGE_EMULATOR_HOST", host)
	same(t, "gs://models/a/net.pt?access_id=-")
	if len(h.ranges) == 0 {
		t.Error("it was not asked for ranges")
	}
	src, err := cloud.Open(t.Context(), "gs://models/a/net.pt?access_id=-", remote.Retries(0))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	store.CreateObject(fakestorage.Object{ObjectAttrs: fakestorage.ObjectAttrs{BucketName: "models", Name: "a/net.pt"}, Content: model(t)})
	if _, err := src.ReadAt(make([]byte, 10), 0); !errors.Is(err, fault.ErrChanged) {
		t.Errorf("of an object that was written again: %v", err)
	}
	refused(t, "gs://models/a/none.pt?access_id=-", fault.ErrNotFound)
	refused(t, "gs://nowhere/net.pt?access_id=-", fault.ErrNotFound)
}
