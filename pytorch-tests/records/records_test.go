package records_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/pytorch-tests/internal/expect"
	"github.com/wick-ml/wick/record"
	"github.com/wick-ml/wick/record/meta"
)

func open(t *testing.T, file string) *checkpoint.Checkpoint {
	t.Helper()
	src, err := checkpoint.OpenFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(t.Context(), src, []checkpoint.Format{record.CBOR{}, record.JSON{}}, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Records that cbor2 and json made of torch's tensors say what torch says.
func TestRead(t *testing.T) {
	for file, want := range expect.Load(t) {
		t.Run(file, func(t *testing.T) { expect.Compare(t, open(t, file), want) })
	}
}

// The record that cbor2 made and the one that wick makes of the same tree are
// the same bytes, checksums and all.
func TestWriteSameBytes(t *testing.T) {
	const file = "record-torch2.15.cbor"
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := open(t, file)
	h, ok := meta.Told(c.Info)
	if !ok || h.Type != "example.Model" || h.Precision != "full" || h.Writer != "a test" {
		t.Errorf("the record says %+v", h)
	}
	out, err := record.CBORTarget{}.Plan(c.Root, checkpoint.TargetOptions{Record: &h})
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if _, err := checkpoint.WriteStream(t.Context(), &got, out.Files[0].Layout); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("wrote\n%x\nwant\n%x", got.Bytes(), want)
	}
}
