package serde

import (
	"context"
	"errors"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
	"pgregory.net/rapid"
)

// everything has a field of every kind that a struct can have.
type everything struct {
	F64    []float64
	F32    []float32 `torch:"weights.f32"`
	F16    tensor.Array[tensor.Float16]
	Leaf   nested.Packed[int64]
	Bits   []uint16 `torch:", bits"`
	Bools  []bool
	Fixed  [2][3]int32
	Row    [2]complex64
	Half   tensor.BFloat16
	I      int
	I8     int8
	U      uint64
	F      float64
	Small  float32
	B      bool
	C      complex128
	S      string
	Big    *big.Int
	Ptr    *everything
	Opt    []float32 `torch:", optional"`
	Layers []layer
	Gappy  []*layer
	Names  []string
	Ints   []int
	Lists  [][]int8
	Pair   [2]layer
	ByName map[string]layer
	ByInt  map[int16]*layer
	ByUint map[uint64]layer
	ByByte map[uint8][]float32
	Flat   map[string][]float32
	Act    activation
	Acts   []activation
	T      celsius
	Inner  layer  `torch:", prefix=inner_"`
	Maybe  *other `torch:", inline"`
	layer2
	W  tensor.Array[float32] `torch:"fc.weight | transpose"`
	Q  tensor.Array[float32] `torch:"qkv | chunk 0 0 of 3"`
	K  tensor.Array[float32] `torch:"qkv | chunk 0 1 of 3"`
	V  []float32             `torch:"qkv | chunk 0 2 of 3 | transpose, shape 2 *"`
	R0 []float64             `torch:"rows | select 1 0, shape 2"`
	R1 []float64             `torch:"rows | narrow 1 1: | squeeze 1 | cast float64, shape 2"`
}

type layer struct {
	Weight []float32
	N      int
}

type layer2 struct{ Scale []uint8 }

type other struct{ Shift []int16 }

func fewFloats(t *rapid.T, label string) []float32 {
	return rapid.SliceOfN(rapid.Float32(), 0, 5).Draw(t, label)
}

func drawLayer(t *rapid.T) layer {
	return layer{Weight: fewFloats(t, "weight"), N: rapid.Int().Draw(t, "n")}
}

func drawShaped(t *rapid.T, rows, columns int) tensor.Array[float32] {
	return tensor.Array[float32]{Shape: []int{rows, columns}, Data: rapid.SliceOfN(rapid.Float32(), rows*columns, rows*columns).Draw(t, "matrix")}
}

func drawAct(t *rapid.T) activation {
	switch rapid.IntRange(0, 3).Draw(t, "variant") {
	case 0:
		return prelu{Weight: fewFloats(t, "weight")}
	case 1:
		return &swish{Beta: fewFloats(t, "beta")}
	case 2:
		return gated{Weight: fewFloats(t, "weight"), Gate: fewFloats(t, "gate")}
	default:
		return nil
	}
}

func drawEverything(t *rapid.T, depth int) everything {
	layers := rapid.SliceOfN(rapid.Custom(drawLayer), 0, 3)
	pointer := rapid.Custom(func(t *rapid.T) *layer {
		if rapid.Bool().Draw(t, "nil") {
			return nil
		}
		l := drawLayer(t)
		return &l
	})
	key := rapid.StringMatching(`[a-z]{1,3}`)
	x := everything{
		F64: rapid.SliceOfN(rapid.Float64(), 0, 5).Draw(t, "f64"), F32: fewFloats(t, "f32"),
		F16:  tensor.Array[tensor.Float16]{Shape: []int{1, 2}, Data: []tensor.Float16{tensor.Float16(rapid.Uint16().Draw(t, "half")), 0}},
		Leaf: pack(rapid.SliceOfN(rapid.Int64(), 0, 5).Draw(t, "leaf")), Bits: rapid.SliceOfN(rapid.Uint16(), 0, 5).Draw(t, "bits"),
		Bools: rapid.SliceOfN(rapid.Bool(), 0, 5).Draw(t, "bools"), Fixed: [2][3]int32{{rapid.Int32().Draw(t, "fixed")}, {1, 2, 3}},
		Row: [2]complex64{complex(rapid.Float32().Draw(t, "re"), 1), 2}, Half: tensor.BFloat16(rapid.Uint16().Draw(t, "bfloat")),
		I: rapid.Int().Draw(t, "i"), I8: rapid.Int8().Draw(t, "i8"), U: rapid.Uint64().Draw(t, "u"), F: rapid.Float64().Draw(t, "f"),
		Small: rapid.Float32().Draw(t, "small"), B: rapid.Bool().Draw(t, "b"), C: complex(rapid.Float64().Draw(t, "c"), 2), S: rapid.String().Draw(t, "s"),
		Layers: layers.Draw(t, "layers"), Gappy: rapid.SliceOfN(pointer, 0, 4).Draw(t, "gappy"),
		Names: rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "names"), Ints: rapid.SliceOfN(rapid.Int(), 0, 3).Draw(t, "ints"),
		Lists: rapid.SliceOfN(rapid.SliceOfN(rapid.Int8(), 0, 3), 0, 3).Draw(t, "lists"), Pair: [2]layer{drawLayer(t), drawLayer(t)},
		ByName: rapid.MapOfN(key, rapid.Custom(drawLayer), 0, 3).Draw(t, "by name"), ByInt: rapid.MapOfN(rapid.Int16(), pointer, 0, 3).Draw(t, "by int"),
		ByUint: rapid.MapOfN(rapid.Uint64(), rapid.Custom(drawLayer), 0, 3).Draw(t, "by uint"),
		ByByte: rapid.MapOfN(rapid.Uint8(), rapid.SliceOfN(rapid.Float32(), 0, 3), 0, 3).Draw(t, "by byte"),
		Flat:   rapid.MapOfN(key, rapid.SliceOfN(rapid.Float32(), 0, 3), 0, 3).Draw(t, "flat"), Act: drawAct(t),
		Acts: rapid.SliceOfN(rapid.Custom(drawAct), 0, 3).Draw(t, "acts"), T: celsius(rapid.IntRange(-200, 200).Draw(t, "t")),
		Inner: drawLayer(t), layer2: layer2{Scale: rapid.SliceOfN(rapid.Uint8(), 0, 3).Draw(t, "scale")},
		W: drawShaped(t, 2, 3), Q: drawShaped(t, 2, 2), K: drawShaped(t, 2, 2), V: drawShaped(t, 2, 2).Data,
		R0: []float64{1, rapid.Float64().Draw(t, "r0")}, R1: []float64{2, rapid.Float64().Draw(t, "r1")},
	}
	if rapid.Bool().Draw(t, "opt") {
		x.Opt = fewFloats(t, "opt")
		x.Maybe = &other{Shift: []int16{1}}
		x.Big = new(big.Int).Lsh(big.NewInt(-3), uint(rapid.IntRange(0, 90).Draw(t, "big")))
	}
	if depth > 0 && rapid.Bool().Draw(t, "deeper") {
		inner := drawEverything(t, depth-1)
		x.Ptr = &inner
	}
	return x
}

func TestUnmarshalOfMarshalIsTheSame(t *testing.T) {
	variants := Variants[activation](prelu{}, &swish{}, gated{})
	rapid.Check(t, func(rt *rapid.T) {
		want := drawEverything(rt, 1)
		opts := []Option{variants}
		switch rapid.IntRange(0, 3).Draw(rt, "options") {
		case 1:
			opts = append(opts, Prefix("model."))
		case 2:
			opts = append(opts, Alias())
		case 3:
			opts = append(opts, Shared(), Separate())
		}
		root, err := Marshal(&want, opts...)
		if err != nil {
			rt.Fatal(err)
		}
		var got everything
		r, err := Unmarshal(context.Background(), root, &got, opts...)
		if err != nil {
			rt.Fatal(err)
		}
		if len(r.Plan.Ignored) > 0 {
			rt.Fatalf("ignored: %v", r.Plan.Ignored)
		}
		if !reflect.DeepEqual(got, want) {
			rt.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

func TestMarshalAliasesTheSlices(t *testing.T) {
	x := struct {
		A []float32
		B [3]float32
	}{A: []float32{1, 2}}
	root, err := Marshal(&x)
	if err != nil {
		t.Fatal(err)
	}
	x.A[0], x.B[2] = 5, 6
	m := root.(*nested.Map)
	a, _ := m.Lookup("a")
	b, _ := m.Lookup("b")
	if a.(nested.F32s).Data[0] != 5 || b.(nested.F32s).Data[2] != 6 {
		t.Errorf("copied: %v %v", a, b)
	}
}

func TestMarshalJoinsPartsAndTurnsBack(t *testing.T) {
	root, err := Marshal(struct {
		K tensor.Array[float32] `torch:"qkv | narrow 0 1:2 | transpose"`
		Q tensor.Array[float32] `torch:"qkv | narrow 0 0:1 | transpose"`
	}{K: tensor.Array[float32]{Shape: []int{2, 1}, Data: []float32{3, 4}}, Q: tensor.Array[float32]{Shape: []int{2, 1}, Data: []float32{1, 2}}})
	if err != nil {
		t.Fatal(err)
	}
	var back struct{ Qkv tensor.Array[float32] }
	fillIn(t, root, &back)
	same(t, "joined", back.Qkv, tensor.Array[float32]{Shape: []int{2, 2}, Data: []float32{1, 2, 3, 4}})
}

func TestMarshalPrecision(t *testing.T) {
	root, err := Marshal(struct {
		A []float32
		B []int32
	}{[]float32{1, 70000}, []int32{1}}, Precision(tensor.F16))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		A []tensor.Float16
		B []int32
	}
	r := fillIn(t, root, &got)
	if !slices.Equal(got.A, []tensor.Float16{0x3c00, 0x7c00}) || got.B[0] != 1 || r.Overflow != 1 {
		t.Errorf("got %v, %d overflows", got, r.Overflow)
	}
}

func TestMarshalErrors(t *testing.T) {
	ragged := tensor.Array[float32]{Shape: []int{2, 3}, Data: []float32{1}}
	loop := &recursive{}
	loop.Next = loop
	for _, c := range []struct {
		what string
		v    any
		kind fault.Kind
		path string
	}{
		{"nil", nil, fault.Usage, ""},
		{"a function", struct{ F func() }{}, fault.Unsupported, "F"},
		{"a shape of another length", struct{ L []tensor.Array[float32] }{[]tensor.Array[float32]{ragged}}, fault.Mismatch, "L[0]"},
		{"a ring", loop, fault.Limit, ""},
		{"a Go value in an any", struct{ A any }{3.5}, fault.Unsupported, "A"},
		{"a dot above a struct", struct {
			M map[string]struct{ W []float32 }
		}{map[string]struct{ W []float32 }{"b.c": {W: []float32{1}}}}, fault.Unsupported, `M["b.c"]`},
		{"a dot above a map", struct {
			M map[string]map[string][]float32
		}{map[string]map[string][]float32{"x.q": {"y": {1}}}}, fault.Unsupported, `M["x.q"]`},
		{"a dot above a list", struct {
			M map[string][]struct{ W []float32 }
		}{map[string][]struct{ W []float32 }{".": {{W: []float32{1}}}}}, fault.Unsupported, `M["."]`},
		{"a map by floats", struct{ M map[float64]int }{map[float64]int{1: 1}}, fault.Unsupported, "M"},
		{"a concat", struct {
			A tensor.Array[float32] `torch:"concat 0 (a, b)"`
		}{}, fault.Unsupported, "A"},
		{"a reshape", struct {
			A tensor.Array[float32] `torch:"a | reshape 2 3"`
		}{}, fault.Unsupported, "A"},
		{"a wildcard", struct {
			A tensor.Array[float32] `torch:"*.w"`
		}{}, fault.Unsupported, "A"},
		{"a slice without a shape", struct {
			A []float32 `torch:"a | transpose"`
		}{[]float32{1}}, fault.Unsupported, "A"},
		{"a slice of another shape", struct {
			A []float32 `torch:"a, shape 2 3"`
		}{[]float32{1}}, fault.Mismatch, "A"},
		{"half of a tensor", struct {
			A tensor.Array[float32] `torch:"a | chunk 0 1 of 2"`
		}{tensor.Array[float32]{Shape: []int{1}, Data: []float32{1}}}, fault.Unsupported, ""},
		{"a part of another size", struct {
			A tensor.Array[float32] `torch:"a | narrow 0 0:4"`
		}{tensor.Array[float32]{Shape: []int{3}, Data: []float32{1, 2, 3}}}, fault.Mismatch, "A"},
		{"other sizes than the tag splits into", struct {
			A tensor.Array[float32] `torch:"a | unflatten 0 3 2"`
		}{tensor.Array[float32]{Shape: []int{2, 3}, Data: make([]float32, 6)}}, fault.Mismatch, "A"},
		{"more dimensions than a transpose has", struct {
			A tensor.Array[float32] `torch:"a | squeeze 0 | transpose"`
		}{tensor.Array[float32]{Shape: []int{1, 2, 1}, Data: []float32{1, 2}}}, fault.Mismatch, "A"},
		{"a scalar through an expression", struct {
			A int `torch:"a | squeeze 0"`
		}{}, fault.Unsupported, "A"},
		{"two fields of one name", struct {
			A int
			B int `torch:"a"`
		}{}, fault.Collision, "B"},
	} {
		_, err := Marshal(c.v)
		var e *fault.Error
		if !errors.As(err, &e) || e.Kind != c.kind || c.path != "" && e.Path != c.path {
			t.Errorf("%s: %v, want %s at %q", c.what, err, c.kind, c.path)
		}
	}
}

func TestEncodeFunctions(t *testing.T) {
	root, err := Marshal(struct{ S scale }{scale{3}}, Encode(func(s scale) (nested.Value, error) { return nested.Int(s.log2), nil }))
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := root.(*nested.Map).Lookup("s"); v != nested.Int(3) {
		t.Errorf("got %v", v)
	}
}
