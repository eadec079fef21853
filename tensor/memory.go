package tensor

// storageOf returns a storage over the memory of data.
func storageOf[T Element](data []T) *Storage {
	b, ok := bytesOf(data)
	if !ok {
		b = encode(data)
	}
	return NewStorage(StorageSpec{Name: "memory", Size: int64(len(b)), Order: NativeOrder(), Memory: b})
}
