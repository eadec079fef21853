package pytorchtests

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/fault"
)

// containers have one file of torch's for each container.
var containers = []string{
	"state-dict/state_dict-torch2.15.pt", "zip-layouts/deflated-torch2.15.pt", "zip-layouts/gzip-torch2.15.pt.gz", "zip-layouts/zstd-torch2.15.pt.zst", "zip-layouts/zip_around-torch2.15.zip",
	"legacy/many-torch2.15.pt", "legacy-tar/tar-torch1.13.pth.tar", "torchscript/*-torch2.15.pt", "exported/export-torch2.15.pt2", "exported/package-torch2.15.pt",
	"byte-order/dtypes_big-torch2.15.pt", "safetensors/dtypes-torch2.15.safetensors",
	"records/record-torch2.15.cbor", "records/by_hand-torch2.15.json",
}

// each runs a test with the content of one file of each container.
func each(t *testing.T, test func(t *testing.T, data []byte)) {
	for _, pattern := range containers {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no file is called %s", pattern)
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.ToSlash(files[0]), func(t *testing.T) { test(t, data) })
	}
}

// everything is one line for each tensor, with its bytes' checksum.
func everything(c *wick.Checkpoint) ([]string, error) {
	var lines []string
	for name, x := range c.Tensors() {
		h := sha256.New()
		if _, err := x.WriteTo(h); err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Sprintf("%s %v %v %x", name, x.DType(), x.Shape(), h.Sum(nil)))
	}
	return lines, nil
}

// readAt opens and reads all of what r serves.
func readAt(ctx context.Context, r io.ReaderAt, size int) ([]string, error) {
	c, err := wick.OpenReaderAt(ctx, "test", r, int64(size))
	if err != nil {
		return nil, err
	}
	lines, err := everything(c)
	return lines, errors.Join(err, c.Close())
}

// faultyReaderAt serves so many reads, then does something else.
type faultyReaderAt struct {
	*bytes.Reader
	left atomic.Int64
	then func(p []byte, off int64) (int, error)
}

func newFaulty(data []byte, reads int64, then func(p []byte, off int64) (int, error)) *faultyReaderAt {
	r := &faultyReaderAt{Reader: bytes.NewReader(data), then: then}
	r.left.Store(reads)
	return r
}

func (r *faultyReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if r.left.Add(-1) < 0 {
		return r.then(p, off)
	}
	return r.Reader.ReadAt(p, off)
}

// isDisk wants the error of a disk that fails: the machine's, never the file's
// format's, with the cause and the name.
func isDisk(t *testing.T, err error, file string) {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != fault.IO || e.File != file || !errors.Is(err, syscall.EIO) {
		t.Errorf("not the error of a disk: %v", err)
	}
}

// TestEveryReadFails has each read of a whole opening and reading fail in turn,
// as a disk does, and give less than was asked for, as a file that is cut does.
// The error says so, and nothing is made up.
func TestEveryReadFails(t *testing.T) {
	each(t, func(t *testing.T, data []byte) {
		want, err := readAt(t.Context(), bytes.NewReader(data), len(data))
		if err != nil || len(want) == 0 {
			t.Fatal(err)
		}
		faults := map[string]func(p []byte, off int64) (int, error){
			"EIO": func([]byte, int64) (int, error) { return 0, syscall.EIO },
			"short": func(p []byte, off int64) (int, error) {
				return bytes.NewReader(data[:min(int(off)+len(p)/2, len(data))]).ReadAt(p, off)
			},
			"end": func([]byte, int64) (int, error) { return 0, io.EOF },
		}
		for what, then := range faults {
			failed := 0
			for n := int64(0); ; n++ {
				r := newFaulty(data, n, then)
				got, err := readAt(t.Context(), r, len(data))
				if err == nil && !slices.Equal(got, want) {
					t.Fatalf("%s at read %d: other values", what, n)
				}
				if what == "EIO" && err != nil {
					isDisk(t, err, "test")
				}
				if r.left.Load() >= 0 { // it was not met
					break
				}
				if err == nil {
					t.Errorf("%s at read %d went unnoticed", what, n)
				}
				failed++
			}
			if failed < 2 {
				t.Errorf("%s: only %d reads", what, failed)
			}
		}
	})
}

// faultyFS is a file system whose files fail after so many reads of them all.
type faultyFS struct {
	fs.FS
	left atomic.Int64
}

func (f *faultyFS) Open(name string) (fs.File, error) {
	file, err := f.FS.Open(name)
	if osFile, ok := file.(*os.File); ok && err == nil {
		if info, statErr := osFile.Stat(); statErr == nil && !info.IsDir() {
			return &faultyFile{File: osFile, fs: f}, nil
		}
	}
	return file, err
}

type faultyFile struct {
	*os.File
	fs *faultyFS
}

func (f *faultyFile) Read(p []byte) (int, error) {
	if f.fs.left.Add(-1) < 0 {
		return 0, syscall.EIO
	}
	return f.File.Read(p)
}

func (f *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	if f.fs.left.Add(-1) < 0 {
		return 0, syscall.EIO
	}
	return f.File.ReadAt(p, off)
}

// TestFoldersFail has each read of a folder's files fail in turn.
func TestFoldersFail(t *testing.T) {
	for _, name := range []string{"zip-layouts/unpacked-torch2.15", "folders/index_bin-torch2.15", "folders/index_safetensors-torch2.15",
		"folders/no_index_bin-torch2.15", "folders/consolidated-torch2.15", "distributed/single-torch2.15", "distributed/ranks2-torch2.15"} {
		for n := int64(0); ; n++ {
			fsys := &faultyFS{FS: os.DirFS(".")}
			fsys.left.Store(n)
			c, err := wick.OpenFS(t.Context(), fsys, name)
			if err == nil {
				_, err = everything(c)
				err = errors.Join(err, c.Close())
			}
			if fsys.left.Load() >= 0 {
				if n < 3 || err != nil {
					t.Errorf("%s: %d reads, %v", name, n, err)
				}
				break
			}
			if !errors.Is(err, syscall.EIO) {
				t.Errorf("%s at read %d: %v", name, n, err)
			}
		}
	}
}

// TestSmallReads serves a stream a byte at a time, in halves, and with its error
// beside the last bytes.
func TestSmallReads(t *testing.T) {
	each(t, func(t *testing.T, data []byte) {
		want, err := readAt(t.Context(), bytes.NewReader(data), len(data))
		if err != nil {
			t.Fatal(err)
		}
		for what, slow := range map[string]func(io.Reader) io.Reader{"bytes": iotest.OneByteReader, "halves": iotest.HalfReader, "early end": iotest.DataErrReader} {
			if got, err := throughStream(t, slow(bytes.NewReader(data))); err != nil || !slices.Equal(got, inOrder(want)) {
				t.Errorf("%s: %q, %v, want %q", what, got, err, want)
			}
		}
	})
}

func inOrder(lines []string) []string {
	lines = slices.Clone(lines)
	slices.Sort(lines)
	return lines
}

// TestStreamFails ends a stream with an error at each of many places: nothing is
// left of the output.
func TestStreamFails(t *testing.T) {
	each(t, func(t *testing.T, data []byte) {
		dir := t.TempDir()
		for end := 0; end < len(data); end += 1 + len(data)/40 {
			r := io.MultiReader(bytes.NewReader(data[:end]), iotest.ErrReader(syscall.EIO))
			c, err := wick.OpenStream(t.Context(), "stream", r)
			if err == nil {
				_, err = wick.Convert(t.Context(), c, filepath.Join(dir, "out.cbor"))
				err = errors.Join(err, c.Close())
			}
			isDisk(t, err, "stream")
			empty(t, dir)
		}
	})
}

func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Fatalf("left behind: %v, %v", left, err)
	}
}

// TestCancelledAtEveryRead ends the context at each read of a conversion in turn:
// the error is the context's, no file is left, and no goroutine, which a bubble
// of synctest waits for.
func TestCancelledAtEveryRead(t *testing.T) {
	each(t, func(t *testing.T, data []byte) {
		dir := t.TempDir()
		cancelled := 0
		for n, met := int64(0), true; met; n++ {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				whole := bytes.NewReader(data)
				r := newFaulty(data, n, func(p []byte, off int64) (int, error) { cancel(); return whole.ReadAt(p, off) })
				err := convertFrom(ctx, r, len(data), filepath.Join(dir, "out.cbor"))
				met = r.left.Load() < 0
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("read %d: %v", n, err)
				}
				if err != nil {
					cancelled++
					empty(t, dir)
				}
			})
			if err := os.Remove(filepath.Join(dir, "out.cbor")); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
		if cancelled == 0 {
			t.Error("nothing was ever cancelled")
		}
	})
}

func convertFrom(ctx context.Context, r io.ReaderAt, size int, out string) error {
	c, err := wick.OpenReaderAt(ctx, "test", r, int64(size))
	if err != nil {
		return err
	}
	_, err = wick.Convert(ctx, c, out)
	return errors.Join(err, c.Close())
}

// TestManyReaders reads one checkpoint from several goroutines at once, one of
// which closes it when the others are done.
func TestManyReaders(t *testing.T) {
	each(t, func(t *testing.T, data []byte) {
		c, err := wick.OpenBytes(t.Context(), "test", data)
		if err != nil {
			t.Fatal(err)
		}
		want, err := everything(c)
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 5 {
					if got, err := everything(c); err != nil || !slices.Equal(got, want) {
						t.Errorf("%q, %v", got, err)
					}
				}
			})
		}
		group.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestClosedWhileReading closes a checkpoint under its readers: each gets whole
// values or the error that it is closed.
func TestClosedWhileReading(t *testing.T) {
	each(t, func(t *testing.T, data []byte) {
		want, err := readAt(t.Context(), bytes.NewReader(data), len(data))
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := wick.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				if i == 4 {
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				}
				if got, err := everything(c); (err != nil && !errors.Is(err, fault.ErrClosed)) || (err == nil && !slices.Equal(got, want)) {
					t.Errorf("%q, %v", got, err)
				}
			})
		}
		group.Wait()
	})
}

// TestCutWhileOpen cuts a file, or writes to it, between opening and reading, with
// and without a map.
func TestCutWhileOpen(t *testing.T) {
	each(t, func(t *testing.T, data []byte) {
		for _, mapped := range []bool{false, true} {
			for what, change := range map[string]func(name string) error{
				"cut":   func(name string) error { return os.Truncate(name, 10) },
				"empty": func(name string) error { return os.Truncate(name, 0) },
				"grown": func(name string) error { return os.WriteFile(name, append(slices.Clone(data), 0), 0o600) },
			} {
				name := filepath.Join(t.TempDir(), "file")
				if err := os.WriteFile(name, data, 0o600); err != nil {
					t.Fatal(err)
				}
				var opts []wick.Option
				if mapped {
					opts = append(opts, wick.Mmap())
				}
				c, err := wick.Open(t.Context(), name, opts...)
				if err != nil {
					t.Fatal(err)
				}
				if err := change(name); err != nil {
					t.Fatal(err)
				}
				_, err = everything(c)
				held := slices.ContainsFunc([]string{"gzip", "zstd", "zip_around", "json"}, func(s string) bool { return strings.Contains(t.Name(), s) })
				if err == nil && !held {
					t.Errorf("%s, mapped %v: not noticed", what, mapped)
				}
				if err != nil && fault.KindOf(err) == "" {
					t.Errorf("%s, mapped %v: %v", what, mapped, err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// TestCutAnywhere opens every beginning of a file, as a file and as a stream: an
// error, or all the values, where only what holds none was cut off.
func TestCutAnywhere(t *testing.T) {
	each(t, func(t *testing.T, data []byte) {
		want, err := readAt(t.Context(), bytes.NewReader(data), len(data))
		if err != nil {
			t.Fatal(err)
		}
		step := 1 + len(data)/700
		for end := 0; end < len(data); end += step {
			got, err := readAt(t.Context(), bytes.NewReader(data[:end]), end)
			if err == nil && !slices.Equal(got, want) {
				t.Errorf("cut at %d it opens as %q", end, got)
			}
			if err != nil && fault.KindOf(err) == "" {
				t.Errorf("cut at %d: %v", end, err)
			}
			if back, err := throughStream(t, bytes.NewReader(data[:end])); err == nil && !slices.Equal(back, inOrder(want)) {
				t.Errorf("cut at %d it streams as %q", end, back)
			}
		}
	})
}

// throughStream writes what comes from a stream as a record, and reads that.
func throughStream(t *testing.T, r io.Reader) ([]string, error) {
	c, err := wick.OpenStream(t.Context(), "stream", r)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	plan, err := wick.PlanConversion(c, "out.cbor")
	if err == nil {
		_, err = plan.RunTo(t.Context(), &out)
	}
	if err := errors.Join(err, c.Close()); err != nil {
		return nil, err
	}
	back, err := wick.OpenBytes(t.Context(), "out.cbor", out.Bytes())
	if err != nil {
		return nil, err
	}
	lines, err := everything(back)
	return inOrder(lines), errors.Join(err, back.Close())
}
