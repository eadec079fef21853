//go:build !js && !wasip1

package gen

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wick-ml/wick"
)

// The code for models that people use, and for random trees, compiles, passes
// vet and its own tests, and loads: the tests of a module of its own, which the
// go command builds, load each checkpoint and save it again, and what was saved
// has the tensors that were there.
func TestCompiles(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command")
	}
	m := newModule(t)
	for _, family := range []string{
		"model-families/resnet50-torch2.15.pt", "model-families/llama-torch2.15.bin", "model-families/lstm-*", "model-families/vision-*",
		"lightning/lightning-*", "optimizers/optimizers-torch2.15.pt", "random-trees/*.pt",
		"nested-tree/[cknl]*-torch2.15.pt", "quantized/sub_byte-torch2.15.pt", "meta/meta-torch2.15.pt", "odd-objects/namespace-torch2.15.pt",
	} {
		files, err := filepath.Glob(filepath.Join(fixtures, filepath.FromSlash(family)))
		if err != nil || len(files) == 0 {
			t.Fatalf("no fixture %s, %v", family, err)
		}
		for _, file := range files {
			m.add(t, file, false)
		}
	}
	for _, file := range []string{"model-families/resnet50-torch2.15.pt", "model-families/vision-torch2.15.pt", "random-trees/tree00-torch2.15.pt"} {
		m.add(t, filepath.Join(fixtures, filepath.FromSlash(file)), true)
	}
	m.write(t, "all_test.go", m.loads())
	m.run(t, "go", "vet", "./...")
	out := m.run(t, "go", "test", "-count=1", "-v", ".", "./resnet50torch215pt", "./llamatorch215bin", "./lstmtorch215pt", "./lightningtorch215ckpt")
	for _, name := range append(m.packages, "TestNetFields", "TestLoadNet") {
		if !strings.Contains(out, "--- PASS: "+name) && !strings.Contains(out, "--- PASS: TestLoads/"+name) {
			t.Errorf("%s did not pass", name)
		}
	}
	if strings.Contains(out, "SKIP") {
		t.Errorf("a test was skipped:\n%s", out)
	}
}

// goModule is a module with a package for each checkpoint.
type goModule struct {
	dir, root string
	packages  []string
	files     map[string]string
	lazy      map[string]bool
}

func newModule(t *testing.T) *goModule {
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	m := &goModule{dir: t.TempDir(), root: root, files: map[string]string{}, lazy: map[string]bool{}}
	// What the library requires, the module requires too: nothing is looked for in a network.
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(mod), "module "+module, "module generated", 1)
	m.write(t, "go.mod", text+"\nrequire "+module+" v0.0.0\n\nreplace "+module+" => "+filepath.ToSlash(root)+"\n")
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	m.write(t, "go.sum", string(sum))
	return m
}

func (m *goModule) write(t *testing.T, name, text string) {
	t.Helper()
	name = filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// add generates the package for a checkpoint.
func (m *goModule) add(t *testing.T, file string, plain bool) {
	t.Helper()
	abs, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	name := PackageName(filepath.Base(file))
	if plain {
		name += "plain"
	}
	c, err := wick.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // only read from
	res, err := Generate(c.Root, Options{Package: name, Type: "Net", Source: filepath.Base(file), Command: "wick gen", Load: filepath.ToSlash(abs), Plain: plain})
	if err != nil {
		t.Fatal(err)
	}
	m.write(t, name+"/net.go", string(res.Code))
	m.write(t, name+"/net_test.go", string(res.Test))
	m.packages = append(m.packages, name)
	m.files[name] = abs
	m.lazy[name] = bytes.Contains(res.Code, []byte("func OpenNet("))
}

func (m *goModule) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// loads is a test that loads every package's checkpoint in one program.
func (m *goModule) loads() string {
	var b strings.Builder
	b.WriteString("package generated\n\nimport (\n\t\"testing\"\n\n")
	for _, p := range m.packages {
		fmt.Fprintf(&b, "\t\"generated/%s\"\n", p)
	}
	b.WriteString(")\n\nfunc TestLoads(t *testing.T) {\n")
	for _, p := range m.packages {
		fmt.Fprintf(&b, "\tt.Run(%q, func(t *testing.T) {\n", p)
		if m.lazy[p] {
			fmt.Fprintf(&b, "\t\tm, c, err := %s.OpenNet(t.Context(), %q)\n\t\tif err != nil {\n\t\t\tt.Fatal(err)\n\t\t}\n\t\t_ = m\n", p, m.files[p])
			b.WriteString("\t\tif err := c.Close(); err != nil {\n\t\t\tt.Fatal(err)\n\t\t}\n\t})\n")
			continue
		}
		fmt.Fprintf(&b, "\t\tif _, err := %s.LoadNet(t.Context(), %q); err != nil {\n\t\t\tt.Fatal(err)\n\t\t}\n\t})\n", p, m.files[p])
	}
	b.WriteString("}\n")
	return b.String()
}
