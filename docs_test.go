package wick_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// module makes a folder with a module of its own that has wick as this checkout.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(mod), "module github.com/wick-ml/wick\n", "module digits\n", 1)
	text += "\nrequire github.com/wick-ml/wick v0.0.0\n\nreplace github.com/wick-ml/wick => " + filepath.ToSlash(root) + "\n"
	if strings.Contains(text, "module github.com") {
		t.Fatal("the module has another name")
	}
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "go.mod"), text)
	write(t, filepath.Join(dir, "go.sum"), string(sum))
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fence is one block of code of a page: ```LANGUAGE FILE.
var fence = regexp.MustCompile("(?ms)^```(\\w+) ?(\\S*)\\n(.*?)\\n```$")

// TestRecordsPage runs docs/records.md: programs are written to their files, and
// every command prints what the page says.
func TestRecordsPage(t *testing.T) {
	host, err := exec.Command("go", "env", "GOHOSTOS", "GOHOSTARCH").Output()
	if err != nil || strings.Join(strings.Fields(string(host)), "/") != runtime.GOOS+"/"+runtime.GOARCH {
		t.Skip("programs that are built here do not run here")
	}
	page, err := os.ReadFile("docs/records.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := module(t)
	wick := filepath.Join(dir, "bin", "wick")
	if out, err := exec.Command("go", "build", "-o", wick, "./cmd/wick").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	digits, err := os.ReadFile("examples/tiny/digits.pt")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "digits.pt"), string(digits))
	programs, commands := 0, 0
	for _, block := range fence.FindAllStringSubmatch(string(page), -1) {
		switch language, file, text := block[1], block[2], block[3]; {
		case language == "go" && file != "":
			write(t, filepath.Join(dir, filepath.FromSlash(file)), text)
			programs++
		case language == "console":
			commands += runConsole(t, dir, wick, text)
		default:
			t.Errorf("a block that nobody runs:\n%s", block[0])
		}
	}
	if programs < 5 || commands < 9 {
		t.Errorf("%d programs and %d commands were run, the page had more", programs, commands)
	}
}

// runConsole runs the commands behind $ and compares with the lines below each.
func runConsole(t *testing.T, dir, wick, text string) (n int) {
	t.Helper()
	for _, part := range strings.Split("\n"+text, "\n$ ")[1:] {
		line, want, _ := strings.Cut(part, "\n")
		words := strings.Fields(line)
		if words[0] == "wick" {
			words[0] = wick
		}
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "NO_COLOR=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		if got := strings.TrimSuffix(string(out), "\n"); got != strings.TrimSuffix(want, "\n") {
			t.Errorf("%s\n%s\nthe page says\n%s", line, got, want)
		}
		n++
	}
	return n
}
