package tensor

// Slab is destination memory for many tensors, cut from few large allocations:
// page faults and the allocator's bookkeeping otherwise cost several times the
// reading. It is ordinary Go memory without pointers; a slice that is kept
// keeps its whole chunk.
type Slab struct {
	chunks []chunk
	places []place
}

type chunk struct{ bytes []byte }

type place struct {
	chunk        int
	offset, size int64
}

const (
	slabAlign = 64        // of every slice, a cache line
	slabChunk = 256 << 20 // the most one kept slice can keep alive beyond its own size
)

// NewSlab allocates room for slices of the given sizes in bytes.
func NewSlab(sizes []int64) *Slab {
	s := &Slab{places: make([]place, len(sizes))}
	var room []int64
	for i, n := range sizes {
		k := len(room) - 1
		if k < 0 || room[k] > 0 && room[k]+n > slabChunk {
			room = append(room, 0)
			k++
		}
		s.places[i] = place{k, room[k], n}
		room[k] += (n + slabAlign - 1) / slabAlign * slabAlign
	}
	for _, n := range room {
		s.chunks = append(s.chunks, chunk{alignedBytes(n)})
	}
	return s
}

// SlabSlice returns slice i of the slab with n elements, which must take the
// bytes that were asked for it. Its content is zero until something is read
// into it.
func SlabSlice[T Element](s *Slab, i, n int) []T {
	p := s.places[i]
	if b := s.chunks[p.chunk].bytes; b != nil && DTypeOf[T]() != Bool {
		if v, ok := viewAs[T](b[p.offset : p.offset+p.size]); ok && len(v) == n {
			return v[:n:n]
		}
	}
	return make([]T, n)
}

// alignedBytes returns n zero bytes that start on a cache line, with huge-page
// advice where that can help. It returns nil where bytes cannot be seen as
// other types.
func alignedBytes(n int64) []byte {
	if _, ok := bytesOf([]uint64{0}); !ok {
		return nil // before memory is made that nobody could use
	}
	b, _ := bytesOf(make([]uint64, (n+slabAlign)/8))
	skip := misalignment(b, slabAlign)
	b = b[skip : skip+n : skip+n]
	adviseHuge(b)
	return b
}
