package tensor

// Whole returns the storage whose bytes, all of them and as they stand, are the
// packed little-endian form of t: what is known of the storage, such as its
// CRC-32, is then true of the tensor. ok is false for every other tensor.
func (t *Tensor) Whole() (s *Storage, ok bool) {
	if t.err != nil || len(t.walks) != 1 || !t.Contiguous() {
		return nil, false
	}
	w := &t.walks[0]
	if w.conj || w.neg || w.offset != 0 || w.dtype != t.dtype || t.Bytes() != w.storage.Size() {
		return nil, false
	}
	return w.storage, w.storage.Order() == LittleEndian || t.dtype.Component() == 1
}
