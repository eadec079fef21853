package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// scanFolder is a folder of pickles and other files.
func scanFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	evilPickle = "\x80\x02cos\nsystem\nX\x02\x00\x00\x00id\x85R."
	oddPickle  = "\x80\x02cmy\x1b[31m\nNet\n)R."
	goodPickle = "\x80\x02ccollections\nOrderedDict\n)R."
)

func TestScanExits(t *testing.T) {
	const fixtures = "../../../../pytorch-tests/"
	dir := scanFolder(t, map[string]string{
		"evil.pt": evilPickle, "odd.pt": oddPickle, "plain.pt": goodPickle, "cut.pt": evilPickle[:len(evilPickle)-1], "text.txt": strings.Repeat("only text\n", 9),
	})
	for _, c := range []struct {
		file string
		code int
		out  string
	}{
		{fixtures + "demo-resnet/demo-resnet-torch2.15.pt", 0, "clean"},
		{fixtures + "safetensors", 0, "clean"},
		{fixtures + "distributed/single-torch2.15", 0, ": 2 files, 0 with findings, 0 cannot tell, 0 skipped"},
		{fixtures + "distributed/single-torch2.15/__0_0.distcp", 0, "clean"},
		{filepath.Join(dir, "evil.pt"), 1, "dangerous  os.system"},
		{filepath.Join(dir, "odd.pt"), 1, `unknown    my\x1b[31m.Net`},
		{filepath.Join(dir, "plain.pt"), 4, "cannot tell"},
		{filepath.Join(dir, "cut.pt"), 3, "dangerous  os.system"},
		{filepath.Join(dir, "cut.pt"), 3, "findings, and cannot tell the rest"},
		{filepath.Join(dir, "text.txt"), 4, "no checkpoint"},
		{filepath.Join(dir, "none.pt"), 2, ""},
		{dir, 1, "dangerous  os.system"},
		{dir, 1, ": 5 files, 3 with findings (1 read in part), 0 cannot tell, 1 skipped"},
	} {
		got := runFiles(t, "scan", c.file)
		if got.code != c.code || !strings.Contains(got.out, c.out) || strings.ContainsRune(got.out+got.err, 0x1b) {
			t.Errorf("%s: exit %d, want %d and %q: %s%s", c.file, got.code, c.code, c.out, got.out, got.err)
		}
	}
}

func TestScanFolderExits(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		code  int
	}{
		"findings":      {map[string]string{"a.pt": evilPickle, "README.md": strings.Repeat("words ", 9)}, 1},
		"an unpacked":   {map[string]string{"data.pkl": goodPickle, "version": "3\n"}, 0},
		"no checkpoint": {map[string]string{"README.md": strings.Repeat("words ", 9)}, 4},
		"one is cut":    {map[string]string{"a.pt": evilPickle, "b.pt": goodPickle[:9]}, 1},
		"found and cut": {map[string]string{"a.pt": evilPickle[:len(evilPickle)-1]}, 1},
		"all are cut":   {map[string]string{"a.pt": evilPickle[:9], "b.pt": goodPickle[:9]}, 3},
	} {
		if got := runFiles(t, "scan", scanFolder(t, c.files)); got.code != c.code {
			t.Errorf("%s: exit %d, want %d: %s%s", name, got.code, c.code, got.out, got.err)
		}
	}
}

// Findings in one file do not hide that another could not be read.
func TestScanFolderSaysWhatItCannotTell(t *testing.T) {
	dir := scanFolder(t, map[string]string{"a.pt": evilPickle, "b.pt": goodPickle[:9], "c.pt": goodPickle[:5]})
	for _, flag := range []string{"--json=false", "--json"} {
		got := runFiles(t, "scan", flag, dir)
		if got.code != 1 || strings.Count(got.err, "\n") != 2 || !strings.Contains(got.err, "b.pt") || !strings.Contains(got.err, "c.pt") {
			t.Errorf("%s: exit %d, %s", flag, got.code, got.err)
		}
	}
}

// A folder is clean only when all below it was looked at: hidden folders too, and
// links that lead elsewhere or nowhere are told.
func TestScanFolderLooksEverywhere(t *testing.T) {
	clean, err := os.ReadFile(fixture("demo-resnet/demo-resnet-torch2.15.pt"))
	if err != nil {
		t.Fatal(err)
	}
	evil := scanFolder(t, map[string]string{"evil.pt": evilPickle})
	for name, c := range map[string]struct {
		link, to string // what is beside a clean file
		code     int
		err      string
	}{
		"a file elsewhere":    {"b.pt", filepath.Join(evil, "evil.pt"), 1, ""},
		"a folder elsewhere":  {"b", evil, 4, "which was not looked into"},
		"nothing":             {"b.pt", "none.pt", 2, "b.pt"},
		"the folder itself":   {"b", ".", 0, ""},
		"a folder below it":   {"b", ".hidden", 0, ""},
		"a file that is here": {"b.pt", "a.pt", 0, ""},
	} {
		dir := scanFolder(t, map[string]string{"a.pt": string(clean)})
		if err := os.Mkdir(filepath.Join(dir, ".hidden"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(c.to, filepath.Join(dir, c.link)); err != nil {
			t.Skip("this system lets nobody make links: ", err)
		}
		got := runFiles(t, "scan", dir)
		if got.code != c.code || !strings.Contains(got.err, c.err) || strings.Count(got.err, "\n") > 1 || c.err == "" && got.err != "" {
			t.Errorf("a link to %s: exit %d, want %d: %s%s", name, got.code, c.code, got.out, got.err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".hidden", "model"), []byte(evilPickle), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := runFiles(t, "scan", dir); got.code != 1 {
			t.Errorf("a hidden pickle beside a link to %s: exit %d: %s%s", name, got.code, got.out, got.err)
		}
	}
}

func TestScanJSON(t *testing.T) {
	dir := scanFolder(t, map[string]string{"evil.pt": evilPickle})
	got := runFiles(t, "scan", "--json", filepath.Join(dir, "evil.pt"))
	var doc struct {
		Clean bool
		Files []struct {
			Verdict, Format string
			Pickles         int
			Globals         []struct {
				Module, Name, Grade, Reason string
				Offset                      int
				Called                      bool
			}
		}
	}
	if err := json.Unmarshal([]byte(got.out), &doc); err != nil || got.code != 1 || doc.Clean || len(doc.Files) != 1 {
		t.Fatalf("exit %d, %v: %s", got.code, err, got.out)
	}
	f := doc.Files[0]
	if f.Verdict != "findings" || f.Format != "pickle" || f.Pickles != 1 || len(f.Globals) != 1 {
		t.Fatalf("%+v", f)
	}
	if g := f.Globals[0]; g.Module != "os" || g.Name != "system" || g.Grade != "dangerous" || g.Offset != 2 || !g.Called || g.Reason == "" {
		t.Errorf("%+v", g)
	}
}
