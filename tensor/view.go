package tensor

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/wick-ml/wick/fault"
)

// maxWalks bounds how many pieces a view expression may fall into.
const maxWalks = 1 << 16

// Narrow returns the part of t with lo <= index < hi in dimension dim. It
// shares t's storages; no bytes move. It fails with [fault.ErrUsage] on a
// dimension or a range that t does not have.
func (t *Tensor) Narrow(dim, lo, hi int) (*Tensor, error) {
	if dim < 0 || dim >= len(t.shape) || lo < 0 || hi < lo || hi > t.shape[dim] {
		return nil, t.misuse("narrow " + strconv.Itoa(dim) + " " + strconv.Itoa(lo) + ":" + strconv.Itoa(hi))
	}
	if err := t.checkView("narrow"); err != nil {
		return nil, err
	}
	shape := slices.Clone(t.shape)
	shape[dim] = hi - lo
	out := &Tensor{dtype: t.dtype, shape: shape, err: t.err}
	for i := range t.walks {
		out.walks = t.walks[i].narrow(out.walks, dim, lo, hi)
	}
	return out.bounded()
}

// narrow appends to out the pieces of w inside [lo, hi) of dim, their boxes
// counted from lo.
func (w *walk) narrow(out []walk, dim, lo, hi int) []walk {
	from, to := max(lo, w.lo[dim]), min(hi, w.lo[dim]+w.size[dim])
	if from >= to {
		return out
	}
	at := from - lo
	for _, p := range narrowAxes(nil, w.dims[dim], from-w.lo[dim], to-w.lo[dim]) {
		c := w.clone()
		c.offset += p.offset
		c.dims[dim] = p.axes
		c.lo[dim], c.size[dim] = at, p.size
		at += p.size
		out = append(out, c)
	}
	return out
}

// part is a range of a dimension as axes.
type part struct {
	offset int64
	size   int
	axes   []axis
}

// narrowAxes cuts [lo, hi) out of a product of axes. Where the cut falls inside
// an inner axis it takes several parts: a head, whole rows and a tail.
func narrowAxes(out []part, axes []axis, lo, hi int) []part {
	if lo >= hi {
		return out
	}
	if len(axes) == 0 { // a dimension of size one
		return append(out, part{0, 1, nil})
	}
	inner := sizeOf(axes[1:])
	if lo%inner == 0 && hi%inner == 0 {
		cut := append([]axis{{(hi - lo) / inner, axes[0].stride}}, axes[1:]...)
		return append(out, part{int64(lo/inner) * axes[0].stride, hi - lo, cut})
	}
	first, last := lo/inner, (hi-1)/inner
	if first == last {
		return narrowRow(out, axes, first, lo-first*inner, hi-first*inner)
	}
	head := (lo + inner - 1) / inner * inner
	tail := hi / inner * inner
	if lo < head {
		out = narrowRow(out, axes, first, lo-first*inner, inner)
	}
	out = narrowAxes(out, axes, head, tail)
	if tail < hi {
		out = narrowRow(out, axes, last, 0, hi-tail)
	}
	return out
}

func narrowRow(out []part, axes []axis, row, lo, hi int) []part {
	n := len(out)
	out = narrowAxes(out, axes[1:], lo, hi)
	for i := n; i < len(out); i++ {
		out[i].offset += int64(row) * axes[0].stride
	}
	return out
}

func sizeOf(axes []axis) int {
	n := 1
	for _, a := range axes {
		n *= a.n
	}
	return n
}

// Permute returns t with its dimensions in the given order, as torch's
// Tensor.permute. No bytes move.
func (t *Tensor) Permute(axes ...int) (*Tensor, error) {
	if !isPermutation(axes, len(t.shape)) {
		return nil, t.misuse("permute" + joined(axes))
	}
	if err := t.checkView("permute"); err != nil {
		return nil, err
	}
	out := &Tensor{dtype: t.dtype, shape: pick(t.shape, axes), err: t.err, walks: slices.Clone(t.walks)}
	for i := range out.walks {
		w := &out.walks[i]
		w.lo, w.size, w.dims = pick(w.lo, axes), pick(w.size, axes), pick(w.dims, axes)
	}
	return out, nil
}

func pick[T any](s []T, order []int) []T {
	out := make([]T, len(order))
	for i, k := range order {
		out[i] = s[k]
	}
	return out
}

func isPermutation(axes []int, n int) bool {
	seen := make([]bool, n)
	for _, a := range axes {
		if a < 0 || a >= n || seen[a] {
			return false
		}
		seen[a] = true
	}
	return len(axes) == n
}

// Transpose returns t with dimensions a and b swapped. No bytes move.
func (t *Tensor) Transpose(a, b int) (*Tensor, error) {
	axes := make([]int, len(t.shape))
	for i := range axes {
		axes[i] = i
	}
	if a < 0 || b < 0 || a >= len(axes) || b >= len(axes) {
		return nil, t.misuse("transpose " + strconv.Itoa(a) + " " + strconv.Itoa(b))
	}
	axes[a], axes[b] = b, a
	return t.Permute(axes...)
}

// Expand returns t with dimensions of size one repeated to the sizes of shape,
// which may have more dimensions in front, as torch's Tensor.expand. No bytes
// move.
func (t *Tensor) Expand(shape ...int) (*Tensor, error) {
	front := len(shape) - len(t.shape)
	if front < 0 {
		return nil, t.misuse("expand" + joined(shape))
	}
	if err := t.checkView("expand"); err != nil {
		return nil, err
	}
	full := slices.Concat(slices.Repeat([]int{1}, front), t.shape)
	for d, n := range shape {
		if n < 0 || n != full[d] && full[d] != 1 {
			return nil, t.misuse("expand" + joined(shape))
		}
	}
	if _, ok := byteSize(t.dtype, shape); !ok || len(shape) > MaxDims {
		return nil, t.misuse("expand" + joined(shape))
	}
	out := &Tensor{dtype: t.dtype, shape: slices.Clone(shape), err: t.err}
	for i := range t.walks {
		out.walks = append(out.walks, t.walks[i].expand(full, shape))
	}
	return out, nil
}

func (w *walk) expand(full, shape []int) walk {
	front := len(shape) - len(w.size)
	c := w.clone()
	c.lo = slices.Concat(make([]int, front), c.lo)
	c.size = slices.Concat(slices.Repeat([]int{1}, front), c.size)
	c.dims = slices.Concat(make([][]axis, front), c.dims)
	for d := range shape {
		if full[d] == 1 && shape[d] != 1 {
			c.size[d], c.dims[d] = shape[d], []axis{{shape[d], 0}}
		}
	}
	return c
}

// Squeeze returns t without dimension dim, which must have size one.
func (t *Tensor) Squeeze(dim int) (*Tensor, error) {
	if dim < 0 || dim >= len(t.shape) || t.shape[dim] != 1 {
		return nil, t.misuse("squeeze " + strconv.Itoa(dim))
	}
	return t.Reshape(slices.Delete(t.Shape(), dim, dim+1)...)
}

// Unsqueeze returns t with a dimension of size one put in at dim.
func (t *Tensor) Unsqueeze(dim int) (*Tensor, error) {
	if dim < 0 || dim > len(t.shape) {
		return nil, t.misuse("unsqueeze " + strconv.Itoa(dim))
	}
	return t.Reshape(slices.Insert(t.Shape(), dim, 1)...)
}

// Cast returns t with its elements converted to d while they are read. It
// fails with [fault.ErrUnsupported] where no conversion exists.
func (t *Tensor) Cast(d DType) (*Tensor, error) {
	if d == t.dtype {
		return t, nil
	}
	if !Convertible(t.dtype, d) {
		return nil, refuseConversion(t.dtype, d)
	}
	out := &Tensor{dtype: d, shape: t.shape, err: t.err, walks: slices.Clone(t.walks)}
	for i := range out.walks {
		out.walks[i].casts = append(slices.Clone(out.walks[i].casts), d)
	}
	return out, nil
}

// Bits returns t with its elements taken as unsigned integers of the same
// size: the raw bits of a half as a uint16. No bytes move.
func (t *Tensor) Bits() (*Tensor, error) {
	d, ok := map[int]DType{1: U8, 2: U16, 4: U32, 8: U64}[t.dtype.Size()]
	if !ok || t.dtype.Class() == ComplexClass {
		return nil, fault.New(fault.Unsupported, "the bits of "+t.dtype.String()+" as one integer")
	}
	out := &Tensor{dtype: d, shape: t.shape, err: t.err, walks: slices.Clone(t.walks)}
	for i := range out.walks {
		w := &out.walks[i]
		if len(w.casts) > 0 || w.neg {
			return nil, fault.New(fault.Unsupported, "the bits of a converted tensor").Needs("a tensor as it is stored", "take the bits first")
		}
		w.dtype = d
	}
	return out, nil
}

// Concat returns the parts joined along axis, evaluated while it is read. The
// parts must agree in dtype and in every other size; it fails with
// [fault.ErrMismatch] when they do not.
func Concat(axis int, parts ...*Tensor) (*Tensor, error) {
	if len(parts) == 0 || axis < 0 || axis >= len(parts[0].shape) {
		return nil, fault.New(fault.Usage, "concat along "+strconv.Itoa(axis)+" of "+strconv.Itoa(len(parts))+" tensors")
	}
	out := &Tensor{dtype: parts[0].dtype, shape: parts[0].Shape()}
	out.shape[axis] = 0
	for _, p := range parts {
		if err := out.join(axis, p); err != nil {
			return nil, err
		}
	}
	return out.bounded()
}

func (t *Tensor) join(axis int, p *Tensor) error {
	want, got := slices.Clone(t.shape), p.Shape()
	if len(got) != len(want) {
		return fault.New(fault.Mismatch, "shape "+ShapeString(got)+" in a concat").Needs(strconv.Itoa(len(want))+" dimensions", "")
	}
	want[axis] = got[axis]
	if !slices.Equal(want, got) || p.dtype != t.dtype {
		return fault.New(fault.Mismatch, p.String()+" in a concat").Needs(t.dtype.String()+" "+ShapeString(want), "")
	}
	if err := p.checkView("concat"); err != nil {
		return err
	}
	for i := range p.walks {
		if p.Len() == 0 {
			break
		}
		w := p.walks[i].clone()
		w.lo[axis] += t.shape[axis]
		t.walks = append(t.walks, w)
	}
	if t.err == nil {
		t.err = p.err
	}
	t.shape[axis] += got[axis]
	if _, ok := byteSize(t.dtype, t.shape); !ok {
		return fault.New(fault.Usage, "a concat that overflows: "+ShapeString(t.shape))
	}
	return nil
}

// bounded refuses an expression of too many pieces.
func (t *Tensor) bounded() (*Tensor, error) {
	if len(t.walks) > maxWalks {
		return nil, fault.NewBound("pieces of a view", int64(len(t.walks)), maxWalks)
	}
	return t, nil
}

// checkView refuses to cut dtypes whose elements are less than a byte.
func (t *Tensor) checkView(op string) error {
	if t.dtype.Size() > 0 {
		return nil
	}
	return fault.New(fault.Unsupported, op+" of "+t.dtype.String()).Needs("elements of whole bytes", "take the tensor whole")
}

func (t *Tensor) misuse(op string) error {
	return fault.New(fault.Usage, op+" of a tensor of shape "+ShapeString(t.shape))
}

func joined(v []int) string {
	s := ""
	for _, n := range v {
		s += " " + strconv.Itoa(n)
	}
	return s
}

// Part is a tensor and the index of its first element in a larger one.
type Part struct {
	Tensor *Tensor
	At     []int
}

// Assemble returns the tensor of the given dtype and shape that the parts make
// up, evaluated while it is read: the shards of a distributed tensor are laid
// out so. The parts must have the dtype, lie inside, not overlap and leave no
// hole; it fails with [fault.ErrMismatch] when they do not, and on a shape that
// no tensor can have as [New] does.
func Assemble(d DType, shape []int, parts ...Part) (*Tensor, error) {
	if err := checkShape(d, int64s(shape)); err != nil {
		return nil, err
	}
	if len(parts) > maxWalks {
		return nil, fault.NewBound("pieces of a view", int64(len(parts)), maxWalks)
	}
	out := &Tensor{dtype: d, shape: slices.Clone(shape)}
	covered := int64(0)
	for _, p := range parts {
		if !out.holds(p) {
			return nil, fault.New(fault.Mismatch, p.Tensor.String()+" at "+ShapeString(p.At)).
				Needs("a part of "+d.String()+" "+ShapeString(shape), "the shards do not belong together")
		}
		if err := out.lay(p); err != nil {
			return nil, err
		}
		covered += p.Tensor.Len()
	}
	if at, ok := overlapping(parts); ok {
		return nil, fault.New(fault.Mismatch, "parts that overlap at "+ShapeString(at)).Needs("each element once", "the shards do not belong together")
	}
	if covered != out.Len() {
		return nil, fault.New(fault.Mismatch, strconv.FormatInt(covered, 10)+" of "+strconv.FormatInt(out.Len(), 10)+" elements").
			Needs("parts that leave no hole", "a shard is missing")
	}
	return out.bounded()
}

// overlapping returns where a part begins that another one reaches into. Along
// the dimension with the most different beginnings each part is compared with
// those alone that begin before it ends.
func overlapping(parts []Part) (at []int, ok bool) {
	parts = slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return p.Tensor.Len() == 0 })
	dim := scattered(parts)
	begin := func(p Part) int {
		if dim < 0 { // scalars
			return 0
		}
		return p.At[dim]
	}
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Compare(begin(a), begin(b)) })
	for i, p := range parts {
		for _, o := range parts[i+1:] {
			if dim >= 0 && begin(o) >= begin(p)+p.Tensor.shape[dim] {
				break
			}
			if overlap(p, o) {
				return o.At, true
			}
		}
	}
	return nil, false
}

// scattered is the dimension in which the parts begin at the most places, -1 if
// there is none.
func scattered(parts []Part) int {
	best, most := -1, 0
	for d := 0; len(parts) > 0 && d < len(parts[0].At); d++ {
		places := map[int]bool{}
		for _, p := range parts {
			places[p.At[d]] = true
		}
		if len(places) > most {
			best, most = d, len(places)
		}
	}
	return best
}

func (t *Tensor) holds(p Part) bool {
	if p.Tensor.dtype != t.dtype || len(p.At) != len(t.shape) || len(p.Tensor.shape) != len(t.shape) {
		return false
	}
	for d, n := range p.Tensor.shape {
		if p.At[d] < 0 || p.At[d] > t.shape[d] || n > t.shape[d]-p.At[d] {
			return false
		}
	}
	return true
}

// overlap reports whether two parts that have elements share some.
func overlap(a, b Part) bool {
	for d := range a.At {
		if a.At[d]+a.Tensor.shape[d] <= b.At[d] || b.At[d]+b.Tensor.shape[d] <= a.At[d] {
			return false
		}
	}
	return true
}

func (t *Tensor) lay(p Part) error {
	if err := p.Tensor.checkView("assembling"); err != nil {
		return err
	}
	if t.err == nil {
		t.err = p.Tensor.err
	}
	for i := range p.Tensor.walks {
		if p.Tensor.Len() == 0 {
			break
		}
		w := p.Tensor.walks[i].clone()
		for d := range w.lo {
			w.lo[d] += p.At[d]
		}
		t.walks = append(t.walks, w)
	}
	return nil
}
