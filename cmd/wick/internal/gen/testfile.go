package gen

import (
	"fmt"
	"strconv"
	"strings"
)

// testFile returns the test of the generated code: it compiles the types, checks
// that every tensor of the checkpoint, as it was, still has a field, and loads
// the checkpoint where it is at hand.
func (p *plan) testFile(lazy bool) ([]byte, error) {
	w := &writer{p: p, imports: map[string]bool{}}
	w.fieldsTest()
	w.loadTest(lazy)
	return w.file()
}

// fieldsTest prints the test that needs no file, if there is anything to test.
func (w *writer) fieldsTest() {
	o, rows := w.p.o, w.fieldRows()
	if len(rows) == 0 {
		return
	}
	w.printf("\n// Test%sFields checks that every tensor that the checkpoint had has a field that takes it.\n", o.Type)
	w.printf("func Test%sFields(t *%s) {\nroot := %s(\"dict\")\n", o.Type, w.use("testing", "T"), w.use("wick/nested", "NewMap"))
	w.printf("zeros := %s(%s{Name: \"zeros\", Size: 16, Memory: make([]byte, 16)})\n", w.use("wick/tensor", "NewStorage"), w.use("wick/tensor", "StorageSpec"))
	w.rows = rows
	w.printf("for _, row := range []struct {\nname, dtype string\nshape []int64\n}{\n%s", rowsMark)
	w.printf("} {\nd, ok := %s(row.dtype)\nif !ok {\nt.Fatalf(\"no dtype is called %%s\", row.dtype)\n}\n", w.use("wick/tensor", "ParseDType"))
	w.printf("x, err := %s(%s{Storage: zeros, DType: d, Shape: row.shape, Strides: make([]int64, len(row.shape))})\nif err != nil {\nt.Fatal(err)\n}\n",
		w.use("wick/tensor", "New"), w.use("wick/tensor", "Spec"))
	w.printf("if err := root.Set(%s(row.name), &%s{Tensor: x}); err != nil {\nt.Fatal(err)\n}\n}\n", w.use("wick/nested", "String"), w.use("wick/nested", "Tensor"))
	w.printf("plan, err := %s(root, new(%s), %s())\nif err == nil {\nerr = plan.Err()\n}\nif err != nil {\nt.Fatal(err)\n}\n",
		w.use("wick/serde", "NewPlan"), o.Type, w.use("wick/serde", "AllowMissing"))
	w.printf("if got := len(plan.Applied); got < %d {\nt.Errorf(\"%%d tensors have a field, need %d\", got)\n}\n}\n", len(rows), len(rows))
}

// fieldRows are the tensors that a name finds, as rows of the test's table, with
// their indentation: formatting tens of thousands of them takes more memory than
// all else.
func (w *writer) fieldRows() (rows []string) {
	for i := range w.p.index.Entries {
		e := &w.p.index.Entries[i]
		t := e.Tensor()
		if t == nil || w.p.several(e.Name) || !fitsTag(e.Name) {
			continue
		}
		shape := "nil"
		if len(t.Shape()) > 0 {
			shape = "[]int64{" + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(t.Shape())), ", "), "[]") + "}"
		}
		rows = append(rows, fmt.Sprintf("\t\t{%s, %q, %s},\n", strconv.QuoteToASCII(e.Name), t.DType().String(), shape))
	}
	return rows
}

// loadTest prints the test that loads the file.
func (w *writer) loadTest(lazy bool) {
	o := w.p.o
	env := strings.ToUpper(o.Type) + "_CHECKPOINT"
	w.printf("\n// TestLoad%s loads the checkpoint that $%s names", o.Type, env)
	if o.Load != "" {
		w.printf(", or the one that the types were made for")
	}
	w.printf(".\nfunc TestLoad%s(t *%s) {\nname := %s(%q)\n", o.Type, w.use("testing", "T"), w.use("os", "Getenv"), env)
	if o.Load != "" {
		w.printf("if name == \"\" {\nname = %s\n}\n", strconv.QuoteToASCII(o.Load))
	}
	w.printf("if _, err := %s(name); %s(err, %s) {\nt.Skipf(\"no checkpoint %%q; set %s\", name)\n}\n",
		w.use("os", "Stat"), w.use("errors", "Is"), w.use("io/fs", "ErrNotExist"), env)
	if lazy {
		w.printf("m, c, err := Open%s(t.Context(), name)\nif err != nil {\nt.Fatal(err)\n}\nif m == nil {\nt.Error(\"nothing was loaded\")\n}\n", o.Type)
		w.printf("if err := c.Close(); err != nil {\nt.Fatal(err)\n}\n}\n")
		return
	}
	w.printf("m, err := Load%s(t.Context(), name)\nif err != nil {\nt.Fatal(err)\n}\nif m == nil {\nt.Error(\"nothing was loaded\")\n}\n}\n", o.Type)
}
