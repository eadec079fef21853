// Command squeezenet-embedded classifies a picture with a SqueezeNet 1.1 that is a part of the program: 2.5 MB of weights in
// half precision, used where they lie in it. No framework computes and no byte of a tensor is copied, on an amd64
// machine or in a WebAssembly runtime alike:
//
//	go generate ./squeezenet-embedded
//	go run -tags weights ./squeezenet-embedded -image cat.jpg
//	GOOS=wasip1 GOARCH=wasm go build -tags weights -o squeezenet.wasm ./squeezenet-embedded
//
// The first command packs the squeezenet1_1.pt of torchvision that lies in this folder. One that lies elsewhere is packed with
//
//	wick pack --force --dtype float16 --type SqueezeNet squeezenet1_1.pt squeezenet-embedded/weights.go
//
// Without the tag the program builds too, and says how to pack weights.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"io"
	"os"
	"runtime"

	"github.com/wick-ml/wick/examples/internal/command"
	"github.com/wick-ml/wick/examples/internal/imagenet"
)

//go:generate go run -C ../.. ./cmd/wick pack --force --dtype float16 --type SqueezeNet examples/squeezenet-embedded/squeezenet1_1.pt examples/squeezenet-embedded/weights.go

func main() { command.Main("squeezenet-embedded", run) }

// Measured is what the flag -measure prints.
type Measured struct {
	Tensors int   // fields that were filled
	Copied  int64 // bytes of tensors
	Aliased int64
	Load    uint64 // bytes allocated while the weights were loaded
	Forward uint64 // bytes allocated while the network computed
	Logits  []float32
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("squeezenet-embedded", flag.ContinueOnError)
	picture := flags.String("image", "", "JPEG or PNG `file`")
	whole := flags.Bool("whole", false, "take the picture as it is, neither resized nor cropped")
	measure := flags.Bool("measure", false, "print logits and what was allocated and copied, as JSON")
	if err := command.Parse(flags, args, "image"); err != nil {
		return err
	}
	x, err := open(*picture, *whole)
	if err != nil {
		return err
	}
	start := allocated()
	net, report, err := load(ctx)
	if err != nil {
		return err
	}
	loaded := allocated()
	logits := net.Logits(x)
	if *measure {
		return json.NewEncoder(out).Encode(Measured{
			len(report.Plan.Applied), report.Copied, report.Aliased, loaded - start, allocated() - loaded, logits,
		})
	}
	return imagenet.Print(out, logits, 5)
}

// open returns the picture as the input of the network.
func open(name string, whole bool) (*Image, error) {
	if !whole {
		pixels, err := imagenet.Open(name)
		return &Image{pixels, 3, imagenet.Size, imagenet.Size}, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	picture, _, err := image.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	size := picture.Bounds().Size()
	return &Image{imagenet.Normalize(picture), 3, size.Y, size.X}, nil
}

// allocated returns the bytes that the program has allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
