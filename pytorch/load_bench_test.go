package pytorch

import (
	"bytes"
	"io"
	"runtime"
	"strconv"
	"testing"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
	"github.com/wick-ml/wick/tensor"
)

// stateDict writes the pickle of a state dict of n tensors of one element with
// a storage each, as torch.save does: what comes again is in the memo.
func stateDict(n int) []byte {
	var b bytes.Buffer
	memo := 0
	put := func(op string) {
		b.WriteString(op)
		if memo < 256 {
			b.Write([]byte{'q', byte(memo)})
		} else {
			b.Write([]byte{'r', byte(memo), byte(memo >> 8), byte(memo >> 16), byte(memo >> 24)})
		}
		memo++
	}
	text := func(s string) { put(string(emit(nil, s))) }
	b.WriteString("\x80\x02")
	put("ccollections\nOrderedDict\n")
	put(")R")
	b.WriteString("(")
	for i := range n {
		if i > 0 && i%1000 == 0 { // as Python's pickle does it
			b.WriteString("u(")
		}
		text("layers." + strconv.Itoa(i) + ".self_attn.weight")
		if i == 0 {
			put("ctorch._utils\n_rebuild_tensor_v2\n")
			b.WriteString("((")
			text("storage")
			put("ctorch\nFloatStorage\n")
		} else {
			b.WriteString("h\x03((h\x04h\x05")
		}
		text(strconv.Itoa(i))
		if i == 0 {
			text("cpu")
		} else {
			b.WriteString("h\x07")
		}
		put("K\x01t")
		b.WriteString("QK\x00")
		put("K\x01\x85")
		put("K\x01\x85")
		b.WriteString("\x89h\x00")
		put(")R")
		put("t")
		put("R")
	}
	b.WriteString("u.")
	return b.Bytes()
}

func loadStateDict(tb testing.TB, data []byte, n int) {
	tb.Helper()
	one := make([]byte, 4)
	l := &loader{record: "data.pkl", present: int64(len(data)), storage: func(r storageRef) (*tensor.Storage, error) {
		return tensor.NewStorage(tensor.StorageSpec{Name: r.Key, Size: 4, Memory: one}), nil
	}}
	l.again = func() io.Reader { return bytes.NewReader(data) }
	v, err := l.load(pickle.NewStream(bytes.NewReader(data)))
	if err != nil {
		tb.Fatal(err)
	}
	if m, ok := v.(*nested.Map); !ok || m.Len() != n {
		tb.Fatalf("got %T", v)
	}
}

// BenchmarkStateDict loads the pickles of state dicts of many small tensors.
func BenchmarkStateDict(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			data := stateDict(n)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				loadStateDict(b, data, n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/tensor")
		})
	}
}

// BenchmarkScan reads the opcodes alone.
func BenchmarkScan(b *testing.B) {
	data := stateDict(100_000)
	b.SetBytes(int64(len(data)))
	var op pickle.Op
	for b.Loop() {
		s := pickle.NewScanner(pickle.NewCursor(data), (&loader{}).limits)
		for {
			if ok, err := s.Next(&op); err != nil {
				b.Fatal(err)
			} else if !ok {
				break
			}
		}
	}
}

// BenchmarkStream loads from a reader, as one-pass decoding does.
func BenchmarkStream(b *testing.B) {
	data := stateDict(100_000)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		l := newLoader(1)
		if _, err := l.load(pickle.NewStream(io.MultiReader(bytes.NewReader(data)))); err != nil {
			b.Fatal(err)
		}
	}
}

// TestLinear makes as many allocations for each tensor of a large state dict as
// of a small one, and none for an opcode: each tensor has 34 of them.
func TestLinear(t *testing.T) {
	for _, n := range []int{5_000, 50_000} {
		data := stateDict(n)
		allocs := testing.AllocsPerRun(1, func() { loadStateDict(t, data, n) }) / float64(n)
		if allocs > maxAllocs {
			t.Errorf("%.2f allocations for each of %d tensors, want at most %v", allocs, n, maxAllocs)
		}
	}
}

// maxAllocs is what a tensor takes in a tree: its name and its key as interfaces,
// and its storage. The rest is cut from blocks.
const maxAllocs = 3.2

// TestLoadMemory bounds the bytes for each tensor of a large state dict, so that a
// million of them fit in a machine of a gigabyte with their listing.
func TestLoadMemory(t *testing.T) {
	const n = 50_000
	data := stateDict(n)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	loadStateDict(t, data, n)
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / n; each > maxBytes {
		t.Errorf("%d bytes for each tensor, want at most %d", each, maxBytes)
	}
}

// maxBytes covers the tensor and its node, its storage and the slot of it, and its
// place in a map that grew.
const maxBytes = 1090
