package gomlx

import (
	"context"
	"errors"
	"maps"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/tensor"
)

// backend is the one of all tests: tensors belong to the backend that they were made for.
var backend = gobackend.GetBackend()

// read returns what GoMLX has after Read of one tensor.
func read(t *testing.T, from *tensor.Tensor, floats dtypes.DType) *tensors.Tensor {
	t.Helper()
	to, err := Read(t.Context(), backend, []*tensor.Tensor{from}, floats)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(to[0].Shape().Dimensions, from.Shape()) {
		t.Errorf("shape %v became %v", from.Shape(), to[0].Shape().Dimensions)
	}
	return to[0]
}

func TestReadEveryDType(t *testing.T) {
	half := []tensor.Float16{tensor.Float16From(1.5), tensor.Float16From(-2)}
	brain := []tensor.BFloat16{tensor.BFloat16From(1.5), tensor.BFloat16From(-2)}
	for _, test := range []struct {
		from *tensor.Tensor
		want any
	}{
		{tensor.Of([]float64{1.5, -2}, 2), []float64{1.5, -2}},
		{tensor.Of([]float32{1.5, -2}, 2), []float32{1.5, -2}},
		{tensor.Of([]int8{1, -2}, 2), []int8{1, -2}},
		{tensor.Of([]int16{1, -2}, 2), []int16{1, -2}},
		{tensor.Of([]int32{1, -2}, 2), []int32{1, -2}},
		{tensor.Of([]int64{1, math.MinInt64}, 2), []int64{1, math.MinInt64}},
		{tensor.Of([]uint8{1, 255}, 2), []uint8{1, 255}},
		{tensor.Of([]uint16{1, 65535}, 2), []uint16{1, 65535}},
		{tensor.Of([]uint32{1, 1 << 31}, 2), []uint32{1, 1 << 31}},
		{tensor.Of([]uint64{1, 1 << 63}, 2), []uint64{1, 1 << 63}},
		{tensor.Of([]bool{true, false}, 2), []bool{true, false}},
		{tensor.Of([]complex64{1 + 2i, -3}, 2), []complex64{1 + 2i, -3}},
		{tensor.Of([]complex128{1 + 2i, -3}, 2), []complex128{1 + 2i, -3}},
	} {
		got := read(t, test.from, Keep).Value()
		if g, w := tensors.MustFromAnyValue(got), tensors.MustFromAnyValue(test.want); !g.Equal(w) {
			t.Errorf("%v: %v became %v", test.from.DType(), test.want, got)
		}
	}
	for _, from := range []*tensor.Tensor{tensor.Of(half, 2), tensor.Of(brain, 2)} {
		kept := read(t, from, Keep)
		if want, err := DType(from.DType()); err != nil || kept.DType() != want {
			t.Errorf("%v became %v: %v", from.DType(), kept.DType(), err)
		}
		wide, err := graph.CallOnce(backend, func(x *graph.Node) *graph.Node { return graph.ConvertDType(x, dtypes.Float32) }, kept)
		if err != nil {
			t.Fatal(err)
		}
		if got := wide.Value(); !slices.Equal(got.([]float32), []float32{1.5, -2}) {
			t.Errorf("%v: GoMLX reads %v", from.DType(), got)
		}
	}
}

func TestReadConvertsFloatsAlone(t *testing.T) {
	if got := read(t, tensor.Of([]tensor.Float16{tensor.Float16From(0.25)}, 1, 1), dtypes.Float32).Value(); !slices.Equal(got.([][]float32)[0], []float32{0.25}) {
		t.Errorf("a half became %v", got)
	}
	if got := read(t, tensor.Of([]int64{7}, 1), dtypes.Float32).Value(); !slices.Equal(got.([]int64), []int64{7}) {
		t.Errorf("an integer became %v", got)
	}
}

// Strides are resolved on the way, and a number and nothing at all are tensors too.
func TestReadShapes(t *testing.T) {
	turned, err := tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 2, 3).Transpose(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := tensors.MustCopyFlatData[float32](read(t, turned, Keep)); !slices.Equal(got, []float32{1, 4, 2, 5, 3, 6}) {
		t.Errorf("a transposed tensor became %v", got)
	}
	number := tensor.Array[float32]{Shape: []int{}, Data: []float32{3}}
	if got := read(t, number.Tensor(), Keep).Value(); got != float32(3) {
		t.Errorf("a number became %v", got)
	}
	read(t, tensor.Of([]float32{}, 0, 3), Keep)
}

func TestReadFails(t *testing.T) {
	fine := tensor.Of([]float32{1}, 1)
	if _, err := Read(t.Context(), backend, []*tensor.Tensor{fine, tensor.Of([]tensor.Float8E5M2{1}, 1)}, Keep); err == nil {
		t.Error("GoMLX has an 8-bit float")
	}
	broken := errors.New("no bytes")
	if _, err := Read(t.Context(), backend, []*tensor.Tensor{fine, tensor.Unavailable(tensor.F32, []int{1}, broken)}, Keep); !errors.Is(err, broken) {
		t.Errorf("a tensor without bytes gives the error %v", err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(done, backend, []*tensor.Tensor{fine}, Keep); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is done gives the error %v", err)
	}
}

func TestVariablesAreNotReplaced(t *testing.T) {
	store := model.NewStore()
	named := map[string]*tensor.Tensor{"a.b": tensor.Of([]float32{1}, 1)}
	if err := Variables(t.Context(), backend, store.RootScope().In("net"), maps.All(named), Keep); err != nil {
		t.Fatal(err)
	}
	if v := store.GetVariable("/net/a/b"); v == nil || !slices.Equal(v.MustValue().Value().([]float32), []float32{1}) {
		t.Errorf("the variable is %v", v)
	}
	if err := Variables(t.Context(), backend, store.RootScope().In("net"), maps.All(named), Keep); err == nil {
		t.Error("a variable was made twice")
	}
}

// Fields that share memory share the variable; others do not.
func TestWeightsShareWhatIsShared(t *testing.T) {
	tied := tensor.Array[float32]{Shape: []int{2}, Data: []float32{1, 2}}
	other := tensor.Array[float32]{Shape: []int{2}, Data: []float32{1, 2}}
	w := NewWeights(backend, Keep)
	sum, err := model.CallOnce(backend, w.Store, func(_ *model.Scope, x *graph.Node) *graph.Node {
		return graph.Add(graph.Add(x, Node(w, x, tied)), graph.Add(Node(w, x, tied), Node(w, x, other)))
	}, []float32{10, 20})
	if err != nil {
		t.Fatal(err)
	}
	if got := sum.Value().([]float32); !slices.Equal(got, []float32{13, 26}) {
		t.Errorf("the sum is %v", got)
	}
	if n := w.Store.NumVariables(); n != 2 {
		t.Errorf("%d variables were made", n)
	}
	if _, err := model.CallOnce(backend, w.Store, func(_ *model.Scope, x *graph.Node) *graph.Node {
		return Node(w, x, tensor.Array[float32]{})
	}, []float32{1}); err == nil {
		t.Error("a field that was not filled is in the graph")
	}
}

// What a file holds becomes GoMLX's memory without a second copy of it in between, also where halves are widened.
func TestReadMakesNoSecondCopy(t *testing.T) {
	const elements = 4 << 20
	record := struct{ Full []float32 }{make([]float32, elements)}
	for i := range record.Full {
		record.Full[i] = float32(i % 1000)
	}
	for _, stored := range []tensor.DType{tensor.F32, tensor.F16} {
		name := filepath.Join(t.TempDir(), "weights.safetensors")
		if _, err := wick.Save(t.Context(), name, &record, wick.Precision(stored)); err != nil {
			t.Fatal(err)
		}
		ckpt, err := wick.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		defer ckpt.Close()
		full, err := ckpt.Lookup("full")
		if err != nil || full.DType() != stored {
			t.Fatalf("saved as %v: %v", stored, err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := read(t, full.Tensor, dtypes.Float32)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 4*elements*5/4 {
			t.Errorf("%v: %d bytes were allocated for %d of float32", stored, n, 4*elements)
		}
		if !slices.Equal(tensors.MustCopyFlatData[float32](got), record.Full) {
			t.Errorf("%v: other values came out", stored)
		}
	}
}
