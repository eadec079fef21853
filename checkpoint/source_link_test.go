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

// TestListAll holds that nothing below a folder is passed over in silence: hidden
// folders are entered, and links that lead elsewhere or nowhere are told.
func TestListAll(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	for _, sub := range []string{"folder/.git/lfs", "folder/sub", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(sub)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"folder/a.bin", "folder/.git/lfs/b.bin", "folder/sub/.c.bin", "elsewhere/d.bin"} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"file": "../elsewhere/d.bin", "inside": ".git", "again": ".", "nowhere": "none.bin", "out": "../elsewhere", "up": "..", "whole": filepath.Join(dir, "elsewhere"),
		"far": filepath.Join(folder, "sub"),
	} {
		if err := os.Symlink(filepath.FromSlash(to), filepath.Join(folder, link)); err != nil {
			t.Skip("this system lets nobody make links: ", err)
		}
	}
	src, err := checkpoint.OpenDir(folder, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	files, elsewhere, err := src.(checkpoint.AllLister).ListAll()
	if want := []string{".git/lfs/b.bin", "a.bin", "file", "nowhere", "sub/.c.bin"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("%q, %v", files, err)
	}
	if want := []string{"out", "up", "whole"}; !slices.Equal(elsewhere, want) {
		t.Errorf("%q lead elsewhere", elsewhere)
	}
	files, err = src.List()
	if want := []string{"a.bin", "file", "sub/.c.bin"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("%q, %v", files, err)
	}
	below, err := checkpoint.OpenFS(os.DirFS(folder), ".", checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	files, elsewhere, err = below.(checkpoint.AllLister).ListAll()
	if want := []string{".git/lfs/b.bin", "a.bin", "file", "nowhere", "sub/.c.bin"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("of an fs.FS: %q, %v", files, err)
	}
	if want := []string{"again", "far", "inside", "out", "up", "whole"}; !slices.Equal(elsewhere, want) {
		t.Errorf("of an fs.FS: %q lead to folders", elsewhere)
	}
}
