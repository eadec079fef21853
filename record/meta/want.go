package meta

import (
	"reflect"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// Recorded is a type that says which records are its own. RecordHeader gives
// the type name that its records carry, so that the Go type can be renamed or
// moved, and, if it is not empty, the precision that they must have; the other
// fields do not count. It is called on a value of any content.
type Recorded interface {
	RecordHeader() checkpoint.RecordHeader
}

// Want returns what the records of the Go value behind v must say of
// themselves: what a [Recorded] type asks for, else the name of a defined type
// with its package, "net.ResNet", and without type arguments, which say the
// precision and not what it is. Other types, such as maps, structs without a
// name and the value tree's own, ask for nothing.
func Want(v any) checkpoint.RecordHeader {
	if r, ok := v.(Recorded); ok {
		h := r.RecordHeader()
		return checkpoint.RecordHeader{Type: h.Type, Precision: h.Precision}
	}
	if _, ok := v.(nested.Value); ok {
		return checkpoint.RecordHeader{}
	}
	t := reflect.TypeOf(v)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Name() == "" || t.PkgPath() == "" {
		return checkpoint.RecordHeader{}
	}
	name, _, _ := strings.Cut(t.String(), "[")
	return checkpoint.RecordHeader{Type: name}
}

// CheckFor returns a [fault.ErrMismatch] error when the checkpoint that info
// describes is a record of something else than v. What is no record passes.
func CheckFor(v any, info checkpoint.Info) error {
	found, ok := Told(info)
	if !ok {
		return nil
	}
	return Check(found, Want(v))
}

// Complete returns the header for a file of the tree: with this version, and with
// the tree's precision if the header says none.
func Complete(h checkpoint.RecordHeader, root nested.Value, limits checkpoint.Limits) (checkpoint.RecordHeader, error) {
	var err error
	h.Version = Version
	if h.Precision == "" {
		h.Precision, err = Precision(root, limits)
	}
	return h, err
}

// precisions are the names of precisions by the dtype of all floats.
var precisions = map[tensor.DType]string{tensor.F64: "double", tensor.F32: "full", tensor.F16: "half", tensor.BF16: "bfloat16"}

// Precision returns the precision of a tree: "double", "full", "half" or
// "bfloat16" when all its tensors of floats have that dtype, else "".
func Precision(root nested.Value, limits checkpoint.Limits) (string, error) {
	limits = limits.Default()
	dtype, mixed := tensor.Invalid, false
	err := nested.Walk(root, nested.WalkLimits{Paths: limits.Paths, Depth: int(limits.Depth)}, func(_ nested.Path, v nested.Value) error {
		leaf, ok := v.(nested.Leaf)
		if !ok {
			return nil
		}
		if d := leaf.AsTensor().DType(); d.Class() == tensor.FloatClass {
			mixed = mixed || dtype != tensor.Invalid && dtype != d
			dtype = d
		}
		return nil
	})
	if mixed {
		return "", err
	}
	return precisions[dtype], err
}
