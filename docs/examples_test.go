//go:build !js && !wasip1 && !windows

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
)

// libraries are the packages whose pages programs are written from. Package
// record/meta is what formats of records share.
var libraries = []string{
	".", "arith", "checkpoint", "embedded", "fault", "gguf", "llama", "nested", "nn", "pytorch", "record", "remote", "rules", "safetensors",
	"serde", "shards", "tensor",
}

// plumbing are exported functions that wick's own packages use among each other.
var plumbing = []string{
	"checkpoint.ExactPath", "checkpoint.GuardOf", "checkpoint.IsDistant", "checkpoint.ListFolder", "checkpoint.MapFile", "checkpoint.OpenSibling",
	"checkpoint.Owned", "checkpoint.Place", "checkpoint.Storable", "fault.ReadFailed", "nested.Distinct", "tensor.NativeOrder", "tensor.Room", "tensor.StringBytes",
}

// Every function that a program can begin with is called by a runnable example
// on the page of its package.
func TestEveryEntryPointHasAnExample(t *testing.T) {
	total := 0
	for _, dir := range libraries {
		functions, called, examples := readPackage(t, filepath.Join("..", dir))
		total += len(functions)
		if examples == 0 {
			t.Errorf("package %s has no example", dir)
		}
		for _, name := range functions {
			qualified := filepath.Base(dir) + "." + name
			if dir == "." {
				qualified = "wick." + name
			}
			if isPlumbing := slices.Contains(plumbing, qualified); called[name] == isPlumbing {
				t.Errorf("%s: in an example: %v, listed as plumbing: %v", qualified, called[name], isPlumbing)
			}
		}
	}
	if total < 150 {
		t.Errorf("only %d functions", total)
	}
}

// readPackage returns the exported functions of a package, those that its
// examples with an output call, and how many examples there are.
func readPackage(t *testing.T, dir string) (functions []string, called map[string]bool, examples int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	called = map[string]bool{}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		isTest := strings.HasSuffix(e.Name(), "_test.go")
		runs := outputs(file)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			switch {
			case !ok || f.Recv != nil:
			case isTest && strings.HasPrefix(f.Name.Name, "Example") && runs(f):
				examples++
				note(f, called)
			case !isTest && f.Name.IsExported():
				functions = append(functions, f.Name.Name)
			}
		}
	}
	sort.Strings(functions)
	return functions, called, examples
}

// outputs tells the functions of a file that have an output which go test
// compares.
func outputs(file *ast.File) func(*ast.FuncDecl) bool {
	return func(f *ast.FuncDecl) bool {
		return slices.ContainsFunc(file.Comments, func(g *ast.CommentGroup) bool {
			return g.Pos() > f.Pos() && g.End() < f.End() && strings.Contains(g.Text(), "Output:")
		})
	}
}

// note notes the names that a function calls of another package.
func note(f *ast.FuncDecl, called map[string]bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			called[s.Sel.Name] = true
		}
		return true
	})
}
