package attacks

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testFunctions are all tests and fuzz targets of the module, with their comments.
func testFunctions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				found[f.Name.Name] = f.Doc.Text()
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestSecurityNamesItsTests holds SECURITY.md and docs/reliability.md to the code:
// every test that they name is there, and every guarantee names some.
func TestSecurityNamesItsTests(t *testing.T) {
	known := testFunctions(t)
	for _, page := range []string{"../SECURITY.md", "../docs/reliability.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`).FindAllString(string(text), -1)
		for _, name := range names {
			if _, ok := known[name]; !ok {
				t.Errorf("%s names %s, which is not there", page, name)
			}
		}
		if len(names) < 10 {
			t.Errorf("%s names only %d tests", page, len(names))
		}
	}
	text, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| guarantee | tests |\n|---|---|\n")
	rows := 0
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		rows++
		if !regexp.MustCompile("`(Test|Fuzz)[A-Z]").MatchString(line) {
			t.Errorf("a guarantee without a test: %s", line)
		}
	}
	if rows < 8 {
		t.Errorf("only %d guarantees", rows)
	}
}

// TestFuzzTargetsSayWhatTheyCaught wants the mutation that each was seen to catch.
func TestFuzzTargetsSayWhatTheyCaught(t *testing.T) {
	targets := 0
	for name, comment := range testFunctions(t) {
		if !strings.HasPrefix(name, "Fuzz") {
			continue
		}
		targets++
		if words := strings.Join(strings.Fields(comment), " "); !strings.Contains(words, "Seen to catch: ") && !strings.Contains(words, "has caught a") {
			t.Errorf("%s does not say", name)
		}
	}
	if targets < 14 {
		t.Errorf("only %d targets", targets)
	}
}
