package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// maxName is where a name or a value in a table is cut in its middle, bytes.
const maxName = 160

// printTable prints a listing for people.
func (a *app) printTable(l *listing.Listing, f *lsFlags) error {
	t := tensorTable(f)
	shared := sharedStorages(l.Tensors)
	t.lazy = &lazyRows{len(l.Tensors), func() cellMaker {
		lines := tensorLines{l: l, shared: shared, f: f}
		return lines.cells
	}}
	if err := t.print(a.streams); err != nil {
		return err
	}
	if f.all {
		if err := a.printValues(l); err != nil {
			return err
		}
	}
	_, err := a.out.WriteString(a.paint(dim, totals(l, f)) + "\n")
	return err
}

func tensorTable(f *lsFlags) *table {
	t := &table{head: []string{"NAME", "DTYPE", "SHAPE", "SIZE", "FILE", "STORAGE"}, right: []bool{false, false, false, true, false, false}}
	if f.long {
		t.head[3] = "BYTES"
		t.head = append(t.head, "OFFSET", "STRIDES", "CLASS")
		t.right = append(t.right, true, false, false)
	}
	if f.sha256 {
		t.head, t.right = append(t.head, "SHA256"), append(t.right, false)
	}
	t.head, t.right = append(t.head, ""), append(t.right, false)
	const name, shape, file, storage = 0, 2, 4, 5
	t.cut = []int{name, shape, len(t.head) - 1}
	if f.long {
		t.cut = append(t.cut, file, slices.Index(t.head, "STRIDES"), slices.Index(t.head, "CLASS"))
	} else {
		t.spare = []int{storage, file}
	}
	return t
}

// tensorLines makes the rows of a table of tensors. Texts that neighbours have in
// common are made once.
type tensorLines struct {
	l      *listing.Listing
	shared map[*tensor.Storage]bool
	f      *lsFlags

	last    *tensor.Tensor // of which shape and size are
	shape   string
	size    string
	storage *tensor.Storage // which is called name and lies in file
	name    string
	file    string
}

// cells appends the cells of a row.
func (r *tensorLines) cells(i int, cells []cell) []cell {
	row := &r.l.Tensors[i]
	t := row.Tensor()
	if r.last == nil || t.DType() != r.last.DType() || !sameShape(t, r.last) {
		r.last, r.shape, r.size = t, shapeText(t), human.Bytes(t.Bytes())
	}
	cells = append(cells,
		cell{nameOrEmpty(row.Name()), bold}, cell{t.DType().String(), dtypeStyle(t.DType())}, cell{r.shape, plain},
		cell{r.size, plain}, cell{r.fileNames(row), dim}, cell{r.storageNames(row), dim},
	)
	if r.f.long {
		cells[3].text = strconv.FormatInt(t.Bytes(), 10)
		cells = append(cells, longCells(row)...)
	}
	if r.f.sha256 {
		cells = append(cells, cell{row.Hex(), plain})
	}
	return append(cells, marks(row, r.shared, r.f.long))
}

func sameShape(a, b *tensor.Tensor) bool {
	if a.Dims() != b.Dims() {
		return false
	}
	for d := range a.Dims() {
		if a.Size(d) != b.Size(d) {
			return false
		}
	}
	return true
}

// shapeText prints a shape as [2, 3].
func shapeText(t *tensor.Tensor) string {
	b := make([]byte, 0, 48)
	b = append(b, '[')
	for d := range t.Dims() {
		if d > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(b, int64(t.Size(d)), 10)
	}
	return string(append(b, ']'))
}

// nameOrEmpty is a name for people; that of the root itself is empty.
func nameOrEmpty(name string) string {
	if name == "" {
		return `""`
	}
	return fault.Clean(name, maxName)
}

// longCells are what only --long shows. Row-major strides, which the shape says, and the
// usual class are left blank: a column of nothing else is left out.
func longCells(row *listing.Tensor) []cell {
	cells := make([]cell, 3)
	if class := nested.TypeName(row.Leaf); class != "torch.Tensor" {
		cells[2] = cell{fault.Clean(class, maxName), dim}
	}
	_, strides, offset, ok := row.Tensor().Strided()
	if !ok {
		return cells
	}
	cells[0].text = strconv.FormatInt(offset, 10)
	if !isRowMajor(row.Tensor(), strides) {
		cells[1].text = tensor.ShapeString(strides)
	}
	return cells
}

// isRowMajor reports whether strides are those that torch gives to a new tensor of
// the shape.
func isRowMajor(t *tensor.Tensor, strides []int64) bool {
	want := int64(1)
	for d := t.Dims() - 1; d >= 0; d-- {
		if strides[d] != want {
			return false
		}
		want *= int64(max(t.Size(d), 1))
	}
	return true
}

func dtypeStyle(d tensor.DType) style {
	switch d.Class() {
	case tensor.FloatClass, tensor.ComplexClass:
		return cyan
	case tensor.QuantClass:
		return yellow
	default:
		return blue
	}
}

// storageNames names what a tensor lies in, but not where it only repeats the
// tensor's name.
func (r *tensorLines) storageNames(row *listing.Tensor) string {
	own := nameOrEmpty(row.Name())
	names := ""
	for s := range row.Tensor().Storages() {
		switch r.describe(s); {
		case r.name == own:
		case names == "":
			names = r.name
		default:
			names += "+" + r.name
		}
	}
	return names
}

// fileNames names the file that a tensor lies in, of several the first, but not
// where the tensor's name begins with that.
func (r *tensorLines) fileNames(row *listing.Tensor) string {
	if !r.l.Sharded {
		return ""
	}
	var files []string
	for s := range row.Tensor().Storages() {
		if r.describe(s); !slices.Contains(files, r.file) {
			files = append(files, r.file)
		}
	}
	switch {
	case len(files) == 0, strings.HasPrefix(row.Name(), files[0]+"."):
		return ""
	case len(files) == 1:
		return files[0]
	default:
		return files[0] + " +" + human.Count(len(files)-1) + " more"
	}
}

// describe names a storage and its file: one of torch's records without the top
// folder that all of them share.
func (r *tensorLines) describe(s *tensor.Storage) {
	if s == r.storage {
		return
	}
	name := r.l.StorageName(s)
	if i := strings.Index(name, "/data/"); i >= 0 {
		name = name[i+1:]
	}
	r.storage, r.name, r.file = s, fault.Clean(name, maxName), fault.Clean(r.l.FileName(s), maxName)
}

// marks says what is special about a row, but not again what its strides say.
func marks(row *listing.Tensor, shared map[*tensor.Storage]bool, long bool) cell {
	if kind := listing.RowKind(row.Err); kind != "" {
		return cell{string(kind) + ": " + fault.Clean(found(describe(row.Err)), maxName), red}
	}
	if row.NoData() {
		return cell{"no data", yellow}
	}
	var notes []string
	s, _, _, ok := row.Tensor().Strided()
	if ok && shared[s] {
		notes = append(notes, "shared")
	}
	if !row.Tensor().Contiguous() && !(ok && long) {
		notes = append(notes, "strided")
	}
	if ok && !shared[s] && s.Size() > row.Tensor().Bytes() {
		notes = append(notes, "part of "+human.Bytes(s.Size()))
	}
	if leaf, isLazy := row.Leaf.(*nested.Tensor); isLazy && leaf.Quant != nil {
		notes = append(notes, leaf.Quant.Scheme)
	}
	return cell{strings.Join(notes, ", "), yellow}
}

// sharedStorages finds the storages that more than one row lies in.
func sharedStorages(rows []listing.Tensor) map[*tensor.Storage]bool {
	shared := map[*tensor.Storage]bool{}
	for i := range rows {
		for s := range rows[i].Tensor().Storages() {
			_, seen := shared[s]
			shared[s] = seen
		}
	}
	return shared
}

// printValues prints the plain values and the opaque objects.
func (a *app) printValues(l *listing.Listing) error {
	t := table{head: []string{"NAME", "TYPE", "VALUE"}, cut: []int{0, 2}}
	add := func(p nested.Path, kind cell, text string) {
		name, _ := p.Text()
		t.add(cell{nameOrEmpty(name), bold}, kind, cell{fault.Clean(text, maxName), plain})
	}
	for v := range l.Values.All() {
		add(v.Path, cell{nested.TypeName(v.Value), blue}, nested.Repr(v.Value))
	}
	for i := range l.Sets {
		add(l.Sets[i].Path, cell{l.Sets[i].List.Class, blue}, nested.Repr(l.Sets[i].List))
	}
	for i := range l.Opaque {
		add(l.Opaque[i].Path, cell{"opaque", yellow}, l.Opaque[i].Class+" ("+l.Opaque[i].Reason+")")
	}
	if len(t.rows) > 0 && len(l.Tensors) > 0 {
		_, _ = a.out.WriteString("\n") // Flush reports what went wrong
	}
	return t.print(a.streams)
}

// totals is the last line of a listing.
func totals(l *listing.Listing, f *lsFlags) string {
	sum := l.Summarize()
	text := human.Plural(sum.Tensors, "tensor")
	if sum.Tensors > 0 {
		text += ", " + human.Plural(sum.Elements, "element") + ", " + human.Bytes(sum.Bytes)
	}
	if more := others(sum); more != "" && !f.all {
		what := "them"
		if sum.Values+sum.Opaque == 1 {
			what = "it"
		}
		text += "; " + more + " (--all shows " + what + ")"
	}
	return text
}

// others counts what is no tensor.
func others(sum listing.Summary) string {
	var more []string
	if sum.Values > 0 {
		more = append(more, human.Plural(sum.Values, "plain value"))
	}
	if sum.Opaque > 0 {
		more = append(more, human.Plural(sum.Opaque, "opaque object"))
	}
	return strings.Join(more, " and ")
}
