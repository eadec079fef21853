package checkpoint_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
)

// TestFolderByLink lists a folder that is itself named by a link.
func TestFolderByLink(t *testing.T) {
	dir := t.TempDir()
	folder, link := filepath.Join(dir, "folder"), filepath.Join(dir, "link")
	if err := os.MkdirAll(filepath.Join(folder, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.bin", "sub/b.bin"} {
		if err := os.WriteFile(filepath.Join(folder, filepath.FromSlash(name)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(folder, link); err != nil {
		t.Skip("this system lets nobody make links: ", err)
	}
	src, err := checkpoint.OpenDir(link, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	names, err := src.List()
	if want := []string{"a.bin", "sub/b.bin"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v, %v", names, err)
	}
	file, err := src.Sibling("sub/b.bin")
	if err != nil {
		t.Fatal(err)
	}
	if file.Size() != 1 {
		t.Error(file.Size())
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
}
