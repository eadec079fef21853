package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/cmd/wick/internal/gen"
	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/remote"
	"github.com/wick-ml/wick/rules"
)

// genFlags is what gen was asked for.
type genFlags struct {
	pkg, typ, output     string
	plain, noTest, force bool
	change               changeFlags
}

func newGen(a *app) *cobra.Command {
	var f genFlags
	cmd := &cobra.Command{
		Use:   "gen [FLAGS] FILE",
		Short: "Write Go structs for a checkpoint, and a function that loads it",
		Long: "gen writes Go types for everything in FILE: structs with tags, module lists as slices, repeated blocks as one\n" +
			"type, shapes in comments; a function that fills them, and beside the output a test. Modules of PyTorch become\n" +
			"structs of package nn where they match exactly, other tensors arrays with a shape; --plain makes packed slices of\n" +
			"all of them. What it reads are names, dtypes and shapes. The same file gives the same code, which suits\n\n" +
			"  //go:generate wick gen --type ResNet18 -o resnet18.go resnet18.pt",
		Example: "  wick gen --package p --type ResNet18 -o resnet18.go resnet18.pt\n" +
			"  wick gen --type Llama llama.safetensors | less\n" +
			"  wick gen --key state_dict --type Net -o net.go last.ckpt",
		Args: argCount(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.gen(cmd.Context(), &f, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.pkg, "package", "", "the Go package's `name`; default $GOPACKAGE, else that of the output's folder")
	flags.StringVar(&f.typ, "type", "", "the `name` of the outermost type; default from FILE")
	flags.StringVarP(&f.output, "output", "o", "-", "write to this `file`, and a test beside it; - is standard output, without a test")
	flags.BoolVar(&f.plain, "plain", false, "packed slices with their shapes in the tags, no structs of package nn")
	flags.BoolVar(&f.noTest, "no-test", false, "write no test")
	flags.BoolVarP(&f.force, "force", "f", false, "replace an output that gen did not write")
	f.change.register(flags)
	return cmd
}

func (a *app) gen(ctx context.Context, f *genFlags, file string) error {
	if err := f.checkOutput(); err != nil {
		return err
	}
	o := f.options(genName(file), a.getenv)
	sets, err := f.change.sets()
	if err != nil {
		return err
	}
	c, err := a.openArg(ctx, file, false)
	if err != nil {
		return err
	}
	defer a.close(c)
	root, err := a.changed(c, sets, &o)
	if err != nil {
		return err
	}
	res, err := gen.Generate(root, o)
	if err != nil {
		return err
	}
	if f.output == "-" {
		_, err = a.out.Write(res.Code)
		return err
	}
	if err := f.checkNames(o.Package, res); err != nil {
		return err
	}
	if err := f.write(ctx, res); err != nil {
		return err
	}
	a.noteGen(f, res)
	return nil
}

// changed applies the flags that choose and change tensors, and notes what they
// are for the code that must do the same.
func (a *app) changed(c *checkpoint.Checkpoint, sets []*rules.Set, o *gen.Options) (nested.Value, error) {
	set := rules.Merge(sets...)
	o.Rules = set.String()
	root, report, err := set.Apply(c.Root)
	if err != nil {
		return nil, err
	}
	for _, statement := range report.Unmatched {
		a.warn("nothing in the file matches: " + statement)
	}
	return root, nil
}

// noteGen says what was written.
func (a *app) noteGen(f *genFlags, res *gen.Result) {
	text := fmt.Sprintf("%s: %s for %s", fault.Clean(f.output, maxName), human.Plural(res.Types, "type"), human.Plural(res.Tensors, "tensor"))
	if !f.noTest {
		text += "; tested by " + fault.Clean(testName(f.output), maxName)
	}
	if n := len(res.LeftOut); n > 0 {
		text += "; left out " + human.Plural(n, "value") + " that no Go type fits, see the first comment"
	}
	a.note(text)
}

// options are those of the code.
func (f *genFlags) options(file string, getenv func(string) string) gen.Options {
	o := gen.Options{Package: f.pkg, Type: f.typ, Source: filepath.Base(file), Plain: f.plain, Load: f.loadPath(file), NoTest: f.noTest || f.output == "-"}
	if o.Package == "" {
		o.Package = getenv("GOPACKAGE")
	}
	if o.Package == "" {
		o.Package = packageOf(f.output)
	}
	if o.Type == "" {
		o.Type = gen.TypeName(file)
	}
	o.Command = f.command(file, o.Type)
	return o
}

// genName is how generated code calls its source: a URL goes without its secrets.
func genName(file string) string {
	name, _, _ := strings.Cut(remote.Redact(file), "?…")
	return name
}

// command is a command line that makes the same again.
func (f *genFlags) command(file, typ string) string {
	args := []string{"wick gen --type " + typ}
	if f.plain {
		args = append(args, "--plain")
	}
	for _, flag := range []struct {
		name   string
		values []string
	}{
		{"--key", []string{f.change.key}}, {"--include", f.change.include}, {"--exclude", f.change.exclude},
		{"--rename", f.change.rename}, {"--rules", f.change.rules}, {"--dtype", []string{f.change.dtype}},
	} {
		for _, v := range flag.values {
			if v != "" {
				args = append(args, flag.name+" "+shellWord(v))
			}
		}
	}
	return strings.Join(append(args, shellWord(filepath.Base(file))), " ")
}

// shellWord quotes what a shell would cut or change.
func shellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/+=:@,", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// loadPath is where the test, which runs in its own folder, finds the
// checkpoint.
func (f *genFlags) loadPath(file string) string {
	if file == "-" || strings.Contains(file, "://") {
		return ""
	}
	if filepath.IsAbs(file) || f.output == "-" {
		return filepath.ToSlash(file)
	}
	rel, err := filepath.Rel(filepath.Dir(f.output), file)
	if err != nil { // the output is absolute
		abs, err := filepath.Abs(file)
		if err != nil {
			return ""
		}
		return filepath.ToSlash(abs)
	}
	return filepath.ToSlash(rel)
}

// packageOf is the package of the Go files beside the output, or else a name
// made of its folder's.
func packageOf(output string) string {
	if output == "-" {
		return "model"
	}
	dir := filepath.Dir(output)
	files, _ := filepath.Glob(filepath.Join(dir, "*.go")) // the pattern is well-formed or matches nothing
	for _, name := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly)
		if err == nil && !strings.HasSuffix(name, "_test.go") {
			return parsed.Name.Name
		}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "model"
	}
	return gen.PackageName(filepath.Base(abs))
}

func testName(output string) string { return strings.TrimSuffix(output, ".go") + "_test.go" }

func (f *genFlags) outputs(res *gen.Result) map[string][]byte {
	files := map[string][]byte{f.output: nil}
	if res != nil {
		files[f.output] = res.Code
	}
	if !f.noTest {
		files[testName(f.output)] = nil
		if res != nil {
			files[testName(f.output)] = res.Test
		}
	}
	return files
}

// checkOutput refuses to write over what somebody wrote by hand.
func (f *genFlags) checkOutput() error {
	if f.output == "-" {
		return nil
	}
	if err := localOutput(f.output); err != nil {
		return err
	}
	if !strings.HasSuffix(f.output, ".go") || strings.HasSuffix(f.output, "_test.go") {
		return fault.New(fault.Usage, "the output "+f.output).Needs("", "give it a name that ends in .go, and not in _test.go")
	}
	for _, name := range sortedKeys(f.outputs(nil)) {
		switch old, err := os.ReadFile(name); {
		case errors.Is(err, fs.ErrNotExist) || err == nil && (f.force || isGenerated(old)):
		case err != nil:
			return err
		default:
			return fault.New(fault.Usage, "the output exists, and gen did not write it").In(name).Needs("", "another name, or --force")
		}
	}
	return nil
}

// checkNames refuses code that declares what the files beside it declare, such as
// the function that pack wrote: the package would not compile.
func (f *genFlags) checkNames(pkg string, res *gen.Result) error {
	texts := f.outputs(res)
	beside := declaredBeside(pkg, sortedKeys(texts)...)
	for _, name := range sortedKeys(texts) {
		parsed, err := parser.ParseFile(token.NewFileSet(), name, texts[name], parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range parsed.Decls {
			for _, id := range declaredBy(d) {
				if file := beside[id.Name]; file != "" {
					return fault.New(fault.Usage, "the package has a "+id.Name).In(file).
						Needs("names that are free", "give the type another with --type, or the code a folder of its own")
				}
			}
		}
	}
	return nil
}

// isGenerated reports whether a file is gen's own.
func isGenerated(code []byte) bool {
	return bytes.HasPrefix(code, []byte(`// Code generated by "wick gen `))
}

// write puts the files in place, all of them or none.
func (f *genFlags) write(ctx context.Context, res *gen.Result) error {
	texts := f.outputs(res)
	var files []checkpoint.File
	for _, name := range slices.Backward(sortedKeys(texts)) {
		layout := &checkpoint.Layout{}
		layout.Bytes(texts[name])
		files = append(files, checkpoint.File{Path: name, Layout: layout})
	}
	_, err := checkpoint.WriteFiles(ctx, files, checkpoint.WriteOptions{Force: true}) // checkOutput has looked at what is there
	return err
}
