//go:build !js && !wasip1

package remote

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
)

// proxied is what the proxy of this process has: it answers for the host
// models.example alone. Requests to this machine itself pass proxies by.
var proxied struct {
	file  atomic.Pointer[file]
	asked atomic.Int64
}

// TestMain names a proxy in the environment, which Go reads once in a process.
func TestMain(m *testing.M) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := proxied.file.Load()
		if r.RequestURI != "http://models.example/net.pt" || f == nil {
			http.Error(w, "no such host", http.StatusBadGateway)
			return
		}
		proxied.asked.Add(1)
		f.ServeHTTP(w, r)
	}))
	for _, name := range []string{"NO_PROXY", "no_proxy", "http_proxy", "HTTPS_PROXY", "https_proxy"} {
		_ = os.Unsetenv(name)
	}
	_ = os.Setenv("HTTP_PROXY", proxy.URL)
	code := m.Run()
	proxy.Close()
	os.Exit(code)
}

// TestProxy holds that requests go through the proxy that the environment names.
func TestProxy(t *testing.T) {
	want := &file{data: noise(5000)}
	proxied.file.Store(want)
	data, err := readAll(open(t, "http://models.example/net.pt"), 1000)
	if err != nil || !bytes.Equal(data, want.data) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if proxied.asked.Load() == 0 {
		t.Error("the proxy was not asked")
	}
}
