package tensor

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/wick-ml/wick/fault"
	"pgregory.net/rapid"
)

// model is a tensor as a person would write it down: every element by hand.
type model struct {
	shape []int
	at    func(index []int) uint32
}

func (m model) elements() []uint32 {
	var out []uint32
	if product(m.shape) == 0 {
		return nil
	}
	index := make([]int, len(m.shape))
	for {
		out = append(out, m.at(index))
		if !advance(index, m.shape) {
			return out
		}
	}
}

func flatModel(shape []int, values []uint32) model {
	return model{shape, func(index []int) uint32 {
		at := 0
		for d, i := range index {
			at = at*shape[d] + i
		}
		return values[at]
	}}
}

// sources are the ways in which a storage can have its bytes.
var sources = map[string]func(b []byte) StorageSpec{
	"memory": func(b []byte) StorageSpec { return StorageSpec{Memory: b} },
	"file":   func(b []byte) StorageSpec { return StorageSpec{File: bytes.NewReader(b)} },
	"file at an offset": func(b []byte) StorageSpec {
		return StorageSpec{File: bytes.NewReader(append([]byte("header:"), b...)), Offset: 7}
	},
	"in order only": func(b []byte) StorageSpec {
		return StorageSpec{Open: func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(b)), nil
		}}
	},
}

func drawStorage(t *rapid.T, order ByteOrder) ([]uint32, *Storage) {
	n := rapid.IntRange(1, 400).Draw(t, "storage elements")
	values, raw := make([]uint32, n), []byte(nil)
	for i := range values {
		values[i] = uint32(i)*2654435761 + 12345
		if order == BigEndian {
			raw = binary.BigEndian.AppendUint32(raw, values[i])
		} else {
			raw = binary.LittleEndian.AppendUint32(raw, values[i])
		}
	}
	kind := rapid.SampledFrom(slices.Sorted(mapsKeys(sources))).Draw(t, "source")
	spec := sources[kind](raw)
	spec.Name, spec.Size, spec.Order = kind, int64(len(raw)), order
	return values, NewStorage(spec)
}

func mapsKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// drawLeaf makes a strided tensor that fits its storage, and its model.
func drawLeaf(t *rapid.T, shape []int) (*Tensor, model) {
	order := rapid.SampledFrom([]ByteOrder{LittleEndian, BigEndian}).Draw(t, "order")
	values, s := drawStorage(t, order)
	room := int64(len(values))
	offset := rapid.Int64Range(0, room-1).Draw(t, "offset")
	last := offset
	dims, strides := make([]int64, len(shape)), make([]int64, len(shape))
	for _, d := range rapid.Permutation(indexes(len(shape))).Draw(t, "stride order") {
		dims[d] = int64(shape[d])
		if shape[d] > 1 {
			strides[d] = rapid.Int64Range(0, (room-1-last)/int64(shape[d]-1)).Draw(t, "stride")
			last += strides[d] * int64(shape[d]-1)
		} else {
			strides[d] = rapid.Int64Range(0, 1<<40).Draw(t, "free stride")
		}
	}
	leaf, err := New(Spec{Storage: s, DType: U32, Shape: dims, Strides: strides, Offset: offset})
	if err != nil {
		t.Fatal(err)
	}
	return leaf, model{shape, func(index []int) uint32 {
		at := offset
		for d, i := range index {
			at += int64(i) * strides[d]
		}
		return values[at]
	}}
}

func indexes(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func drawShape(t *rapid.T) []int {
	return rapid.SliceOfN(rapid.IntRange(0, 6), 0, 4).Draw(t, "shape")
}

// drawView makes a random view expression and the same thing by hand.
func drawView(t *rapid.T) (*Tensor, model) {
	v, m := drawLeaf(t, drawShape(t))
	for range rapid.IntRange(0, 6).Draw(t, "operations") {
		v, m = drawStep(t, v, m)
	}
	return v, m
}

func drawStep(t *rapid.T, v *Tensor, m model) (*Tensor, model) {
	var err error
	switch op := rapid.SampledFrom([]string{"narrow", "permute", "reshape", "expand", "concat"}).Draw(t, "op"); {
	case op == "narrow" && len(m.shape) > 0:
		d := rapid.IntRange(0, len(m.shape)-1).Draw(t, "dim")
		lo := rapid.IntRange(0, m.shape[d]).Draw(t, "lo")
		hi := rapid.IntRange(lo, m.shape[d]).Draw(t, "hi")
		v, err = v.Narrow(d, lo, hi)
		m = narrowModel(m, d, lo, hi)
	case op == "permute":
		axes := rapid.Permutation(indexes(len(m.shape))).Draw(t, "axes")
		v, err = v.Permute(axes...)
		m = permuteModel(m, axes)
	case op == "reshape":
		shape := drawReshape(t, m.shape)
		r, err := v.Reshape(shape...)
		if err != nil {
			return v, m // pieces that do not fit are refused, never guessed
		}
		return r, flatModel(shape, m.elements())
	case op == "expand":
		shape := append([]int{rapid.IntRange(1, 2).Draw(t, "front")}, m.shape...)
		for d := 1; d < len(shape); d++ {
			if shape[d] == 1 {
				shape[d] = rapid.IntRange(1, 3).Draw(t, "times")
			}
		}
		v, err = v.Expand(shape...)
		m = expandModel(m, shape)
	case op == "concat" && len(m.shape) > 0:
		axis := rapid.IntRange(0, len(m.shape)-1).Draw(t, "axis")
		shape := slices.Clone(m.shape)
		shape[axis] = rapid.IntRange(0, 4).Draw(t, "more")
		v2, m2 := drawLeaf(t, shape)
		v, err = Concat(axis, v, v2)
		m = concatModel(m, m2, axis)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v, m
}

func drawReshape(t *rapid.T, shape []int) []int {
	n := int(product(shape))
	var out []int
	for n > 1 && rapid.Bool().Draw(t, "split") {
		var divisors []int
		for k := 1; k <= n; k++ {
			if n%k == 0 {
				divisors = append(divisors, k)
			}
		}
		k := rapid.SampledFrom(divisors).Draw(t, "divisor")
		out = append(out, k)
		n /= k
	}
	return append(out, n)
}

func narrowModel(m model, d, lo, hi int) model {
	shape := slices.Clone(m.shape)
	shape[d] = hi - lo
	return model{shape, func(index []int) uint32 {
		in := slices.Clone(index)
		in[d] += lo
		return m.at(in)
	}}
}

func permuteModel(m model, axes []int) model {
	return model{pick(m.shape, axes), func(index []int) uint32 {
		in := make([]int, len(index))
		for i, a := range axes {
			in[a] = index[i]
		}
		return m.at(in)
	}}
}

func expandModel(m model, shape []int) model {
	front := len(shape) - len(m.shape)
	return model{shape, func(index []int) uint32 {
		in := slices.Clone(index[front:])
		for d := range in {
			if m.shape[d] == 1 {
				in[d] = 0
			}
		}
		return m.at(in)
	}}
}

func concatModel(a, b model, axis int) model {
	shape := slices.Clone(a.shape)
	shape[axis] += b.shape[axis]
	return model{shape, func(index []int) uint32 {
		if index[axis] < a.shape[axis] {
			return a.at(index)
		}
		in := slices.Clone(index)
		in[axis] -= a.shape[axis]
		return b.at(in)
	}}
}

// memoryFile is a file to write to.
type memoryFile struct{ b []byte }

func (f *memoryFile) WriteAt(p []byte, off int64) (int, error) { return copy(f.b[off:], p), nil }

// TestViews reads random view expressions over random storages into every kind
// of sink and compares each element with the same expression written by hand.
func TestViews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, m := drawView(t)
		want := m.elements()
		if !slices.Equal(v.Shape(), m.shape) {
			t.Fatalf("shape %v, want %v", v.Shape(), m.shape)
		}
		var packed []byte
		for _, x := range want {
			packed = binary.LittleEndian.AppendUint32(packed, x)
		}
		memory, file, stream := make([]uint32, len(want)), &memoryFile{make([]byte, len(packed))}, &bytes.Buffer{}
		moves := []Move{{v, Into(memory)}, {v, FileAt(file, 0)}, {v, Stream(stream)}}
		stats, err := Run(context.Background(), moves, MaxMemory(1), Workers(2))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(memory, want) && len(want) > 0 {
			t.Fatalf("memory %v, want %v", memory, want)
		}
		if !bytes.Equal(file.b, packed) || !bytes.Equal(stream.Bytes(), packed) {
			t.Fatalf("file or stream differs from %v", want)
		}
		if stats.Bytes != 3*int64(len(packed)) {
			t.Fatalf("%d bytes counted, want %d", stats.Bytes, 3*len(packed))
		}
	})
}

// TestFeedEqualsRun pushes the storages of random expressions through a Feed
// and compares with what Run pulls.
func TestFeedEqualsRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, m := drawView(t)
		want := m.elements()
		got := make([]uint32, len(want))
		var stream bytes.Buffer
		v, source := arriving(t, v)
		f, err := NewFeed(context.Background(), []Move{{v, Into(got)}, {v, Stream(&stream)}, {v, Stream(&stream)}})
		if err != nil {
			t.Fatal(err)
		}
		for s := range v.Storages() {
			if source[s] == nil {
				continue
			}
			if err := f.Storage(s, storageReader(source[s])); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := f.Close(); err != nil {
			t.Fatal(err)
		}
		var packed []byte
		for _, x := range want {
			packed = binary.LittleEndian.AppendUint32(packed, x)
		}
		if !slices.Equal(got, want) && len(want) > 0 || !bytes.Equal(stream.Bytes(), append(packed, packed...)) {
			t.Fatalf("fed %v, want %v", got, want)
		}
	})
}

// arriving returns v over storages of which some have to arrive, and where their
// bytes are.
func arriving(t *rapid.T, v *Tensor) (*Tensor, map[*Storage]*Storage) {
	source, twin := map[*Storage]*Storage{}, map[*Storage]*Storage{}
	c := *v
	c.walks = slices.Clone(v.walks)
	for i := range c.walks {
		s := c.walks[i].storage
		if twin[s] == nil {
			twin[s] = s
			if rapid.IntRange(0, 3).Draw(t, "arrives") > 0 {
				twin[s] = NewStorage(StorageSpec{Name: s.Name(), Size: s.Size(), Order: s.Order()})
				source[twin[s]] = s
			}
		}
		c.walks[i].storage = twin[s]
	}
	return &c, source
}

func storageReader(s *Storage) io.Reader {
	if s.spec.Open != nil {
		r, _ := s.spec.Open(context.Background())
		return r
	}
	return io.NewSectionReader(s, 0, s.Size())
}

// TestReshapeOfPermuted holds the case that rotary heads need: torch copies
// here, wick does not, and the values are those of torch:
// torch.arange(24).reshape(2, 3, 2, 2).transpose(1, 2).reshape(12, 2).
func TestReshapeOfPermuted(t *testing.T) {
	v := Of(iota32(24), 24)
	v = must(v.Reshape(2, 3, 2, 2))
	v = must(v.Transpose(1, 2))
	v = must(v.Reshape(12, 2))
	got, err := Values[int32](context.Background(), v)
	want := []int32{0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11, 12, 13, 16, 17, 20, 21, 14, 15, 18, 19, 22, 23}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%v, %v; want %v", got, err, want)
	}
}

func iota32(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

func must(t *Tensor, err error) *Tensor {
	if err != nil {
		panic(err)
	}
	return t
}

// TestBits takes the raw bits of elements that stand for themselves, and of no others.
func TestBits(t *testing.T) {
	halfs := Of([]Float16{0x3c00, 0xbc00})
	got, err := Values[uint16](context.Background(), must(halfs.Bits()))
	if err != nil || !slices.Equal(got, []uint16{0x3c00, 0xbc00}) {
		t.Errorf("%x, %v", got, err)
	}
	s, _, _, _ := halfs.Strided()
	for name, v := range map[string]*Tensor{
		"negated":   must(New(Spec{Storage: s, DType: F16, Shape: []int64{2}, Neg: true})),
		"converted": must(halfs.Cast(F32)),
		"complex":   Of([]complex64{1}),
		"packed":    must(New(Spec{Storage: s, DType: QU4x2, Shape: []int64{2}})),
	} {
		if _, err := v.Bits(); !errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAssemble lays boxes of a matrix together and refuses what does not fit.
func TestAssemble(t *testing.T) {
	whole := Of(iota32(30), 5, 6)
	var parts []Part
	for _, b := range [][4]int{{0, 2, 0, 6}, {2, 5, 0, 1}, {2, 5, 1, 6}} {
		rows := must(whole.Narrow(0, b[0], b[1]))
		parts = append(parts, Part{must(rows.Narrow(1, b[2], b[3])), []int{b[0], b[2]}})
	}
	slices.Reverse(parts)
	got, err := Values[int32](context.Background(), must(Assemble(I32, []int{5, 6}, parts...)))
	if err != nil || !slices.Equal(got, iota32(30)) {
		t.Fatalf("%v, %v", got, err)
	}
	for name, bad := range map[string][]Part{
		"a hole":        parts[1:],
		"an overlap":    append(slices.Clone(parts), parts[0]),
		"outside":       {{whole, []int{1, 0}}},
		"fewer sizes":   {{whole, []int{0}}},
		"another dtype": {{Of(make([]float32, 30), 5, 6), []int{0, 0}}},
	} {
		if _, err := Assemble(I32, []int{5, 6}, bad...); !errors.Is(err, fault.ErrMismatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAssembleProvesTheShape holds that a shape which nothing fills is none that
// a tensor cannot have.
func TestAssembleProvesTheShape(t *testing.T) {
	for name, tt := range map[string]struct {
		d     DType
		shape []int
		want  error
	}{
		"a negative size":      {F32, []int{-1, 0}, fault.ErrMalformed},
		"negative sizes":       {F32, []int{0, -1, -1}, fault.ErrMalformed},
		"too large":            {F32, []int{0, math.MaxInt, math.MaxInt}, fault.ErrMalformed},
		"no dtype":             {Invalid, []int{0}, fault.ErrUnsupported},
		"too many dimensions":  {F32, make([]int, MaxDims+1), fault.ErrLimit},
		"nothing, and nothing": {F32, []int{0}, nil},
	} {
		if _, err := Assemble(tt.d, tt.shape); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

// TestAssembleManyParts puts more parts together than can be compared with each
// other in a test's time, whichever dimension tells them apart.
func TestAssembleManyParts(t *testing.T) {
	const n = 1 << 15
	one := Of([]uint8{1}, 1, 1)
	for name, at := range map[string]func(i int) []int{
		"rows":    func(i int) []int { return []int{i, 0} },
		"columns": func(i int) []int { return []int{0, i} },
	} {
		parts, shape := make([]Part, n), []int{1, 1}
		for i := range parts {
			parts[i] = Part{one, at(n - 1 - i)}
			shape = []int{max(shape[0], at(i)[0]+1), max(shape[1], at(i)[1]+1)}
		}
		if got, err := Assemble(U8, shape, parts...); err != nil || got.Len() != n {
			t.Errorf("%s: %v", name, err)
		}
		parts[0].At = slices.Clone(parts[n/2].At)
		if _, err := Assemble(U8, shape, parts...); !errors.Is(err, fault.ErrMismatch) {
			t.Errorf("%s, one twice: %v", name, err)
		}
	}
	if _, err := Assemble(U8, []int{1, 1}, make([]Part, maxWalks+1)...); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("too many parts: %v", err)
	}
}
