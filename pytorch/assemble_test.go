package pytorch

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
	"github.com/wick-ml/wick/tensor"
)

// The tests write pickles of protocol 2 from these and from Go's nil, bool,
// int, float64, string and []byte.
type (
	tup    []any    // a tuple
	lst    []any    // a list
	dct    []any    // a dict: keys and values in turn
	cls    string   // a global: "module name"
	reduce struct { // fn(*args)
		fn, args any
	}
	newobj struct{ class, args any }
	built  struct{ object, state any }
	persid struct{ id any }
	filled struct { // an object that is given items or pairs
		object any
		items  lst
		pairs  dct
	}
	raw string // opcodes as they are
)

// assemble returns the pickle of v.
func assemble(v any) []byte { return append(emit([]byte{0x80, 2}, v), '.') }

func emit(p []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(p, 'N')
	case bool:
		if v {
			return append(p, 0x88)
		}
		return append(p, 0x89)
	case int:
		if v == int(int32(v)) {
			return binary.LittleEndian.AppendUint32(append(p, 'J'), uint32(v))
		}
		return fmt.Appendf(p, "L%dL\n", v)
	case int64:
		return fmt.Appendf(p, "L%dL\n", v)
	case float64:
		return binary.BigEndian.AppendUint64(append(p, 'G'), math.Float64bits(v))
	case string:
		return append(binary.LittleEndian.AppendUint32(append(p, 'X'), uint32(len(v))), v...)
	case []byte:
		return append(binary.LittleEndian.AppendUint32(append(p, 'B'), uint32(len(v))), v...)
	case tup:
		return append(emitAll(append(p, '('), v), 't')
	case lst:
		return append(emitAll(append(p, ']', '('), v), 'e')
	case dct:
		return append(emitAll(append(p, '}', '('), v), 'u')
	case cls:
		module, name, _ := strings.Cut(string(v), " ")
		return append(p, "c"+module+"\n"+name+"\n"...)
	case raw:
		return append(p, v...)
	}
	return emitObject(p, v)
}

func emitAll(p []byte, items []any) []byte {
	for _, v := range items {
		p = emit(p, v)
	}
	return p
}

func emitObject(p []byte, v any) []byte {
	switch v := v.(type) {
	case reduce:
		return append(emit(emit(p, v.fn), v.args), 'R')
	case newobj:
		return append(emit(emit(p, v.class), v.args), 0x81)
	case built:
		return append(emit(emit(p, v.object), v.state), 'b')
	case persid:
		return append(emit(p, v.id), 'Q')
	case filled:
		p = emit(p, v.object)
		if v.items != nil {
			p = append(emitAll(append(p, '('), v.items), 'e')
		}
		if v.pairs != nil {
			p = append(emitAll(append(p, '('), v.pairs), 'u')
		}
		return p
	}
	panic(fmt.Sprintf("a test pickles a %T", v))
}

// storage is the persistent id of a storage of floats, key "0".
func storage(elements int) persid {
	return persid{tup{"storage", cls("torch FloatStorage"), "0", "cpu", elements}}
}

// tensorV2 is a tensor as torch.save writes it.
func tensorV2(storage any, offset int, size, stride tup) reduce {
	hooks := reduce{cls("collections OrderedDict"), tup{}}
	return reduce{cls("torch._utils _rebuild_tensor_v2"), tup{storage, offset, size, stride, false, hooks}}
}

// ramp is a storage that holds 0, 1, 2 …
func ramp(n int) *tensor.Storage {
	var b []byte
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i)))
	}
	return tensor.NewStorage(tensor.StorageSpec{Name: "data/0", Size: int64(len(b)), Memory: append([]byte{}, b...)})
}

// newLoader returns a loader whose every storage holds n floats.
func newLoader(n int) *loader {
	return &loader{
		limits:  checkpoint.Limits{}.Default(),
		record:  "data.pkl",
		storage: func(storageRef) (*tensor.Storage, error) { return ramp(n), nil },
	}
}

// mustLoad loads the pickle of v over storages of eight floats.
func mustLoad(t testing.TB, v any) nested.Value {
	t.Helper()
	root, err := newLoader(8).load(pickle.NewCursor(assemble(v)))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// values reads a tensor of floats.
func values(t testing.TB, v nested.Value) []float32 {
	t.Helper()
	tn, ok := v.(*nested.Tensor)
	if !ok {
		t.Fatalf("a %T is no tensor", v)
	}
	out, err := tensor.Values[float32](t.Context(), tn.Tensor)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
