package pytorch

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/wick-ml/wick/fault"
)

// unpacked is a folder as unzip makes it of a checkpoint with two vectors.
func unpacked() map[string]string {
	object := pickleOf("}(" + pickleText("a") + legacyVector(legacyStorageID("0", 3, "N"), 1, 2) +
		pickleText("b") + legacyVector(legacyStorageID("1", 2, "N"), 0, 2) + "u")
	return map[string]string{
		"data.pkl": object, "data/0": floats(3, 4, 5), "data/1": floats(1, 2), "version": "3\n", "byteorder": "little",
	}
}

func writeFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFolder(t *testing.T) {
	inTop := map[string]string{"readme": "x"}
	fsys := fstest.MapFS{}
	for name, data := range unpacked() {
		inTop["archive/"+name] = data
		fsys["m/"+name] = &fstest.MapFile{Data: []byte(data)}
	}
	for name, files := range map[string]map[string]string{"plain": unpacked(), "with its top folder": inTop} {
		c, err := Open(t.Context(), writeFolder(t, files))
		if err != nil {
			t.Fatal(name, err)
		}
		if a, b := vector(t, c, "a"), vector(t, c, "b"); !equalFloats(a, 4, 5) || !equalFloats(b, 1, 2) {
			t.Errorf("%s: a is %v, b is %v", name, a, b)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	c, err := OpenFS(t.Context(), fsys, "m")
	if err != nil {
		t.Fatal(err)
	}
	if a := vector(t, c, "a"); !equalFloats(a, 4, 5) {
		t.Errorf("in a file system: a is %v", a)
	}
}

func TestFolderFaults(t *testing.T) {
	cases := map[string]struct {
		change func(map[string]string)
		a, b   error // of the vectors
		open   error
	}{
		"missing storage":       {func(f map[string]string) { delete(f, "data/0") }, fault.ErrMalformed, nil, nil},
		"short storage":         {func(f map[string]string) { f["data/0"] = floats(3, 4) }, fault.ErrMalformed, nil, nil},
		"unknown byte order":    {func(f map[string]string) { f["byteorder"] = "middle" }, nil, nil, fault.ErrMalformed},
		"cut pickle":            {func(f map[string]string) { f["data.pkl"] = f["data.pkl"][:40] }, nil, nil, fault.ErrMalformed},
		"several":               {func(f map[string]string) { f["x/data.pkl"], f["y/data.pkl"] = "", ""; delete(f, "data.pkl") }, nil, nil, fault.ErrUnsupported},
		"key that leaves":       {func(f map[string]string) { f["data.pkl"] = replaceKey(f["data.pkl"], "../../etc/passwd") }, fault.ErrMalformed, nil, nil},
		"key that is an object": {func(f map[string]string) { f["data.pkl"] = replaceKey(f["data.pkl"], "/dev/zero") }, fault.ErrMalformed, nil, nil},
	}
	for name, c := range cases {
		files := unpacked()
		c.change(files)
		got, err := Open(t.Context(), writeFolder(t, files))
		if !errors.Is(err, c.open) {
			t.Errorf("%s: %v, want %v", name, err, c.open)
		}
		if err != nil {
			continue
		}
		for key, want := range map[string]error{"a": c.a, "b": c.b} {
			if tn, err := got.Lookup(key); err != nil || !errors.Is(tn.Err(), want) {
				t.Errorf("%s: %s is %v, %v; want %v", name, key, tn, err, want)
			}
		}
	}
}

func replaceKey(object, key string) string {
	old := pickleText("0")
	for i := range len(object) - len(old) {
		if object[i:i+len(old)] == old {
			return object[:i] + pickleText(key) + object[i+len(old):]
		}
	}
	return object
}

func TestFolderThatChanges(t *testing.T) {
	dir := writeFolder(t, unpacked())
	c, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	tn, err := c.Lookup("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "0"), []byte(floats(1, 2, 3, 4)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := tn.WriteTo(io.Discard); !errors.Is(err, fault.ErrChanged) {
		t.Errorf("another size: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "data", "0")); err != nil {
		t.Fatal(err)
	}
	if _, err := tn.WriteTo(io.Discard); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("gone: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := tn.WriteTo(io.Discard); !errors.Is(err, fault.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
