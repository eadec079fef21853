package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/remote"
)

const models = "../pytorch-tests/folders/index_safetensors-torch2.15"

// server stands for a web server and for a hub, in these examples.
func server() *httptest.Server {
	mux := http.NewServeMux()
	mux.Handle("/org/model/resolve/main/", http.StripPrefix("/org/model/resolve/main/", http.FileServer(http.Dir(models))))
	mux.Handle("/", http.FileServer(http.Dir(models)))
	return httptest.NewServer(mux)
}

// A checkpoint on a web server is listed without downloading it.
func ExampleOpen() {
	s := server()
	defer s.Close()
	ctx := context.Background()
	src, err := remote.Open(ctx, s.URL+"/model-00001-of-00002.safetensors")
	if err != nil {
		log.Fatal(err)
	}
	ckpt, err := wick.OpenSource(ctx, src) // owns src from here on
	if err != nil {
		log.Fatal(err)
	}
	defer ckpt.Close()
	for name, t := range ckpt.Tensors() {
		fmt.Println(name, t.DType(), t.Shape())
		break
	}
	// Output: model.embed.weight float32 [3 2]
}

// The name of a model on a hub is enough: the index and its shards are found.
func ExampleOpen_hub() {
	s := server()
	defer s.Close()
	ctx := context.Background()
	src, err := remote.Open(ctx, "hf://org/model", remote.Hub(s.URL, os.Getenv("HF_TOKEN")))
	if err != nil {
		log.Fatal(err)
	}
	ckpt, err := wick.OpenSource(ctx, src)
	if err != nil {
		log.Fatal(err)
	}
	defer ckpt.Close()
	fmt.Println(ckpt.Info.Format, ckpt.Len())
	// Output: shards 5
}

// Where a server has no ranges, what is too large to be held comes in one pass.
func ExampleOpenStream() {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		file, err := os.Open("../pytorch-tests/broken/sound-torch2.15.pt")
		if err != nil {
			log.Fatal(err)
		}
		defer file.Close()
		_, _ = io.Copy(w, file)
	}))
	defer s.Close()
	ctx := context.Background()
	_, err := remote.Open(ctx, s.URL+"/model.pt", remote.Hold(0))
	if !errors.Is(err, remote.ErrNoRanges) {
		log.Fatal(err)
	}
	stream, err := remote.OpenStream(ctx, s.URL+"/model.pt")
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close()
	ckpt, err := wick.OpenStream(ctx, stream.Name(), stream)
	if err != nil {
		log.Fatal(err)
	}
	defer ckpt.Close()
	fmt.Println(ckpt.Info.Format, ckpt.Len())
	// Output: zip 2
}

// archive is a store of one's own.
type archive struct{ file *os.File }

func (a archive) Range(_ context.Context, off, n int64) (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(a.file, off, n)), nil
}

// Any store that can be read by ranges becomes a source, with the cache, the
// read-ahead and the retries of this package.
func ExampleNewSource() {
	file, err := os.Open("../pytorch-tests/broken/sound-torch2.15.pt")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	src, err := remote.NewSource(ctx, "archive:model.pt", info.Size(), archive{file}, remote.CacheBytes(8<<20))
	if err != nil {
		log.Fatal(err)
	}
	ckpt, err := wick.OpenSource(ctx, src)
	if err != nil {
		log.Fatal(err)
	}
	defer ckpt.Close()
	fmt.Println(ckpt.Info.Name, checkpoint.IsDistant(src), strings.Join(ckpt.Names(), " "))
	// Output: archive:model.pt true a b
}

func ExampleRedact() {
	fmt.Println(remote.Redact("https://user:password@host/model.pt?signature=abc"))
	// Output: https://host/model.pt?…
}

func ExampleIsURL() {
	fmt.Println(remote.IsURL("hf://org/model"), remote.IsURL("model.pt"))
	// Output: true false
}
