package checkpoint

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/wick-ml/wick/fault"
)

const text = "the quick brown fox"

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func as[T any](t *testing.T, src Source) T {
	t.Helper()
	v, ok := src.(T)
	if !ok {
		t.Fatalf("%T lacks an ability", src)
	}
	return v
}

func canMap() bool { return slices.Contains([]string{"linux", "darwin", "freebsd"}, runtime.GOOS) }

// sources opens the same bytes in every way there is.
func sources(t *testing.T) map[string]Source {
	t.Helper()
	name := writeFile(t, filepath.Join(t.TempDir(), "file"), text)
	fsys := fstest.MapFS{"file": {Data: []byte(text)}}
	padded := NewBytes("padded", []byte("<<"+text+">>"))
	all := map[string]Source{
		"bytes":    NewBytes("file", []byte(text)),
		"readerAt": NewReaderAt("file", strings.NewReader(text), int64(len(text))),
		"section":  Section(padded, 2, int64(len(text)), "file"),
		"nested":   Section(Section(padded, 1, int64(len(text))+2, "outer"), 1, int64(len(text)), "file"),
		"owned":    Owned(NewBytes("file", []byte(text)), NewBytes("owner", nil)),
	}
	open := func(way string, src Source, err error) {
		if err != nil {
			t.Fatalf("%s: %v", way, err)
		}
		all[way] = src
	}
	src, err := OpenFile(name)
	open("file", src, err)
	src, err = OpenFS(fsys, "file", Options{})
	open("fs", src, err)
	src, err = OpenFS(onlySeek{fsys}, "file", Options{})
	open("fs seeking", src, err)
	src, err = OpenFS(onlyRead{fsys}, "file", Options{})
	open("fs reading", src, err)
	if canMap() {
		src, err = MapFile(name)
		open("map", src, err)
	}
	return all
}

// onlySeek and onlyRead take abilities from the files of a file system.
type (
	onlySeek struct{ fs.FS }
	onlyRead struct{ fs.FS }
)

func (f onlySeek) Open(name string) (fs.File, error) {
	file, err := f.FS.Open(name)
	if err != nil {
		return nil, err
	}
	seeker, ok := file.(io.Seeker)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return struct {
		fs.File
		io.Seeker
	}{file, seeker}, nil
}

func (f onlyRead) Open(name string) (fs.File, error) {
	file, err := f.FS.Open(name)
	return struct{ fs.File }{file}, err
}

func TestSourcesReadAlike(t *testing.T) {
	cases := []struct {
		off  int64
		n    int
		want string
		err  error
	}{
		{0, len(text), text, nil},
		{4, 5, "quick", nil},
		{16, 10, "fox", io.EOF},
		{int64(len(text)), 1, "", io.EOF},
		{1 << 40, 1, "", io.EOF},
		{7, 0, "", nil},
	}
	for way, src := range sources(t) {
		if src.Size() != int64(len(text)) || filepath.Base(src.Name()) != "file" {
			t.Errorf("%s: name %q, size %d", way, src.Name(), src.Size())
		}
		for _, c := range cases {
			p := make([]byte, c.n)
			n, err := src.ReadAt(p, c.off)
			if string(p[:n]) != c.want || (err == nil) != (c.err == nil && n == c.n) || (c.err != nil && !errors.Is(err, c.err)) {
				t.Errorf("%s: ReadAt(%d bytes, %d) = %q, %v; want %q, %v", way, c.n, c.off, p[:n], err, c.want, c.err)
			}
		}
		if err := src.Close(); err != nil {
			t.Errorf("%s: Close: %v", way, err)
		}
	}
}

func TestNegativeOffset(t *testing.T) {
	for way, src := range sources(t) {
		if n, err := src.ReadAt(make([]byte, 1), -1); n != 0 || err == nil {
			t.Errorf("%s: ReadAt at -1 = %d, %v", way, n, err)
		}
		src.Close()
	}
}

func TestReadsAfterCloseFail(t *testing.T) {
	for way, src := range sources(t) {
		lender, lends := src.(Lender)
		for range 2 {
			if err := src.Close(); err != nil {
				t.Errorf("%s: Close: %v", way, err)
			}
		}
		if _, err := src.ReadAt(make([]byte, 1), 0); !errors.Is(err, fault.ErrClosed) {
			t.Errorf("%s: ReadAt after Close: %v", way, err)
		}
		if err := GuardOf(src).Acquire(); !errors.Is(err, fault.ErrClosed) {
			t.Errorf("%s: Acquire after Close: %v", way, err)
		}
		if lends && lender.Lend() != nil {
			t.Errorf("%s: lends memory after Close", way)
		}
	}
}

func TestCloseWaitsForRuns(t *testing.T) {
	for way, src := range sources(t) {
		guard := GuardOf(src)
		for range 2 { // a run may acquire more than once
			if err := guard.Acquire(); err != nil {
				t.Fatalf("%s: %v", way, err)
			}
		}
		closed := make(chan error, 1)
		go func() { closed <- src.Close() }()
		if err := guard.Release(); err != nil {
			t.Fatalf("%s: %v", way, err)
		}
		select {
		case err := <-closed:
			t.Fatalf("%s: Close did not wait: %v", way, err)
		case <-time.After(20 * time.Millisecond):
		}
		if err := guard.Release(); err != nil {
			t.Fatalf("%s: %v", way, err)
		}
		if err := <-closed; err != nil {
			t.Errorf("%s: Close: %v", way, err)
		}
	}
}

func TestLenders(t *testing.T) {
	lending := map[string]bool{"bytes": true, "section": true, "nested": true, "owned": true, "map": true}
	for way, src := range sources(t) {
		got, ok := LentRange(src, 0, int64(len(text)))
		if ok != lending[way] || (ok && string(got) != text) {
			t.Errorf("%s: LentRange = %q, %v", way, got, ok)
		}
		for _, r := range [][2]int64{{-1, 1}, {0, -1}, {0, int64(len(text)) + 1}, {1 << 62, 1 << 62}} {
			if _, ok := LentRange(src, r[0], r[1]); ok {
				t.Errorf("%s: LentRange(%d, %d) gives memory", way, r[0], r[1])
			}
		}
		src.Close()
	}
}

func TestPlaceFindsTheBottom(t *testing.T) {
	base := NewBytes("base", []byte("<<"+text+">>"))
	outer := Owned(Section(base, 1, 20, "outer"), base)
	inner := Section(outer, 1, 10, "inner")
	r, off := Place(inner, 3)
	if r != io.ReaderAt(base) || off != 5 {
		t.Errorf("Place = %v, %d; want the base and 5", r, off)
	}
}

func TestOwnedClosesItsOwner(t *testing.T) {
	base := NewBytes("base", []byte(text))
	if err := Owned(Section(base, 0, 3, "part"), base).Close(); err != nil {
		t.Fatal(err)
	}
	if err := GuardOf(base).Acquire(); !errors.Is(err, fault.ErrClosed) {
		t.Errorf("the owner is open: %v", err)
	}
}

func TestSectionBorrows(t *testing.T) {
	base := NewBytes("base", []byte(text))
	part := Section(base, 4, 5, "part")
	if err := part.Close(); err != nil {
		t.Fatal(err)
	}
	if err := GuardOf(base).Acquire(); err != nil {
		t.Errorf("closing a section closed the whole: %v", err)
	}
}

func TestChangedFile(t *testing.T) {
	changes := map[string]func(name string) error{
		"longer":  func(name string) error { return os.WriteFile(name, []byte(text+"!"), 0o644) },
		"shorter": func(name string) error { return os.Truncate(name, 3) },
		"touched": func(name string) error { return os.Chtimes(name, time.Now(), time.Now().Add(time.Hour)) },
	}
	for what, change := range changes {
		name := writeFile(t, filepath.Join(t.TempDir(), "file"), text)
		src, err := OpenFile(name)
		if err != nil {
			t.Fatal(err)
		}
		guard := GuardOf(src)
		if err := guard.Acquire(); err != nil {
			t.Fatal(err)
		}
		if err := change(name); err != nil {
			t.Fatal(err)
		}
		if err := guard.Release(); !errors.Is(err, fault.ErrChanged) {
			t.Errorf("%s: Release = %v", what, err)
		}
		if err := src.Close(); err != nil {
			t.Errorf("%s: Close: %v", what, err)
		}
	}
}

func TestMappedFileCutShort(t *testing.T) {
	if !canMap() {
		t.Logf("%s has no maps", runtime.GOOS)
		return
	}
	name := writeFile(t, filepath.Join(t.TempDir(), "file"), strings.Repeat(text, 1000))
	src, err := MapFile(name)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if err := os.Truncate(name, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := src.ReadAt(make([]byte, 100), 15000); !errors.Is(err, io.EOF) {
		t.Errorf("reading what was cut off: %v", err)
	}
}

func TestWritingToAMapLeavesTheFile(t *testing.T) {
	if !canMap() {
		t.Logf("%s has no maps", runtime.GOOS)
		return
	}
	name := writeFile(t, filepath.Join(t.TempDir(), "file"), text)
	src, err := MapFile(name)
	if err != nil {
		t.Fatal(err)
	}
	as[Lender](t, src).Lend()[0] = 'X'
	if err := src.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != text {
		t.Errorf("the file holds %q, %v", got, err)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	file := writeFile(t, filepath.Join(dir, "file"), text)
	missing := filepath.Join(dir, "missing")
	cases := []struct {
		what string
		open func() error
		want error
	}{
		{"file missing", func() error { _, err := OpenFile(missing); return err }, fault.ErrIO},
		{"file missing, cause", func() error { _, err := OpenFile(missing); return err }, fs.ErrNotExist},
		{"path missing", func() error { _, err := OpenPath(missing, Options{}); return err }, fs.ErrNotExist},
		{"folder as file", func() error { _, err := OpenFile(dir); return err }, fault.ErrUsage},
		{"file as folder", func() error { _, err := OpenDir(file, Options{}); return err }, fault.ErrUsage},
		{"folder missing", func() error { _, err := OpenDir(missing, Options{}); return err }, fs.ErrNotExist},
		{"name missing in fs", func() error { _, err := OpenFS(fstest.MapFS{}, "x", Options{}); return err }, fs.ErrNotExist},
		{"bytes of a folder", func() error {
			d, err := OpenDir(dir, Options{})
			if err != nil {
				return err
			}
			_, err = d.ReadAt(make([]byte, 1), 0)
			return err
		}, fault.ErrUsage},
	}
	for _, c := range cases {
		if err := c.open(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
	}
}

func TestDeviceIsNoFile(t *testing.T) {
	if _, err := os.Stat(os.DevNull); err != nil {
		t.Logf("no null device: %v", err)
		return
	}
	if _, err := OpenFile(os.DevNull); !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("OpenFile(%s): %v", os.DevNull, err)
	}
}

func TestSiblings(t *testing.T) {
	dir := t.TempDir()
	index := writeFile(t, filepath.Join(dir, "index.json"), "{}")
	writeFile(t, filepath.Join(dir, "sub", "shard"), text)
	fsys := fstest.MapFS{"m/index.json": {Data: []byte("{}")}, "m/sub/shard": {Data: []byte(text)}}
	ways := map[string]Source{}
	add := func(way string, src Source, err error) {
		if err != nil {
			t.Fatal(err)
		}
		ways[way] = src
	}
	src, err := OpenFile(index)
	add("file", src, err)
	folder, err := OpenDir(dir, Options{})
	add("folder", folder, err)
	src, err = OpenFS(fsys, "m/index.json", Options{})
	add("fs file", src, err)
	src, err = OpenFS(fsys, "m", Options{})
	add("fs folder", src, err)
	if canMap() {
		src, err = MapFile(index)
		add("map", src, err)
	}
	bad := []string{"", ".", "./", "..", "../x", "sub/../../x", "/etc/passwd", `\x`, `..\x`, `sub\..\..\x`, "C:x", "c:/x", "a\x00b"}
	for way, src := range ways {
		siblings := as[Siblings](t, src)
		shard, err := siblings.Sibling("sub/shard")
		if err != nil {
			t.Fatalf("%s: %v", way, err)
		}
		got, err := io.ReadAll(io.NewSectionReader(shard, 0, shard.Size()))
		if err != nil || string(got) != text {
			t.Errorf("%s: the sibling holds %q, %v", way, got, err)
		}
		if _, lends := shard.(Lender); lends != (way == "map") {
			t.Errorf("%s: lending is not inherited", way)
		}
		if _, err := siblings.Sibling("sub/other"); !errors.Is(err, fault.ErrNotFound) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a missing sibling: %v", way, err)
		}
		for _, name := range bad {
			if _, err := siblings.Sibling(name); !errors.Is(err, fault.ErrMalformed) {
				t.Errorf("%s: sibling %q: %v", way, name, err)
			}
		}
		shard.Close()
		src.Close()
		if _, isFolder := src.(Folder); isFolder {
			if _, err := siblings.Sibling("sub/shard"); !errors.Is(err, fault.ErrClosed) {
				t.Errorf("%s: a sibling after Close: %v", way, err)
			}
		}
	}
}

func TestList(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a/data.pkl", "a/data/0", ".metadata", ".git/config"} {
		writeFile(t, filepath.Join(dir, filepath.FromSlash(name)), "x")
	}
	fsys := fstest.MapFS{"b": {}, "a/data.pkl": {}, "a/data/0": {}, ".metadata": {}, ".git/config": {}}
	want := []string{".metadata", "a/data.pkl", "a/data/0", "b"}
	for _, limit := range []int64{0, 4, 3} {
		opts := Options{Limits: Limits{Shards: limit}}
		local, err := OpenDir(dir, opts)
		if err != nil {
			t.Fatal(err)
		}
		inFS, err := OpenFS(fsys, ".", opts)
		if err != nil {
			t.Fatal(err)
		}
		for way, f := range map[string]Folder{"folder": local, "fs": as[Folder](t, inFS)} {
			got, err := f.List()
			if limit == 3 {
				if !errors.Is(err, fault.ErrLimit) {
					t.Errorf("%s: four files under a limit of three: %v", way, err)
				}
			} else if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: List = %q, %v", way, got, err)
			}
		}
	}
}

func TestHubCacheLinks(t *testing.T) {
	dir := t.TempDir()
	blob := writeFile(t, filepath.Join(dir, "blobs", "1f"), text)
	snapshot := filepath.Join(dir, "snapshots")
	if err := os.Mkdir(snapshot, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(blob, filepath.Join(snapshot, "model.bin")); err != nil {
		t.Logf("no symbolic links here: %v", err)
		return
	}
	if err := os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(snapshot, "broken")); err != nil {
		t.Fatal(err)
	}
	f, err := OpenDir(snapshot, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.List(); err != nil || !slices.Equal(got, []string{"model.bin"}) {
		t.Errorf("List = %q, %v", got, err)
	}
	shard, err := f.Sibling("model.bin")
	if err != nil {
		t.Fatal(err)
	}
	defer shard.Close()
	if shard.Size() != int64(len(text)) {
		t.Errorf("the link leads to %d bytes", shard.Size())
	}
}

func TestReadWholeNeedsTheClaimedSize(t *testing.T) {
	for _, claimed := range []int64{0, 3, 1 << 50} {
		if _, err := readWhole(bytes.NewReader([]byte(text)), claimed); !errors.Is(err, fault.ErrChanged) {
			t.Errorf("%d claimed: %v", claimed, err)
		}
	}
}
