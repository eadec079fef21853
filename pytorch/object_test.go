package pytorch

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
	"github.com/wick-ml/wick/tensor"
)

// TestKnownObjects builds the values that a name and arguments say completely.
func TestKnownObjects(t *testing.T) {
	for _, c := range []struct {
		name   string
		pickle any
		want   string
	}{
		{"OrderedDict", reduce{cls("collections OrderedDict"), tup{}}, "collections.OrderedDict{}"},
		{"OrderedDict of Python 2", reduce{cls("collections OrderedDict"), tup{lst{lst{"a", 1}, lst{"b", 2}}}}, `collections.OrderedDict{"a": 1, "b": 2}`},
		{"OrderedDict with items", filled{reduce{cls("collections OrderedDict"), tup{}}, nil, dct{"a", 1}}, `collections.OrderedDict{"a": 1}`},
		{"Counter", reduce{cls("collections Counter"), tup{dct{"a", 2}}}, `collections.Counter{"a": 2}`},
		{"defaultdict", filled{reduce{cls("collections defaultdict"), tup{cls("__builtin__ list")}}, nil, dct{"a", 1}}, `collections.defaultdict{"a": 1}`},
		{"defaultdict of another", reduce{cls("collections defaultdict"), tup{nil, dct{"a", 1}}}, `collections.defaultdict{"a": 1}`},
		{"dict", reduce{cls("builtins dict"), tup{lst{tup{"a", 1}}}}, `dict{"a": 1}`},
		{"set of Python 2", reduce{cls("__builtin__ set"), tup{lst{1, 2}}}, "set{1, 2}"},
		{"sets.Set of Python 2", built{reduce{cls("copy_reg _reconstructor"), tup{cls("sets Set"), cls("__builtin__ object"), nil}}, tup{dct{1, true, 2, true}}}, "set{1, 2}"},
		{"frozenset", reduce{cls("builtins frozenset"), tup{lst{1}}}, "frozenset{1}"},
		{"torch.Size", reduce{cls("torch Size"), tup{tup{2, 3}}}, "torch.Size[2, 3]"},
		{"bytes by text", reduce{cls("_codecs encode"), tup{"\x00ÿ", "latin1"}}, "bytes:00ff"},
		{"bytes of nothing", reduce{cls("__builtin__ bytes"), tup{}}, "bytes:"},
		{"bytes of a list", reduce{cls("builtins bytes"), tup{lst{1, 255}}}, "bytes:01ff"},
		{"bytearray by text", reduce{cls("__builtin__ bytearray"), tup{"\x01þ", "latin-1"}}, "bytearray:01fe"},
		{"bytearray of bytes", reduce{cls("builtins bytearray"), tup{[]byte("ab")}}, "bytearray:6162"},
		{"complex", reduce{cls("__builtin__ complex"), tup{1.5, -2.0}}, "(1.5-2j)"},
		{"device", reduce{cls("torch device"), tup{"cuda", 1}}, "<torch.device cuda:1>"},
		{"device without an index", reduce{cls("torch device"), tup{"cpu"}}, "<torch.device cpu>"},
		{"dtype", cls("torch float8_e4m3fn"), "<torch.dtype torch.float8_e4m3fn>"},
		{"dtype by its other name", cls("torch half"), "<torch.dtype torch.float16>"},
		{"dtype without tensors", cls("torch uint3"), "<torch.dtype torch.uint3>"},
		{"layout", reduce{cls("torch.serialization _get_layout"), tup{"torch.sparse_csr"}}, "<torch.layout torch.sparse_csr>"},
		{"memory format", cls("torch channels_last"), "<torch.memory_format torch.channels_last>"},
		{"quantization scheme", cls("torch per_tensor_affine"), "<torch.qscheme torch.per_tensor_affine>"},
		{"Ellipsis", cls("__builtin__ Ellipsis"), "<ellipsis Ellipsis>"},
		{"NotImplemented", cls("__builtin__ NotImplemented"), "<NotImplementedType NotImplemented>"},
		{"class", cls("torch.nn.modules.linear Linear"), "<type torch.nn.modules.linear.Linear>"},
		{"function", cls("torch.nn.functional relu"), "<function torch.nn.functional.relu>"},
		{"range", reduce{cls("__builtin__ xrange"), tup{2, 9, 3}}, "<range range(2, 9, 3)>"},
		{"range of step 1", reduce{cls("builtins range"), tup{0, 9, 1}}, "<range range(0, 9)>"},
		{"slice", reduce{cls("builtins slice"), tup{1, nil, 2}}, "<slice slice(1, None, 2)>"},
		{"Fraction of two numbers", reduce{cls("fractions Fraction"), tup{1, 3}}, "<fractions.Fraction 1/3>"},
		{"path", reduce{cls("pathlib PosixPath"), tup{"/", "data", "run 1"}}, "<pathlib.PosixPath /data/run 1>"},
		{"path of Python 3.13", reduce{cls("pathlib._local PosixPath"), tup{"a", "b"}}, "<pathlib.PosixPath a/b>"},
		{"date of Python 2", reduce{cls("datetime date"), tup{raw("U\x04\x07\xe8\x02\x1d")}}, "<datetime.date 2024-02-29>"},
		{"return type", reduce{cls("torch.return_types max"), tup{tup{1, 2}, dct{}}}, "torch.return_types.max[1, 2]"},
		{"list of TorchScript", reduce{cls("torch.jit._pickle build_intlist"), tup{lst{1, 2}}}, "list[1, 2]"},
		{"tagged container of TorchScript", reduce{cls("torch.jit._pickle restore_type_tag"), tup{dct{"a", 1}, "Dict[str, int]"}}, `dict{"a": 1}`},
		{"__newobj__", reduce{cls("copyreg __newobj__"), tup{cls("collections OrderedDict")}}, "collections.OrderedDict{}"},
		{"__newobj_ex__", reduce{cls("copyreg __newobj_ex__"), tup{cls("my Class"), tup{1}, dct{"b", 2}}}, "<class my.Class>"},
		{"enum", reduce{cls("my Color"), tup{1}}, "<class my.Color>"},
		{"call of a function", reduce{cls("posix system"), tup{"id"}}, "<call posix.system>"},
		{"attribute of a class", reduce{cls("__builtin__ getattr"), tup{cls("my Color"), "RED"}}, "<attribute my.Color.RED>"},
		{"object of TorchScript", newobj{cls("__torch__ Module"), tup{}}, "<torchscript __torch__.Module>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := show(mustLoad(t, c.pickle)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestMembers finds what is inside objects that nobody built.
func TestMembers(t *testing.T) {
	object := newobj{cls("my Class"), tup{}}
	for _, c := range []struct {
		name   string
		pickle any
		want   []string // names of values and tensors inside
	}{
		{"attributes", built{object, dct{"a", 1, "b", lst{2}}}, []string{"a", "b.0"}},
		{"nothing", object, nil},
		{"no state", built{object, nil}, nil},
		{"arguments", reduce{cls("my Class"), tup{1, whole}}, []string{"0", "1"}},
		{"named tuple", newobj{cls("my Point"), tup{1, 2}}, []string{"0", "1"}},
		{"slots", built{object, tup{nil, dct{"s", 1}}}, []string{"s"}},
		{"attributes and slots", built{object, tup{dct{"a", 1}, dct{"s", 2}}}, []string{"a", "s"}},
		{"state of its own", built{object, tup{1, whole, 3}}, []string{"0", "1", "2"}},
		{"state that is a number", built{object, 5}, []string{""}},
		{"subclass of list", filled{object, lst{1, whole}, nil}, []string{"0", "1"}},
		{"subclass of dict", filled{object, nil, dct{"k", whole}}, []string{"k"}},
		{"subclass of dict with attributes", built{filled{object, nil, dct{"k", 1}}, dct{"a", 2}}, []string{"k", "a"}},
		{"an attribute called as a key", built{filled{object, nil, dct{"k", 1}}, dct{"k", 2}}, []string{"k", "__dict__.k"}},
		{"subclass of list with attributes", built{filled{object, lst{1}, nil}, dct{"a", 2}}, []string{"0", "a"}},
		{"arguments and attributes", built{reduce{cls("my Class"), tup{1}}, dct{"a", 2}}, []string{"a", "0"}},
		{"arguments and items", filled{reduce{cls("my Class"), tup{1}}, lst{2}, nil}, []string{"0", "__args__.0"}},
		{"items and state that is a number", built{filled{object, lst{1}, nil}, 7}, []string{"0", "__state__"}},
		{"subclass of dict in protocol 1", reduce{cls("copy_reg _reconstructor"), tup{cls("my Dict"), cls("__builtin__ dict"), dct{"k", 1}}}, []string{"k"}},
		{"subclass of list in protocol 1", reduce{cls("copy_reg _reconstructor"), tup{cls("my List"), cls("__builtin__ list"), lst{1, 2}}}, []string{"0", "1"}},
		{"subclass of int in protocol 1", reduce{cls("copy_reg _reconstructor"), tup{cls("my Int"), cls("__builtin__ int"), 3}}, []string{"0"}},
		{"object in protocol 1", built{reduce{cls("copy_reg _reconstructor"), tup{cls("my Class"), cls("__builtin__ object"), nil}}, dct{"a", 1}}, []string{"a"}},
		{"deque", filled{reduce{cls("collections deque"), tup{tup{}, 9}}, lst{1, whole}, nil}, []string{"0", "1"}},
		{"deque of Python 2", reduce{cls("collections deque"), tup{lst{1, 2}}}, []string{"0", "1"}},
		{"partial", built{reduce{cls("functools partial"), tup{cls("my fn")}}, tup{cls("my fn"), tup{1}, dct{"k", 2}, nil}}, []string{"0", "1.0", "2.k", "3"}},
		{"bound method", reduce{cls("__builtin__ getattr"), tup{built{object, dct{"a", 1}}, "step"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := walkTree(t, mustLoad(t, c.pickle))
			var got []string
			for name := range f.values {
				got = append(got, name)
			}
			for _, tn := range f.tensors {
				got = append(got, tn.name)
			}
			want := slices.Clone(c.want)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("inside are %q, want %q", got, want)
			}
			if f.opaque[""] == nil {
				t.Error("the object is not listed")
			}
		})
	}
}

// TestReplacedInMemo finds what BUILD made of an object through the memo too.
func TestReplacedInMemo(t *testing.T) {
	id := newobj{cls("uuid UUID"), tup{}}
	data := slices.Concat([]byte("\x80\x02("), emit(nil, id), []byte("q\x00"), emit(nil, dct{"int", 5}), []byte("bh\x00t."))
	v, err := newLoader(8).load(pickle.NewCursor(data))
	if err != nil {
		t.Fatal(err)
	}
	const want = "<uuid.UUID 00000000-0000-0000-0000-000000000005>"
	if got := show(v); got != "tuple["+want+", "+want+"]" {
		t.Errorf("got %s", got)
	}
}

// module is a whole module: its parameters, buffers and submodules.
func module(name string, parameters, buffers, modules, more dct) any {
	ordered := func(d dct) any { return filled{reduce{cls("collections OrderedDict"), tup{}}, nil, d} }
	state := append(dct{"training", true, "_parameters", ordered(parameters), "_buffers", ordered(buffers), "_modules", ordered(modules)}, more...)
	return built{newobj{cls("torch.nn.modules " + name), tup{}}, state}
}

// TestModules lists whole modules under the names of their state dicts.
func TestModules(t *testing.T) {
	inner := module("Linear", dct{"weight", whole, "bias", nil}, nil, nil, dct{"in_features", 4, "_hook", 1})
	hidden := dct{"_non_persistent_buffers_set", reduce{cls("__builtin__ set"), tup{lst{"mask"}}}, "kernel", tup{3, 3}, "cache", whole, "scale", 2, "fc", 5}
	v := mustLoad(t, module("Net", dct{"scale", whole}, dct{"mean", whole, "mask", whole, "none", nil}, dct{"fc", inner, "drop", nil}, hidden))
	f := walkTree(t, v)
	var names []string
	for _, tn := range f.tensors {
		names = append(names, tn.name)
	}
	if !slices.Equal(names, []string{"scale", "mean", "fc.weight"}) {
		t.Errorf("tensors %q", names)
	}
	if got := slices.Sorted(maps.Keys(f.values)); !slices.Equal(got, []string{"fc.in_features", "fc.training", "kernel.0", "kernel.1", "training"}) {
		t.Errorf("values %q", got)
	}
	if f.opaque[""].Reason != reasonModule || f.opaque["fc"].Class != "torch.nn.modules.Linear" {
		t.Errorf("opaque %+v", f.opaque)
	}
}

// TestModuleID takes the class from the persistent id of legacy modules.
func TestModuleID(t *testing.T) {
	class := persid{tup{"module", cls("my Net"), "net.py", "class Net: pass"}}
	o, ok := mustLoad(t, built{newobj{class, tup{}}, dct{"a", 1}}).(*nested.Opaque)
	if !ok || o.Class != "my.Net" {
		t.Errorf("got %v", o)
	}
}

// TestNumpy reads arrays and scalars in the forms that numpy and Python 2 had.
func TestNumpy(t *testing.T) {
	dtype := func(code, order string) any {
		return built{reduce{cls("numpy dtype"), tup{code, 0, 1}}, tup{3, order, nil, nil, nil, -1, -1, 0}}
	}
	empty := reduce{cls("numpy.core.multiarray _reconstruct"), tup{cls("numpy ndarray"), tup{0}, "b"}}
	for _, c := range []struct {
		name   string
		pickle any
		want   []float32
	}{
		{"bytes", built{empty, tup{1, tup{2}, dtype("f4", "<"), false, []byte("\x00\x00\x80?\x00\x00\x00@")}}, []float32{1, 2}},
		{"a str of Python 2", built{empty, tup{1, tup{2}, dtype("f4", "<"), false, raw("U\x08\x00\x00\x80?\x00\x00\x00@")}}, []float32{1, 2}},
		{"Latin-1 text", built{empty, tup{1, tup{2}, dtype("f4", "<"), false, "\x00\x00\u0080?\x00\x00\x00@"}}, []float32{1, 2}},
		{"big-endian", built{empty, tup{1, tup{2}, dtype("f4", ">"), false, []byte("?\x80\x00\x00@\x00\x00\x00")}}, []float32{1, 2}},
		{"column-major", built{empty, tup{1, tup{2, 2}, dtype("u1", "|"), true, []byte("\x01\x02\x03\x04")}}, []float32{1, 3, 2, 4}},
		{"without a version", built{empty, tup{tup{2}, dtype("i1", "|"), false, []byte("\x01\xff")}}, []float32{1, -1}},
		{"scalar shape", built{empty, tup{1, tup{}, dtype("i2", "<"), false, []byte("\x01\x01")}}, []float32{257}},
		{"buffer of protocol 5", reduce{cls("numpy._core.numeric _frombuffer"), tup{[]byte("\x01\x02"), dtype("u1", "|"), tup{2}, "C"}}, []float32{1, 2}},
		{"order in the code", built{empty, tup{1, tup{1}, reduce{cls("numpy dtype"), tup{">i2", false, true}}, false, []byte("\x01\x00")}}, []float32{256}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tn, ok := mustLoad(t, c.pickle).(*nested.Tensor)
			if !ok || tn.Class != classArray {
				t.Fatalf("got %v", tn)
			}
			cast, err := tn.Cast(tensor.F32)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tensor.Values[float32](t.Context(), cast)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
	for name, c := range map[string]struct {
		pickle any
		reason string
	}{
		"objects":    {built{empty, tup{1, tup{2}, dtype("O8", "|"), false, lst{1, whole}}}, reasonObjects},
		"fields":     {built{empty, tup{1, tup{1}, built{reduce{cls("numpy dtype"), tup{"V8", 0, 1}}, tup{3, "|", nil, tup{"a"}, dct{}, 8, 1, 0}}, false, []byte("12345678")}}, reasonRecords},
		"text":       {built{empty, tup{1, tup{1}, dtype("U2", "<"), false, []byte("a\x00\x00\x00b\x00\x00\x00")}}, "dtype U2"},
		"dates":      {built{empty, tup{1, tup{1}, dtype("M8", "<"), false, []byte("12345678")}}, "dtype M8"},
		"no state":   {built{empty, tup{1, 2}}, reasonClass},
		"odd buffer": {reduce{cls("numpy.core.numeric _frombuffer"), tup{[]byte("ab"), dtype("S2", "|"), tup{1}, "C"}}, "dtype S2"},
	} {
		o, ok := mustLoad(t, c.pickle).(*nested.Opaque)
		if !ok || o.Class != classArray || o.Reason != c.reason {
			t.Errorf("%s: %+v", name, o)
		}
	}
	short := mustLoad(t, built{empty, tup{1, tup{3}, dtype("f4", "<"), false, []byte("1234")}}).(*nested.Tensor)
	never := mustLoad(t, empty).(*nested.Tensor)
	if !errors.Is(short.Err(), fault.ErrMalformed) || !errors.Is(never.Err(), fault.ErrMalformed) || short.Len() != 3 {
		t.Errorf("a short array: %v, one without data: %v", short.Err(), never.Err())
	}
	for want, args := range map[string]tup{
		"-2":     {dtype("i4", "<"), []byte("\xfe\xff\xff\xff")},
		"1.5":    {dtype("f8", ">"), []byte("?\xf8\x00\x00\x00\x00\x00\x00")},
		"0.5":    {dtype("f2", "<"), []byte("\x008")},
		"True":   {dtype("b1", "|"), []byte("\x01")},
		"258":    {dtype("u2", ">"), []byte("\x01\x02")},
		"(1+2j)": {dtype("c8", "<"), []byte("\x00\x00\x80?\x00\x00\x00@")},
		"ab":     {dtype("U2", "<"), []byte("a\x00\x00\x00b\x00\x00\x00")},
	} {
		v := mustLoad(t, reduce{cls("numpy.core.multiarray scalar"), args})
		if got := strings.Trim(nested.Repr(v), "'"); got != want {
			t.Errorf("scalar %s, want %s", got, want)
		}
	}
}

// TestGlobals lists every name once, in order, and whether it would be called.
func TestGlobals(t *testing.T) {
	l := newLoader(8)
	_, err := l.load(pickle.NewCursor(assemble(lst{cls("os path"), reduce{cls("posix system"), tup{"id"}}, reduce{cls("posix system"), tup{"id"}}, whole})))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range l.globals {
		called := ""
		if g.Called {
			called = "()"
		}
		got = append(got, g.Module+" "+g.Name+called)
		if g.Record != "data.pkl" || g.Offset < 2 {
			t.Errorf("%+v", g)
		}
	}
	want := []string{"os path", "posix system()", "torch._utils _rebuild_tensor_v2()", "torch FloatStorage", "collections OrderedDict()"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestMalformedObjects refuses what Python could not do either.
func TestMalformedObjects(t *testing.T) {
	for name, p := range map[string]any{
		"a call of a number":     reduce{1, tup{}},
		"a call of a dtype":      reduce{cls("torch float32"), tup{}},
		"a call of a list":       reduce{lst{}, tup{}},
		"state for a number":     built{1, dct{}},
		"state for a list":       built{lst{}, dct{}},
		"items for a tensor":     filled{whole, lst{1}, nil},
		"items for a class":      filled{cls("my Class"), lst{1}, nil},
		"keys for a tensor":      filled{whole, nil, dct{"a", 1}},
		"a list as a key inside": filled{newobj{cls("my Dict"), tup{}}, nil, dct{lst{}, 1}},
	} {
		_, err := newLoader(8).load(pickle.NewCursor(assemble(p)))
		var e *fault.Error
		if !errors.As(err, &e) || e.Kind != fault.Malformed || e.Opcode == "" || !e.HasOffset || e.Record != "data.pkl" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTensorsByID resolves the tensors of TorchScript before torch 1.3.
func TestTensorsByID(t *testing.T) {
	p := assemble(reduce{cls("torch.jit._pickle build_tensor_from_id"), tup{3}})
	l := newLoader(8)
	l.tensorByID = func(id int64) (nested.Value, error) {
		return &nested.Tensor{Tensor: tensor.Of([]float32{float32(id)}), Class: classTensor}, nil
	}
	v, err := l.load(pickle.NewCursor(p))
	if err != nil || !slices.Equal(values(t, v), []float32{3}) {
		t.Errorf("%v, %v", v, err)
	}
	l.tensorByID = func(int64) (nested.Value, error) { return nil, fault.New(fault.Malformed, "no tensor 3") }
	if _, err := l.load(pickle.NewCursor(p)); !errors.Is(err, fault.ErrMalformed) {
		t.Errorf("got %v", err)
	}
	if o, ok := mustLoad(t, reduce{cls("torch.jit._pickle build_tensor_from_id"), tup{3}}).(*nested.Opaque); !ok || o.Reason != reasonCall {
		t.Errorf("without a table: %v", o)
	}
}

// TestExpandedPickle bounds a small file whose pickle inflates.
func TestExpandedPickle(t *testing.T) {
	l := newLoader(8)
	l.limits = checkpoint.Limits{}.Default()
	l.present = 1000
	_, err := l.load(pickle.NewCursor([]byte(strings.Repeat("}", 4<<20) + ".")))
	if !errors.Is(err, fault.ErrLimit) {
		t.Errorf("got %v", err)
	}
}
