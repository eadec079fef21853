package listing

import (
	"bytes"
	"slices"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// Difference is one tensor of A that is not in B as it is in A.
type Difference struct {
	Name string
	Path nested.Path // in A
	Kind string      // "missing", "dtype", "shape", "quant", "values", "no_data" or "unreadable"
	A, B string      // what differs, as text

	RowA, RowB *Tensor // nil where there is none
}

// Compare looks for every tensor of a in b: by its path, key types included,
// else by its flat name, since formats with one namespace lose the path. Both
// must have been hashed. same counts the tensors that are equal bit for bit.
func Compare(a, b *Listing) (same int, differences []Difference) {
	at := index(b)
	for i := range a.Tensors {
		row := &a.Tensors[i]
		d := compareRow(row, at.candidates(row))
		if d.Kind == "" {
			same++
			continue
		}
		d.Name, d.Path, d.RowA = row.Name(), row.Path, row
		differences = append(differences, d)
	}
	return same, differences
}

// Added lists the tensors of b whose name a does not have, as differences of the
// kind "added".
func Added(a, b *Listing) []Difference {
	at := index(a)
	var added []Difference
	for i := range b.Tensors {
		if row := &b.Tensors[i]; len(at.candidates(row)) == 0 {
			added = append(added, Difference{Name: row.Name(), Path: row.Path, Kind: "added", B: row.Tensor().String(), RowB: row})
		}
	}
	return added
}

// rowIndex finds rows by path and by name.
type rowIndex struct {
	byPath map[string]*Tensor
	byName map[string][]*Tensor
}

func index(l *Listing) rowIndex {
	x := rowIndex{byPath: make(map[string]*Tensor, len(l.Tensors)), byName: make(map[string][]*Tensor, len(l.Tensors))}
	for i := range l.Tensors {
		t := &l.Tensors[i]
		x.byPath[string(AppendPath(nil, t.Path))] = t
		x.byName[t.Name()] = append(x.byName[t.Name()], t)
	}
	return x
}

func (x rowIndex) candidates(row *Tensor) []*Tensor {
	if t := x.byPath[string(AppendPath(nil, row.Path))]; t != nil {
		return []*Tensor{t}
	}
	return x.byName[row.Name()]
}

// compareRow compares with each candidate and returns the difference from the
// first, none if one is equal.
func compareRow(a *Tensor, candidates []*Tensor) Difference {
	if len(candidates) == 0 {
		return Difference{Kind: "missing", A: a.Tensor().String()}
	}
	var first Difference
	for i, b := range candidates {
		d := difference(a, b)
		if d.Kind == "" {
			return d
		}
		if i == 0 {
			first, first.RowB = d, b
		}
	}
	return first
}

func difference(a, b *Tensor) Difference {
	x, y := a.Tensor(), b.Tensor()
	switch {
	case x.DType() != y.DType():
		return Difference{Kind: "dtype", A: x.DType().String(), B: y.DType().String()}
	case !slices.Equal(x.Shape(), y.Shape()):
		return Difference{Kind: "shape", A: tensor.ShapeString(x.Shape()), B: tensor.ShapeString(y.Shape())}
	case !bytes.Equal(a.quant(), b.quant()):
		return Difference{Kind: "quant", A: string(a.quant()), B: string(b.quant())}
	case a.NoData() != b.NoData():
		return Difference{Kind: "no_data", A: dataText(a), B: dataText(b)}
	case a.NoData():
		return Difference{}
	case a.Sum == nil || b.Sum == nil:
		return Difference{Kind: "unreadable", A: faultText(a), B: faultText(b)}
	case *a.Sum != *b.Sum:
		return Difference{Kind: "values", A: "sha256 " + a.Hex(), B: "sha256 " + b.Hex()}
	}
	return Difference{}
}

// Measurable reports whether the two tensors have numbers to subtract: their
// values differ, or their dtypes alone.
func (d *Difference) Measurable() bool {
	if d.RowB == nil || d.RowA.Sum == nil || d.RowB.Sum == nil || d.Kind != "values" && d.Kind != "dtype" {
		return false
	}
	a, b := d.RowA.Tensor(), d.RowB.Tensor()
	complexes := a.DType().Class() == tensor.ComplexClass || b.DType().Class() == tensor.ComplexClass
	return !complexes && slices.Equal(a.Shape(), b.Shape())
}

func (t *Tensor) quant() []byte {
	if leaf, ok := t.Leaf.(*nested.Tensor); ok && leaf.Quant != nil {
		return t.quantJSON(leaf.Quant)
	}
	return nil
}

func dataText(t *Tensor) string {
	if t.NoData() {
		return "no data"
	}
	return "data"
}

func faultText(t *Tensor) string {
	if t.Err == nil {
		return "readable"
	}
	return fault.Clean(t.Err.Error(), 300)
}
