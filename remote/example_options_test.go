package remote_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/remote"
)

// Options bound memory and time, and say where the hub is and how requests go.
func ExampleCacheBytes() {
	s := httptest.NewServer(http.FileServer(http.Dir("../pytorch-tests/demo-resnet")))
	defer s.Close()
	src, err := remote.Open(context.Background(), s.URL+"/demo-resnet-torch2.15.pt",
		remote.CacheBytes(1<<20), remote.Hold(1<<20), remote.Limits(checkpoint.Limits{}), remote.Retries(2), remote.Timeout(10*time.Second),
		remote.Transport(http.DefaultTransport), remote.Progress(func(fetched int64) {}), remote.Hub(s.URL, ""), remote.Together(remote.CacheBytes(2<<20)))
	if err != nil {
		log.Print(err)
		return
	}
	defer src.Close()
	fmt.Println(src.Size() > 80_000)
	// Output: true
}

// Temporary marks an error of a [remote.Ranges] that another try may cure.
func ExampleTemporary() {
	fmt.Println(remote.Temporary(io.ErrUnexpectedEOF) != nil)
	// Output: true
}
