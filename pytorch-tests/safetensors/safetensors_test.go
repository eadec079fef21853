package safetensors_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch-tests/internal/expect"
	"github.com/wick-ml/wick/safetensors"
)

func open(t *testing.T, file string) (*checkpoint.Checkpoint, error) {
	t.Helper()
	src, err := checkpoint.OpenFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(t.Context(), src, []checkpoint.Format{safetensors.Format{}}, checkpoint.Options{})
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func TestRead(t *testing.T) {
	for file, want := range expect.Load(t) {
		t.Run(file, func(t *testing.T) {
			c, err := open(t, file)
			switch {
			case want.Error != nil:
				expect.Refused(t, err, want.Error)
			case err != nil:
				t.Fatal(err)
			default:
				expect.Compare(t, c, want)
			}
		})
	}
}

// Files with one member of metadata have one form: Rust's map of several has no
// order. What the format's own writer wrote must come out of ours byte for byte.
func TestWriteSameBytes(t *testing.T) {
	for _, stem := range []string{"dtypes", "names", "shapes"} {
		file := stem + "-torch2.15.safetensors"
		c, err := open(t, file)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "out.safetensors")
		write(t, c.Root, path, checkpoint.TargetOptions{})
		got, want := read(t, path), read(t, file)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: wrote\n%q\nwant\n%q", stem, got, want)
		}
	}
}

// A record holds the same tensors, and every byte of it is under a checksum.
func TestRecordOfFixtures(t *testing.T) {
	for _, stem := range []string{"dtypes", "names", "shapes", "unaligned"} {
		c, err := open(t, stem+"-torch2.15.safetensors")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "out.safetensors")
		write(t, c.Root, path, checkpoint.TargetOptions{Record: &checkpoint.RecordHeader{Type: "test"}})
		again, err := open(t, path)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := expect.Rows(t, again), expect.Rows(t, c); !slices.EqualFunc(got, want, expect.Row.Equal) {
			t.Errorf("%s: got %v\nwant %v", stem, got, want)
		}
		everyByteCounts(t, read(t, path))
	}
}

// everyByteCounts flips single bits all over a record: each must be noticed,
// in opening or in reading.
func everyByteCounts(t *testing.T, record []byte) {
	t.Helper()
	for at := 0; at < len(record); at += 1 + at/40 {
		record[at] ^= 4
		if err := readAll(t.Context(), record); err == nil {
			t.Errorf("byte %d of %d changed and nobody noticed", at, len(record))
		}
		record[at] ^= 4
	}
}

func readAll(ctx context.Context, file []byte) error {
	c, err := checkpoint.Open(ctx, checkpoint.NewBytes("record", file), []checkpoint.Format{safetensors.Format{}}, checkpoint.Options{})
	if err != nil {
		return err
	}
	for _, leaf := range c.Tensors() {
		if _, err := leaf.WriteTo(io.Discard); err != nil {
			return errors.Join(err, c.Close())
		}
	}
	return c.Close()
}

func write(t *testing.T, root nested.Value, path string, opts checkpoint.TargetOptions) {
	t.Helper()
	out, err := safetensors.Target{}.Plan(root, opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.WriteFile(t.Context(), path, out.Files[0].Layout, checkpoint.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
