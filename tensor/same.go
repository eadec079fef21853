package tensor

import "slices"

// Same reports whether t and u are the same elements of the same storages, as
// tied weights are: one can stand for the other.
func (t *Tensor) Same(u *Tensor) bool {
	if t == u {
		return true
	}
	return t.dtype == u.dtype && t.err == nil && u.err == nil && slices.Equal(t.shape, u.shape) &&
		slices.EqualFunc(t.walks, u.walks, sameWalk)
}

func sameWalk(a, b walk) bool {
	return a.storage == b.storage && a.dtype == b.dtype && a.offset == b.offset && a.conj == b.conj && a.neg == b.neg &&
		slices.Equal(a.lo, b.lo) && slices.Equal(a.size, b.size) && slices.Equal(a.casts, b.casts) &&
		slices.EqualFunc(a.dims, b.dims, func(x, y []axis) bool { return slices.Equal(joinAxes(x), joinAxes(y)) })
}

// Origin returns the storage that the tensor's first element comes from and
// that element's offset in it, in elements of the stored dtype; ok is false
// where no storage is known. Tensors that are the [Tensor.Same] have the same
// origin.
func (t *Tensor) Origin() (s *Storage, offset int64, ok bool) {
	if len(t.walks) == 0 {
		return nil, 0, false
	}
	return t.walks[0].storage, t.walks[0].offset, true
}
