//go:build !js && !wasip1 && !windows

// Package docs holds the pages to what the command does.
package docs

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the commands print into the pages; look at the difference before committing it")

// block is a fenced block of a page.
type block struct {
	language string
	lines    []string
	start    int // index of its first line in the page
}

func blocks(page []string) []block {
	var out []block
	open := false
	for i, line := range page {
		switch {
		case strings.HasPrefix(line, "```") && !open:
			out = append(out, block{language: strings.TrimPrefix(line, "```"), start: i + 1})
			open = true
		case strings.HasPrefix(line, "```"):
			open = false
		case open:
			b := &out[len(out)-1]
			b.lines = append(b.lines, line)
		}
	}
	return out
}

// call is a command of a block and what it prints. A command goes on over lines
// as in a shell: while a here-document is open.
type call struct {
	command string
	shown   []string
}

func calls(b block) []call {
	var out []call
	here := "" // what ends the open here-document
	heredoc := regexp.MustCompile(`<<'?(\w+)'?`)
	for _, line := range b.lines {
		switch {
		case here != "":
			out[len(out)-1].command += "\n" + line
			if line == here {
				here = ""
			}
		case strings.HasPrefix(line, "$ "):
			out = append(out, call{command: strings.TrimPrefix(line, "$ ")})
			if m := heredoc.FindStringSubmatch(line); m != nil {
				here = m[1]
			}
		case len(out) > 0:
			out[len(out)-1].shown = append(out[len(out)-1].shown, line)
		}
	}
	return out
}

// The recipes do what the page shows, one after the other in one folder. A
// command must succeed unless the next one asks for its exit code.
func TestCookbook(t *testing.T) {
	page := runPage(t, "cookbook.md")
	if n := strings.Count(page, "\n## "); n != 15 {
		t.Errorf("%d recipes", n)
	}
	for _, recipe := range strings.Split(page, "\n## ")[1:] {
		if !strings.Contains(recipe, "```console\n$ ") {
			t.Errorf("a recipe that runs nothing: %.40s", recipe)
		}
	}
}

// The two programs of the migration page print the same.
func TestMigration(t *testing.T) {
	runPage(t, "migration.md", "wick demo --save resnet.pt")
}

// runPage runs the blocks of a page, after some commands that it does not show,
// and returns the page.
func runPage(t *testing.T, name string, before ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the go command")
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Split(string(raw), "\n")
	k := newKitchen(t)
	for _, command := range before {
		k.run(t, block{lines: []string{"$ " + command, "…"}})
	}
	var edits []edit
	for _, b := range blocks(page) {
		switch b.language {
		case "console":
			edits = append(edits, k.run(t, b))
		case "go":
			k.write(t, strings.TrimPrefix(b.lines[0], "// "), strings.Join(b.lines, "\n")+"\n")
		default:
			t.Errorf("a block of %q, which nobody checks", b.language)
		}
	}
	if *update {
		for _, e := range slices.Backward(edits) {
			page = slices.Replace(page, e.at, e.at+e.old, e.lines...)
		}
		if err := os.WriteFile(name, []byte(strings.Join(page, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return string(raw)
}

// edit replaces the lines of a block.
type edit struct {
	at, old int
	lines   []string
}

// kitchen is the folder that the recipes are run in.
type kitchen struct {
	dir string
	env []string
}

// newKitchen builds the command and makes a folder whose Go module has wick from
// this tree.
func newKitchen(t *testing.T) *kitchen {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "wick"), "../cmd/wick").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	k := &kitchen{dir: t.TempDir()}
	k.env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "NO_COLOR=1", "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "LC_ALL=C")
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile("../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(mod), "module github.com/wick-ml/wick", "module recipes", 1)
	k.write(t, "go.mod", text+"\nrequire github.com/wick-ml/wick v0.0.0\n\nreplace github.com/wick-ml/wick => "+root+"\n")
	k.write(t, "go.sum", string(sum))
	return k
}

func (k *kitchen) write(t *testing.T, name, text string) {
	t.Helper()
	name = filepath.Join(k.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs the commands of a block in one shell and compares what they print.
func (k *kitchen) run(t *testing.T, b block) edit {
	t.Helper()
	const mark = "--- end of the command, exit code "
	all := calls(b)
	var script strings.Builder
	for _, c := range all {
		fmt.Fprintf(&script, "%s\n__code=$?; echo '%s'$__code; (exit $__code)\n", c.command, mark)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "exec 2>&1\n"+script.String())
	cmd.Dir, cmd.Env = k.dir, k.env
	out, err := cmd.Output()
	parts := strings.Split(string(out), mark)
	if len(parts) != len(all)+1 {
		t.Fatalf("%v: %s", err, out)
	}
	e := edit{at: b.start, old: len(b.lines)}
	for i, c := range all {
		got := parts[i]
		if i > 0 {
			_, got, _ = strings.Cut(got, "\n")
		}
		code, _, _ := strings.Cut(parts[i+1], "\n")
		if code != "0" && (i+1 == len(all) || all[i+1].command != "echo $?") {
			t.Errorf("$ %s\nexit code %s: %s", c.command, code, got)
		}
		lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
		if got == "" {
			lines = nil
		}
		if !*update && !shows(c.shown, lines) {
			t.Errorf("$ %s\nprints\n%s\nwhere the page shows\n%s", c.command, got, strings.Join(c.shown, "\n"))
		}
		e.lines = append(e.lines, strings.Split("$ "+c.command, "\n")...)
		e.lines = append(e.lines, shortened(c.shown, lines)...)
	}
	return e
}

// shows reports whether a page shows what was printed: … stands for any part of
// a line, alone on a line for any number of lines.
func shows(shown, printed []string) bool {
	var re bytes.Buffer
	re.WriteString(`\A`)
	for _, line := range shown {
		if strings.TrimSpace(line) == "…" {
			re.WriteString(`(?:.*\n)*`)
			continue
		}
		re.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + `\n`)
	}
	re.WriteString(`\z`)
	text := strings.Join(printed, "\n")
	if len(printed) > 0 {
		text += "\n"
	}
	return regexp.MustCompile(re.String()).MatchString(text)
}

// shortened is what was printed, with the same lines left out as the page does.
func shortened(shown, printed []string) []string {
	if shows(shown, printed) && len(shown) > 0 {
		return shown
	}
	for i, line := range shown {
		if tail := len(shown) - i - 1; strings.TrimSpace(line) == "…" && i+tail < len(printed) {
			return append(append(append([]string{}, printed[:i]...), "…"), printed[len(printed)-tail:]...)
		}
	}
	return printed
}
