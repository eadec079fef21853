package serde

import (
	"context"
	"errors"
	"io"
	"math"
	"math/big"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/tensor"
)

// dict makes a map of alternating keys and values; plain Go values become the
// values of a tree.
func dict(kv ...any) *nested.Map {
	m := nested.NewMap("dict")
	for i := 0; i < len(kv); i += 2 {
		if err := m.Set(val(kv[i]), val(kv[i+1])); err != nil {
			panic(err)
		}
	}
	return m
}

func val(v any) nested.Value {
	switch v := v.(type) {
	case nested.Value:
		return v
	case string:
		return nested.String(v)
	case int:
		return nested.Int(v)
	case float64:
		return nested.Float(v)
	case bool:
		return nested.Bool(v)
	case []any:
		l := nested.NewList("list")
		for _, item := range v {
			l.Items = append(l.Items, val(item))
		}
		return l
	case *tensor.Tensor:
		return &nested.Tensor{Tensor: v, Class: "torch.Tensor"}
	default:
		panic("a value of no kind")
	}
}

// counted returns a packed leaf of float32 that counts from first.
func counted(first int, shape ...int) nested.F32s {
	n := 1
	for _, s := range shape {
		n *= s
	}
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(first + i)
	}
	return pack(data, shape...)
}

func pack[T tensor.Element](data []T, shape ...int) nested.Packed[T] {
	if shape == nil {
		shape = []int{len(data)}
	}
	return nested.Packed[T]{Array: tensor.Array[T]{Shape: shape, Data: data}}
}

func fillIn(t *testing.T, root nested.Value, v any, opts ...Option) *Report {
	t.Helper()
	r, err := Unmarshal(context.Background(), root, v, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

type affine struct {
	Weight tensor.Array[float32]
	Bias   []float32 `torch:", optional"`
}

type block struct {
	Conv affine `torch:"conv1"`
	BN   *affine
}

func TestStructsListsAndMaps(t *testing.T) {
	type Named struct{ affine }
	type model struct {
		Embedded Named
		Layers   []block
		ByName   map[string]affine
		ByNumber map[int]*affine `torch:"numbered"`
		All      map[string][]float32
		Optional *affine
		Skipped  []float32 `torch:"-"`
		hidden   []float32
	}
	root := dict(
		"embedded.weight", counted(0, 2, 2),
		"layers", []any{
			dict("conv1", dict("weight", counted(10, 1, 2), "bias", counted(12, 2))),
			dict("conv1", dict("weight", counted(20, 1, 2)), "bn", dict("weight", counted(22, 2))),
		},
		"by_name.b.weight", counted(30, 1), "by_name.a.weight", counted(31, 1),
		"numbered", dict(7, dict("weight", counted(40, 1))),
		"all", dict("x.y", counted(50, 1), "z", counted(51, 1)),
	)
	got := model{Skipped: []float32{1}, hidden: []float32{2}}
	fillIn(t, root, &got)
	want := model{
		Embedded: Named{affine{Weight: tensor.Array[float32]{Shape: []int{2, 2}, Data: []float32{0, 1, 2, 3}}}},
		Layers: []block{
			{Conv: affine{tensor.Array[float32]{Shape: []int{1, 2}, Data: []float32{10, 11}}, []float32{12, 13}}},
			{Conv: affine{Weight: tensor.Array[float32]{Shape: []int{1, 2}, Data: []float32{20, 21}}}, BN: &affine{Weight: tensor.Array[float32]{Shape: []int{2}, Data: []float32{22, 23}}}},
		},
		ByName: map[string]affine{
			"a": {Weight: tensor.Array[float32]{Shape: []int{1}, Data: []float32{31}}},
			"b": {Weight: tensor.Array[float32]{Shape: []int{1}, Data: []float32{30}}},
		},
		ByNumber: map[int]*affine{7: {Weight: tensor.Array[float32]{Shape: []int{1}, Data: []float32{40}}}},
		All:      map[string][]float32{"x.y": {50}, "z": {51}},
		Skipped:  []float32{1},
		hidden:   []float32{2},
	}
	same(t, "model", got, want)
}

func TestEveryElementType(t *testing.T) {
	testElement[float64](t, 1)
	testElement[float32](t, 1)
	testElement[tensor.Float16](t, 0x3c00)
	testElement[tensor.BFloat16](t, 0x3f80)
	testElement[tensor.Float8E4M3FN](t, 1)
	testElement[tensor.Float8E5M2](t, 1)
	testElement[tensor.Float8E4M3FNUZ](t, 1)
	testElement[tensor.Float8E5M2FNUZ](t, 1)
	testElement[tensor.Float8E8M0FNU](t, 1)
	testElement[tensor.Float4E2M1FNx2](t, 1)
	testElement[int8](t, -1)
	testElement[int16](t, -1)
	testElement[int32](t, -1)
	testElement[int64](t, -1)
	testElement[uint8](t, 1)
	testElement[uint16](t, 1)
	testElement[uint32](t, 1)
	testElement[uint64](t, 1)
	testElement(t, true)
	testElement(t, tensor.Complex32{1, 2})
	testElement[complex64](t, 1+2i)
	testElement[complex128](t, 1+2i)
	testElement[tensor.QInt8](t, -1)
	testElement[tensor.QUint8](t, 1)
	testElement[tensor.QInt32](t, -1)
}

func testElement[T tensor.Element](t *testing.T, one T) {
	t.Helper()
	var got struct {
		Slice  []T
		Array  tensor.Array[T]
		Leaf   nested.Packed[T]
		Fixed  [2][2]T
		Single T
		Maybe  *[]T
	}
	var zero T
	data := []T{one, zero, zero, one}
	fillIn(t, dict("slice", pack(data), "array", pack(data, 2, 2), "leaf", pack(data, 4, 1), "fixed", pack(data, 2, 2), "single", pack(data[:1], []int{}...), "maybe", pack(data)), &got)
	same(t, "slice", got.Slice, data)
	same(t, "array", got.Array, tensor.Array[T]{Shape: []int{2, 2}, Data: data})
	same(t, "leaf", got.Leaf, pack(data, 4, 1))
	same(t, "fixed", got.Fixed, [2][2]T{{one, zero}, {zero, one}})
	same(t, "single", got.Single, one)
	same(t, "pointer", *got.Maybe, data)
}

func TestScalarsFromValuesAndTensors(t *testing.T) {
	type scalars struct {
		I    int
		I8   int8
		U    uint
		F    float64
		F32  float32 `torch:"f32"`
		B    bool
		S    string
		C    complex128
		Big  *big.Int
		D    string
		Step int
		Flag bool
		LR   float32 `torch:"lr, default=0.5"`
		Name string  `torch:", default='no name'"`
		On   bool    `torch:", default=true"`
		N    int64   `torch:", default=0x10"`
		U64  uint64  `torch:"u64, default=18446744073709551615"`
		None *int
	}
	huge := new(big.Int).Lsh(big.NewInt(1), 100)
	var got scalars
	fillIn(t, dict("i", -3, "i8", -128, "u", 4, "f", 0.25, "f32", 2, "b", true, "s", "text", "c", nested.Complex(1+2i),
		"big", nested.BigInt{Int: huge}, "d", nested.Symbol{Class: "torch.dtype", Text: "torch.float16"},
		"step", pack([]int64{12}, []int{}...), "flag", pack([]bool{true}), "none", nested.None{}), &got)
	same(t, "scalars", got, scalars{I: -3, I8: -128, U: 4, F: 0.25, F32: 2, B: true, S: "text", C: 1 + 2i, Big: huge, D: "torch.float16",
		Step: 12, Flag: true, LR: 0.5, Name: "no name", On: true, N: 16, U64: 1<<64 - 1})
}

// What every writer of JSON spells the largest float32 as is a little beyond it.
func TestNumbersAtTheEndOfAType(t *testing.T) {
	type ends struct {
		Max, Inf float32
		C        complex64
	}
	inf := math.Inf(1)
	var got ends
	fillIn(t, dict("max", 3.4028235e38, "inf", inf, "c", nested.Complex(complex(0, -inf))), &got)
	same(t, "ends", got, ends{math.MaxFloat32, float32(inf), complex64(complex(0, -inf))})
}

func TestListsOfScalars(t *testing.T) {
	var got struct {
		Betas  [2]float64
		Sizes  []int
		Floats []float32
		Names  []string
		Empty  []float32
		Raw    []byte
		Lists  [][]float32
	}
	fillIn(t, dict("betas", []any{0.9, 0.999}, "sizes", []any{1, 2}, "floats", []any{1, 2.5}, "names", []any{"a", "b"},
		"empty", []any{}, "raw", nested.Bytes("xyz"), "lists", []any{counted(0, 2), counted(5, 1)}), &got)
	same(t, "betas", got.Betas, [2]float64{0.9, 0.999})
	same(t, "sizes", got.Sizes, []int{1, 2})
	same(t, "floats", got.Floats, []float32{1, 2.5})
	same(t, "names", got.Names, []string{"a", "b"})
	same(t, "empty", got.Empty, []float32{})
	same(t, "raw", string(got.Raw), "xyz")
	same(t, "lists", got.Lists, [][]float32{{0, 1}, {5}})
}

func TestExpressionsInTags(t *testing.T) {
	var got struct {
		Q     []float32             `torch:"in_proj | chunk 0 0 of 3"`
		V     tensor.Array[float32] `torch:"in_proj | narrow 0 4: | transpose"`
		Bias  []float32             `torch:"concat 0 (lstm.b_ih, lstm.b_hh)"`
		Heads []float32             `torch:"concat 0 (heads.*.w)"`
		Half  []tensor.Float16      `torch:"in_proj | select 0 0 | cast half"`
		Exact []float32             `torch:"['a.b', 'w']"`
		None  []float32             `torch:"absent | transpose, optional"`
		Shape []float32             `torch:"lstm.b_hh, shape *"`
	}
	fillIn(t, dict("in_proj", counted(0, 6, 2), "lstm.b_ih", counted(0, 1), "lstm.b_hh", counted(5, 2),
		"heads", []any{dict("w", counted(0, 1)), dict("w", counted(1, 1))}, "a.b", dict("w", counted(9, 1))), &got)
	same(t, "q", got.Q, []float32{0, 1, 2, 3})
	same(t, "v", got.V, tensor.Array[float32]{Shape: []int{2, 2}, Data: []float32{8, 10, 9, 11}})
	same(t, "bias", got.Bias, []float32{0, 5, 6})
	same(t, "heads", got.Heads, []float32{0, 1})
	same(t, "half", got.Half, []tensor.Float16{0, 0x3c00})
	same(t, "exact", got.Exact, []float32{9})
	same(t, "shape", got.Shape, []float32{5, 6})
}

func TestLazyAndRawFields(t *testing.T) {
	var got struct {
		Lazy *tensor.Tensor
		View *tensor.Tensor `torch:"w | transpose"`
		Leaf *nested.Tensor
		Raw  nested.Value
		Map  *nested.Map
		Any  any
		Dots nested.Value `torch:"d"`
		Rest map[string]*tensor.Tensor
	}
	raw := dict("x", 1, "y", counted(0, 1))
	w := val(counted(0, 2, 3).Tensor())
	fillIn(t, dict("lazy", w, "w", w, "leaf", w, "raw", raw, "map", raw, "any", 5, "d.a", 1, "d.b.c", 2, "rest.a.b", w), &got)
	same(t, "lazy", got.Lazy.Shape(), []int{2, 3})
	same(t, "view", got.View.Shape(), []int{3, 2})
	if got.Leaf != w || got.Raw != nested.Value(raw) || got.Map != raw || got.Any != nested.Int(5) {
		t.Error("a part of the tree was copied")
	}
	if v, _ := got.Dots.(*nested.Map).Lookup("b.c"); v != nested.Int(2) {
		t.Errorf("dots: %v", got.Dots)
	}
	same(t, "rest", got.Rest["a.b"].Shape(), []int{2, 3})
}

func TestTheRootCanBeAnything(t *testing.T) {
	var m map[string]*tensor.Tensor
	fillIn(t, dict("a", counted(0, 1), "b", dict("c", counted(1, 1))), &m)
	if len(m) != 2 || m["b.c"] == nil {
		t.Errorf("map: %v", m)
	}
	var s []float32
	fillIn(t, counted(3, 2), &s)
	same(t, "bare tensor", s, []float32{3, 4})
	var n int
	fillIn(t, nested.Int(4), &n)
	same(t, "bare int", n, 4)
	var l [][]float32
	fillIn(t, val([]any{counted(0, 1), counted(1, 1)}), &l)
	same(t, "list", l, [][]float32{{0}, {1}})
}

func TestPlanListsEverythingAtOnce(t *testing.T) {
	type model struct {
		A struct{ Weight, Bias []float32 }
		B struct {
			Weight []float32 `torch:"weight, shape 3 2"`
		}
		N int8
	}
	root := dict("a.weigth", counted(0, 2), "a.bias", counted(0, 2), "b.weight", counted(0, 2, 3), "extra", counted(0, 1), "n", 1000, "note", "hi")
	m := model{}
	m.A.Bias = []float32{7}
	p, err := NewPlan(root, &m)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "applied", p.Applied, []Row{{Name: "a.bias", Field: "A.Bias", From: "float32 [2]", To: "[]float32", How: Copy, Bytes: 8}})
	same(t, "missing", p.Missing, []Row{{Name: "a.weight", Field: "A.Weight", To: "[]float32", Near: "a.weigth"}})
	same(t, "unexpected", p.Unexpected, []Row{{Name: "a.weigth", From: "float32 [2]", Near: "a.weight"}, {Name: "extra", From: "float32 [1]"}})
	same(t, "mismatched", p.Mismatched, []Row{
		{Name: "b.weight", Field: "B.Weight", From: "float32 [2, 3]", To: "[]float32", Note: "need shape [3, 2]"},
		{Name: "n", Field: "N", From: "int 1000", To: "int8", Note: "an integer beyond the type's range"},
	})
	same(t, "ignored", p.Ignored, []Row{{Name: "note", From: "str 'hi'"}})
	_, err = p.Run(context.Background())
	var fit *FitError
	if !errors.As(err, &fit) || !errors.Is(err, fault.ErrMismatch) || !errors.Is(err, fault.ErrNotFound) || fault.KindOf(err) != fault.Mismatch {
		t.Fatalf("run: %v", err)
	}
	same(t, "rows of the error", []int{len(fit.Missing), len(fit.Unexpected), len(fit.Mismatched)}, []int{1, 2, 2})
	same(t, "untouched", m.A.Bias, []float32{7})
	for _, text := range []string{"a.weigth", "extra", "need shape [3, 2]", "did you mean"} {
		if !strings.Contains(p.String(), text) {
			t.Errorf("the table lacks %q:\n%s", text, p)
		}
	}
}

func TestAFailedLoadLeavesTheStructAsItWas(t *testing.T) {
	type item struct{ W []float32 }
	type model struct {
		A     []float32
		Fixed [2]float32
		Items []item
		Ptr   *item
		N     int8
		M     map[string]item
		Late  int8
	}
	broken := tensor.Unavailable(tensor.F32, []int{2}, fault.New(fault.NoData, "meta"))
	old := item{W: []float32{1}}
	fresh := func() model {
		return model{A: []float32{1}, Fixed: [2]float32{1, 2}, Items: []item{old}, Ptr: &item{W: []float32{4}}, N: 3, M: map[string]item{"k": old}}
	}
	tree := func(a, late any) nested.Value {
		return dict("a", a, "fixed", counted(5, 2), "items", []any{dict("w", counted(0, 1))}, "ptr", dict("w", counted(0, 3)), "n", 9, "m", dict("q", dict("w", counted(0, 1))), "late", late)
	}
	for what, root := range map[string]nested.Value{
		"no data":            tree(broken, 1),
		"a number too large": tree(counted(0, 1), pack([]int64{300})),
	} {
		m := fresh()
		ptr := m.Ptr
		if _, err := Unmarshal(context.Background(), root, &m); err == nil {
			t.Errorf("%s: no error", what)
		}
		if !reflect.DeepEqual(m, fresh()) || m.Ptr != ptr {
			t.Errorf("%s: the struct changed: %+v", what, m)
		}
	}
	m := fresh()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Unmarshal(ctx, tree(counted(0, 1), 1), &m); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	same(t, "after cancelling", m, fresh())
	ptr := m.Ptr
	fillIn(t, tree(counted(0, 1), 1), &m)
	if m.Ptr != ptr || !slices.Equal(ptr.W, []float32{0, 1, 2}) || m.N != 9 || len(m.M) != 1 {
		t.Errorf("the load that succeeds: %+v", m)
	}
}

func TestConversions(t *testing.T) {
	half := pack([]tensor.Float16{0x3c00, 0x7bff})
	var got struct {
		Wide   []float32
		Bits   []uint16 `torch:", bits"`
		Narrow []tensor.Float16
		Whole  []int32
		Flags  []uint8
		True   []bool
	}
	flags := tensor.NewStorage(tensor.StorageSpec{Size: 3, Memory: []byte{0, 1, 7}})
	odd, err := tensor.New(tensor.Spec{Storage: flags, DType: tensor.Bool, Shape: []int64{3}})
	if err != nil {
		t.Fatal(err)
	}
	r := fillIn(t, dict("wide", half, "bits", half, "narrow", pack([]float64{1, 1e6}), "whole", pack([]float32{-2, 3}), "flags", val(odd), "true", val(odd)), &got)
	same(t, "wide", got.Wide, []float32{1, 65504})
	same(t, "bits", got.Bits, []uint16{0x3c00, 0x7bff})
	same(t, "narrow", got.Narrow, []tensor.Float16{0x3c00, 0x7c00})
	same(t, "whole", got.Whole, []int32{-2, 3})
	same(t, "flags", got.Flags, []uint8{0, 1, 7})
	same(t, "true", got.True, []bool{false, true, true})
	same(t, "overflow", r.Overflow, int64(1))
	var hows []How
	for _, row := range r.Plan.Applied {
		hows = append(hows, row.How)
	}
	same(t, "how", hows, []How{Convert, Copy, Convert, Convert, Copy, Copy})
	if _, err := Unmarshal(context.Background(), dict("whole", pack([]float32{0.5})), &struct{ Whole []int32 }{}); !errors.Is(err, fault.ErrMismatch) {
		t.Errorf("a fraction in an integer: %v", err)
	}
}

func TestMismatches(t *testing.T) {
	for _, c := range []struct {
		what string
		v    any
		root nested.Value
		note string
	}{
		{"a half as integers", &struct{ A []uint16 }{}, dict("a", pack([]tensor.Float16{1})), "bits"},
		{"bits of another size", &struct {
			A []uint32 `torch:", bits"`
		}{}, dict("a", pack([]tensor.Float16{1})), "bits needs"},
		{"complex as real", &struct{ A []float32 }{}, dict("a", pack([]complex64{1})), "no conversion"},
		{"integers as bools", &struct{ A []bool }{}, dict("a", pack([]uint8{1})), "need bool"},
		{"a text as a slice", &struct{ A []float32 }{}, dict("a", "x"), "need a tensor"},
		{"bytes as floats", &struct{ A []float32 }{}, dict("a", nested.Bytes("x")), "need []byte"},
		{"a list of one text as floats", &struct{ A []float32 }{}, dict("a", []any{"x"}), "need a number"},
		{"a text as a number", &struct{ A int }{}, dict("a", "x"), "need a number"},
		{"a number as a text", &struct{ A string }{}, dict("a", 1), "another type"},
		{"a fraction as an int", &struct{ A int }{}, dict("a", 0.5), "exact integer"},
		{"a negative as unsigned", &struct{ A uint }{}, dict("a", -1), "range"},
		{"a big integer", &struct{ A int }{}, dict("a", nested.BigInt{Int: new(big.Int).Lsh(big.NewInt(1), 70)}), "range"},
		{"two elements as one", &struct{ A int }{}, dict("a", counted(0, 2)), "one element"},
		{"a tensor as a text", &struct{ A string }{}, dict("a", counted(0, 1)), "need a string"},
		{"another array", &struct{ A [2][3]float32 }{}, dict("a", counted(0, 3, 2)), "need shape [2, 3]"},
		{"an array of a scalar", &struct{ A [2]float32 }{}, dict("a", 1), "need a tensor"},
		{"a half of a number", &struct{ A tensor.Float16 }{}, dict("a", 1), "one element"},
		{"a scalar as a tensor", &struct{ A *tensor.Tensor }{}, dict("a", 1), "need a tensor"},
		{"a lazy one of another shape", &struct {
			A *tensor.Tensor `torch:", shape 3"`
		}{}, dict("a", counted(0, 2)), "need shape [3]"},
		{"a map where a list is", &struct{ A *nested.Map }{}, dict("a", []any{1}), "need a *nested.Map"},
		{"a number beyond a float32", &struct{ A float32 }{}, dict("a", 3.5e38), "beyond the type's range"},
		{"a number beyond a complex64", &struct{ A complex64 }{}, dict("a", nested.Complex(complex(0, -1e300))), "beyond the type's range"},
		{"a complex number as a real one", &struct{ A float64 }{}, dict("a", nested.Complex(1i)), "another type"},
		{"a tensor as ints of no set size", &struct{ A []int }{}, dict("a", pack([]int64{1})), "goes into a []int64"},
		{"a tensor where a list is wanted", &struct{ A []affine }{}, dict("a", counted(0, 1)), "need a list"},
		{"a gap", &struct{ A []affine }{}, dict("a.0.weight", counted(0, 1), "a.2.weight", counted(0, 1)), "index 1 is absent"},
		{"an operation that does not fit", &struct {
			A []float32 `torch:"a | transpose"`
		}{}, dict("a", counted(0, 1)), "matrix"},
		{"two of one name", &struct {
			A []float32 `torch:"a.b"`
		}{}, dict("a.b", counted(0, 1), "a", dict("b", counted(0, 1))), "exact path"},
	} {
		p, err := NewPlan(c.root, c.v)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if len(p.Mismatched) != 1 || !strings.Contains(p.Mismatched[0].Note, c.note) || len(p.Missing)+len(p.Unexpected) > 0 {
			t.Errorf("%s: want one mismatch with %q:\n%s", c.what, c.note, p)
		}
		if !errors.Is(p.Err(), fault.ErrMismatch) {
			t.Errorf("%s: %v", c.what, p.Err())
		}
	}
}

type recursive struct {
	W    []float32
	Next *recursive
}

type Endless struct {
	*Endless
	W []float32
}

func TestRecursiveTypes(t *testing.T) {
	var got recursive
	fillIn(t, dict("w", counted(0, 1), "next", dict("w", counted(1, 1), "next", dict("w", counted(2, 1)))), &got)
	if got.Next == nil || got.Next.Next == nil || got.Next.Next.W[0] != 2 || got.Next.Next.Next != nil {
		t.Errorf("got %+v", got)
	}
	if _, err := NewPlan(dict("w", counted(0, 1)), &struct {
		E Endless `torch:", inline"`
	}{}); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("a struct inside of itself: %v", err)
	}
	deep := nested.Value(dict("w", counted(0, 1)))
	for range maxDepth + 1 {
		deep = dict("w", counted(0, 1), "next", deep)
	}
	if _, err := NewPlan(deep, &recursive{}); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("a deep tree: %v", err)
	}
}

func TestUsageErrors(t *testing.T) {
	for what, v := range map[string]any{
		"no pointer":                affine{},
		"nil":                       nil,
		"nil pointer":               (*affine)(nil),
		"a function":                &struct{ F func() }{},
		"a channel":                 &struct{ C chan int }{},
		"an unregistered interface": &struct{ E error }{},
		"a map by floats":           &struct{ M map[float64]int }{},
		"a bad tag": &struct {
			A []float32 `torch:"a | transpoze"`
		}{},
		"inline on a slice": &struct {
			A []float32 `torch:", inline"`
		}{},
		"inline with a name": &struct {
			A affine `torch:"a, inline"`
		}{},
		"mutable and alias": &struct {
			A []float32 `torch:", mutable, alias"`
		}{},
		"an assignment's flag": &struct {
			A []float32 `torch:", dims=2"`
		}{},
		"an expression on a struct": &struct {
			A affine `torch:"a | transpose"`
		}{},
		"a default that does not parse": &struct {
			A int `torch:", default=x"`
		}{},
	} {
		if _, err := NewPlan(dict("x", 1), v); !errors.Is(err, fault.ErrUsage) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, o := range map[string]Option{
		"rename": Rename("(", ""), "group": Rename("a", "$1"), "include": Include("'"), "gaps": Gaps("x"), "precision": Precision(tensor.I8),
		"variants": Variants(1), "variant": Variants[error](nil),
	} {
		if _, err := NewPlan(dict(), &struct{}{}, o); !errors.Is(err, fault.ErrUsage) {
			t.Errorf("option %s: %v", what, err)
		}
	}
}

func TestOptions(t *testing.T) {
	root := dict("epoch", 3, "state_dict", dict("module.a.w", counted(0, 1), "module.b.w", counted(1, 1), "module.c", counted(2, 1)))
	type two struct {
		A, B struct{ W []float32 }
	}
	for what, opts := range map[string][]Option{
		"key, rename, exclude":   {Key("state_dict"), Rename(`^module\.`, ""), Exclude("c")},
		"key, include, prefix":   {Key("state_dict"), Include("module.a", "/b/"), Prefix("module.")},
		"prefix, unexpected":     {Prefix("state_dict.module."), AllowUnexpected()},
		"rules":                  {Rules(mustParse(t, "key state_dict; strip module.; drop c"))},
		"with moves' own limits": {Key("state_dict"), Prefix("module."), AllowUnexpected(), Mover(tensor.Workers(1)), Separate()},
	} {
		var got two
		fillIn(t, root, &got, opts...)
		if len(got.A.W) != 1 || got.A.W[0] != 0 || len(got.B.W) != 1 || got.B.W[0] != 1 {
			t.Errorf("%s: %+v", what, got)
		}
	}
	var got two
	got.B.W = []float32{5}
	fillIn(t, dict("a.w", counted(0, 1)), &got, AllowMissing())
	same(t, "what is missing stays", got.B.W, []float32{5})
	if _, err := NewPlan(root, &got, Key("state_dit")); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("an absent key: %v", err)
	}
	p, err := NewPlan(root, &got)
	if err != nil {
		t.Fatal(err)
	}
	var e *fault.Error
	if !errors.As(p.Err(), &e) || !strings.Contains(e.Cure, `"state_dict.module."`) {
		t.Errorf("the prefix is not guessed: %v", p.Err())
	}
	var done, total int64
	fillIn(t, root, &two{}, Prefix("state_dict.module."), AllowUnexpected(), Progress(func(d, n int64) { done, total = d, n }))
	same(t, "progress", []int64{done, total}, []int64{8, 8})
}

func mustParse(t *testing.T, text string) *rules.Set {
	t.Helper()
	set, err := rules.Parse("test", text)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestGapsInLists(t *testing.T) {
	type model struct {
		L []*affine
	}
	root := dict("l.0.weight", counted(0, 1), "l.2.weight", counted(2, 1), "l.10.weight", counted(10, 1))
	var m model
	fillIn(t, root, &m, Gaps("close"))
	if len(m.L) != 3 || m.L[2].Weight.Data[0] != 10 {
		t.Errorf("closed: %+v", m)
	}
	fillIn(t, root, &m, Gaps("keep"))
	if len(m.L) != 11 || m.L[1] != nil || m.L[10].Weight.Data[0] != 10 {
		t.Errorf("kept: %+v", m)
	}
	var tagged struct {
		L []affine `torch:"l, gaps=close"`
	}
	fillIn(t, root, &tagged)
	same(t, "closed by the tag", len(tagged.L), 3)
	if p, err := NewPlan(dict("l.2000000000.weight", counted(0, 1)), &m, Gaps("keep")); err != nil || len(p.Mismatched) != 1 {
		t.Errorf("an index that asks for 2,000,000,001 places: %v, %v", p, err)
	}
}

func TestInlineAndPrefix(t *testing.T) {
	var got struct {
		Plain  affine  `torch:", inline"`
		Maybe  *affine `torch:", prefix=k_"`
		Absent *affine `torch:", prefix=q_"`
		affine2
	}
	fillIn(t, dict("weight", counted(0, 1), "k_weight", counted(1, 1), "scale", counted(2, 1)), &got)
	same(t, "inline", got.Plain.Weight.Data, []float32{0})
	if got.Maybe == nil || got.Maybe.Weight.Data[0] != 1 || got.Absent != nil || got.Scale[0] != 2 {
		t.Errorf("got %+v", got)
	}
}

type affine2 struct{ Scale []float32 }

func TestTiedWeightsAreReadOnce(t *testing.T) {
	type model struct {
		Embed, Head []float32
		Other       tensor.Array[float32]
	}
	file := &countingFile{bytes: []byte{0, 0, 0, 0, 0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64}}
	stored, err := tensor.New(tensor.Spec{Storage: tensor.NewStorage(tensor.StorageSpec{Size: 16, File: file}), DType: tensor.F32, Shape: []int64{4}})
	if err != nil {
		t.Fatal(err)
	}
	w := val(stored)
	root := dict("embed", w, "head", w, "other", w)
	var m model
	r := fillIn(t, root, &m)
	same(t, "read", []int64{r.Read, file.read.Load()}, []int64{16, 16})
	same(t, "values", m, model{[]float32{0, 1, 2, 3}, []float32{0, 1, 2, 3}, tensor.Array[float32]{Shape: []int{4}, Data: []float32{0, 1, 2, 3}}})
	same(t, "copied", r.Copied, int64(48))
	m.Embed[0] = 9
	if m.Head[0] != 0 || m.Other.Data[0] != 0 {
		t.Error("the fields share memory")
	}
	same(t, "note", r.Plan.Applied[1].Note, "tied to Embed")
	r = fillIn(t, root, &m, Shared())
	m.Embed[0] = 9
	if m.Head[0] != 9 || m.Other.Data[0] != 9 || r.Allocated != 16 {
		t.Errorf("the fields do not share: %+v, %d allocated", m, r.Allocated)
	}
	same(t, "how", r.Plan.Applied[2].How, Share)
	var own struct {
		Embed []float32
		Head  []float32 `torch:", mutable"`
		Other [4]float32
	}
	fillIn(t, root, &own, Shared())
	own.Head[0] = 9
	if own.Embed[0] != 0 || own.Other[0] != 0 {
		t.Error("a mutable field shares memory")
	}
}

// countingFile counts the bytes that are read from it.
type countingFile struct {
	bytes []byte
	read  atomic.Int64
}

func (f *countingFile) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, f.bytes[off:])
	f.read.Add(int64(n))
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// needViews skips a test in a build that never sees memory as another type.
func needViews(t *testing.T) {
	t.Helper()
	if _, err := tensor.View[float32](tensor.Of([]float32{1})); err != nil {
		t.Skip("this build copies instead of viewing")
	}
}

func TestAliasedFields(t *testing.T) {
	needViews(t)
	type model struct {
		A []float32
		B tensor.Array[float32]
		C []float32 `torch:", mutable"`
		D []float64
		E []float32 `torch:"a | transpose"`
		F []bool
	}
	a := counted(0, 2, 2)
	root := dict("a", a, "b", a, "c", a, "d", a, "f", pack([]bool{true}))
	var m model
	r := fillIn(t, root, &m, Alias())
	if &m.A[0] != &a.Data[0] || &m.B.Data[0] != &a.Data[0] {
		t.Error("A or B is a copy")
	}
	if &m.C[0] == &a.Data[0] {
		t.Error("a mutable field is an alias")
	}
	same(t, "e", m.E, []float32{0, 2, 1, 3})
	same(t, "aliased", r.Aliased, int64(32))
	notes := map[string]string{}
	for _, row := range r.Plan.Applied {
		notes[row.Field] = row.Note
	}
	for field, want := range map[string]string{"A": "", "C": "mutable", "D": "float32", "E": "strided", "F": "bool"} {
		if got := notes[field]; want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: note %q, want %q", field, got, want)
		}
	}
	var tagged struct {
		A []float32 `torch:", alias"`
		B []float32
	}
	fillIn(t, dict("a", a, "b", a), &tagged)
	if &tagged.A[0] != &a.Data[0] || &tagged.B[0] == &a.Data[0] {
		t.Error("the tag alias is about its own field alone")
	}
}

type activation interface{ act() }

type prelu struct{ Weight []float32 }

type swish struct{ Beta []float32 }

type gated struct {
	Weight []float32
	Gate   []float32
}

func (prelu) act()  {}
func (*swish) act() {}
func (gated) act()  {}

func TestVariantsAreChosenByTheirKeys(t *testing.T) {
	type model struct {
		Act []activation
	}
	opts := Variants[activation](prelu{}, &swish{}, gated{})
	var m model
	fillIn(t, dict("act", []any{dict("weight", counted(0, 1)), dict("beta", counted(1, 1)), dict("weight", counted(2, 1), "gate", counted(3, 1))}), &m, opts)
	same(t, "variants", m.Act, []activation{prelu{[]float32{0}}, &swish{[]float32{1}}, gated{[]float32{2}, []float32{3}}})
	p, err := NewPlan(dict("act", []any{dict("alpha", counted(0, 1))}), &m, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, why := range []string{"serde.prelu: act.0.weight is absent", "*serde.swish: act.0.beta is absent", "act.0.gate is absent"} {
		if len(p.Mismatched) != 1 || !strings.Contains(p.Mismatched[0].Note, why) {
			t.Errorf("want %q:\n%s", why, p)
		}
	}
	p, err = NewPlan(dict("act", []any{dict("weight", counted(0, 1))}), &m, Variants[activation](prelu{}, &prelu{}))
	if err != nil || len(p.Mismatched) != 1 || !strings.Contains(p.Mismatched[0].Note, "several variants") {
		t.Errorf("two that match: %v\n%s", err, p)
	}
}

// celsius fills itself from a scalar that is in kelvin.
type celsius float64

func (c *celsius) UnmarshalNested(_ context.Context, v nested.Value) error {
	k, ok := v.(nested.Float)
	if !ok {
		return errors.New("no float")
	}
	*c = celsius(k) - 273
	return nil
}

func (c celsius) MarshalNested() (nested.Value, error) { return nested.Float(c + 273), nil }

type scale struct{ log2 int }

func TestTypesOfUsers(t *testing.T) {
	type model struct {
		T    celsius
		P    *celsius
		List []celsius
		S    scale
		W    scale `torch:"w | select 0 1"`
	}
	decode := Decode(func(ctx context.Context, v nested.Value, s *scale) error {
		leaf, ok := v.(nested.Leaf)
		if !ok {
			return errors.New("no tensor")
		}
		x, err := tensor.Values[float32](ctx, leaf.AsTensor())
		if err == nil {
			s.log2 = int(x[0])
		}
		return err
	})
	root := dict("t", 273.0, "p", 274.0, "list", []any{275.0}, "s", counted(3, 1), "w", counted(3, 2))
	var m model
	fillIn(t, root, &m, decode)
	if m.T != 0 || *m.P != 1 || m.List[0] != 2 || m.S.log2 != 3 || m.W.log2 != 4 {
		t.Errorf("got %+v", m)
	}
	_, err := Unmarshal(context.Background(), dict("t", 1, "list", []any{}, "s", counted(0, 1), "w", counted(3, 2)), &m, decode)
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != fault.Mismatch || e.Path != "t" {
		t.Errorf("an error of the type's own: %v", err)
	}
}

func TestHostileExpansionIsRefusedBeforeMemoryIsMade(t *testing.T) {
	one := tensor.Of([]float32{1}, 1)
	wide, err := one.Expand(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	var m struct{ W []float32 }
	if _, err := Unmarshal(context.Background(), dict("w", val(wide)), &m); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("4 GiB of 4 bytes: %v", err)
	}
}

func TestPlanPredictsMemory(t *testing.T) {
	a := counted(0, 1024)
	var m struct {
		A []float32
		B [1024]float32
		C []float64
	}
	p, err := NewPlan(dict("a", a, "b", a, "c", a), &m)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "fields", p.FieldBytes, int64(4096+8192))
	same(t, "peak", p.PeakBytes, int64(4096+4096+8192+8192))
	needViews(t)
	p, err = NewPlan(dict("a", a), &struct{ A []float32 }{}, Alias())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "aliased", []int64{p.FieldBytes, p.AliasBytes, p.PeakBytes}, []int64{0, 4096, 0})
}

func TestPlansAsJSONAndCompared(t *testing.T) {
	var m struct{ A []float32 }
	p, err := NewPlan(dict("a", counted(0, 2)), &m)
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"applied":[{"name":"a","field":"A","from":"float32 [2]","to":"[]float32","how":"copy","bytes":8}],"missing":[],"unexpected":[],"mismatched":[],"ignored":[],"peak_bytes":8,"field_bytes":8,"alias_bytes":0}`
	same(t, "json", string(text), want)
	q, err := NewPlan(dict("a", counted(0, 3), "b", counted(0, 1)), &m)
	if err != nil {
		t.Fatal(err)
	}
	twin := p
	same(t, "with itself", p.Compare(twin), []Change(nil))
	var got []string
	for _, c := range p.Compare(q) {
		got = append(got, c.Name+" "+c.Was+" → "+c.Sort)
	}
	same(t, "compared", got, []string{"a applied → applied", "b unexpected → "})
}

func TestSnakeCase(t *testing.T) {
	for name, want := range map[string]string{
		"Weight": "weight", "RunningMean": "running_mean", "NumBatchesTracked": "num_batches_tracked", "WeightIH": "weight_ih",
		"QProj": "q_proj", "Layer1": "layer1", "Conv2D": "conv2d", "Conv2DWeight": "conv2d_weight", "BN1": "bn1", "LayerNorm1": "layer_norm1",
		"Layer1Norm": "layer1_norm", "ID": "id", "A": "a", "InProj_weight": "in_proj_weight", "X_Y": "x_y",
	} {
		if got := snake(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Every flag of tags has an example on the package's page.
func TestEveryFlagHasAnExample(t *testing.T) {
	text, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{", optional", ", default=", ", shape ", ", bits", ", mutable", ", alias", ", inline", ", prefix=", ", gaps=keep", ", gaps=close", `torch:"-"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no example of %s", want)
		}
	}
}

// A key that the map's type does not have is none of its keys, and so is a second
// spelling of one.
func TestKeysOfMaps(t *testing.T) {
	root := dict("m", dict("3", counted(1, 1), "300", counted(2, 1), "-1", counted(3, 1), "03", counted(4, 1), "x", counted(5, 1)))
	var bytes struct{ M map[uint8][]float32 }
	r, err := Unmarshal(t.Context(), root, &bytes, AllowUnexpected())
	if err != nil {
		t.Fatal(err)
	}
	if want := map[uint8][]float32{3: {1}}; !reflect.DeepEqual(bytes.M, want) || len(r.Plan.Unexpected) != 4 {
		t.Errorf("%v, %d unexpected", bytes.M, len(r.Plan.Unexpected))
	}
	if _, err := Unmarshal(t.Context(), root, &bytes); !errors.Is(err, fault.ErrMismatch) {
		t.Errorf("keys that are left over: %v", err)
	}
	var halfs struct{ M map[tensor.Float16][]float32 }
	if _, err := Unmarshal(t.Context(), root, &halfs); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("keys of halfs: %v", err)
	}
	if _, err := Marshal(&struct{ M map[tensor.Float16]int }{map[tensor.Float16]int{1: 1}}); !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("keys of halfs: %v", err)
	}
}

type oddUnmarshaler float64

func (*oddUnmarshaler) UnmarshalNested(nested.Value) error { return nil }

type oddMarshaler float64

func (oddMarshaler) MarshalNested() nested.Value { return nested.None{} }

// A method of the right name and another form is a mistake, not a method of some
// other purpose.
func TestMethodsOfAnotherForm(t *testing.T) {
	var v struct{ T oddUnmarshaler }
	_, err := Unmarshal(t.Context(), dict("t", nested.Float(1)), &v)
	if !errors.Is(err, fault.ErrUsage) || !strings.Contains(err.Error(), "context.Context") {
		t.Errorf("%v", err)
	}
	if _, err := Marshal(&struct{ T oddMarshaler }{1}); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("%v", err)
	}
}
