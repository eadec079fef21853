package bigzip_test

import (
	"bytes"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/internal/bigzip"
)

// TestFile reads one whole: sums, places and values are those of a sound file.
func TestFile(t *testing.T) {
	f := bigzip.New(300, 1000)
	c, err := wick.OpenReaderAt(t.Context(), "big.pt", f, f.Size())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	i := 0
	for name, tn := range c.Tensors() {
		var b bytes.Buffer
		if _, err := tn.WriteTo(&b); err != nil || !bytes.Equal(b.Bytes(), bytes.Repeat([]byte{bigzip.Byte(i)}, 4000)) {
			t.Fatalf("%s: %d bytes, %v", name, b.Len(), err)
		}
		i++
	}
	if i != 300 {
		t.Errorf("%d tensors", i)
	}
}
