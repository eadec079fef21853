// Package gen writes Go types for a checkpoint: structs with tags that package
// serde fills, a function that loads them, and a test. It reads names, dtypes
// and shapes; no tensor's bytes.
//
// Names come from the file, and a file may be hostile: an identifier is made of
// ASCII letters and digits alone, everything else of a name stands quoted in a
// tag or escaped in a comment.
package gen

import (
	"go/token"
	"slices"
	"strings"
	"unicode"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/tensor"
)

// Options say what is written around the types.
type Options struct {
	Package string // of the Go file
	Type    string // the name of the outermost type
	Source  string // the checkpoint as comments call it
	Command string // the command line that makes the same again, for the first line
	Rules   string // the rules that made the tree, in the grammar of rule files, "" for none
	Load    string // where the test finds the checkpoint, relative to the test; "" if it cannot know
	Plain   bool   // packed slices with their shapes in tags, instead of structs of package nn and arrays
	NoTest  bool   // Result.Test is not wanted
}

// Result is what Generate wrote.
type Result struct {
	Code []byte // the Go file
	Test []byte // its test file, nil with Options.NoTest

	Types   int // struct types
	Tensors int // tensors that have a field
	LeftOut []LeftOut
}

// LeftOut is a value that no Go type was made for.
type LeftOut struct{ Name, Why string }

// Generate returns Go code for the tree below root, to which the options' rules
// have been applied already. The same tree and options give the same bytes.
func Generate(root nested.Value, o Options) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := countFields(root); err != nil {
		return nil, err
	}
	index, err := rules.NewIndex(root)
	if err != nil {
		return nil, err
	}
	return newPlan(index, &o).write()
}

// MaxFields bounds the fields and list items that are looked at one by one: a
// Go file with more is of no use to anybody.
const MaxFields = 200_000

// countFields fails on a tree of too many, before anything is kept of each.
func countFields(root nested.Value) error {
	n := int64(0)
	return nested.Walk(root, nested.WalkLimits{}, func(nested.Path, nested.Value) error {
		if n++; n > MaxFields {
			e := fault.NewBound("fields", n, MaxFields)
			e.Cure = "leave some out with the rule `drop`"
			return e
		}
		return nil
	})
}

func (o *Options) check() error {
	if !token.IsIdentifier(o.Package) || o.Package == "_" {
		return fault.New(fault.Usage, "the package name "+quote(o.Package)).Needs("a Go identifier", "")
	}
	if !token.IsIdentifier(o.Type) || !unicode.IsUpper(rune(o.Type[0])) {
		return fault.New(fault.Usage, "the type name "+quote(o.Type)).Needs("a Go identifier that begins with a capital letter", "")
	}
	return nil
}

// goTypes are the Go types of the dtypes' elements; the others have none.
var goTypes = map[tensor.DType]string{
	tensor.F64: "float64", tensor.F32: "float32", tensor.F16: "tensor.Float16", tensor.BF16: "tensor.BFloat16",
	tensor.F8E4M3FN: "tensor.Float8E4M3FN", tensor.F8E5M2: "tensor.Float8E5M2", tensor.F8E4M3FNUZ: "tensor.Float8E4M3FNUZ",
	tensor.F8E5M2FNUZ: "tensor.Float8E5M2FNUZ", tensor.F8E8M0FNU: "tensor.Float8E8M0FNU", tensor.F4E2M1FNx2: "tensor.Float4E2M1FNx2",
	tensor.I8: "int8", tensor.I16: "int16", tensor.I32: "int32", tensor.I64: "int64",
	tensor.U8: "uint8", tensor.U16: "uint16", tensor.U32: "uint32", tensor.U64: "uint64", tensor.Bool: "bool",
	tensor.C32: "tensor.Complex32", tensor.C64: "complex64", tensor.C128: "complex128",
	tensor.QI8: "tensor.QInt8", tensor.QU8: "tensor.QUint8", tensor.QI32: "tensor.QInt32",
}

// plan is the Go types that a tree becomes.
type plan struct {
	o     *Options
	index *rules.Index
	root  *typ

	exact   []*field // tensors that only their exact path names
	unnamed bool     // a tensor has no field, since nothing names it
	leftOut []LeftOut
	tensors int

	inferred map[*node]*typ

	convs map[int]bool // ranks of the weights of convolutions
	types []*typ       // named structs, in the order in which they are written
	names uniquer      // of types and functions
}

func newPlan(index *rules.Index, o *Options) *plan {
	p := &plan{o: o, index: index, inferred: map[*node]*typ{}, convs: map[int]bool{}, names: uniquer{}}
	top := p.tree()
	p.findConvs()
	p.root = p.share(p.topLevel(top, p.infer(top, "")))
	p.nameTypes()
	return p
}

// topLevel makes the root something that a type can be declared as.
func (p *plan) topLevel(top *node, t *typ) *typ {
	switch {
	case t == nil:
		return &typ{kind: structKind, fields: p.exact}
	case t.kind == listKind && len(p.exact) == 0 && !t.gaps:
		return t
	case t.kind != structKind:
		t = p.structure(top, "")
	}
	t.fields = append(slices.Clone(t.fields), p.exact...)
	return t
}

// leave notes a value that gets no field.
func (p *plan) leave(name, why string) {
	p.leftOut = append(p.leftOut, LeftOut{name, why})
}

// quote returns a name for a comment or an error: one line of printable text.
func quote(s string) string { return "“" + fault.Clean(s, 60) + "”" }

// stem is a key without the digits at its end.
func stem(key string) string { return strings.TrimRight(key, "0123456789") }
