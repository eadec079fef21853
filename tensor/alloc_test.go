package tensor

import (
	"math"
	"runtime"
	"testing"
)

// allocations returns how often, and how much in bytes, f allocates. The runtime
// counts those of the whole process; other goroutines can only add, so the
// least of several runs is f's.
func allocations(f func()) (count, bytes uint64) {
	f()
	count, bytes = math.MaxUint64, math.MaxUint64
	for range 5 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		count, bytes = min(count, after.Mallocs-before.Mallocs), min(bytes, after.TotalAlloc-before.TotalAlloc)
	}
	return count, bytes
}

// TestHotPathsAllocateLittle holds what a run allocates for each tensor, and that a
// large one takes no more than its buffers, wherever its elements go.
func TestHotPathsAllocateLittle(t *testing.T) {
	if _, ok := bytesOf([]uint32{0}); !ok {
		t.Skip("memory cannot be seen as bytes: elements are copied")
	}
	const tensors = 1000
	into, across, whole := small(t, tensors), make([]Move, 0, tensors), square(F32, NativeOrder(), 2048)
	for i := range into {
		across = append(across, Move{into[i].From, FileAt(nowhere{}, int64(i)*16)})
	}
	turned, half := must(whole.Permute(1, 0)), must(whole.Cast(F16))
	dst := make([]float32, 2048*2048)
	for _, c := range []struct {
		name         string
		moves        []Move
		count, bytes uint64 // at most
	}{
		{"many into memory", into, 3 * tensors, 500 * tensors},
		{"many into a file", across, 3 * tensors, 500 * tensors},
		{"large into memory", []Move{{whole, Into(dst)}}, 60, 8 << 10},
		{"large into a file", []Move{{whole, FileAt(nowhere{}, 0)}}, 60, 320 << 10},
		{"large, converted", []Move{{half, FileAt(nowhere{}, 0)}}, 60, 480 << 10},
		{"large, transposed", []Move{{turned, Into(dst)}}, 2000, 2 << 20},
	} {
		count, bytes := allocations(func() {
			if _, err := Run(ctx, c.moves, Workers(1), MaxMemory(2<<20), Salvage()); err != nil {
				t.Fatal(c.name, err)
			}
		})
		if count > c.count || bytes > c.bytes {
			t.Errorf("%s: %d allocations of %d bytes, want at most %d of %d", c.name, count, bytes, c.count, c.bytes)
		}
	}
}

// small returns the moves of n tensors of four elements, each in a record of its
// own, into memory.
func small(t *testing.T, n int) []Move {
	t.Helper()
	moves := make([]Move, n)
	for i := range moves {
		s := NewStorage(StorageSpec{Size: 16, File: big(n * 128), Offset: int64(i) * 128, Order: NativeOrder(), HasCRC: true})
		moves[i] = Move{vector(s, F32, 4, 0), Into(make([]float32, 4))}
	}
	return moves
}
