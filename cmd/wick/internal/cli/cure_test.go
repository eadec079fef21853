package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// What an error advises works.
func TestCuresOfComplexTensors(t *testing.T) {
	dir := t.TempDir()
	half, err := tensor.Of([]complex64{1.5 - 2i}).Cast(tensor.C32)
	if err != nil {
		t.Fatal(err)
	}
	trees := map[string]nested.Value{"m.pt": mapOf(t, str("h"), lazy(half), str("z"), lazy(tensor.Of([]complex128{1.5 - 2i})))}
	npy, out, rule := filepath.Join(dir, "h.npy"), filepath.Join(dir, "z.safetensors"), filepath.Join(dir, "z.rules")
	if err := os.WriteFile(rule, []byte("z = z | cast complex64\nh = h | cast complex64\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line, cure string
		cured      []string
	}{
		{"extract m.pt h -o " + npy, "convert it with --dtype complex64", []string{"--dtype", "complex64"}},
		{"convert --include z m.pt " + out, "cast it by a rule: NAME = NAME | cast complex64", []string{"--rules", rule}},
		{"convert --force --dtype complex64 m.pt " + out, "is cast by a rule: NAME = NAME | cast complex64", nil},
	} {
		args := strings.Fields(c.line)
		if got := runTrees(t.Context(), trees, args...); got.code == 0 || !strings.Contains(got.err, c.cure) {
			t.Errorf("%s: exit %d, %s; want the cure %s", c.line, got.code, got.err, c.cure)
		}
		if c.cured == nil {
			continue
		}
		if strings.Contains(c.line, "--include") {
			args = []string{"convert", "m.pt", out}
		}
		if got := runTrees(t.Context(), trees, append(args, c.cured...)...); got.code != 0 {
			t.Errorf("%s %s: exit %d, %s", c.line, c.cured, got.code, got.err)
		}
	}
}

// The library speaks of its own options, the command of its flags: no text of the
// library has a flag in it, and none of its options gets through to a command's error.
func TestCuresNameFlagsInTheCommandAlone(t *testing.T) {
	flag, option := regexp.MustCompile(`(^|[\s'"(])--[a-z]`), regexp.MustCompile("\\b(wick|arith)\\.[A-Z]|the rule `[a-z]+`")
	texts, options := 0, 0
	for _, text := range libraryTexts(t) {
		texts++
		if flag.MatchString(text.value) {
			t.Errorf("%s names a flag: %s", text.place, text.value)
		}
		if option.MatchString(text.value) {
			options++
			if got := inFlags(text.value, func(string) bool { return true }); option.MatchString(got) {
				t.Errorf("%s: no flag stands for what %q names", text.place, got)
			}
		}
	}
	if texts < 1000 || options < 15 {
		t.Errorf("%d texts, %d of them with options: these are not all of the library", texts, options)
	}
	for _, f := range flagsOf {
		name, isFlag := strings.CutPrefix(f.flag, "--")
		name, _, _ = strings.Cut(name, " ")
		if isFlag && newConvert(&app{}).Flag(name) == nil && name != "keep-shards" { // which all commands have
			t.Errorf("convert has no --%s", name)
		}
	}
}

type libraryText struct{ place, value string }

// libraryTexts are the literals of all packages but those of the command, scripts
// and tests.
func libraryTexts(t *testing.T) (texts []libraryText) {
	t.Helper()
	const root = "../../../.."
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if slices.Contains([]string{"cmd", "scripts", "examples", "attacks", "pytorch-tests", ".git"}, name) {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				value, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				texts = append(texts, libraryText{fset.Position(lit.Pos()).String(), value})
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// A flag that a command does not have is convert's.
func TestCureOfAnotherCommand(t *testing.T) {
	for _, c := range []struct {
		cure, want string
		has        bool
	}{
		{"wick.Overwrite() replaces it", "--force replaces it", true},
		{"open it with wick.Salvage()", "open it with wick convert --salvage", false},
		{"the rule `rename [\"it's\"] -> ANOTHER` or the rule `drop`", `--rename '["it'\''s"] -> ANOTHER' or --exclude`, true},
		{"leave it out with the rule `drop`", "leave it out with wick convert --exclude", false},
		{"get it again", "get it again", false},
	} {
		if got := inFlags(c.cure, func(string) bool { return c.has }); got != c.want {
			t.Errorf("%s: got %s, want %s", c.cure, got, c.want)
		}
	}
}
