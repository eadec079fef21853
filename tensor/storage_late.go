package tensor

// Settle says where the bytes of s are, for a storage that was made with
// nothing but a name, a size and an order because its reader did not know yet:
// the stacked pickles of old files name their storages first and say where
// they are after all tensors. The fields File, Offset, Memory, Open and Guard
// of spec count. It must be called before s is read or seen by another
// goroutine, and by the reader that made s alone.
func (s *Storage) Settle(spec StorageSpec) {
	spec.Name, spec.Size, spec.Order = s.spec.Name, s.spec.Size, s.spec.Order
	s.spec = NewStorage(spec).spec
}

// SetOrder says in which order the components of the elements of s lie, where
// that stands behind the pickle that names s. It must be called before s is
// read or seen by another goroutine, and by the reader that made s alone.
func (s *Storage) SetOrder(o ByteOrder) { s.spec.Order = o }
