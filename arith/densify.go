package arith

import (
	"context"
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// Densify returns the dense tensor that a sparse one (an opaque object of the
// layouts COO, CSR, CSC, BSR and BSC) stands for, with torch's values:
// duplicates of a COO tensor add up in the order of the file. Components are
// read and the result is in memory; limits bounds it against the bytes of the
// storages that the components lie in.
//
// It fails with [fault.ErrMalformed] on components that contradict each other
// and with [fault.ErrLimit] on a result out of proportion.
func Densify(ctx context.Context, o *nested.Opaque, limits Limits) (*nested.Tensor, error) {
	return newBudget(limits).densify(ctx, o)
}

func (b *budget) densify(ctx context.Context, o *nested.Opaque) (*nested.Tensor, error) {
	layout := strings.TrimPrefix(o.Reason, "torch.")
	s, err := sparseOf(o)
	if err != nil {
		return nil, err
	}
	if err := b.room(s); err != nil {
		return nil, err
	}
	var at positions
	switch layout {
	case "sparse_coo":
		at, err = s.coo(ctx)
	case "sparse_csr", "sparse_bsr":
		at, err = s.compressed(ctx, "crow_indices", "col_indices", false)
	case "sparse_csc", "sparse_bsc":
		at, err = s.compressed(ctx, "ccol_indices", "row_indices", true)
	default:
		return nil, fault.New(fault.Usage, "densifying "+o.Reason).Needs("a sparse tensor", "")
	}
	if err != nil {
		return nil, err
	}
	dense, err := s.fill(ctx, at)
	if err != nil {
		return nil, err
	}
	return &nested.Tensor{Tensor: dense, Class: "torch.Tensor"}, nil
}

// room compares the dense form of one more tensor with what there is, and with the
// memory of this machine, before it is made.
func (b *budget) room(s *sparse) error {
	size, err := denseBytes(s.values.DType(), s.shape)
	if err != nil {
		return err
	}
	var parts []*tensor.Tensor
	for _, v := range s.parts.All() {
		if t, ok := v.(*nested.Tensor); ok {
			parts = append(parts, t.Tensor)
		}
	}
	if err := tensor.Room(parts, size, b.limits.expansion()); err != nil {
		return err
	}
	return b.take(size, parts...)
}

// sparse is a sparse tensor taken apart.
type sparse struct {
	shape  []int
	parts  *nested.Map
	values *tensor.Tensor
}

func sparseOf(o *nested.Opaque) (*sparse, error) {
	parts, ok := o.Members.(*nested.Map)
	state, ok2 := o.State.(*nested.Map)
	if !ok || !ok2 {
		return nil, fault.New(fault.Usage, "densifying a "+o.Class).Needs("a sparse tensor", "")
	}
	size, _ := state.Lookup("size")
	l, ok := size.(*nested.List)
	if !ok {
		return nil, broken("no size")
	}
	s := &sparse{parts: parts}
	for _, item := range l.Items {
		n, ok := item.(nested.Int)
		if !ok || n < 0 || int64(n) != int64(int(n)) {
			return nil, broken("a size that is no number")
		}
		s.shape = append(s.shape, int(n))
	}
	var err error
	s.values, err = s.part("values")
	return s, err
}

func broken(found string) *fault.Error {
	return fault.New(fault.Malformed, "a sparse tensor with "+found).Needs("components that agree", "the file is damaged or was made to deceive")
}

func (s *sparse) part(name string) (*tensor.Tensor, error) {
	v, _ := s.parts.Get(nested.Component(name))
	t, ok := v.(*nested.Tensor)
	if !ok {
		return nil, broken("no " + name)
	}
	return t.Tensor, t.Err()
}

// denseBytes is the size of a dense tensor, every product checked: New proves
// shapes, so a tensor expanded from one element asks it.
func denseBytes(d tensor.DType, shape []int) (int64, error) {
	one := tensor.NewStorage(tensor.StorageSpec{Size: int64(d.Size()), Memory: make([]byte, d.Size())})
	t, err := tensor.New(tensor.Spec{Storage: one, DType: d, Shape: longs(shape), Strides: make([]int64, len(shape))})
	if err != nil {
		return 0, err
	}
	return t.Bytes(), nil
}

// longs is a shape as [tensor.Spec] takes it.
func longs(shape []int) []int64 {
	out := make([]int64, len(shape))
	for i, n := range shape {
		out[i] = int64(n)
	}
	return out
}

// positions says where every stored block goes: block i of the values, a
// vector of block elements, is added at element offsets at[i][…].
type positions struct {
	first  []int64 // of each block, in elements of the result
	block  []int   // shape of a block
	stride []int64 // of the block's dimensions in the result
}

func rowMajor(shape []int) []int64 {
	out := make([]int64, len(shape))
	n := int64(1)
	for d := len(shape) - 1; d >= 0; d-- {
		out[d] = n
		n *= int64(shape[d])
	}
	return out
}

// coo reads indices [sparse dims, n]; a value is a block of the dense dims.
func (s *sparse) coo(ctx context.Context) (positions, error) {
	t, err := s.part("indices")
	if err != nil {
		return positions{}, err
	}
	shape, vshape := t.Shape(), s.values.Shape()
	if len(shape) != 2 || shape[0] > len(s.shape) || len(vshape) != 1+len(s.shape)-shape[0] || vshape[0] != shape[1] {
		return positions{}, broken("indices of shape " + tensor.ShapeString(shape))
	}
	index, err := tensor.Values[int64](ctx, t)
	if err != nil {
		return positions{}, err
	}
	strides := rowMajor(s.shape)
	p := positions{first: make([]int64, shape[1]), block: vshape[1:], stride: strides[shape[0]:]}
	for d := range shape[0] {
		for i := range shape[1] {
			k := index[d*shape[1]+i]
			if k < 0 || k >= int64(s.shape[d]) {
				return positions{}, broken("an index out of bounds")
			}
			p.first[i] += k * strides[d]
		}
	}
	return p, p.fits(s.shape[shape[0]:])
}

// fits holds that a block lies inside the dense dimensions.
func (p *positions) fits(dense []int) error {
	for d, n := range p.block {
		if n != dense[d] {
			return broken("values of another shape")
		}
	}
	return nil
}

// compressed reads the four compressed layouts, with batches in front. The
// plain index runs over rows (CSR, BSR), or over columns where swapped (CSC,
// BSC); values of BSR and BSC are blocks.
func (s *sparse) compressed(ctx context.Context, ptrName, indexName string, swapped bool) (positions, error) {
	ptr, err := s.ints(ctx, ptrName)
	if err != nil {
		return positions{}, err
	}
	index, err := s.ints(ctx, indexName)
	if err != nil {
		return positions{}, err
	}
	g, err := s.grid(ptr, index, swapped)
	if err != nil {
		return positions{}, err
	}
	return g.positions(ptr.values, index.values)
}

type intPart struct {
	shape  []int
	values []int64
}

func (s *sparse) ints(ctx context.Context, name string) (intPart, error) {
	t, err := s.part(name)
	if err != nil {
		return intPart{}, err
	}
	v, err := tensor.Values[int64](ctx, t)
	return intPart{t.Shape(), v}, err
}

// grid is the geometry of a compressed tensor.
type grid struct {
	batches, lines, stored int // lines are rows, or columns where swapped
	across                 int // blocks in a line
	block                  []int
	batchStep              int64
	lineStep, acrossStep   int64
	stride                 []int64 // of the block's dimensions
}

func (s *sparse) grid(ptr, index intPart, swapped bool) (grid, error) {
	b := len(ptr.shape) - 1
	vshape := s.values.Shape()
	if b < 0 || len(index.shape) != b+1 || len(s.shape) < b+2 || len(vshape) < b+1 || vshape[b] != index.shape[b] {
		return grid{}, broken("components of shapes " + tensor.ShapeString(ptr.shape) + " and " + tensor.ShapeString(index.shape))
	}
	strides := rowMajor(s.shape)
	g := grid{batches: 1, lines: ptr.shape[b] - 1, stored: index.shape[b], block: vshape[b+1:]}
	for d, n := range s.shape[:b] {
		if ptr.shape[d] != n || index.shape[d] != n || vshape[d] != n {
			return grid{}, broken("batches that differ")
		}
		g.batches *= n
	}
	err := g.lay(s.shape[b:], strides[b:], swapped)
	return g, err
}

// lay finds the strides of a batch, whose shape begins with rows and columns, and
// checks that whole blocks fill it.
func (g *grid) lay(shape []int, strides []int64, swapped bool) error {
	rows, cols := shape[0], shape[1]
	g.batchStep, g.stride = int64(rows)*int64(cols), strides[2:]
	br, bc := 1, 1
	dense := shape[2:]
	if len(g.block) == len(dense)+2 { // BSR, BSC
		br, bc = g.block[0], g.block[1]
		g.stride = strides
	}
	for _, n := range dense {
		g.batchStep *= int64(n)
	}
	g.lineStep, g.acrossStep = strides[0]*int64(br), strides[1]*int64(bc)
	lines, across := ceilDiv(rows, br), ceilDiv(cols, bc)
	if swapped {
		g.lineStep, g.acrossStep, lines, across = g.acrossStep, g.lineStep, across, lines
	}
	g.across = across
	if br < 1 || bc < 1 || rows%br != 0 || cols%bc != 0 || lines != g.lines || len(g.block) != len(g.stride) {
		return broken("blocks that do not fit its size")
	}
	return g.denseFits(dense)
}

func ceilDiv(a, b int) int { return (a + max(b, 1) - 1) / max(b, 1) }

func (g *grid) denseFits(dense []int) error {
	for d, n := range dense {
		if g.block[len(g.block)-len(dense)+d] != n {
			return broken("values of another shape")
		}
	}
	return nil
}

// positions walks the lines of every batch.
func (g *grid) positions(ptr, index []int64) (positions, error) {
	p := positions{first: make([]int64, 0, len(index)), block: g.block, stride: g.stride}
	for b := range g.batches {
		lines := ptr[b*(g.lines+1) : (b+1)*(g.lines+1)]
		across := index[b*g.stored : (b+1)*g.stored]
		if lines[0] != 0 || lines[g.lines] != int64(g.stored) {
			return p, broken("pointers that do not cover its values")
		}
		for line := range g.lines {
			if lines[line] > lines[line+1] || lines[line+1] > int64(g.stored) {
				return p, broken("pointers that run backwards")
			}
			for k := lines[line]; k < lines[line+1]; k++ {
				if across[k] < 0 || across[k] >= int64(g.across) {
					return p, broken("an index out of bounds")
				}
				p.first = append(p.first, int64(b)*g.batchStep+int64(line)*g.lineStep+across[k]*g.acrossStep)
			}
		}
	}
	return p, nil
}
