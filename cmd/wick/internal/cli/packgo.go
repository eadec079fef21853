package cli

import (
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"

	"github.com/wick-ml/wick/cmd/wick/internal/human"
)

// goFile is what a generated Go file says.
type goFile struct {
	Package string
	Type    string // the type that it fills, with its type arguments; "" for any
	Func    string
	Var     string // that holds the record
	Record  string // file name
	Taken   string // the function that the package has already, for which Func has another name; "" for none
	Holds   string // "4 tensors, 3.1 KiB"
}

// embeddable are the names that go:embed takes without quotes.
var embeddable = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// newGoFile settles names from the flags and the name of the output.
func newGoFile(f *packFlags, out string) (*goFile, error) {
	stem, ok := strings.CutSuffix(filepath.Base(out), ".go")
	if !ok || stem == "" {
		return nil, fault.New(fault.Usage, "an output that is no Go file").In(out).Needs("a name that ends with .go", "the record is written beside it")
	}
	g := &goFile{Type: f.typ, Record: f.record}
	if g.Record == "" {
		g.Record = stem + ".safetensors"
	}
	if !embeddable.MatchString(g.Record) {
		return nil, fault.New(fault.Usage, "a record called "+g.Record).Needs("a file name of letters, digits and _.-, which go:embed takes", "give one with --record")
	}
	base, err := typeBase(f.typ)
	if err != nil {
		return nil, err
	}
	if base == "" {
		base = exported(stem)
	}
	if g.Package = f.pkg; g.Package == "" {
		g.Package = packageBeside(out)
	}
	if !token.IsIdentifier(g.Package) {
		return nil, fault.New(fault.Usage, "a package called "+g.Package).Needs("a Go identifier", "give one with --package")
	}
	return g, g.name(f.fn, base, declaredBeside(g.Package, out))
}

// name settles what the function and the variable are called: a name that the
// package has already, such as the function that gen wrote, would not compile.
func (g *goFile) name(fn, base string, declared map[string]string) error {
	g.Var = free(unexported(base)+"Record", "embedded"+exported(base)+"Record", declared)
	if fn == "" {
		usual := "Load" + exported(base)
		if g.Func = free(usual, "LoadEmbedded"+exported(base), declared); g.Func != usual {
			g.Taken = usual
		}
		return nil
	}
	if g.Func = fn; !token.IsIdentifier(fn) {
		return fault.New(fault.Usage, "a function called "+fn).Needs("a Go identifier", "give one with --func")
	}
	if file := declared[fn]; file != "" || fn == g.Var {
		return fault.New(fault.Usage, "the package has a "+fn).In(file).Needs("a name that is free", "give another with --func")
	}
	return nil
}

// free is the first name that nothing declares: the usual one, the other, or the
// other with a number.
func free(usual, other string, declared map[string]string) string {
	name := usual
	for i := 1; declared[name] != ""; i++ {
		if name = other; i > 1 {
			name += strconv.Itoa(i)
		}
	}
	return name
}

// declaredBeside is what the Go files beside the output declare in the package,
// each name with its file. The outputs themselves are replaced and do not count.
func declaredBeside(pkg string, outs ...string) map[string]string {
	declared, own := map[string]string{}, map[string]bool{}
	for _, out := range outs {
		own[filepath.Base(out)] = true
	}
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(outs[0]), "*.go")) // as in packageBeside
	for _, file := range files {
		parsed, _ := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution) // of a broken file, what could be read
		if parsed == nil || parsed.Name == nil || parsed.Name.Name != pkg || own[filepath.Base(file)] {
			continue
		}
		for _, d := range parsed.Decls {
			for _, name := range declaredBy(d) {
				declared[name.Name] = file
			}
		}
	}
	return declared
}

// declaredBy are the names that one declaration gives the package.
func declaredBy(d ast.Decl) []*ast.Ident {
	var names []*ast.Ident
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				names = append(names, s.Names...)
			case *ast.TypeSpec:
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// typeBase is the name of a type without its type arguments.
func typeBase(typ string) (string, error) {
	if typ == "" {
		return "", nil
	}
	expr, err := parser.ParseExpr(typ)
	switch e := expr.(type) {
	case *ast.IndexExpr:
		expr = e.X
	case *ast.IndexListExpr:
		expr = e.X
	}
	name, ok := expr.(*ast.Ident)
	if err != nil || !ok || !token.IsIdentifier(name.Name) {
		return "", fault.New(fault.Usage, "--type "+typ).Needs("the name of a type of the package, such as Net or Net[float32]", "")
	}
	return name.Name, nil
}

// recordType is what the record says that it is of: the name that reflection
// gives the type.
func (g *goFile) recordType() string {
	if g.Type == "" {
		return ""
	}
	base, _, _ := strings.Cut(g.Type, "[")
	return g.Package + "." + strings.TrimSpace(base)
}

// packageBeside is the package of the Go files in the output's folder, or else a
// name made of the folder's.
func packageBeside(out string) string {
	files, _ := filepath.Glob(filepath.Join(filepath.Dir(out), "*.go")) // a pattern of a strange folder matches nothing
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly)
		if err == nil && !strings.HasSuffix(file, "_test.go") {
			return parsed.Name.Name
		}
	}
	dir, err := filepath.Abs(filepath.Dir(out))
	if err != nil {
		return "main"
	}
	return strings.ToLower(exported(filepath.Base(dir)))
}

// exported makes an identifier of a file's name: squeeze-net_v1 is SqueezeNetV1.
func exported(name string) string {
	var b strings.Builder
	up := true
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			up = true
			continue
		case up:
			r = unicode.ToUpper(r)
		}
		up = false
		b.WriteRune(r)
	}
	return b.String()
}

// unexported gives a name a small first letter, and one of capitals only small
// ones throughout.
func unexported(name string) string {
	if strings.ToUpper(name) == name {
		return strings.ToLower(name)
	}
	r, n := utf8.DecodeRuneInString(name)
	return string(unicode.ToLower(r)) + name[n:]
}

// text is the Go file.
func (g *goFile) text(r checkpoint.Report) ([]byte, error) {
	g.Holds = human.Plural(r.Tensors, "tensor") + ", " + human.Bytes(r.Bytes)
	form := packAny
	if g.Type != "" {
		form = packTyped
	}
	fill := strings.NewReplacer("{{Package}}", g.Package, "{{Type}}", g.Type, "{{Func}}", g.Func, "{{Var}}", g.Var, "{{Record}}", g.Record, "{{Holds}}", g.Holds)
	text, err := format.Source([]byte(fill.Replace(packHead + form)))
	if err != nil {
		return nil, fault.Wrap(fault.Usage, "names that make no Go", err)
	}
	return text, nil
}

// The file's text, with names in braces. Package text/template calls methods by
// their names, for which the linker would keep every method of the program: 4 MB.
const (
	packHead = `// Code generated by wick pack; DO NOT EDIT.

package {{Package}}

import (
	"context"
	_ "embed"

	"github.com/wick-ml/wick/embedded"
	"github.com/wick-ml/wick/serde"
)

// {{Var}} is {{Record}}: {{Holds}}.
//
//go:embed {{Record}}
var {{Var}} []byte
`
	packTyped = `
// {{Func}} returns a {{Type}} whose weights are those in the program itself, not
// copies of them: writing to one changes it for everybody. The report says what had
// to be copied and why, which is everything where the record is not aligned in memory.
func {{Func}}(ctx context.Context, opts ...serde.Option) (*{{Type}}, *serde.Report, error) {
	v := new({{Type}})
	report, err := embedded.Load(ctx, {{Var}}, v, opts...)
	if err != nil {
		return nil, nil, err
	}
	return v, report, nil
}
`
	packAny = `
// {{Func}} fills what v points to with the weights in the program itself, not with
// copies of them: writing to one changes it for everybody. The report says what had
// to be copied and why, which is everything where the record is not aligned in memory.
func {{Func}}(ctx context.Context, v any, opts ...serde.Option) (*serde.Report, error) {
	return embedded.Load(ctx, {{Var}}, v, opts...)
}
`
)
