// Package demo holds a small real checkpoint and the Go types that it is
// imported into.
package demo

import (
	"bytes"
	_ "embed" // the checkpoint and the source of the types
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
)

//go:embed resnet.pt.gz
var packed []byte

// File returns a new copy of the checkpoint: a ResNet-18 of 2, 4, 8 and 16
// channels as torch.save wrote it. pytorch-tests/demo-resnet makes it.
func File() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// FileName is what the demo calls the checkpoint.
const FileName = "resnet.pt"

//go:embed model.go
var source string

// Source returns the Go types that the demo imports the checkpoint into, as
// they are compiled in.
func Source() string {
	_, types, _ := strings.Cut(source, "// begin\n")
	return strings.TrimSpace(types)
}
