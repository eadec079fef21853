package checkpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

func ramp(n int) []uint8 {
	b := make([]uint8, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

// sample is a layout of every kind of part that has a size, and its bytes.
func sample() (*Layout, []byte) {
	l := &Layout{}
	big, small := ramp(300_000), ramp(5)
	strided, err := tensor.Of([]uint8{1, 2, 3, 4, 5, 6}, 2, 3).Transpose(0, 1)
	if err != nil {
		panic(err)
	}
	l.Bytes([]byte("head"))
	var sums []*Sum
	l.Late(12, func() ([]byte, error) {
		var out []byte
		for _, s := range sums {
			out = binary.LittleEndian.AppendUint32(out, s.Value())
		}
		return out, nil
	})
	sums = append(sums, l.Summed(tensor.Of(big)))
	l.Tensor(tensor.Of(small))
	l.Pad(8)
	sums = append(sums, l.Summed(strided), l.Summed(tensor.Of([]uint8{})))
	l.Bytes([]byte("tail"))

	turned := []byte{1, 4, 2, 5, 3, 6}
	want := []byte("head")
	for _, b := range [][]byte{big, turned, nil} {
		want = binary.LittleEndian.AppendUint32(want, crc32.ChecksumIEEE(b))
	}
	want = append(append(want, big...), small...)
	for len(want)%8 != 0 {
		want = append(want, 0)
	}
	return l, append(append(want, turned...), "tail"...)
}

func TestWriteFile(t *testing.T) {
	l, want := sample()
	if size, ok := l.Size(); !ok || size != int64(len(want)) {
		t.Errorf("Size is %d, %v, want %d", size, ok, len(want))
	}
	path := filepath.Join(t.TempDir(), "out")
	for _, o := range []WriteOptions{{}, {Force: true, Sync: true}, {Force: true, Run: []tensor.RunOption{tensor.MaxMemory(1 << 20), tensor.Workers(4)}}} {
		stats, err := WriteFile(t.Context(), path, l, o)
		if err != nil {
			t.Fatal(err)
		}
		holds(t, path, want)
		if stats.Bytes != 300_011 || stats.Moves != 4 {
			t.Errorf("stats %+v", stats)
		}
	}
	alone(t, path)
}

// A writer that takes what comes in order gets the same bytes.
func TestWriteStream(t *testing.T) {
	l, want := sample()
	var got bytes.Buffer
	if _, err := WriteStream(t.Context(), &got, l); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%d bytes, want %d, or others", got.Len(), len(want))
	}
}

func TestWriteThroughFilter(t *testing.T) {
	l, want := sample()
	l.Through(func(w io.Writer) (io.WriteCloser, error) { return &upside{w: w}, nil })
	path := filepath.Join(t.TempDir(), "out")
	if _, err := WriteFile(t.Context(), path, l, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		want[i] ^= 0xff
	}
	holds(t, path, append(want, "end"...))
}

// upside inverts bytes and ends with a word.
type upside struct{ w io.Writer }

func (u *upside) Write(b []byte) (int, error) {
	out := make([]byte, len(b))
	for i := range b {
		out[i] = ^b[i]
	}
	return u.w.Write(out)
}

func (u *upside) Close() error {
	_, err := u.w.Write([]byte("end"))
	return err
}

func TestTextPart(t *testing.T) {
	l := &Layout{}
	l.Bytes([]byte("<"))
	sum := l.Text(tensor.Of([]uint8{1, 2, 3}), func(w io.Writer) io.WriteCloser { return &upside{w: w} })
	l.Late(8, func() ([]byte, error) { return fmt.Appendf(nil, "%08x", sum.Value()), nil })
	if _, ok := l.Size(); ok {
		t.Error("a text of unknown length gives a size")
	}
	path := filepath.Join(t.TempDir(), "out")
	if _, err := WriteFile(t.Context(), path, l, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	holds(t, path, fmt.Appendf([]byte("<\xfe\xfd\xfcend"), "%08x", crc32.ChecksumIEEE([]byte{1, 2, 3})))
}

// A checksum that the source stored for just these bytes is taken over unread.
func TestSumIsInherited(t *testing.T) {
	data := ramp(64)
	storage := tensor.NewStorage(tensor.StorageSpec{Size: 64, Memory: data, CRC32: 0xdeadbeef, HasCRC: true})
	whole, err := tensor.New(tensor.Spec{Storage: storage, DType: tensor.U8, Shape: []int64{8, 8}})
	if err != nil {
		t.Fatal(err)
	}
	part, err := whole.Narrow(0, 0, 4)
	if err != nil {
		t.Fatal(err)
	}
	l := &Layout{}
	if got := l.Summed(whole); !got.known || got.Value() != 0xdeadbeef {
		t.Errorf("of the whole: %+v", got)
	}
	if got := l.Summed(part); got.known {
		t.Errorf("of a part: %+v", got)
	}
}

func TestWriteFilesTogether(t *testing.T) {
	dir := t.TempDir()
	a, want := sample()
	b := &Layout{}
	b.Bytes([]byte("index"))
	files := []File{{filepath.Join(dir, "a"), a}, {filepath.Join(dir, "b"), b}}
	if _, err := WriteFiles(t.Context(), files, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	holds(t, files[0].Path, want)
	holds(t, files[1].Path, []byte("index"))

	for _, name := range []string{files[0].Path, files[1].Path} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(files[1].Path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteFiles(t.Context(), files, WriteOptions{}); fault.KindOf(err) != fault.Usage {
		t.Errorf("over an existing file: %v", err)
	}
	holds(t, files[1].Path, []byte("mine"))
	alone(t, files[1].Path)
}

// A run that is stopped between two names takes the first away again.
func TestStoppedBetweenNames(t *testing.T) {
	dir := t.TempDir()
	var files []File
	for _, name := range []string{"a", "b"} {
		l := &Layout{}
		l.Bytes([]byte(name))
		files = append(files, File{filepath.Join(dir, name), l})
	}
	ctx := &stoppedWhen{Context: t.Context(), when: func() bool {
		_, err := os.Stat(files[0].Path)
		return err == nil
	}}
	if _, err := WriteFiles(ctx, files, WriteOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A run that is stopped while it replaces files gives all of them back; and at no
// moment is the last of them, the index, beside some of the new ones.
func TestStoppedWhileReplacing(t *testing.T) {
	dir := t.TempDir()
	var files []File
	for _, name := range []string{"a", "b", "index"} {
		l := &Layout{}
		l.Bytes([]byte("new " + name))
		files = append(files, File{filepath.Join(dir, name), l})
		if err := os.WriteFile(files[len(files)-1].Path, []byte("old "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx := &stoppedWhen{Context: t.Context(), when: func() bool {
		if b, err := os.ReadFile(files[0].Path); err != nil || string(b) == "old a" {
			return false
		}
		if _, err := os.Stat(files[2].Path); locks() && err == nil { // with hard links
			t.Error("the old index lies beside new files")
		}
		b, err := os.ReadFile(files[1].Path)
		return err == nil && string(b) == "new b"
	}}
	if _, err := WriteFiles(ctx, files, WriteOptions{Force: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	for _, f := range files {
		holds(t, f.Path, []byte("old "+filepath.Base(f.Path)))
	}
	if _, err := WriteFiles(t.Context(), files, WriteOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		holds(t, f.Path, []byte("new "+filepath.Base(f.Path)))
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != len(files) {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// stoppedWhen is a context that is done as soon as something is so.
type stoppedWhen struct {
	context.Context
	when func() bool
}

func (c *stoppedWhen) Err() error {
	if c.when() {
		return context.Canceled
	}
	return nil
}

func TestOutputThatMustStay(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	l, want := sample()
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	_, err := WriteFile(t.Context(), path, l, WriteOptions{})
	refuses(t, err, fault.Usage, path, "wick.Overwrite()")
	holds(t, path, []byte("old"))
	if _, err := WriteFile(t.Context(), path, l, WriteOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	holds(t, path, want)
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v: the replaced file's was 0640", info.Mode(), err)
	}
	alone(t, path)

	_, err = WriteFile(t.Context(), dir, l, WriteOptions{Force: true})
	refuses(t, err, fault.Usage, dir, "name")
	_, err = WriteFile(t.Context(), filepath.Join(dir, "none", "out"), l, WriteOptions{})
	refuses(t, err, fault.IO, filepath.Join(dir, "none", "out"), "")
}

// A file that came while we were writing is not replaced either.
func TestOutputThatComesMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	l := &Layout{}
	l.Late(3, func() ([]byte, error) { return []byte("new"), os.WriteFile(path, []byte("old"), 0o600) })
	_, err := WriteFile(t.Context(), path, l, WriteOptions{})
	refuses(t, err, fault.Usage, path, "wick.Overwrite()")
	holds(t, path, []byte("old"))
	alone(t, path)
}

// The tensors may lie in the file that is replaced.
func TestInputIsOutput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model")
	data := ramp(200_000)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" { // which does not rename over an open file
		defer src.Close()
	}
	spec := tensor.StorageSpec{Size: src.Size(), Guard: GuardOf(src)}
	spec.File, spec.Offset = Place(src, 0)
	x, err := tensor.New(tensor.Spec{Storage: tensor.NewStorage(spec), DType: tensor.U8, Shape: []int64{400, 500}})
	if err != nil {
		t.Fatal(err)
	}
	turned, err := x.Transpose(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	l := &Layout{}
	l.Tensor(turned)
	if _, err := WriteFile(t.Context(), path, l, WriteOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 0, len(data))
	for col := range 500 {
		for row := range 400 {
			want = append(want, data[row*500+col])
		}
	}
	holds(t, path, want)
}

func TestErrorLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	broken := fault.New(fault.Malformed, "the bytes are gone").OnPath("w")
	l := &Layout{}
	l.Bytes([]byte("head"))
	l.Tensor(tensor.Of(ramp(100_000)))
	l.Tensor(tensor.Unavailable(tensor.F32, []int{2}, broken))
	_, err := WriteFile(t.Context(), path, l, WriteOptions{})
	refuses(t, err, fault.Malformed, "", "")
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// An interrupted run leaves nothing behind and what was there as it was.
func TestInterruptedRunLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, after := range []int{0, 1, 5} {
		ctx, cancel := context.WithCancel(t.Context())
		source := &stopper{stop: cancel}
		source.left.Store(int64(after))
		storage := tensor.NewStorage(tensor.StorageSpec{Size: 64 << 20, File: source})
		x, err := tensor.New(tensor.Spec{Storage: storage, DType: tensor.U8, Shape: []int64{64 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		l := &Layout{}
		l.Tensor(x)
		if _, err := WriteFile(ctx, path, l, WriteOptions{Force: true}); !errors.Is(err, context.Canceled) {
			t.Errorf("after %d reads: %v", after, err)
		}
		cancel()
		holds(t, path, []byte("old"))
		alone(t, path)
	}
}

// stopper cancels after some reads.
type stopper struct {
	left atomic.Int64
	stop func()
}

func (s *stopper) ReadAt(b []byte, _ int64) (int, error) {
	if s.left.Add(-1) < 0 {
		s.stop()
	}
	return len(b), nil
}

func TestDiskFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		d := &draft{path: path, name: path + "-draft"}
		for _, err := range []error{
			cause, &os.PathError{Op: "write", Path: d.name, Err: cause},
			fault.Wrap(fault.IO, "write failed", &os.PathError{Op: "write", Path: d.name, Err: cause}),
		} {
			refuses(t, d.fails(err), fault.IO, path, "space")
		}
	}
	d := &draft{path: path, name: path + "-draft"}
	refuses(t, d.fails(&os.PathError{Op: "write", Path: d.name, Err: syscall.EIO}), fault.IO, path, "")
	input := fault.Wrap(fault.IO, "read failed", syscall.EIO).In("input")
	if got := d.fails(input); !errors.Is(got, input) || fault.KindOf(got) != fault.IO {
		t.Errorf("an error of the input became %v", got)
	}
}

// A stream that stops taking bytes is an error, also behind a filter.
func TestFullStream(t *testing.T) {
	for _, filtered := range []bool{false, true} {
		l, want := sample()
		if filtered {
			l.Through(func(w io.Writer) (io.WriteCloser, error) { return &upside{w: w}, nil })
		}
		for _, room := range []int{0, 10, len(want) / 2, len(want) - 1} {
			_, err := WriteStream(t.Context(), &smallDisk{room: room}, l)
			if !errors.Is(err, syscall.ENOSPC) || fault.KindOf(err) != fault.IO {
				t.Errorf("room for %d: %v", room, err)
			}
		}
	}
}

// Bytes that only writing tells, and a spelling's end, fail as all others do.
func TestFullStreamOfLateBytes(t *testing.T) {
	late, spelled := &Layout{}, &Layout{}
	late.Late(1<<20, func() ([]byte, error) { return make([]byte, 1<<20), nil })
	spelled.Text(tensor.Of([]uint8{1}), func(w io.Writer) io.WriteCloser { return longEnd{w} })
	for name, l := range map[string]*Layout{"late": late, "spelled": spelled} {
		_, err := WriteStream(t.Context(), &smallDisk{room: 10}, l)
		if !errors.Is(err, syscall.ENOSPC) || fault.KindOf(err) != fault.IO {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// longEnd is a spelling that ends with a megabyte.
type longEnd struct{ io.Writer }

func (e longEnd) Close() error {
	_, err := e.Write(make([]byte, 1<<20))
	return err
}

// smallDisk is a disk with little room.
type smallDisk struct{ room int }

func (f *smallDisk) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	f.room -= n
	if n < len(b) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// What a killed run left is removed, what a living one writes is not.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	dead := filepath.Join(dir, filepath.Base(draftStem(path))+"0123456789ab")
	other := filepath.Join(dir, filepath.Base(draftStem(filepath.Join(dir, "other")))+"0123456789ab")
	for _, name := range []string{dead, other} {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	living, err := newDraft(File{path, &Layout{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, want := sample()
	if _, err := WriteFile(t.Context(), path, l, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	holds(t, path, want)
	for name, stays := range map[string]bool{dead: !locks(), other: true, living.name: true} {
		if _, err := os.Stat(name); (err == nil) != stays {
			t.Errorf("%s: %v, want it to stay: %v", name, err, stays)
		}
	}
	living.discard()
	if _, err := os.Stat(living.name); err == nil {
		t.Error("a discarded draft is still there")
	}
}

// locks reports whether this system can tell a leftover.
func locks() bool { return runtime.GOOS != "js" && runtime.GOOS != "wasip1" }

// A view that claims more than there can be is refused before room is taken.
func TestHugeExpansion(t *testing.T) {
	x, err := tensor.Of([]float32{1}).Reshape(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if x, err = x.Expand(1<<21, 1<<9); err != nil {
		t.Fatal(err)
	}
	l := &Layout{}
	l.Tensor(x)
	path := filepath.Join(t.TempDir(), "out")
	_, err = WriteFile(t.Context(), path, l, WriteOptions{})
	refuses(t, err, fault.Limit, "", "")
	alone(t, path)
}

func holds(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s has %d bytes (%v), want %d, or others", path, len(got), err, len(want))
	}
}

// alone checks that no draft lies beside path.
func alone(t *testing.T, path string) {
	t.Helper()
	entries, _ := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), draftPrefix) {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

func refuses(t *testing.T, err error, kind fault.Kind, file, cure string) {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != kind || file != "" && e.File != file || !strings.Contains(e.Cure, cure) {
		t.Errorf("error %v, want kind %s of %s with the cure %q", err, kind, file, cure)
	}
}
