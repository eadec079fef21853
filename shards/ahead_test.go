package shards_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/remote"
)

// farFolder serves a folder as a repository of a hub. Requests for shards wait
// for each other: nobody gets one before as many as together are asked for.
func farFolder(t *testing.T, dir string, together int) (endpoint string) {
	t.Helper()
	var mu sync.Mutex
	asked, met := 0, make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Error(err)
			}
			names := make([]string, len(entries))
			for i, e := range entries {
				names[i] = `{"rfilename": "` + e.Name() + `"}`
			}
			_, _ = w.Write([]byte(`{"siblings": [` + strings.Join(names, ",") + `]}`))
			return
		}
		name := filepath.Base(r.URL.Path)
		if strings.Contains(name, "-of-") || strings.HasPrefix(name, "consolidated") {
			mu.Lock()
			if asked++; asked == together {
				close(met)
			}
			mu.Unlock()
			select {
			case <-met:
			case <-time.After(time.Minute):
				t.Error("shards are opened one after the other")
			}
		}
		http.ServeFile(w, r, filepath.Join(dir, name))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestFarShardsAreOpenedTogether opens folders on a server and compares them
// with what is on the disk.
func TestFarShardsAreOpenedTogether(t *testing.T) {
	for _, name := range []string{"index_safetensors-torch2.15", "no_index_bin-torch2.15", "no_index_safetensors-torch2.15", "consolidated-torch2.15"} {
		dir := filepath.Join(fixtures, name)
		src, err := remote.Open(t.Context(), "hf://org/model", remote.Hub(farFolder(t, dir, 2), ""))
		if err != nil {
			t.Fatal(err)
		}
		far, err := wick.OpenSource(t.Context(), src)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		near, err := wick.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := strings.Join(far.Names(), " "), strings.Join(near.Names(), " "); a != b || a == "" {
			t.Errorf("%s: %s, want %s", name, a, b)
		}
		if err := far.Close(); err != nil {
			t.Error(err)
		}
		near.Close()
	}
}

// TestFarFaultsAreThoseOfTheDisk holds that opening together changes no error.
func TestFarFaultsAreThoseOfTheDisk(t *testing.T) {
	for _, name := range []string{"missing_shard-torch2.15", "missing_key-torch2.15", "climbs_out-torch2.15"} {
		dir := filepath.Join(fixtures, name)
		_, want := wick.Open(t.Context(), dir)
		src, err := remote.Open(t.Context(), "hf://org/model", remote.Hub(farFolder(t, dir, 1), ""), remote.Retries(0))
		if err != nil {
			t.Fatal(err)
		}
		_, got := wick.OpenSource(t.Context(), src)
		if want == nil || got == nil {
			t.Errorf("%s: %v, want %v", name, got, want)
			continue
		}
		_, a, _ := strings.Cut(got.Error(), ": ")
		_, b, _ := strings.Cut(want.Error(), ": ")
		if a != b {
			t.Errorf("%s: %s, want %s", name, a, b)
		}
	}
}
