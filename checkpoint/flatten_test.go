package checkpoint

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

func dict(pairs ...nested.Value) *nested.Map {
	m := nested.NewMap("dict")
	for i := 0; i < len(pairs); i += 2 {
		if err := m.Set(pairs[i], pairs[i+1]); err != nil {
			panic(err)
		}
	}
	return m
}

func lazy(t *tensor.Tensor) *nested.Tensor { return &nested.Tensor{Tensor: t, Class: "torch.Tensor"} }

// TestLookupOfOneNameManyTimes holds that a tensor is found by a name that leads to
// it twice, and none by a name of two.
func TestLookupOfOneNameManyTimes(t *testing.T) {
	tied, other := lazy(tensor.Of([]uint8{1})), lazy(tensor.Of([]uint8{2}))
	root := dict(nested.Int(0), tied, nested.String("0"), tied, nested.Int(1), tied)
	open := func() *Checkpoint {
		c, err := New(root, Info{Name: "file"}, &Env{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if got, err := open().Lookup("0"); err != nil || got != tied {
		t.Errorf("twice the same: %v, %v", got, err)
	}
	if err := root.Set(nested.Symbol{Class: "type", Text: "0"}, other); err != nil {
		t.Fatal(err)
	}
	if got, err := open().Lookup("0"); !errors.Is(err, fault.ErrAmbiguous) {
		t.Errorf("twice the same, then another: %v, %v", got, err)
	}
	if _, err := open().Lookup("O"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("none: %v", err)
	}
}

// TestTextUnderManyPaths holds that a text which a small file repeats is over a limit,
// and the same in a file that has room for it is not.
func TestTextUnderManyPaths(t *testing.T) {
	root := nested.NewList("list")
	for range 10 {
		root.Items = append(root.Items, nested.String(strings.Repeat("x", 200)))
	}
	env := &Env{Limits: Limits{Expand: 2, ExpandFloor: 4000}.Default()}
	if _, err := New(root, Info{}, env.Following(100), nil); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("2,000 bytes of text from a file of 100: %v", err)
	}
	if _, err := New(root, Info{}, env.Following(2100), nil); err != nil {
		t.Errorf("from a file of 2,100: %v", err)
	}
}

func TestFlatten(t *testing.T) {
	shared := tensor.Of([]float32{1, 2, 3, 4}, 2, 2)
	row, err := shared.Narrow(0, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	root := dict(
		nested.String("b"), dict(nested.String("w"), lazy(shared), nested.Int(0), lazy(row)),
		nested.String("a"), nested.NewList("list", lazy(shared), nested.F32s{Array: tensor.Array[float32]{Shape: []int{1}, Data: []float32{5}}}),
		nested.String("epoch"), nested.Int(3), nested.String("none"), nested.NewList("tuple"),
		nested.String("latin \xfc"), lazy(tensor.Of([]int8{1})),
	)
	leaves, report, err := Flatten(root, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, leaf := range leaves {
		names = append(names, leaf.Name)
	}
	if want := []string{"b.w", "b.0", "a.0", "a.1", "latin ü"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
	if report.Tensors != 5 || report.Bytes != 16+8+16+4+1 {
		t.Errorf("report %+v", report)
	}
	if want := []LeftOut{{"epoch", "int"}, {"none", "tuple"}}; !slices.Equal(report.LeftOut, want) {
		t.Errorf("left out %v, want %v", report.LeftOut, want)
	}
	if want := []Copy{{"a.0", "b.w"}}; !slices.Equal(report.Copies, want) {
		t.Errorf("copies %v, want %v", report.Copies, want)
	}
}

func TestFlattenRefuses(t *testing.T) {
	x := tensor.Of([]float32{1})
	quantized := lazy(tensor.Of([]tensor.QUint8{1}))
	gone := fault.New(fault.Malformed, "a short record")
	cases := map[string]struct {
		root nested.Value
		kind fault.Kind
		path string
		has  []string
	}{
		"dots": {dict(nested.String("a.b"), lazy(x), nested.String("a"), dict(nested.String("b"), lazy(x))),
			fault.Collision, "a.b", []string{`["a.b"]`, `["a", "b"]`, "`rename [\"a\", \"b\"] -> ANOTHER`", "`drop [\"a\", \"b\"]`"}},
		"int and text": {dict(nested.Int(0), lazy(x), nested.String("0"), lazy(x)), fault.Collision, "0", []string{`[0]`, `["0"]`}},
		"keys that rules cannot spell": {dict(nested.String("None"), lazy(x), nested.None{}, lazy(x)),
			fault.Collision, "None", []string{"leave what is above them out with the rule `drop`)"}},
		"nested": {dict(nested.String("n"), &nested.Opaque{Class: "torch.Tensor", Reason: "torch.nested"}),
			fault.Unsupported, "n", []string{"the rule `drop`", ".cbor"}},
		"same after decoding": {dict(nested.String("\xe9"), lazy(x), nested.String("é"), lazy(x)), fault.Collision, "é", nil},
		"lone surrogate":      {dict(nested.String("\xed\xa0\x80"), lazy(x)), fault.Unsupported, "\xed\xa0\x80", []string{"`rename`"}},
		"quantized":           {dict(nested.String("q"), quantized), fault.Unsupported, "q", []string{"quint8", "arith.DequantizeTree"}},
		"sparse": {dict(nested.String("s"), &nested.Opaque{Class: "torch.Tensor", Reason: "torch.sparse_coo"}),
			fault.Unsupported, "s", []string{"torch.sparse_coo", "arith.DensifyTree"}},
		"meta": {dict(nested.String("m"), lazy(tensor.Unavailable(tensor.F32, nil, fault.New(fault.NoData, "meta")))),
			fault.Unsupported, "m", []string{"meta", "`drop`"}},
		"broken": {dict(nested.String("x"), lazy(tensor.Unavailable(tensor.F32, nil, gone))), fault.Malformed, "x", []string{"a short record"}},
		"depth":  {dict(nested.String("d"), nested.NewList("list", nested.NewList("list", lazy(x)))), fault.Limit, "", nil},
	}
	for name, c := range cases {
		_, _, err := Flatten(c.root, Limits{Depth: 2})
		var e *fault.Error
		if !errors.As(err, &e) || e.Kind != c.kind || c.path != "" && e.Path != c.path {
			t.Errorf("%s: %v, want kind %s at %q", name, err, c.kind, c.path)
			continue
		}
		for _, text := range c.has {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q lacks %q", name, err, text)
			}
		}
	}
	if gone.Path != "" {
		t.Error("the tensor's own error was changed")
	}
}

type named struct {
	Target
	name string
	ext  []string
}

func (n named) Name() string         { return n.name }
func (n named) Extensions() []string { return n.ext }

func TestFindTarget(t *testing.T) {
	targets := []Target{named{name: "gz", ext: []string{".gz"}}, named{name: "cbor.gz", ext: []string{".cbor.gz"}}, named{name: "st", ext: []string{".safetensors"}}}
	for file, want := range map[string]string{"a.cbor.gz": "cbor.gz", "a.gz": "gz", "dir.gz/A.SafeTensors": "st"} {
		if got, err := FindTarget(targets, file); err != nil || got.Name() != want {
			t.Errorf("%s: %v, %v, want %s", file, got, err, want)
		}
	}
	_, err := FindTarget(targets, "a.npz")
	if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), ".cbor.gz") {
		t.Errorf("an unknown ending: %v", err)
	}
}
