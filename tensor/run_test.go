package tensor

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wick-ml/wick/fault"
)

var ctx = context.Background()

// summed returns a storage of n counting bytes with a right or a wrong CRC.
func summed(n int, wrong bool) (*Storage, []byte) {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	sum := crc32.ChecksumIEEE(b)
	if wrong {
		sum++
	}
	return NewStorage(StorageSpec{Name: "data/0", Size: int64(n), File: bytes.NewReader(b), CRC32: sum, HasCRC: true}), b
}

func vector(s *Storage, d DType, n, offset int64) *Tensor {
	return must(New(Spec{Storage: s, DType: d, Shape: []int64{n}, Offset: offset}))
}

func TestChecksums(t *testing.T) {
	const n = 9 << 20 // over several tasks, so that sums must be joined
	for _, tt := range []struct {
		name  string
		wrong bool
		t     func(s *Storage) *Tensor
		opts  []RunOption
		check Check
		want  error
	}{
		{"whole", false, func(s *Storage) *Tensor { return vector(s, U8, n, 0) }, nil, Verified, nil},
		{"whole, damaged", true, func(s *Storage) *Tensor { return vector(s, U8, n, 0) }, nil, Failed, fault.ErrChecksum},
		{"whole, salvaged", true, func(s *Storage) *Tensor { return vector(s, U8, n, 0) }, []RunOption{Salvage()}, Failed, nil},
		{"window", false, func(s *Storage) *Tensor { return vector(s, U8, 100, 5) }, nil, Unverified, nil},
		{"window, damaged elsewhere", true, func(s *Storage) *Tensor { return vector(s, U8, 100, 5) }, nil, Unverified, nil},
		{"window, forced", false, func(s *Storage) *Tensor { return vector(s, U8, 100, 5) }, []RunOption{Verify()}, Verified, nil},
		{"window, forced, damaged", true, func(s *Storage) *Tensor { return vector(s, U8, 100, 5) }, []RunOption{Verify()}, Failed, fault.ErrChecksum},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := summed(n, tt.wrong)
			v := tt.t(s)
			stats, err := Run(ctx, []Move{{v, Into(make([]uint8, v.Len()))}}, tt.opts...)
			if !errors.Is(err, tt.want) {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
			if stats.Checks[0] != tt.check {
				t.Fatalf("%v, want %v", stats.Checks[0], tt.check)
			}
		})
	}
}

// TestWindowsReadOnlyThemselves holds that a view deep inside a huge storage costs its
// own bytes, contiguous or not.
func TestWindowsReadOnlyThemselves(t *testing.T) {
	const rows, columns = 1 << 20, 1 << 10
	s := NewStorage(StorageSpec{Size: 4 * rows * columns, File: big(4 * rows * columns), HasCRC: true})
	whole := must(New(Spec{Storage: s, DType: F32, Shape: []int64{rows, columns}}))
	middle := must(whole.Narrow(0, rows/2, rows/2+8))
	for name, tt := range map[string]struct {
		view *Tensor
		most int64 // bytes
	}{
		"rows":       {middle, 8 * columns * 4},
		"a block":    {must(middle.Narrow(1, 5, 9)), 8 * 4 * 4},
		"transposed": {must(middle.Transpose(0, 1)), 8 * columns * 4},
		"one":        {must(must(middle.Narrow(0, 7, 8)).Narrow(1, 5, 6)), 4},
	} {
		stats, err := Run(ctx, []Move{{tt.view, Into(make([]float32, tt.view.Len()))}})
		if err != nil || stats.Read > tt.most || stats.Checks[0] != Unverified {
			t.Errorf("%s: %d bytes read, want at most %d; %v, %v", name, stats.Read, tt.most, stats.Checks[0], err)
		}
	}
}

// TestExpansionIsLimited holds that few bytes never become many.
func TestExpansionIsLimited(t *testing.T) {
	s := bytesStorage(128)
	v := must(New(Spec{Storage: s, DType: F32, Shape: []int64{1 << 21, 1 << 21}, Strides: []int64{0, 0}}))
	_, err := v.WriteTo(io.Discard)
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != fault.Limit || e.Record != "data/0" {
		t.Errorf("17 TB of 4 bytes: %v", err)
	}
	if _, err := Values[float32](ctx, v); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("values of it: %v", err)
	}
	small := must(New(Spec{Storage: s, DType: F32, Shape: []int64{100}, Strides: []int64{0}}))
	moves := slices.Repeat([]Move{{small, Stream(io.Discard)}}, 10)
	if _, err := Run(ctx, moves, Expansion(1, 4000)); err != nil {
		t.Errorf("4000 bytes where 4000 are allowed: %v", err)
	}
	if _, err := Run(ctx, moves, Expansion(1, 3999)); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("4000 bytes where 3999 are allowed: %v", err)
	}
}

func TestEachGoesOn(t *testing.T) {
	good, _ := summed(64, false)
	bad, _ := summed(64, true)
	moves := []Move{
		{vector(bad, U8, 64, 0), Stream(&bytes.Buffer{})},
		{Unavailable(F32, []int{2}, fault.New(fault.NoData, "meta")), Stream(&bytes.Buffer{})},
		{vector(good, U8, 64, 0), Stream(&bytes.Buffer{})},
	}
	got := make([]error, 3)
	_, err := Run(ctx, moves, Each(func(i int, err error) { got[i] = err }))
	if !errors.Is(err, fault.ErrChecksum) {
		t.Errorf("the run's error is %v, want the first move's", err)
	}
	for i, want := range []error{fault.ErrChecksum, fault.ErrNoData, nil} {
		if !errors.Is(got[i], want) {
			t.Errorf("move %d: %v, want %v", i, got[i], want)
		}
	}
}

// TestEachTellsWhatAWriterNeverGot holds that no move counts as done whose writer
// stopped at one before it.
func TestEachTellsWhatAWriterNeverGot(t *testing.T) {
	cut := NewStorage(StorageSpec{Name: "data/0", Size: 8, File: shortReader{make([]byte, 4)}})
	good, _ := summed(8, false)
	for name, first := range map[string]*Tensor{
		"while reading": vector(cut, U8, 8, 0),
		"before":        Unavailable(U8, []int{8}, fault.New(fault.Malformed, "cut")),
	} {
		var out bytes.Buffer
		got := make([]error, 3)
		moves := []Move{{first, Stream(&out)}, {vector(good, U8, 8, 0), Stream(&out)}, {vector(good, U8, 8, 0), Stream(&bytes.Buffer{})}}
		stats, err := Run(ctx, moves, Each(func(i int, err error) { got[i] = err }))
		if !errors.Is(err, fault.ErrMalformed) || !errors.Is(got[0], fault.ErrMalformed) || got[1] == nil || got[2] != nil {
			t.Errorf("%s: the moves end with %v, the run with %v", name, got, err)
		}
		if out.Len() != 0 || stats.Moves != 1 {
			t.Errorf("%s: %d bytes behind a tensor that never came, %d moves done", name, out.Len(), stats.Moves)
		}
	}
}

// shortReader pretends to be longer than it is, as a file cut meanwhile.
type shortReader struct{ b []byte }

func (r shortReader) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(r.b).ReadAt(p, off)
}

type failingReader struct{}

func (failingReader) ReadAt([]byte, int64) (int, error) { return 0, errors.New("bad sector") }

func TestReadErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		file io.ReaderAt
		want error
	}{
		"cut short": {shortReader{make([]byte, 10)}, fault.ErrMalformed},
		"EIO":       {failingReader{}, fault.ErrIO},
	} {
		for _, n := range []int64{100, 1 << 20} {
			s := NewStorage(StorageSpec{Name: "data/0", Size: n, File: tt.file})
			moves := []Move{{vector(s, U8, n, 0), Into(make([]uint8, n))}, {vector(s, U8, 4, n-4), Into(make([]uint8, 4))}}
			if _, err := Run(ctx, moves); !errors.Is(err, tt.want) {
				t.Errorf("%s, %d bytes: %v, want %v", name, n, err, tt.want)
			}
		}
	}
}

type countingGuard struct {
	open, most atomic.Int32
	acquire    error
	release    error
}

func (g *countingGuard) Acquire() error {
	if g.acquire == nil {
		g.most.Add(g.open.Add(1))
	}
	return g.acquire
}

func (g *countingGuard) Release() error { g.open.Add(-1); return g.release }

func TestGuards(t *testing.T) {
	closed, changed := fault.New(fault.Closed, ""), fault.New(fault.Changed, "")
	for name, tt := range map[string]struct {
		guard *countingGuard
		want  error
	}{
		"sound":   {&countingGuard{}, nil},
		"closed":  {&countingGuard{acquire: closed}, fault.ErrClosed},
		"changed": {&countingGuard{release: changed}, fault.ErrChanged},
	} {
		s := NewStorage(StorageSpec{Size: 8, File: bytes.NewReader(make([]byte, 8)), Guard: tt.guard})
		_, err := Run(ctx, []Move{{vector(s, U8, 8, 0), Into(make([]uint8, 8))}, {vector(s, U8, 8, 0), Into(make([]uint8, 8))}})
		if !errors.Is(err, tt.want) || tt.guard.open.Load() != 0 {
			t.Errorf("%s: %v, %d still held", name, err, tt.guard.open.Load())
		}
	}
}

// TestCancelled stops a run from its own progress report and looks for
// goroutines left behind.
func TestCancelled(t *testing.T) {
	before := runtime.NumGoroutine()
	s, _ := summed(32<<20, false)
	stop, cancel := context.WithCancel(ctx)
	_, err := Run(stop, []Move{{vector(s, U8, 32<<20, 0), Into(make([]uint8, 32<<20))}}, Progress(func(done, total int64) { cancel() }))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want cancelled", err)
	}
	for i := 0; runtime.NumGoroutine() > before && i < 100; i++ {
		time.Sleep(time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

// The reason of a run that is stopped in the middle of a stream is that it was
// stopped, not that the rest of the stream is missing.
func TestCancelledInAStream(t *testing.T) {
	s, _ := summed(32<<20, false)
	stop, cancel := context.WithCancel(ctx)
	to := writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	var moves []Move
	for i := range 2 {
		moves = append(moves, Move{vector(s, U8, 16<<20, int64(i)*16<<20), Stream(&to)})
	}
	if _, err := Run(stop, moves); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want cancelled", err)
	}
}

type writerFunc func(p []byte) (int, error)

func (f *writerFunc) Write(p []byte) (int, error) { return (*f)(p) }

// TestSmallNeighbours reads many small tensors of one file, some overlapping,
// some far apart, into a file and into memory.
func TestSmallNeighbours(t *testing.T) {
	b := make([]byte, 3<<20)
	for i := 0; i+4 <= len(b); i += 4 {
		binary.LittleEndian.PutUint32(b[i:], uint32(i))
	}
	file := bytes.NewReader(b)
	var moves []Move
	var got [][]uint32
	var offsets []int64
	for i := range int64(500) {
		off := i * 5200 &^ 3
		n := 10 + i%40*30
		s := NewStorage(StorageSpec{Size: n * 4, File: file, Offset: off})
		offsets, got = append(offsets, off), append(got, make([]uint32, n))
		moves = append(moves, Move{vector(s, U32, n, 0), Into(got[i])})
	}
	slices.Reverse(moves)
	if _, err := Run(ctx, moves); err != nil {
		t.Fatal(err)
	}
	for i, g := range got {
		for k, v := range g {
			if v != uint32(offsets[i])+uint32(k*4) {
				t.Fatalf("tensor %d element %d is %d", i, k, v)
			}
		}
	}
}

// TestFileToFile moves between two files of the system, whole and in windows,
// in the kernel where there is such a call.
func TestFileToFile(t *testing.T) {
	dir := t.TempDir()
	want := make([]byte, 20<<20)
	for i := range want {
		want[i] = byte(i >> 3)
	}
	if err := os.WriteFile(filepath.Join(dir, "in"), want, 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(filepath.Join(dir, "in"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	s := NewStorage(StorageSpec{Size: int64(len(want)) - 3, File: in, Offset: 3})
	for name, offset := range map[string]int64{"alike in blocks": 3 + 4096, "otherwise": 11} {
		stats, err := Run(ctx, []Move{{vector(s, U8, s.Size(), 0), FileAt(out, offset)}})
		if err != nil || stats.Bytes != s.Size() {
			t.Fatal(name, stats, err)
		}
		got, err := os.ReadFile(filepath.Join(dir, "out"))
		if err != nil || !bytes.Equal(got[offset:], want[3:]) {
			t.Fatalf("%s: %d bytes differ: %v", name, len(got), err)
		}
		if stats.Read+stats.Kernel != s.Size() || name == "otherwise" && stats.Kernel > 0 {
			t.Errorf("%s: %d read and %d in the kernel, want %d in all", name, stats.Read, stats.Kernel, s.Size())
		}
		if err := out.Truncate(0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCastsCountLoss holds that what a conversion cannot carry is an error from
// float to integer and a count between floats.
func TestCastsCountLoss(t *testing.T) {
	v := Of([]float32{1, 2.5, float32(math.Inf(1)), 70000})
	if err := ReadInto(ctx, v, make([]int32, 4)); !errors.Is(err, fault.ErrMismatch) {
		t.Errorf("2.5 and Inf to int32: %v", err)
	}
	got := make([]Float16, 4)
	stats, err := Run(ctx, []Move{{v, Into(got)}})
	want := []Float16{0x3c00, 0x4100, 0x7c00, 0x7c00}
	if err != nil || !slices.Equal(got, want) || stats.Loss.Overflow != 1 {
		t.Errorf("%x, %+v, %v; want %x and one overflow", got, stats.Loss, err, want)
	}
}

// TestBoolIsNormalised holds that a stored 7 reads as true and stays 7 in a file.
func TestBoolIsNormalised(t *testing.T) {
	s := NewStorage(StorageSpec{Size: 3, Memory: []byte{0, 7, 1}})
	v := vector(s, Bool, 3, 0)
	got, err := Values[bool](ctx, v)
	if err != nil || !slices.Equal(got, []bool{false, true, true}) {
		t.Errorf("%v, %v", got, err)
	}
	var raw bytes.Buffer
	if _, err := v.WriteTo(&raw); err != nil || !bytes.Equal(raw.Bytes(), []byte{0, 7, 1}) {
		t.Errorf("%v, %v", raw.Bytes(), err)
	}
	if _, err := View[bool](v); !errors.Is(err, ErrNotViewable) {
		t.Errorf("a view as []bool: %v", err)
	}
}

// TestConjNeg follows torch: conj flips the imaginary part, neg all parts.
func TestConjNeg(t *testing.T) {
	s := Of([]complex64{1 + 2i, -3 - 4i}).walks[0].storage
	for _, tt := range []struct {
		conj, neg bool
		want      []complex64
	}{
		{true, false, []complex64{1 - 2i, -3 + 4i}},
		{false, true, []complex64{-1 - 2i, 3 + 4i}},
		{true, true, []complex64{-1 + 2i, 3 - 4i}},
	} {
		v := must(New(Spec{Storage: s, DType: C64, Shape: []int64{2}, Conj: tt.conj, Neg: tt.neg}))
		got, err := Values[complex64](ctx, v)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("conj %v neg %v: %v, %v; want %v", tt.conj, tt.neg, got, err, tt.want)
		}
	}
	ints := must(New(Spec{Storage: Of([]int16{5, -7, 256}).walks[0].storage, DType: I16, Shape: []int64{3}, Neg: true}))
	if got, err := Values[int16](ctx, ints); err != nil || !slices.Equal(got, []int16{-5, 7, -256}) {
		t.Errorf("negated ints: %v, %v", got, err)
	}
}

func TestView(t *testing.T) {
	data := []float32{1, 2, 3, 4, 5, 6}
	v := Of(data, 2, 3)
	{
		got, err := View[float32](must(v.Narrow(0, 1, 2)))
		if err == nil && &got[0] != &data[3] {
			t.Error("a view that does not alias")
		}
		if bytesSeen := canSeeBytes(); bytesSeen != (err == nil) {
			t.Errorf("view: %v", err)
		}
	}
	other := BigEndian
	if NativeOrder() == BigEndian {
		other = LittleEndian
	}
	swapped := NewStorage(StorageSpec{Size: 8, Memory: make([]byte, 8), Order: other})
	file, _ := summed(8, false)
	for name, bad := range map[string]*Tensor{
		"strided":          must(v.Transpose(0, 1)),
		"another dtype":    must(v.Cast(F64)),
		"other order":      vector(swapped, F32, 2, 0),
		"not in memory":    vector(file, F32, 2, 0),
		"two walks":        must(Concat(0, v, v)),
		"negated":          must(New(Spec{Storage: swapped, DType: F32, Shape: []int64{2}, Neg: true})),
		"without its data": Unavailable(F32, []int{1}, ErrNotViewable),
	} {
		if _, err := View[float32](bad); !errors.Is(err, ErrNotViewable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func canSeeBytes() bool { _, ok := bytesOf([]float32{1}); return ok }

// TestMisalignedView reads what cannot be viewed: legacy files align nothing.
func TestMisalignedView(t *testing.T) {
	b := binary.NativeEndian.AppendUint32(make([]byte, 1), math.Float32bits(1.5))
	s := NewStorage(StorageSpec{Size: 4, Memory: b[1:], Order: NativeOrder()})
	v := vector(s, F32, 1, 0)
	if _, err := View[float32](v); !errors.Is(err, ErrNotViewable) && misalignment(b[1:], 4) != 0 {
		t.Errorf("a misaligned view: %v", err)
	}
	if got, err := Values[float32](ctx, v); err != nil || got[0] != 1.5 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestSlab(t *testing.T) {
	s := NewSlab([]int64{12, 0, 1 << 20, 8})
	a, b, c := SlabSlice[float32](s, 0, 3), SlabSlice[uint8](s, 2, 1<<20), SlabSlice[int64](s, 3, 1)
	if len(a) != 3 || cap(a) != 3 || len(b) != 1<<20 || len(c) != 1 || len(SlabSlice[bool](s, 1, 0)) != 0 {
		t.Fatalf("%d %d %d", len(a), len(b), len(c))
	}
	for i := range a {
		a[i] = 1
	}
	if slices.Max(b) != 0 || c[0] != 0 {
		t.Error("slices overlap")
	}
	s = NewSlab([]int64{1, 8, 3, 8})
	for i := range 4 {
		if b := s.chunks[s.places[i].chunk].bytes; b != nil && misalignment(b[s.places[i].offset:], slabAlign) != 0 {
			t.Errorf("slice %d does not begin on a cache line", i)
		}
	}
}

// TestStreamOrder holds that one writer gets its tensors in the order given,
// whatever their places in the file.
func TestStreamOrder(t *testing.T) {
	s, b := summed(1<<20, false)
	var out bytes.Buffer
	var moves []Move
	var want []byte
	for _, off := range []int64{900_000, 5, 500_000, 0} {
		moves = append(moves, Move{vector(s, U8, 1000, off), Stream(&out)})
		want = append(want, b[off:off+1000]...)
	}
	if _, err := Run(ctx, moves, Workers(4)); err != nil || !bytes.Equal(out.Bytes(), want) {
		t.Fatalf("out of order: %v", err)
	}
}

// TestFeedOrder feeds one storage, in more than one step, to a writer that wants its
// end before its beginning.
func TestFeedOrder(t *testing.T) {
	const n = 1 << 20
	raw := make([]byte, n)
	for i := range raw {
		raw[i] = byte(i >> 8)
	}
	s := NewStorage(StorageSpec{Name: "data/0", Size: n})
	var out bytes.Buffer
	f, err := NewFeed(ctx, []Move{{vector(s, U8, n/2, n/2), Stream(&out)}, {vector(s, U8, n/2, 0), Stream(&out)}}, MaxMemory(4<<20))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Storage(s, bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Close(); err != nil || !bytes.Equal(out.Bytes(), slices.Concat(raw[n/2:], raw[:n/2])) {
		t.Errorf("out of order, or %v", err)
	}
}

func TestFeedErrors(t *testing.T) {
	s := NewStorage(StorageSpec{Name: "data/0", Size: 8})
	moves := []Move{{vector(s, U8, 8, 0), Into(make([]uint8, 8))}}
	f, err := NewFeed(ctx, moves)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Storage(s, bytes.NewReader(make([]byte, 7))); !errors.Is(err, fault.ErrMalformed) {
		t.Errorf("a short storage: %v", err)
	}
	if f, err = NewFeed(ctx, moves); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Close(); !errors.Is(err, fault.ErrMalformed) {
		t.Errorf("a storage that never came: %v", err)
	}
	big := NewStorage(StorageSpec{Name: "data/1", Size: 8 << 20})
	strided := must(must(New(Spec{Storage: big, DType: U8, Shape: []int64{4 << 20, 2}})).Transpose(0, 1))
	if f, err = NewFeed(ctx, []Move{{strided, Stream(io.Discard)}}, MaxMemory(1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := f.Storage(big, bytes.NewReader(make([]byte, 8<<20))); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("more than may be kept: %v", err)
	}
}

// TestProgressNeverRunsBackwards watches many workers report.
func TestProgressNeverRunsBackwards(t *testing.T) {
	s, _ := summed(1<<20, false)
	var moves []Move
	for i := range int64(1000) {
		moves = append(moves, Move{vector(s, U8, 1000, i*1000), Stream(&bytes.Buffer{})})
	}
	last := int64(0)
	_, err := Run(ctx, moves, Workers(8), Progress(func(done, total int64) {
		if done < last || total != 1_000_000 {
			t.Errorf("%d of %d after %d", done, total, last)
		}
		last = done
	}))
	if err != nil || last != 1_000_000 {
		t.Errorf("ended at %d: %v", last, err)
	}
}
