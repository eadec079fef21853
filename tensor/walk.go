package tensor

import "slices"

// axis is one loop of a walk: n elements, stride apart.
type axis struct {
	n      int
	stride int64
}

// walk fills the box [lo, lo+size) of a tensor with elements of a storage.
// Dimension d of the box is the product of the axes dims[d], outermost first;
// most have exactly one, a reshape of a permuted tensor gives more. The box is
// filled in row-major order of all axes.
//
//	tensor  shape [6, 4]                       lo = [2, 0], size = [4, 4]
//	        ┌────────┐
//	        │ walk 0 │                          dims[0] = {2, s0}{2, s1}
//	        ├────────┤ ← lo                     dims[1] = {4, s2}
//	        │ walk 1 │
//	        └────────┘
type walk struct {
	storage   *Storage
	dtype     DType // of the elements in the storage
	conj, neg bool
	offset    int64 // of the first element, in elements
	lo, size  []int
	dims      [][]axis
	casts     []DType // conversions in order, after conj and neg
}

// leaf is a tensor as it stands in a file, with all that it is made of: a
// checkpoint can have a million, and each of them is one allocation.
type leaf struct {
	t     Tensor
	walks [1]walk
}

type (
	leaf1 struct {
		leaf
		parts leafParts1
	}
	leaf2 struct {
		leaf
		parts leafParts2
	}
	leaf4 struct {
		leaf
		parts leafParts4
	}
	leafParts1 struct {
		shape [1]int
		axes  [1]axis
		dims  [1][]axis
	}
	leafParts2 struct {
		shape [2]int
		axes  [2]axis
		dims  [2][]axis
	}
	leafParts4 struct {
		shape [4]int
		axes  [4]axis
		dims  [4][]axis
	}
)

// newLeaf returns the tensor of a spec that was proved.
func newLeaf(spec Spec, strides []int64) *Tensor {
	switch n := len(spec.Shape); {
	case n <= 1:
		l := &leaf1{}
		return l.lay(spec, strides, l.parts.shape[:n:n], l.parts.axes[:n:n], l.parts.dims[:n:n])
	case n <= 2:
		l := &leaf2{}
		return l.lay(spec, strides, l.parts.shape[:n:n], l.parts.axes[:n:n], l.parts.dims[:n:n])
	case n <= 4:
		l := &leaf4{}
		return l.lay(spec, strides, l.parts.shape[:n:n], l.parts.axes[:n:n], l.parts.dims[:n:n])
	default:
		l := &leaf{}
		return l.lay(spec, strides, make([]int, n), make([]axis, n), make([][]axis, n))
	}
}

// origin is where the walks of whole tensors begin. It is never written: what changes
// a walk clones it first.
var origin [MaxDims]int

// lay fills a leaf with the slices that are given it.
func (l *leaf) lay(spec Spec, strides []int64, shape []int, axes []axis, dims [][]axis) *Tensor {
	for d, n := range spec.Shape {
		shape[d] = int(n)
		axes[d] = axis{int(n), strides[d]}
		dims[d] = axes[d : d+1 : d+1]
	}
	l.begin(spec, &layout{shape: shape, dims: dims})
	return &l.t
}

// begin fills a leaf that is empty.
func (l *leaf) begin(spec Spec, at *layout) {
	l.walks[0] = walk{
		storage: spec.Storage, dtype: spec.DType, offset: spec.Offset,
		lo: origin[:len(at.shape):len(at.shape)], size: at.shape, dims: at.dims,
		conj: spec.Conj && spec.DType.Class() == ComplexClass, neg: spec.Neg,
	}
	l.t = Tensor{dtype: spec.DType, shape: at.shape, walks: l.walks[:]}
}

// plainStrides returns one stride for each dimension if that says it all.
func (w *walk) plainStrides() ([]int64, bool) {
	strides := make([]int64, len(w.dims))
	for d := range w.dims {
		var ok bool
		if strides[d], ok = w.plainStride(d); !ok {
			return nil, false
		}
	}
	return strides, true
}

// plainStride returns the one stride of dimension d, if there is one.
func (w *walk) plainStride(d int) (int64, bool) {
	switch axes := joinAxes(w.dims[d]); len(axes) {
	case 0:
		return 1, true
	case 1:
		return axes[0].stride, true
	default:
		return 0, false
	}
}

// joinAxes merges neighbours that one stride can say.
func joinAxes(axes []axis) []axis {
	if len(axes) < 2 {
		return axes
	}
	var out []axis
	for _, a := range axes {
		k := len(out) - 1
		switch {
		case a.n == 1:
			continue
		case k >= 0 && out[k].stride == a.stride*int64(a.n):
			out[k] = axis{out[k].n * a.n, a.stride}
		default:
			out = append(out, a)
		}
	}
	return out
}

// clone returns a copy whose slices can be changed.
func (w *walk) clone() walk {
	c := *w
	c.lo, c.size = slices.Clone(w.lo), slices.Clone(w.size)
	c.dims = make([][]axis, len(w.dims))
	for d := range w.dims {
		c.dims[d] = slices.Clone(w.dims[d])
	}
	c.casts = slices.Clone(w.casts)
	return c
}
