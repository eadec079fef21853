package cloud_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/remote"
	"github.com/wick-ml/wick/remote/cloud"
)

const (
	fixture     = "../../pytorch-tests/broken/sound-torch2.15.pt"
	shardFolder = "../../pytorch-tests/folders/index_safetensors-torch2.15"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// bucketOf is a bucket in memory with the files of a folder below prefix.
func bucketOf(t *testing.T, dir, prefix string) *blob.Bucket {
	t.Helper()
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { _ = bucket.Close() })
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			if err := bucket.WriteAll(t.Context(), prefix+e.Name(), read(t, filepath.Join(dir, e.Name())), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	return bucket
}

// content is the names and packed bytes of all tensors.
func content(t *testing.T, c *checkpoint.Checkpoint) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, tn := range c.Tensors() {
		var b bytes.Buffer
		if _, err := tn.WriteTo(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = b.String()
	}
	return all
}

// sameAs compares a source with what lies on the disk.
func sameAs(t *testing.T, src checkpoint.Source, name string) {
	t.Helper()
	want, err := wick.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	got, err := wick.OpenSource(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	a, b := content(t, want), content(t, got)
	if len(a) == 0 || len(a) != len(b) {
		t.Fatalf("%d tensors, want %d", len(b), len(a))
	}
	for name := range a {
		if a[name] != b[name] {
			t.Errorf("%s differs", name)
		}
	}
	if err := got.Close(); err != nil {
		t.Error(err)
	}
}

func TestObject(t *testing.T) {
	bucket := bucketOf(t, filepath.Dir(fixture), "models/")
	src, err := cloud.OpenObject(t.Context(), bucket, "models/"+filepath.Base(fixture), "mem://models/x.pt")
	if err != nil {
		t.Fatal(err)
	}
	if !checkpoint.IsDistant(src) || src.Name() != "mem://models/x.pt" {
		t.Errorf("%s is distant: %v", src.Name(), checkpoint.IsDistant(src))
	}
	sameAs(t, src, fixture)
	if _, err := src.ReadAt(make([]byte, 1), 0); !errors.Is(err, fault.ErrClosed) {
		t.Errorf("a read after Close: %v", err)
	}
}

func TestIndexAndFolder(t *testing.T) {
	bucket := bucketOf(t, shardFolder, "org/model/")
	index, err := filepath.Glob(filepath.Join(shardFolder, "*.index.json"))
	if err != nil || len(index) != 1 {
		t.Fatal(index, err)
	}
	for key, local := range map[string]string{"org/model/" + filepath.Base(index[0]): index[0], "org/model/": shardFolder} {
		src, err := cloud.OpenObject(t.Context(), bucket, key, "mem://"+key)
		if err != nil {
			t.Fatal(err)
		}
		sameAs(t, src, local)
	}
	src, err := cloud.OpenObject(t.Context(), bucket, "org/", "mem://org/")
	if err != nil {
		t.Fatal(err)
	}
	names, err := src.(checkpoint.Folder).List()
	if err != nil || !slices.Contains(names, "model/"+filepath.Base(index[0])) {
		t.Errorf("%q, %v", names, err)
	}
	if _, err := src.(checkpoint.Folder).Sibling("model/missing"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if _, err := src.(checkpoint.Folder).Sibling("../x"); !errors.Is(err, fault.ErrMalformed) {
		t.Errorf("%v", err)
	}
	if err := errors.Join(src.Close(), src.Close()); err != nil {
		t.Error(err)
	}
}

func TestChangedObject(t *testing.T) {
	bucket := memblob.OpenBucket(nil)
	defer bucket.Close()
	write := func(b []byte) {
		if err := bucket.WriteAll(t.Context(), "k", b, nil); err != nil {
			t.Fatal(err)
		}
	}
	write(make([]byte, 1<<20))
	src, err := cloud.OpenObject(t.Context(), bucket, "k", "mem://k")
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if _, err := src.ReadAt(make([]byte, 10), 0); err != nil {
		t.Fatal(err)
	}
	write(bytes.Repeat([]byte{1}, 1<<20))
	if n, err := src.ReadAt(make([]byte, 10), 1<<19); n != 0 || !errors.Is(err, fault.ErrChanged) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestErrors(t *testing.T) {
	bucket := memblob.OpenBucket(nil)
	if _, err := cloud.OpenObject(t.Context(), bucket, "k", "mem://k"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("%v", err)
	}
	_ = bucket.Close()
	for _, name := range []string{"s3://", "nobody://bucket/key", "://", "s3://bucket/key?no-such-parameter=s3cret", "model.pt"} {
		_, err := cloud.Open(t.Context(), name)
		if !errors.Is(err, fault.ErrUsage) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// store is an object store that knows enough of a protocol to give one object.
type store struct {
	mu    sync.Mutex
	data  []byte
	etag  string
	fails int // how many requests are answered with 503
	asked []string
	heads func(w http.ResponseWriter, r *http.Request, s *store) bool // answers what is no request for the bytes
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Range"))
	switch {
	case r.Method == http.MethodGet && s.fails > 0:
		s.fails--
		w.WriteHeader(http.StatusServiceUnavailable)
	case strings.HasSuffix(r.URL.Path, "missing.pt"):
		w.WriteHeader(http.StatusNotFound)
	case s.heads != nil && s.heads(w, r, s):
	default:
		w.Header().Set("ETag", s.etag)
		w.Header().Set("x-ms-creation-time", time.Unix(1e9, 0).UTC().Format(http.TimeFormat))
		w.Header().Set("x-ms-blob-type", "BlockBlob")
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader(s.data))
	}
}

// TestS3 reads from a server that speaks S3's protocol.
func TestS3(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
	s := &store{data: read(t, fixture), etag: `"one"`, fails: 1}
	server := httptest.NewServer(s)
	defer server.Close()
	query := "?region=us-east-1&use_path_style=true&endpoint=" + server.URL
	src, err := cloud.Open(t.Context(), "s3://bucket/dir/x.pt"+query)
	if err != nil {
		t.Fatal(err)
	}
	sameAs(t, src, fixture)
	if !slices.Contains(s.asked, "HEAD /bucket/dir/x.pt ") {
		t.Errorf("it was asked for %q", s.asked)
	}
	if _, err := cloud.Open(t.Context(), "s3://bucket/missing.pt"+query); !errors.Is(err, fault.ErrNotFound) || strings.Contains(err.Error(), "region") {
		t.Errorf("%v", err)
	}
	s.data = make([]byte, 1<<20)
	if src, err = cloud.Open(t.Context(), "s3://bucket/x.pt"+query, remote.Retries(0)); err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	s.mu.Lock()
	s.etag = `"two"` // of the same second and size
	s.mu.Unlock()
	if _, err := src.ReadAt(make([]byte, 10), 0); !errors.Is(err, fault.ErrChanged) {
		t.Errorf("%v", err)
	}
}

// TestGoogle reads from a server that speaks the protocol of Google's store.
func TestGoogle(t *testing.T) {
	s := &store{data: read(t, fixture), etag: `"one"`}
	s.heads = func(w http.ResponseWriter, r *http.Request, s *store) bool {
		if !strings.HasPrefix(r.URL.Path, "/storage/v1/") && !strings.HasPrefix(r.URL.Path, "/b/") {
			return false
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"bucket": "bucket", "name": "x.pt", "size": strconv.Itoa(len(s.data)), "generation": "1", "metageneration": "1",
			"updated": time.Unix(1e9, 123e6).UTC().Format(time.RFC3339Nano), // finer than Last-Modified
		})
		return true
	}
	server := httptest.NewServer(s)
	defer server.Close()
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(server.URL, "http://"))
	src, err := cloud.Open(t.Context(), "gs://bucket/x.pt?access_id=-")
	if err != nil {
		t.Fatal(err)
	}
	sameAs(t, src, fixture)
}

// TestAzure reads from a server that speaks the protocol of Azure's store.
func TestAzure(t *testing.T) {
	s := &store{data: read(t, fixture), etag: `"one"`}
	server := httptest.NewServer(s)
	defer server.Close()
	t.Setenv("AZURE_STORAGE_ACCOUNT", "account")
	t.Setenv("AZURE_STORAGE_KEY", "")
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "sig=s3cret")
	src, err := cloud.Open(t.Context(), "azblob://container/x.pt?protocol=http&localemu=true&domain="+strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	sameAs(t, src, fixture)
	if _, err := cloud.Open(t.Context(), "azblob://container/missing.pt?protocol=http&localemu=true&domain="+strings.TrimPrefix(server.URL, "http://")); !errors.Is(err, fault.ErrNotFound) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v", err)
	}
}

func ExampleOpenObject() {
	ctx := context.Background()
	bucket := memblob.OpenBucket(nil)
	defer bucket.Close()
	model, err := os.ReadFile(fixture)
	if err != nil {
		panic(err)
	}
	if err := bucket.WriteAll(ctx, "model.pt", model, nil); err != nil {
		panic(err)
	}
	src, err := cloud.OpenObject(ctx, bucket, "model.pt", "mem://model.pt")
	if err != nil {
		panic(err)
	}
	ckpt, err := wick.OpenSource(ctx, src) // owns src from here on
	if err != nil {
		panic(err)
	}
	defer ckpt.Close()
	_, _ = io.WriteString(os.Stdout, ckpt.Info.Name+" is a "+ckpt.Info.Format+" file\n")
	// Output: mem://model.pt is a zip file
}
