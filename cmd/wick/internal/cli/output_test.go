package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
)

// writing are the commands that write a file, without its name.
func writing(t *testing.T) map[string]func(out string) []string {
	t.Helper()
	model, err := filepath.Abs(stateDict)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func(string) []string{
		"x.safetensors": func(out string) []string { return []string{"convert", model, out} },
		"x.npy":         func(out string) []string { return []string{"extract", model, "2.weight", "-o", out} },
		"x.html":        func(out string) []string { return []string{"report", model, "-o", out} },
		"pack.go":       func(out string) []string { return []string{"pack", "--package", "p", model, out} },
		"gen.go":        func(out string) []string { return []string{"gen", "--package", "p", model, "-o", out} },
	}
}

// An output in a folder that is not there names the user's path and the command
// that makes the folder.
func TestOutputFolderAbsent(t *testing.T) {
	commands := writing(t)
	t.Chdir(t.TempDir())
	for dir, cure := range map[string]string{"nodir": "mkdir nodir)", filepath.Join("no", "dir"): "mkdir -p " + filepath.Join("no", "dir") + ")"} {
		for name, args := range commands {
			got := runFiles(t, args(filepath.Join(dir, name))...)
			if got.code != exitEnvironment || !strings.Contains(got.err, dir+string(filepath.Separator)) ||
				!strings.Contains(got.err, "make the folder first: "+cure) || strings.Contains(got.err, ".wick-") {
				t.Errorf("%s: exit %d, %s", name, got.code, got.err)
			}
		}
	}
}

// What the system refuses is said of the user's path, not of the draft's.
func TestOutputFolderRefuses(t *testing.T) {
	dir := "/proc" // where nobody makes a file, not even root
	if runtime.GOOS != "linux" {
		if dir = t.TempDir(); os.Chmod(dir, 0o555) != nil || runtime.GOOS == "windows" {
			t.Skip("folders cannot be made read-only here")
		}
	}
	for name, args := range writing(t) {
		got := runFiles(t, args(filepath.Join(dir, name))...)
		if got.code != exitEnvironment || !strings.Contains(got.err, dir) || strings.Contains(got.err, ".wick-") {
			t.Errorf("%s: exit %d, %s", name, got.code, got.err)
		}
	}
}

func TestOutputToURL(t *testing.T) {
	for name, args := range writing(t) {
		for _, host := range []string{"http://127.0.0.1:1/", "HTTPS://user:s3cret@127.0.0.1:1/", "hf://org/model/"} {
			got := runFiles(t, args(host+name)...)
			if got.code != exitEnvironment || !strings.Contains(got.err, "wick does not write to URLs") || strings.Contains(got.err, "s3cret") {
				t.Errorf("%s: exit %d, %s", name, got.code, got.err)
			}
		}
	}
}

// One of something is no plural.
func TestOutputSingular(t *testing.T) {
	dir := t.TempDir()
	model, err := filepath.Abs(stateDict)
	if err != nil {
		t.Fatal(err)
	}
	one := filepath.Join(dir, "one.safetensors")
	if got := runFiles(t, "convert", "--include", "1.num_batches_tracked", model, one); got.code != 0 {
		t.Fatalf("exit %d, %s", got.code, got.err)
	}
	for _, c := range []struct{ command, want string }{
		{"ls", "1 tensor, 1 element, "}, {"info", "1, 1 element, "}, {"info", "1 tensor, 1 element, "}, {"tree", "1 tensor, 1 element, "}, {"verify", "the one tensor is the same bit for bit"},
	} {
		args := []string{c.command, one}
		if c.command == "verify" {
			args = append(args, one)
		}
		if got := runFiles(t, args...); got.code != 0 || !strings.Contains(got.out, c.want) {
			t.Errorf("%s: exit %d, %q without %q", c.command, got.code, got.out, c.want)
		}
	}
}

// A value without a name, such as the root, is seen in the list.
func TestOutputNamesTheRoot(t *testing.T) {
	if got := leftOut([]checkpoint.LeftOut{{Type: "int"}, {Path: "epoch", Type: "int"}}); got != "int without a name, epoch" {
		t.Errorf("%s", got)
	}
}

// The library's cures name its options, the command's its flags.
func TestOutputCuresNameFlags(t *testing.T) {
	c, err := wick.Open(t.Context(), stateDict)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	dir := t.TempDir()
	for name, want := range map[string]string{"x.unknown": "name the format with --to", "x.safetensors": "--force replaces it"} {
		out := filepath.Join(dir, name)
		if err := os.WriteFile(out, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"convert", stateDict, out}, {"convert", "--json", stateDict, out}} {
			if got := runFiles(t, args...); got.code != exitEnvironment || !strings.Contains(got.err, want) || strings.Contains(got.err, "wick.") {
				t.Errorf("%s: exit %d, %s", name, got.code, got.err)
			}
		}
		_, err := wick.Convert(t.Context(), c, out)
		if err == nil || strings.Contains(err.Error(), "--") || !strings.Contains(err.Error(), "wick.") {
			t.Errorf("wick.Convert: %v", err)
		}
	}
}
