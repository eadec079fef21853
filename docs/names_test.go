//go:build !js && !wasip1 && !windows

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// command is what the built program says of itself.
type command struct {
	path  string
	flags map[string]map[string]bool // of each command; those of all commands under ""
}

func (c *command) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), c.path, args...).Output()
	if err != nil {
		t.Fatalf("wick %v: %v", args, err)
	}
	return string(out)
}

var flagWord = regexp.MustCompile(`(?:^|[\s(\[|"'“])--([a-z][a-z0-9-]*)`)

func newCommand(t *testing.T) *command {
	t.Helper()
	c := &command{path: filepath.Join(t.TempDir(), "wick"), flags: map[string]map[string]bool{}}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", c.path, "../cmd/wick").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	help := c.run(t, "help")
	_, rest, _ := strings.Cut(help, "\nCommands\n")
	list, rest, _ := strings.Cut(rest, "\n\n")
	c.flags[""] = flagsIn(rest)
	for _, line := range strings.Split(list, "\n") {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		_, flags, _ := strings.Cut(c.run(t, "help", name), "\nFlags\n")
		c.flags[name] = flagsIn(flags)
	}
	c.flags["help"] = map[string]bool{}
	if len(c.flags) < 15 || !c.flags["convert"]["force"] || !c.flags[""]["limit"] {
		t.Fatalf("the help was misread: %v", c.flags)
	}
	return c
}

// flagsIn are the flags at the beginnings of lines of a help text.
func flagsIn(text string) map[string]bool {
	flags := map[string]bool{"help": true}
	for _, m := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z][a-z0-9-]*)`).FindAllStringSubmatch(text, -1) {
		flags[m[1]] = true
	}
	return flags
}

// has reports whether any command has a flag.
func (c *command) has(flag string) bool {
	for _, flags := range c.flags {
		if flags[flag] {
			return true
		}
	}
	return false
}

// call is "wick" and the words behind it, up to what ends a command.
var wickCall = regexp.MustCompile(`(?:^|[\s(>|` + "`" + `])wick ([a-z][a-z-]*)([^|;&\n` + "`" + `]*)`)

// check returns what is wrong with the commands in a text. In prose "wick" may
// stand before any word: there only flags count.
func (c *command) check(text string, prose bool) []string {
	var wrong []string
	for _, m := range wickCall.FindAllStringSubmatch(text, -1) {
		flags, ok := c.flags[m[1]]
		if !ok && !prose {
			wrong = append(wrong, "wick "+m[1]+" does not exist")
		}
		if !ok {
			continue
		}
		for _, f := range flagWord.FindAllStringSubmatch(m[2], -1) {
			if !flags[f[1]] && !c.flags[""][f[1]] {
				wrong = append(wrong, "wick "+m[1]+" has no --"+f[1])
			}
		}
	}
	return wrong
}

// code are the fenced blocks and code spans of a page.
func code(page string) (text string) {
	for _, b := range blocks(strings.Split(page, "\n")) {
		text += strings.Join(b.lines, "\n") + "\n"
	}
	for _, span := range regexp.MustCompile("`[^`\n]+`").FindAllString(page, -1) {
		text += strings.Trim(span, "`") + "\n"
	}
	return strings.ReplaceAll(text, "\\\n", " ")
}

// Nothing in the pages names a command or a flag that does not exist.
func TestPagesNameWhatExists(t *testing.T) {
	c := newCommand(t)
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(pages, "../README.md", "../CHANGELOG.md", "../CONTRIBUTING.md", "../SECURITY.md") {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := code(string(raw))
		for _, wrong := range c.check(text, false) {
			t.Errorf("%s: %s", name, wrong)
		}
		// A flag that stands alone is one of wick's; other programs are named with theirs.
		for _, m := range regexp.MustCompile("`--([a-z][a-z0-9-]*)").FindAllStringSubmatch(string(raw), -1) {
			if !c.has(m[1]) {
				t.Errorf("%s: no command has --%s", name, m[1])
			}
		}
	}
}

// Nothing in the command's help does, nor in what the Go code can print or says
// in comments.
func TestCodeNamesWhatExists(t *testing.T) {
	c := newCommand(t)
	for name := range c.flags {
		if name == "" || name == "help" {
			continue
		}
		for _, wrong := range c.check(examples(c.run(t, "help", name)), false) {
			t.Errorf("wick help %s: %s", name, wrong)
		}
	}
	files := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "examples" || d.Name() == "scripts" || d.Name() == "bench-peers" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".."):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		return c.checkFile(t, path)
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files, %v", files, err)
	}
}

// examples are the lines of a help text that are commands.
func examples(help string) string {
	return strings.Join(regexp.MustCompile(`(?m)^ +(?:\S.*[|;&] *)?wick .*$`).FindAllString(help, -1), "\n")
}

func (c *command) checkFile(t *testing.T, path string) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	look := func(at token.Pos, text string) {
		for _, m := range flagWord.FindAllStringSubmatch(text, -1) {
			if !c.has(m[1]) {
				t.Errorf("%s: no command has --%s", fset.Position(at), m[1])
			}
		}
	}
	for _, g := range file.Comments {
		look(g.Pos(), g.Text())
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				look(lit.Pos(), text)
				for _, wrong := range c.check(text, true) {
					t.Errorf("%s: %s", fset.Position(lit.Pos()), wrong)
				}
			}
		}
		return true
	})
	return nil
}
