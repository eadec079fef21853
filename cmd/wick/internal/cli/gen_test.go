package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The code for real models is the one that somebody has looked at.
func TestGenOutput(t *testing.T) {
	for name, args := range map[string][]string{
		"gen-resnet50.golden":  {"--package", "p", "--type", "ResNet50", fixture("model-families/resnet50-torch2.15.pt")},
		"gen-llama.golden":     {"--package", "p", "--type", "Llama", fixture("model-families/llama-torch2.15.bin")},
		"gen-lstm.golden":      {"--package", "p", "--type", "Tagger", fixture("model-families/lstm-torch2.15.pt")},
		"gen-vision.golden":    {"--package", "p", "--type", "Vision", fixture("model-families/vision-torch2.15.pt")},
		"gen-plain.golden":     {"--package", "p", "--type", "Vision", "--plain", fixture("model-families/vision-torch2.15.pt")},
		"gen-lightning.golden": {"--package", "p", "--type", "Lit", fixture("lightning/lightning-torch2.15.ckpt")},
		"gen-rules.golden":     {"--package", "p", "--type", "Lit", "--key", "state_dict", "--dtype", "float16", fixture("lightning/lightning-torch2.15.ckpt")},
	} {
		t.Run(name, func(t *testing.T) {
			got := runFiles(t, append([]string{"gen"}, args...)...)
			if got.code != 0 || got.err != "" {
				t.Fatalf("exit %d: %s", got.code, got.err)
			}
			golden(t, name, got.out)
		})
	}
}

// gen writes the code and its test, replaces what it has written, and nothing else.
func TestGenFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my-net")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "net.go")
	file := fixture("model-families/lstm-torch2.15.pt")
	got := runFiles(t, "gen", "-o", out, file)
	if got.code != 0 || got.out != "" || !strings.Contains(got.err, "2 types for 35 tensors; tested by ") {
		t.Fatalf("exit %d: %s%s", got.code, got.out, got.err)
	}
	code := read(t, out)
	if !strings.Contains(code, "\npackage mynet\n") || !strings.Contains(code, "\ntype LSTMTorch2 struct {\n") {
		t.Errorf("no package mynet and type LSTMTorch2 in\n%s", code)
	}
	if test := read(t, filepath.Join(dir, "net_test.go")); !strings.Contains(test, "\nfunc TestLoadLSTMTorch2(t *testing.T) {\n") {
		t.Errorf("no test in\n%s", test)
	}
	if again := runFiles(t, "gen", "-o", out, file); again.code != 0 || read(t, out) != code {
		t.Errorf("a second time: exit %d, %s", again.code, again.err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%d files, %v", len(entries), err)
	}
	mine := filepath.Join(dir, "mine.go")
	if err := os.WriteFile(mine, []byte("package other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runFiles(t, "gen", "-o", mine, file); got.code != 2 || read(t, mine) != "package other\n" {
		t.Errorf("wrote over a file of somebody else's: exit %d, %s", got.code, got.err)
	}
	if got := runFiles(t, "gen", "--force", "--no-test", "-o", mine, file); got.code != 0 || !strings.Contains(read(t, mine), "\npackage other\n") {
		t.Errorf("--force: exit %d, %s\n%s", got.code, got.err, read(t, mine))
	}
}

// What the package declares already is not declared a second time.
func TestGenBesideTaken(t *testing.T) {
	dir := t.TempDir()
	out, packed := filepath.Join(dir, "net.go"), filepath.Join(dir, "weights.go")
	file := fixture("model-families/lstm-torch2.15.pt")
	if got := runFiles(t, "pack", "--package", "net", "--type", "Net", file, packed); got.code != 0 {
		t.Fatalf("exit %d, %s", got.code, got.err)
	}
	got := runFiles(t, "gen", "--type", "Net", "-o", out, file)
	if got.code != 2 || !strings.Contains(got.err, packed+": the package has a LoadNet") || !strings.Contains(got.err, "--type") {
		t.Errorf("exit %d, %s", got.code, got.err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("written all the same")
	}
	for range 2 { // the second time over its own files
		if got := runFiles(t, "gen", "--type", "Tagger", "-o", out, file); got.code != 0 {
			t.Errorf("another name: exit %d, %s", got.code, got.err)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestGenRefuses(t *testing.T) {
	file := fixture("model-families/lstm-torch2.15.pt")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"gen"}, 2, "gen needs FILE"},
		{[]string{"gen", "--package", "a b", file}, 2, "a Go identifier"},
		{[]string{"gen", "--type", "net", file}, 2, "a Go identifier that begins with a capital letter"},
		{[]string{"gen", "-o", "net.txt", file}, 2, "ends in .go"},
		{[]string{"gen", "-o", "net_test.go", file}, 2, "ends in .go"},
		{[]string{"gen", "-o", filepath.Join("no", "such", "net.go"), file}, 2, "no such file"},
		{[]string{"gen", file + "x"}, 2, "no such file"},
		{[]string{"gen", "--key", "state", file}, 2, "state"},
		{[]string{"gen", fixture("broken/bad_pickle_crc-torch2.15.pt")}, 3, "checksum"},
	} {
		got := runFiles(t, c.args...)
		if got.code != c.code || !strings.Contains(got.err, c.says) || strings.Count(got.err, "\n") != 1 || got.out != "" {
			t.Errorf("%v: exit %d, %s%s", c.args, got.code, got.out, got.err)
		}
	}
}
