package pytorch

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
	"github.com/wick-ml/wick/tensor"
)

// whole is a tensor over all eight floats.
var whole = tensorV2(storage(8), 0, tup{8}, tup{1})

// TestRebuildDense makes dense tensors in all the ways that torch has had.
func TestRebuildDense(t *testing.T) {
	hooks := reduce{cls("collections OrderedDict"), tup{}}
	s, size, stride := storage(8), tup{2, 2}, tup{1, 2}
	eight := []float32{0, 1, 2, 3, 4, 5, 6, 7}
	for _, c := range []struct {
		name   string
		pickle any
		class  string
		grad   bool
		want   []float32
	}{
		{"_rebuild_tensor", reduce{cls("torch._utils _rebuild_tensor"), tup{s, 1, size, stride}}, classTensor, false, []float32{1, 3, 2, 4}},
		{"_rebuild_tensor_v2", reduce{cls("torch._utils _rebuild_tensor_v2"), tup{s, 1, size, stride, true, hooks}}, classTensor, true, []float32{1, 3, 2, 4}},
		{"size as a list", reduce{cls("torch._utils _rebuild_tensor_v2"), tup{s, 1, lst{2, 2}, lst{1, 2}, true, nil}}, classTensor, true, []float32{1, 3, 2, 4}},
		{"size as torch.Size", reduce{cls("torch._utils _rebuild_tensor_v2"), tup{s, 0, reduce{cls("torch Size"), tup{tup{2}}}, tup{1}, false, hooks}}, classTensor, false, []float32{0, 1}},
		{"negated", reduce{cls("torch._utils _rebuild_tensor_v2"), tup{s, 1, tup{2}, tup{1}, false, hooks, dct{"neg", true}}}, classTensor, false, []float32{-1, -2}},
		{"conj of a real tensor", reduce{cls("torch._utils _rebuild_tensor_v2"), tup{s, 1, tup{2}, tup{1}, false, hooks, dct{"conj", true}}}, classTensor, false, []float32{1, 2}},
		{"_rebuild_tensor_v3", reduce{cls("torch._utils _rebuild_tensor_v3"), tup{persid{tup{"storage", cls("torch.storage UntypedStorage"), "0", "cpu", 32}}, 2, tup{2}, tup{1}, false, hooks, cls("torch float32")}}, classTensor, false, []float32{2, 3}},
		{"_rebuild_parameter", reduce{cls("torch._utils _rebuild_parameter"), tup{whole, true, hooks}}, classParameter, true, eight},
		{"_rebuild_parameter_with_state", reduce{cls("torch._utils _rebuild_parameter_with_state"), tup{whole, false, hooks, dct{"tag", 1}}}, classParameter, false, eight},
		{"Parameter called", reduce{cls("torch.nn.parameter Parameter"), tup{whole}}, classParameter, true, eight},
		{"Parameter called with requires_grad", newobj{cls("torch.nn.parameter Parameter"), tup{whole, false}}, classParameter, false, eight},
		{"Variable of torch 0.3", built{reduce{cls("torch.autograd.variable Variable"), tup{whole}}, tup{true, false, hooks}}, classTensor, true, eight},
		{"Variable with its data as state", built{reduce{cls("torch Tensor"), tup{whole}}, tup{whole, hooks, nil, true, false}}, classTensor, true, eight},
		{"tensor of torch 0.1", built{newobj{cls("torch FloatTensor"), tup{}}, tup{s, 1, size, stride}}, classTensor, false, []float32{1, 3, 2, 4}},
		{"subclass", reduce{cls("torch._tensor _rebuild_from_type_v2"), tup{cls("torch._utils _rebuild_tensor_v2"), cls("my Tagged"), tup{s, 1, size, stride, false, hooks}, dct{}}}, "my.Tagged", false, []float32{1, 3, 2, 4}},
		{"subclass of torch 1.5", reduce{cls("torch.tensor _rebuild_from_type"), tup{cls("torch._utils _rebuild_tensor_v2"), cls("my Tagged"), tup{s, 1, size, stride, false, hooks}, dct{}}}, "my.Tagged", false, []float32{1, 3, 2, 4}},
		{"xla tensor", reduce{cls("torch._utils _rebuild_device_tensor_from_cpu_tensor"), tup{whole, cls("torch float32"), "xla:0", true}}, classTensor, true, eight},
		{"storage of the GPU", tensorV2(persid{tup{"storage", cls("torch.cuda FloatStorage"), "0", "cuda:1", 8}}, 0, tup{8}, tup{1}), classTensor, false, eight},
		{"storage by an old name", tensorV2(persid{tup{"storage", cls("torch.storage _UntypedStorage"), "0", "cpu", 8}}, 0, tup{0}, tup{1}), classTensor, false, nil},
		{"a storage itself", s, "torch.FloatStorage", false, eight},
		{"a storage with a view", persid{tup{"storage", cls("torch FloatStorage"), "0", "cpu", 8, tup{"9", 2, 3}}}, "torch.FloatStorage", false, []float32{2, 3, 4}},
		{"a tensor in a view", tensorV2(persid{tup{"storage", cls("torch FloatStorage"), "0", "cpu", 8, tup{"9", 2, 3}}}, 1, tup{2}, tup{1}), classTensor, false, []float32{3, 4}},
		{"ids as bytes", tensorV2(persid{tup{[]byte("storage"), cls("torch FloatStorage"), []byte("0"), []byte("cpu"), 8}}, 0, tup{1}, tup{1}), classTensor, false, []float32{0}},
		{"key as a number", tensorV2(persid{tup{"storage", cls("torch FloatStorage"), 0, "cpu", 8}}, 0, tup{1}, tup{1}), classTensor, false, []float32{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := mustLoad(t, c.pickle)
			tn, ok := v.(*nested.Tensor)
			if !ok {
				t.Fatalf("got a %T", v)
			}
			if tn.DType() == tensor.U8 && tn.Len() == 0 {
				return
			}
			if got := values(t, v); !slices.Equal(got, c.want) && len(got)+len(c.want) > 0 {
				t.Errorf("values %v, want %v", got, c.want)
			}
			if tn.Class != c.class || tn.RequiresGrad != c.grad {
				t.Errorf("%s, requires_grad %v; want %s, %v", tn.Class, tn.RequiresGrad, c.class, c.grad)
			}
		})
	}
}

// TestBadTensors gives tensors that cannot be. Each costs itself, not the tree.
func TestBadTensors(t *testing.T) {
	for _, c := range []struct {
		name   string
		pickle any
		shape  []int
	}{
		{"beyond its storage", tensorV2(storage(8), 0, tup{9}, tup{1}), []int{9}},
		{"beyond what its storage says", tensorV2(storage(4), 0, tup{5}, tup{1}), []int{5}},
		{"offset beyond", tensorV2(storage(8), 8, tup{1}, tup{1}), []int{1}},
		{"negative offset", tensorV2(storage(8), -1, tup{1}, tup{1}), []int{1}},
		{"negative size", tensorV2(storage(8), 0, tup{-1}, tup{1}), nil},
		{"negative stride", tensorV2(storage(8), 4, tup{2}, tup{-1}), []int{2}},
		{"huge size", tensorV2(storage(8), 0, tup{1 << 30, 1 << 30, 1 << 30}, tup{0, 0, 0}), nil},
		{"huge stride", tensorV2(storage(8), 0, tup{2, 2}, tup{int64(1 << 62), int64(1 << 62)}), []int{2, 2}},
		{"fewer strides", tensorV2(storage(8), 0, tup{2, 2}, tup{1}), []int{2, 2}},
		{"storage says more than there is", tensorV2(storage(9), 0, tup{1}, tup{1}), []int{1}},
		{"beyond its view", tensorV2(persid{tup{"storage", cls("torch FloatStorage"), "0", "cpu", 8, tup{"9", 2, 3}}}, 1, tup{3}, tup{1}), []int{3}},
		{"view beyond its storage", tensorV2(persid{tup{"storage", cls("torch FloatStorage"), "0", "cpu", 8, tup{"9", 6, 3}}}, 0, tup{1}, tup{1}), []int{1}},
		{"view of overflowing offset", tensorV2(persid{tup{"storage", cls("torch FloatStorage"), "0", "cpu", 8, tup{"9", int64(1 << 62), 3}}}, 0, tup{1}, tup{1}), []int{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mustLoad(t, dct{"bad", c.pickle, "good", whole}).(*nested.Map)
			bad, _ := m.Lookup("bad")
			tn, ok := bad.(*nested.Tensor)
			if !ok {
				t.Fatalf("got a %T", bad)
			}
			if !errors.Is(tn.Err(), fault.ErrMalformed) || tn.DType() != tensor.F32 || !slices.Equal(tn.Shape(), c.shape) {
				t.Errorf("got %s %v: %v", tn.DType(), tn.Shape(), tn.Err())
			}
			good, _ := m.Lookup("good")
			if len(values(t, good)) != 8 {
				t.Error("the good tensor is lost")
			}
		})
	}
}

// TestMissingStorage lists tensors whose storage the container does not have.
func TestMissingStorage(t *testing.T) {
	missing := fault.New(fault.Malformed, "no record data/0")
	l := newLoader(8)
	calls := 0
	l.storage = func(storageRef) (*tensor.Storage, error) { calls++; return nil, missing }
	v, err := l.load(pickle.NewCursor(assemble(lst{whole, whole, storage(8)})))
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range v.(*nested.List).Items {
		if got := item.(*nested.Tensor); got.Err() == nil || got.Err().Error() != missing.Error() || !slices.Equal(got.Shape(), []int{8}) {
			t.Errorf("got %v: %v", got.Shape(), got.Err())
		}
	}
	if calls != 1 || len(l.storages) != 0 {
		t.Errorf("the container was asked %d times, %d storages", calls, len(l.storages))
	}
	l = newLoader(8)
	l.storage = func(storageRef) (*tensor.Storage, error) { return nil, fault.New(fault.IO, "gone") }
	if _, err := l.load(pickle.NewCursor(assemble(whole))); !errors.Is(err, fault.ErrIO) {
		t.Errorf("an error of the system gave %v", err)
	}
}

// TestSharedStorage gives tensors over one key one storage.
func TestSharedStorage(t *testing.T) {
	l := newLoader(8)
	var asked []storageRef
	l.storage = func(r storageRef) (*tensor.Storage, error) { asked = append(asked, r); return ramp(8), nil }
	other := persid{tup{"storage", cls("torch HalfStorage"), "1", "cuda:0", 3}}
	bytes := persid{tup{"storage", cls("torch.storage UntypedStorage"), "0", "cpu", 32}}
	v, err := l.load(pickle.NewCursor(assemble(lst{whole, tensorV2(other, 0, tup{3}, tup{1}), tensorV2(storage(8), 1, tup{2}, tup{2}), bytes})))
	if err != nil {
		t.Fatal(err)
	}
	items := v.(*nested.List).Items
	first, _, _, _ := items[0].(*nested.Tensor).Strided()
	third, _, _, _ := items[2].(*nested.Tensor).Strided()
	raw, _, _, _ := items[3].(*nested.Tensor).Strided()
	if first != third || first != raw || first == nil {
		t.Error("tensors of one key lie over several storages")
	}
	want := []storageRef{{Key: "0", DType: tensor.F32, Elements: 8, Device: "cpu"}, {Key: "1", DType: tensor.F16, Elements: 3, Device: "cuda:0"}}
	if !slices.Equal(asked, want) || len(l.storages) != 2 || l.storages[0] != first {
		t.Errorf("asked for %+v", asked)
	}
}

// TestBadPersistentIDs refuses ids that torch does not write.
func TestBadPersistentIDs(t *testing.T) {
	float := cls("torch FloatStorage")
	for name, id := range map[string]any{
		"a number":             1,
		"text":                 "0",
		"an empty tuple":       tup{},
		"an unknown kind":      tup{"tensor", float, "0", "cpu", 8},
		"too short":            tup{"storage", float, "0", "cpu"},
		"too long":             tup{"storage", float, "0", "cpu", 8, nil, nil},
		"a class that is text": tup{"storage", "torch.FloatStorage", "0", "cpu", 8},
		"a key that is a list": tup{"storage", float, lst{}, "cpu", 8},
		"no key":               tup{"storage", float, "", "cpu", 8},
		"a size that is text":  tup{"storage", float, "0", "cpu", "8"},
		"a negative size":      tup{"storage", float, "0", "cpu", -8},
		"a view of two":        tup{"storage", float, "0", "cpu", 8, tup{"1", 2}},
		"a negative view":      tup{"storage", float, "0", "cpu", 8, tup{"1", -2, 2}},
		"a list":               lst{"storage", float, "0", "cpu", 8},
	} {
		_, err := newLoader(8).load(pickle.NewCursor(assemble(persid{id})))
		var e *fault.Error
		if !errors.As(err, &e) || e.Kind != fault.Malformed || e.Opcode != "BINPERSID" || e.Record != "data.pkl" {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := newLoader(8).load(pickle.NewCursor(assemble(persid{tup{"storage", cls("my Storage"), "0", "cpu", 8}})))
	if !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("a storage of an unknown class: %v", err)
	}
}

// TestTextPersistentID reads what protocol 0 writes.
func TestTextPersistentID(t *testing.T) {
	rest := raw("I0\n(I2\nt(I1\ntI00\nNt")
	make2 := func(id string) []byte {
		return []byte("ctorch._utils\n_rebuild_tensor_v2\n(P" + id + "\n" + string(rest) + "R.")
	}
	for _, id := range []string{
		"('storage', <class 'torch.FloatStorage'>, '0', 'cpu', 8)",
		"('storage', <class 'torch.FloatStorage'>, '0', 'cpu', 8, None)",
		"('storage', <class 'torch.FloatStorage'>, '0', 'cpu', 8, ('1', 0, 4))",
		"(u'storage', <class 'torch.FloatStorage'>, u'0', u'cpu', 8L)",
		`("storage", <class "torch.FloatStorage">, "0", "cpu", 8,)`,
	} {
		v, err := newLoader(8).load(pickle.NewCursor(make2(strings.ReplaceAll(id, `<class "torch.FloatStorage">`, "<class 'torch.FloatStorage'>"))))
		if err != nil {
			t.Errorf("%s: %v", id, err)
		} else if got := values(t, v); !slices.Equal(got, []float32{0, 1}) {
			t.Errorf("%s: %v", id, got)
		}
	}
	for _, id := range []string{"", "0", "(", "('storage'", "('storage', <class>, '0', 'cpu', 8)", "('storage',) x", "((((((1,),),),),),)", "('a' 'b')", "(x,)", "('storage', <class 'a"} {
		if _, err := newLoader(8).load(pickle.NewCursor(make2(id))); !errors.Is(err, fault.ErrMalformed) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// TestContainerIDs hands ids that are no tuples to the container, as tar files
// need it.
func TestContainerIDs(t *testing.T) {
	l := newLoader(8)
	l.object = func(id nested.Value) (nested.Value, error) { return nested.NewList("tuple", id), nil }
	for data, want := range map[string]string{
		"P123\n.":     "('123',)",
		"K\x07Q.":     "(7,)",
		"U\x0212Q.":   "('12',)",
		"K\x07\x85Q.": "((7,),)",
	} {
		v, err := l.load(pickle.NewCursor([]byte(data)))
		if err != nil || nested.Repr(v) != want {
			t.Errorf("%q: %v, %v", data, v, err)
		}
	}
}

// TestMeta gives tensors without data their shape.
func TestMeta(t *testing.T) {
	noStorage := reduce{cls("torch._utils _rebuild_meta_tensor_no_storage"), tup{cls("torch float16"), tup{2, 3}, tup{3, 1}, false}}
	onMeta := tensorV2(persid{tup{"storage", cls("torch HalfStorage"), "0", "meta", 6}}, 0, tup{2, 3}, tup{3, 1})
	for _, p := range []any{noStorage, onMeta} {
		l := newLoader(8)
		l.storage = func(storageRef) (*tensor.Storage, error) { t.Error("asked for a storage"); return nil, nil }
		v, err := l.load(pickle.NewCursor(assemble(p)))
		if err != nil {
			t.Fatal(err)
		}
		tn := v.(*nested.Tensor)
		if !errors.Is(tn.Err(), fault.ErrNoData) || tn.DType() != tensor.F16 || !slices.Equal(tn.Shape(), []int{2, 3}) || tn.Device != "meta" {
			t.Errorf("got %s %v on %s: %v", tn.DType(), tn.Shape(), tn.Device, tn.Err())
		}
	}
}

// TestQuantized reads both sorts of quantizers, the lists of torch 1.3 too.
func TestQuantized(t *testing.T) {
	bytes := persid{tup{"storage", cls("torch QInt8Storage"), "0", "cpu", 32}}
	make2 := func(params tup) any {
		return reduce{cls("torch._utils _rebuild_qtensor"), tup{bytes, 0, tup{2, 4}, tup{4, 1}, params, false, nil}}
	}
	perTensor := mustLoad(t, make2(tup{cls("torch per_tensor_affine"), 0.5, 3})).(*nested.Tensor)
	if q := perTensor.Quant; perTensor.DType() != tensor.QI8 || q.Scheme != "per_tensor_affine" || q.Scale != 0.5 || q.ZeroPoint != 3 || q.Scales != nil {
		t.Errorf("got %s %+v", perTensor.DType(), q)
	}
	lists := mustLoad(t, make2(tup{cls("torch per_channel_affine"), lst{0.5, 0.25}, lst{1, 2}, 0})).(*nested.Tensor)
	scales, _ := tensor.Values[float64](t.Context(), lists.Quant.Scales.Tensor)
	zeros, _ := tensor.Values[int64](t.Context(), lists.Quant.ZeroPoints.Tensor)
	if !slices.Equal(scales, []float64{0.5, 0.25}) || !slices.Equal(zeros, []int64{1, 2}) || lists.Quant.Scheme != "per_channel_affine" {
		t.Errorf("got %v %v %+v", scales, zeros, lists.Quant)
	}
	short := mustLoad(t, make2(tup{cls("torch per_channel_affine"), lst{0.5}, lst{1}, 0})).(*nested.Tensor)
	if !errors.Is(short.Err(), fault.ErrMalformed) {
		t.Errorf("one scale for two channels: %v", short.Err())
	}
	for name, params := range map[string]tup{
		"no scheme":       {"affine", 0.5, 3},
		"scale is text":   {cls("torch per_tensor_affine"), "x", 3},
		"axis is text":    {cls("torch per_channel_affine"), lst{0.5}, lst{1}, "0"},
		"negative axis":   {cls("torch per_channel_affine"), lst{0.5}, lst{1}, -1},
		"scales are text": {cls("torch per_channel_affine"), "x", lst{1}, 0},
		"two parameters":  {cls("torch per_tensor_affine"), 0.5},
	} {
		if o, ok := mustLoad(t, make2(params)).(*nested.Opaque); !ok || o.Reason != reasonCall {
			t.Errorf("%s: %v", name, o)
		}
	}
}

// TestSparse keeps the components under names of their own.
func TestSparse(t *testing.T) {
	layout := reduce{cls("torch.serialization _get_layout"), tup{"torch.sparse_coo"}}
	size := reduce{cls("torch Size"), tup{tup{3, 3}}}
	v := mustLoad(t, dct{"adj", reduce{cls("torch._utils _rebuild_sparse_tensor"), tup{layout, tup{whole, whole, size, true}}}})
	f := walkTree(t, v)
	o := f.opaque["adj"]
	if o == nil || o.Reason != "torch.sparse_coo" || len(f.tensors) != 2 || f.tensors[0].name != "adj#indices" || f.tensors[1].name != "adj#values" {
		t.Fatalf("got %+v", f)
	}
	state := o.State.(*nested.Map)
	if got := show(state); got != `dict{"size": torch.Size[3, 3], "is_coalesced": True}` {
		t.Errorf("the state is %s", got)
	}
	for name, args := range map[string]tup{
		"no layout":      {"torch.sparse_coo", tup{whole, whole, size}},
		"a dense layout": {cls("torch strided"), tup{whole, whole, size}},
		"no size":        {layout, tup{whole, whole}},
		"no tensors":     {layout, tup{1, 2, size}},
		"one argument":   {layout},
	} {
		if o, ok := mustLoad(t, reduce{cls("torch._utils _rebuild_sparse_tensor"), args}).(*nested.Opaque); !ok || o.Reason != reasonCall {
			t.Errorf("%s: %v", name, o)
		}
	}
}

// TestWrapperSubclasses keeps tensors whose class has its data in attributes.
func TestWrapperSubclasses(t *testing.T) {
	placed := func(how string) any {
		return built{newobj{cls("torch.distributed.tensor._dtensor_spec DTensorSpec"), tup{}}, dct{"placements", tup{built{newobj{cls("torch.distributed.tensor.placement_types " + how), tup{}}, dct{}}}}}
	}
	wrap := func(class string, size tup, how string) any {
		args := tup{cls(class), cls("torch float32"), size, tup{1}, 0, cls("torch strided"), "cpu", false}
		return reduce{cls("torch._tensor _rebuild_from_type_v2"), tup{cls("torch._utils _rebuild_wrapper_subclass"), cls(class), args, dct{"_local_tensor", whole, "_spec", placed(how)}}}
	}
	v := mustLoad(t, dct{"w", wrap("my Wrapper", tup{8}, "Shard"), "replicated", wrap("torch.distributed.tensor DTensor", tup{8}, "Replicate"),
		"sharded", wrap("torch.distributed.tensor DTensor", tup{16}, "Shard"), "partial", wrap("torch.distributed.tensor DTensor", tup{8}, "Partial")})
	f := walkTree(t, v)
	var names []string
	for _, tn := range f.tensors {
		names = append(names, tn.name)
	}
	if !slices.Equal(names, []string{"w._local_tensor", "replicated", "sharded._local_tensor", "partial._local_tensor"}) {
		t.Errorf("tensors %v", names)
	}
	if f.opaque["w"] == nil || f.opaque["w"].Class != "my.Wrapper" || f.opaque["w"].Reason != reasonWrapper || f.opaque["sharded"] == nil {
		t.Errorf("opaque %+v", f.opaque)
	}
}

// TestWrongArguments calls every function that wick knows with arguments that
// make no sense: the call stays opaque and nothing is lost.
func TestWrongArguments(t *testing.T) {
	arguments := []tup{
		{}, {nil}, {1}, {"x"}, {lst{}}, {dct{}}, {whole}, {storage(8)}, {cls("my Class")},
		{nil, nil}, {1, "x"}, {lst{1}, dct{}}, {whole, whole}, {cls("a b"), "name"},
		{nil, nil, nil}, {1, 2, 3}, {cls("a B"), 1, 2}, {cls("a B"), cls("builtins object"), nil}, {cls("a B"), tup{}, dct{"x", 1}},
		{nil, nil, nil, nil}, {storage(8), 0, "x", tup{1}}, {cls("a b"), cls("a B"), tup{}, dct{}}, {whole, whole, whole, whole},
		{storage(8), 0, tup{1}, tup{1}, tup{}, false, nil}, {storage(8), "x", nil, nil, nil, nil, nil}, {nil, nil, nil, nil, nil, nil, nil, nil}, {1, 2, 3, 4, 5, 6, 7, 8, 9},
	}
	for name := range knownCalls {
		i := strings.LastIndexByte(name, '.')
		global := cls(name[:i] + " " + name[i+1:])
		for _, args := range arguments {
			checkKept(t, name, assemble(lst{reduce{global, args}, whole}))
			for _, state := range []any{1, tup{}, tup{nil, dct{"s", 1}}, tup{1, 2, 3, 4}, tup{1, 2, 3, 4, 5}} {
				checkKept(t, name, assemble(lst{built{reduce{global, args}, state}, whole}))
			}
		}
	}
}

// checkKept loads a list of something and a tensor; the tensor must be there,
// whatever the other is, unless the pickle is malformed.
func checkKept(t *testing.T, name string, data []byte) {
	t.Helper()
	v, err := newLoader(8).load(pickle.NewCursor(data))
	if err != nil {
		if fault.KindOf(err) != fault.Malformed {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	f := walkTree(t, v)
	if !slices.ContainsFunc(f.tensors, func(tn foundTensor) bool { return tn.name == "1" && tn.Err() == nil }) {
		t.Errorf("%s: the tensor is lost", name)
	}
}

// TestNoGeometry holds that a tensor whose place in its storage nobody can tell is
// a row that says so, not an object of some call.
func TestNoGeometry(t *testing.T) {
	for name, args := range map[string]tup{
		"a size beyond 64 bits": {0, tup{raw("L1180591620717411303424L\n")}, tup{1}}, "a size of text": {0, "8", tup{1}}, "a stride of a float": {0, tup{8}, tup{1.0}}, "no offset": {nil, tup{8}, tup{1}},
	} {
		v := mustLoad(t, reduce{cls("torch._utils _rebuild_tensor_v2"), append(append(tup{storage(8)}, args...), false, nil)})
		tn, ok := v.(*nested.Tensor)
		if !ok || tn.DType() != tensor.F32 || !errors.Is(tn.Err(), fault.ErrMalformed) {
			t.Errorf("%s: %#v", name, v)
		}
	}
}
