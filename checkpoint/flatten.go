package checkpoint

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// Named is a tensor under its flat name, for formats with one namespace.
type Named struct {
	Name   string // UTF-8
	Path   nested.Path
	Tensor *tensor.Tensor
}

// Flatten lists the tensors of a tree under their flat names, in the tree's
// order, and reports what is no tensor as left out. It fails, naming the place,
// with [fault.ErrCollision] when two tensors have one flat name, and with
// [fault.ErrUnsupported] on a quantized, sparse or meta tensor and on a name
// that no UTF-8 can say; and with the error of a tensor whose bytes cannot be
// had.
func Flatten(root nested.Value, limits Limits) ([]Named, Report, error) {
	limits = limits.Default()
	walk := nested.WalkLimits{Paths: limits.Paths, Depth: int(limits.Depth)}
	n := 0 // tensors: what grows to a million is copied twenty times, and what is left behind is memory too
	err := nested.Walk(root, walk, func(_ nested.Path, v nested.Value) error {
		if _, ok := v.(nested.Leaf); ok {
			n++
		}
		return nil
	})
	if err != nil {
		return nil, Report{}, err
	}
	f := flattener{leaves: make([]Named, 0, n), byName: make(map[string]int32, n), ties: make(map[tieKey]int32, n)}
	if err := nested.Walk(root, walk, f.visit); err != nil {
		return nil, Report{}, err
	}
	f.report.Tensors = len(f.leaves)
	return f.leaves, f.report, nil
}

type flattener struct {
	leaves []Named
	report Report
	byName map[string]int32
	ties   map[tieKey]int32
}

func (f *flattener) visit(path nested.Path, v nested.Value) error {
	if leaf, ok := v.(nested.Leaf); ok {
		return f.leaf(slices.Clone(path), leaf)
	}
	if o, ok := v.(*nested.Opaque); ok && hasParts(o.Reason) {
		cure := "arith.DensifyTree makes it dense"
		if isRagged(o.Reason) {
			cure = "leave it out with the rule `drop`, a record (.cbor) keeps its parts"
		}
		return fault.New(fault.Unsupported, "a "+o.Reason+" tensor").OnPath(path.String()).Needs("a dense tensor", cure)
	}
	f.report.LeftOut = append(f.report.LeftOut, LeftOut{path.String(), nested.TypeName(v)})
	return nil
}

// hasParts knows the reasons that package pytorch gives to tensors of several
// tensors: their layouts in torch's spelling.
func hasParts(reason string) bool {
	return strings.HasPrefix(reason, "torch.sparse_") || isRagged(reason)
}

// isRagged knows those whose rows differ in length, so that they are no dense
// tensor either.
func isRagged(reason string) bool { return reason == "torch.nested" || reason == "torch.jagged" }

func (f *flattener) leaf(path nested.Path, leaf nested.Leaf) error {
	flat := path.String()
	name, _ := path.Text()
	if !utf8.ValidString(name) {
		return fault.New(fault.Unsupported, "a name with a lone surrogate").OnPath(flat).
			Needs("a name that UTF-8 can say", "give it another one with the rule `rename`")
	}
	if err := Storable(leaf); err != nil {
		return fault.OnPath(err, flat)
	}
	if first, taken := f.byName[name]; taken {
		return collision(flat, f.leaves[first].Path, path)
	}
	f.byName[name] = int32(len(f.leaves)) //nolint:gosec // a tree of 2^31 tensors does not fit in memory
	t := leaf.AsTensor()
	f.tie(name, t)
	f.report.Bytes += t.Bytes()
	f.leaves = append(f.leaves, Named{name, path, t})
	return nil
}

// collision says that two tensors have one flat name.
func collision(name string, first, second nested.Path) error {
	exact := ExactPath(second)
	cure := "the rule `rename " + exact + " -> ANOTHER` gives one another, the rule `drop " + exact + "` leaves one out"
	if !isExact(second) {
		cure = "leave what is above them out with the rule `drop`"
	}
	return fault.New(fault.Collision, "two tensors have this name: "+ExactPath(first)+" and "+exact).OnPath(name).
		Needs("a name of its own for each", cure)
}

// isExact reports whether rules can spell a path: its keys are texts and integers.
func isExact(path nested.Path) bool {
	return !slices.ContainsFunc(path, func(key nested.Value) bool {
		switch key.(type) {
		case nested.String, nested.Int:
			return false
		default:
			return true
		}
	})
}

// Storable returns why a leaf cannot be written as plain numbers, nil when it
// can: it is quantized, or its bytes cannot be had.
func Storable(leaf nested.Leaf) error {
	t := leaf.AsTensor()
	quantized := t.DType().Class() == tensor.QuantClass
	if lazy, ok := leaf.(*nested.Tensor); ok && lazy.Quant != nil {
		quantized = true
	}
	switch err := t.Err(); {
	case quantized:
		return fault.New(fault.Unsupported, "a "+t.DType().String()+" tensor").
			Needs("plain numbers", "arith.DequantizeTree gives the floats that it stands for, a record (.cbor) keeps it as it is")
	case fault.KindOf(err) == fault.NoData:
		return fault.New(fault.Unsupported, "a tensor without data (meta)").
			Needs("a tensor with values", "leave it out with the rule `drop`, or save the model with its weights loaded")
	default:
		return err
	}
}

// ExactPath spells a path as a list of typed keys, as the command line takes
// it: ["a", 0, "b"].
func ExactPath(path nested.Path) string {
	parts := make([]string, len(path))
	for i, key := range path {
		switch k := key.(type) {
		case nested.String:
			parts[i] = strconv.QuoteToASCII(string(k))
		case nested.Int:
			parts[i] = strconv.FormatInt(int64(k), 10)
		default:
			parts[i] = nested.Repr(key)
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// tieKey is what tensors have in common that may be the same view of the same
// bytes.
type tieKey struct {
	storage *tensor.Storage
	offset  int64
	len     int64
}

// tie reports a tensor that was written before under another name.
func (f *flattener) tie(name string, t *tensor.Tensor) {
	s, offset, ok := t.Origin()
	if !ok || t.Len() == 0 {
		return
	}
	key := tieKey{s, offset, t.Len()}
	first, seen := f.ties[key]
	if !seen {
		f.ties[key] = int32(len(f.leaves)) //nolint:gosec // as above
		return
	}
	if f.leaves[first].Tensor.Same(t) {
		f.report.Copies = append(f.report.Copies, Copy{name, f.leaves[first].Name})
	}
}
