package tensor

import "slices"

// Maker makes many tensors, as a checkpoint's reader does: they are cut from
// blocks, and those of one shape and the same strides share what says so. A tensor
// that is kept keeps the few dozen of its block. The zero Maker is ready for use.
// It is not safe for concurrent use; the tensors are.
type Maker struct {
	block []leaf
	known [makerLayouts]layout // by hash
	made  int
}

const (
	makerBlock   = 40 // tensors; 8 KiB
	makerLayouts = 64
)

// layout is what tensors of one shape and the same strides have in common.
type layout struct {
	shape   []int
	strides []int64
	dims    [][]axis
}

// Len returns how many tensors it made.
func (m *Maker) Len() int { return m.made }

// New is the function [New].
func (m *Maker) New(spec Spec) (*Tensor, error) {
	if err := prove(&spec); err != nil {
		return nil, err
	}
	if len(m.block) == 0 {
		m.block = make([]leaf, min(makerBlock, m.made+1))
	}
	l := &m.block[0]
	m.block = m.block[1:]
	m.made++
	l.begin(spec, m.layout(spec))
	return &l.t, nil
}

// layout returns the layout of a spec, the same one if it came a short time ago.
func (m *Maker) layout(spec Spec) *layout {
	hash := uint64(len(spec.Shape))
	for d, n := range spec.Shape {
		hash = (hash^uint64(n))*0x9E3779B97F4A7C15 ^ uint64(spec.Strides[d]) //nolint:gosec // any spread will do
	}
	hash *= 0x9E3779B97F4A7C15
	l := &m.known[hash>>32%makerLayouts]
	if l.shape == nil || !slices.Equal(l.strides, spec.Strides) || !sameSizes(l.shape, spec.Shape) {
		*l = newLayout(spec)
	}
	return l
}

func sameSizes(shape []int, sizes []int64) bool {
	return slices.EqualFunc(shape, sizes, func(a int, b int64) bool { return int64(a) == b })
}

func newLayout(spec Spec) layout {
	n := len(spec.Shape)
	l := layout{shape: make([]int, n), strides: slices.Clone(spec.Strides), dims: make([][]axis, n)}
	axes := make([]axis, n)
	for d, size := range spec.Shape {
		l.shape[d] = int(size)
		axes[d] = axis{int(size), spec.Strides[d]}
		l.dims[d] = axes[d : d+1 : d+1]
	}
	return l
}
