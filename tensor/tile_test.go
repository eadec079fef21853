package tensor

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// memoryOf gives a run less memory than anybody may ask for.
func memoryOf(n int64) RunOption { return func(c *runConfig) { c.memory = n } }

// TestTiles reads random view expressions with so little memory that all but
// the smallest are cut, in every dimension.
func TestTiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, m := drawView(t)
		want := m.elements()
		var packed []byte
		for _, x := range want {
			packed = binary.LittleEndian.AppendUint32(packed, x)
		}
		memory, wide, file, stream := make([]uint32, len(want)), make([]int64, len(want)), &memoryFile{make([]byte, len(packed))}, &bytes.Buffer{}
		moves := []Move{{v, Into(memory)}, {v, Into(wide)}, {v, FileAt(file, 0)}, {v, Stream(stream)}}
		if rapid.Bool().Draw(t, "plain") {
			moves = slices.Delete(moves, 1, 2)
			wide = nil
		}
		if _, err := Run(ctx, moves, memoryOf(rapid.Int64Range(1, 2000).Draw(t, "memory"))); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(memory, want) && len(want) > 0 {
			t.Fatalf("memory %v, want %v", memory, want)
		}
		for i, x := range wide {
			if x != int64(want[i]) {
				t.Fatalf("element %d is %d, want %d", i, x, want[i])
			}
		}
		if !bytes.Equal(file.b, packed) || !bytes.Equal(stream.Bytes(), packed) {
			t.Fatalf("file or stream differs from %v", want)
		}
	})
}

// nowhere takes everything.
type nowhere struct{}

func (nowhere) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// big is a file of zeros that takes no memory.
type big int64

func (n big) ReadAt(p []byte, off int64) (int, error) {
	if int64(len(p)) > int64(n)-off {
		return 0, io.ErrUnexpectedEOF
	}
	clear(p)
	return len(p), nil
}

// square returns a tensor of n×n elements over zeros.
func square(d DType, order ByteOrder, n int64) *Tensor {
	size, _ := d.Bytes(n * n)
	s := NewStorage(StorageSpec{Size: size, File: big(size), Order: order, HasCRC: true})
	return must(New(Spec{Storage: s, DType: d, Shape: []int64{n, n}}))
}

// passing is square over bytes that come in order.
func passing(n int64) *Tensor {
	open := func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(big(4*n*n), 0, 4*n*n)), nil
	}
	return must(New(Spec{Storage: NewStorage(StorageSpec{Size: 4 * n * n, Open: open}), DType: F32, Shape: []int64{n, n}}))
}

// TestOnePassForAPermutedTensor holds that a compressed storage is read once for a
// tensor in memory, however the tensor's dimensions lie, and overlapping windows get
// what they need.
func TestOnePassForAPermutedTensor(t *testing.T) {
	const n = 60
	bytes := make([]byte, 4*n*n*n)
	for i := range n * n * n {
		binary.NativeEndian.PutUint32(bytes[4*i:], uint32(i))
	}
	passes := 0
	s := NewStorage(StorageSpec{Size: 4 * n * n * n, Order: NativeOrder(), Open: func(context.Context) (io.ReadCloser, error) {
		passes++
		return io.NopCloser(strings.NewReader(string(bytes))), nil
	}})
	for name, tt := range map[string]struct {
		strides [3]int64
		passes  int
	}{
		"contiguous": {[3]int64{n * n, n, 1}, 1}, "backwards": {[3]int64{1, n, n * n}, 1}, "turned": {[3]int64{n, n * n, 1}, 1},
		"repeated": {[3]int64{n, 0, 1}, 1}, "overlapping": {[3]int64{n * n / 2, n, 1}, 2},
	} {
		if _, ok := bytesOf([]uint32{0}); !ok {
			tt.passes = 0 // any number: the bytes go through a buffer
		}
		x := must(New(Spec{Storage: s, DType: U32, Shape: []int64{n, n, n}, Strides: tt.strides[:]}))
		got := make([]uint32, n*n*n)
		passes = 0
		stats, err := Run(ctx, []Move{{x, Into(got)}}, memoryOf(64<<10), Workers(1))
		if err != nil || passes != tt.passes && tt.passes > 0 || stats.Read != int64(passes*len(bytes)) {
			t.Errorf("%s: %d passes, want %d; %d bytes read, %v", name, passes, tt.passes, stats.Read, err)
		}
		for i, v := range got {
			at := int64(i/n/n)*tt.strides[0] + int64(i/n%n)*tt.strides[1] + int64(i%n)*tt.strides[2]
			if int64(v) != at {
				t.Fatalf("%s: element %d is that at %d, want %d", name, i, v, at)
			}
		}
	}
}

// TestBuffersStayWithinTheirShare holds that a worker's buffers never grow
// beyond its part of the memory, whatever it moves.
func TestBuffersStayWithinTheirShare(t *testing.T) {
	other := LittleEndian + BigEndian - NativeOrder()
	turned := func(v *Tensor) *Tensor { return must(v.Permute(1, 0)) }
	cast := func(v *Tensor, d DType) *Tensor { return must(v.Cast(d)) }
	plain := square(F32, NativeOrder(), 1500)
	var small []Move
	row := square(U8, NativeOrder(), 2000)
	for i := range 1000 {
		small = append(small, Move{cast(must(row.Narrow(0, 2*i, 2*i+1)), C128), FileAt(nowhere{}, 0)})
	}
	for name, moves := range map[string][]Move{
		"contiguous":            {{plain, FileAt(nowhere{}, 0)}},
		"converted":             {{cast(square(U8, NativeOrder(), 2000), C128), FileAt(nowhere{}, 0)}},
		"twice":                 {{cast(cast(square(F16, NativeOrder(), 2000), F64), F32), FileAt(nowhere{}, 0)}},
		"other order":           {{square(F64, other, 1000), FileAt(nowhere{}, 0)}},
		"transposed":            {{turned(plain), FileAt(nowhere{}, 0)}},
		"transposed, in order":  {{turned(plain), Stream(io.Discard)}},
		"transposed, converted": {{turned(cast(square(U8, NativeOrder(), 2000), C128)), FileAt(nowhere{}, 0)}},
		"joined":                {{must(Concat(1, plain, turned(plain), plain)), FileAt(nowhere{}, 0)}},
		"joined, converted":     {{cast(must(Concat(1, square(I8, other, 900), square(I8, other, 900))), F64), FileAt(nowhere{}, 0)}},
		"small":                 small,
		"compressed": {{turned(passing(1500)), FileAt(nowhere{}, 0)}, {turned(passing(1500)), Stream(io.Discard)},
			{must(Concat(1, passing(1500), turned(passing(1500)))), FileAt(nowhere{}, 0)}},
		"all": append(slices.Clone(small), Move{turned(plain), FileAt(nowhere{}, 0)},
			Move{must(Concat(1, plain, cast(square(F64, other, 1500), F32))), Stream(io.Discard)}),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(ctx, moves, []RunOption{MaxMemory(1), Workers(2), Salvage()})
			r.prepare(moves)
			w := newWorker(r)
			for _, task := range r.tasks() {
				task.do(w)
			}
			held := 0
			for _, b := range w.bufs {
				held += cap(b)
			}
			if int64(held) > r.memory/int64(r.workers) {
				t.Errorf("%d bytes held of %d for %d workers", held, r.memory, r.workers)
			}
			if stats, err := r.finish(); err != nil || stats.Moves != len(moves) {
				t.Error(stats.Moves, err)
			}
		})
	}
}

func TestMiddleFillsTheRoom(t *testing.T) {
	for _, c := range []struct {
		n           int
		bytes, room int64
		want        int
	}{
		{4096, 64 << 20, 64 << 20, 2048}, // fits: halves
		{4096, 64 << 20, 7 << 20, 2050},  // ten pieces of 410 rows, five on each side
		{3, 3 << 20, 1 << 20, 1},         // single rows: halves
		{7, 7 << 20, 3 << 20, 6},         // three of three, three and one: cut behind the second
		{1 << 20, math.MaxInt64 / 2, 64, 1 << 19},
	} {
		if got := middle(c.n, c.bytes, c.room); got != c.want {
			t.Errorf("%d of %d bytes for %d: %d, want %d", c.n, c.bytes, c.room, got, c.want)
		}
	}
}

// BenchmarkTranspose moves a transposed matrix from memory to memory.
func BenchmarkTranspose(b *testing.B) {
	const n = 2048
	src, dst := make([]float32, n*n), make([]float32, n*n)
	v, err := Of(src, n, n).Permute(1, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(n * n * 4)
	for b.Loop() {
		if err := ReadInto(ctx, v, dst, Workers(1)); err != nil {
			b.Fatal(err)
		}
	}
}
