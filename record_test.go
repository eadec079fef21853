package wick_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/record/meta"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/tensor"
)

// extensions are those of every form of record.
var extensions = []string{".safetensors", ".cbor", ".cbor.gz", ".cbor.zst", ".json"}

// model has scalars and texts beside its tensors.
type model struct {
	Conv   nn.Conv2d[float32]
	Layers []nn.Linear[float32]
	Heads  map[string]nn.Linear[float32]
	Halfs  tensor.Array[tensor.Float16]
	IDs    []int64
	Flags  []bool
	Epoch  int
	LR     float64
	Name   string
	Notes  []string
	Extra  *nn.LayerNorm[float32]
	Codes  map[uint64]string
	Banks  map[uint8][]int16
}

func array[T tensor.Element](shape []int, data ...T) tensor.Array[T] {
	return tensor.Array[T]{Shape: shape, Data: data}
}

func newModel() *model {
	linear := nn.Linear[float32]{Weight: array([]int{1, 2}, float32(1.5), -2), Bias: array([]int{1}, float32(0.25))}
	return &model{
		Conv:   nn.Conv2d[float32]{Weight: array([]int{2, 1, 1, 2}, float32(1), 2, 3, 70000)},
		Layers: []nn.Linear[float32]{linear, linear},
		Heads:  map[string]nn.Linear[float32]{"a": linear},
		Halfs:  array([]int{3}, tensor.Float16(0x3c00), 0, 0xfc00),
		IDs:    []int64{1 << 40, -1}, Flags: []bool{true, false},
		Epoch: 3, LR: 1e-3, Name: "ünï\n", Notes: []string{"a", ""},
		Codes: map[uint64]string{0: "none", 1<<64 - 1: "last"}, Banks: map[uint8][]int16{255: {-1}, 3: {1, 2}},
	}
}

// saved writes v in every form of record and calls f with each file.
func saved(t *testing.T, v any, f func(t *testing.T, file string), opts ...wick.ConvertOption) {
	t.Helper()
	for _, ext := range extensions {
		t.Run(ext, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "model"+ext)
			if _, err := wick.Save(t.Context(), file, v, opts...); err != nil {
				t.Fatal(err)
			}
			f(t, file)
		})
	}
}

func TestLoadOfSaveIsTheSame(t *testing.T) {
	want := newModel()
	saved(t, want, func(t *testing.T, file string) {
		var got model
		if _, err := wick.Load(t.Context(), file, &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(&got, want) {
			t.Errorf("got  %+v\nwant %+v", got, *want)
		}
	})
}

// header returns what a record says of itself.
func header(t *testing.T, file string) checkpoint.RecordHeader {
	t.Helper()
	c, err := wick.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h, ok := meta.Told(c.Info)
	if !ok {
		t.Fatalf("%s is no record", file)
	}
	return h
}

type onlyFloats struct{ W, B []float32 }

func TestRecordsSayWhatTheyAre(t *testing.T) {
	saved(t, newModel(), func(t *testing.T, file string) {
		want := checkpoint.RecordHeader{Version: meta.Version, Type: "wick_test.model", Writer: "wick"}
		if got := header(t, file); got != want {
			t.Errorf("mixed: %+v, want %+v", got, want)
		}
	})
	for d, name := range map[tensor.DType]string{tensor.Invalid: "full", tensor.F16: "half", tensor.BF16: "bfloat16", tensor.F32: "full", tensor.F64: "double"} {
		saved(t, &onlyFloats{W: []float32{1}, B: []float32{2}}, func(t *testing.T, file string) {
			if got := header(t, file); got.Precision != name {
				t.Errorf("%v: %+v, want precision %s", d, got, name)
			}
		}, wick.Precision(d))
	}
}

// A conversion of a record is a record of the same type, in whatever form, unless
// another is asked for.
func TestAConvertedRecordStaysARecord(t *testing.T) {
	saved(t, newModel(), func(t *testing.T, file string) {
		for _, ext := range extensions {
			out := filepath.Join(t.TempDir(), "again"+ext)
			c, err := wick.Open(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := wick.Convert(t.Context(), c, out); err != nil {
				t.Fatal(err)
			}
			var got model
			if _, err := wick.Load(t.Context(), out, &got); err != nil {
				t.Fatalf("to %s: %v", ext, err)
			}
			if !reflect.DeepEqual(&got, newModel()) || header(t, out).Type != "wick_test.model" {
				t.Errorf("to %s: got %+v", ext, got)
			}
			if _, err := wick.Convert(t.Context(), c, out, wick.AsRecord(checkpoint.RecordHeader{Type: "p.Q"}), wick.Overwrite()); err != nil || header(t, out).Type != "p.Q" {
				t.Errorf("to %s as p.Q: %+v, %v", ext, header(t, out), err)
			}
		}
	})
}

// What a smaller precision loses is counted, on the way out and on the way in.
func TestPrecisionReportsItsLoss(t *testing.T) {
	v := onlyFloats{W: []float32{1, 70000, -1e38, 65504}, B: []float32{0.1}}
	file := filepath.Join(t.TempDir(), "half.cbor")
	report, err := wick.Save(t.Context(), file, &v, wick.Precision(tensor.F16))
	if err != nil {
		t.Fatal(err)
	}
	if report.Stats.Loss.Overflow != 2 {
		t.Errorf("%d overflows counted, want 2", report.Stats.Loss.Overflow)
	}
	full := filepath.Join(t.TempDir(), "full.cbor")
	if _, err := wick.Save(t.Context(), full, &v); err != nil {
		t.Fatal(err)
	}
	var halfs struct{ W, B []tensor.Float16 }
	loaded, err := wick.Load(t.Context(), full, &halfs)
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Overflow != 2 || halfs.W[1] != 0x7c00 || halfs.W[2] != 0xfc00 || halfs.W[3] != 0x7bff {
		t.Errorf("%d overflows, %#x", loaded.Overflow, halfs.W)
	}
}

type another struct{ W, B []float32 }

// strict is a type that was once called something else and takes halfs alone.
type strict struct{ W, B []tensor.Float16 }

func (strict) RecordHeader() checkpoint.RecordHeader {
	return checkpoint.RecordHeader{Type: "wick_test.onlyFloats", Precision: "half"}
}

func TestMismatchOfARecordNamesBothSides(t *testing.T) {
	names := func(err error, sides ...string) {
		t.Helper()
		if !errors.Is(err, fault.ErrMismatch) {
			t.Errorf("%v, want a mismatch", err)
			return
		}
		for _, side := range sides {
			if !strings.Contains(err.Error(), side) {
				t.Errorf("%q does not name %q", err, side)
			}
		}
	}
	v := &onlyFloats{W: []float32{1}, B: []float32{2}}
	saved(t, v, func(t *testing.T, file string) {
		got := another{W: []float32{7}}
		_, err := wick.Load(t.Context(), file, &got)
		names(err, file, "wick_test.onlyFloats", "wick_test.another")
		if got.W[0] != 7 {
			t.Error("the value was changed")
		}
		_, err = wick.Load(t.Context(), file, &strict{})
		names(err, file, "full precision", "half precision")
		var free struct{ W, B []float32 }
		if _, err := wick.Load(t.Context(), file, &free); err != nil {
			t.Errorf("a type without a name: %v", err)
		}
	})
	saved(t, v, func(t *testing.T, file string) {
		var got strict
		if _, err := wick.Load(t.Context(), file, &got); err != nil || got.W[0] != 0x3c00 {
			t.Errorf("%+v, %v", got, err)
		}
	}, wick.Precision(tensor.F16))
}

func TestNamesOfTypes(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{&onlyFloats{}, "wick_test.onlyFloats"}, {onlyFloats{}, "wick_test.onlyFloats"}, {&nn.Linear[float32]{}, "nn.Linear"},
		{&struct{}{}, ""}, {map[string]int{}, ""}, {nil, ""}, {new(int), ""}, {&strict{}, "wick_test.onlyFloats"},
		{nested.NewMap("dict"), ""}, {nested.F32s{}, ""}, // the tree of any record
	} {
		if got := meta.Want(c.v).Type; got != c.want {
			t.Errorf("%T: %q, want %q", c.v, got, c.want)
		}
	}
}

// Fields come and go. A newer program reads an older record where its new fields
// are optional, an older one reads a newer record if it allows what it does not know.
func TestAddedAndRemovedFields(t *testing.T) {
	type v1 struct {
		W     []float32
		Epoch int
	}
	type v2 struct {
		W     []float32
		Scale []float32 `torch:", optional"`
		Shift []float32 `torch:", optional"`
		Eps   float64   `torch:", default=1e-5"`
		Epoch *int
	}
	saved(t, &struct {
		W     []float32
		Epoch int
	}{[]float32{1}, 3}, func(t *testing.T, file string) {
		var got v2
		if _, err := wick.Load(t.Context(), file, &got); err != nil {
			t.Fatal(err)
		}
		if got.W[0] != 1 || got.Scale != nil || got.Eps != 1e-5 || *got.Epoch != 3 {
			t.Errorf("an older record: %+v", got)
		}
	})
	saved(t, &struct {
		W, Scale []float32
		Eps      float64
		Epoch    int
	}{[]float32{1}, []float32{2}, 0.5, 4}, func(t *testing.T, file string) {
		var old v1
		_, err := wick.Load(t.Context(), file, &old)
		var fit *serde.FitError
		if !errors.As(err, &fit) || len(fit.Unexpected) != 1 || fit.Unexpected[0].Name != "scale" {
			t.Errorf("a tensor that nobody takes is not told: %v", err)
		}
		report, err := wick.Load(t.Context(), file, &old, serde.AllowUnexpected())
		if err != nil {
			t.Fatal(err)
		}
		if old.W[0] != 1 || old.Epoch != 4 || len(report.Plan.Unexpected) != 1 || len(report.Plan.Ignored) != 1 {
			t.Errorf("a newer record: %+v\n%s", old, report.Plan)
		}
		var strictly struct {
			W, Scale, Shift []float32
			Epoch           int
		}
		if _, err := wick.Load(t.Context(), file, &strictly); !errors.Is(err, fault.ErrNotFound) {
			t.Errorf("a field that finds nothing: %v", err)
		}
	})
}

// One and the same file holds the whole record and is an ordinary safetensors
// file for others: its tensors have their flat names.
func TestASafetensorsRecordIsOrdinarySafetensors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "model.safetensors")
	if _, err := wick.Save(t.Context(), file, newModel()); err != nil {
		t.Fatal(err)
	}
	c, err := wick.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m, ok := c.Root.(*nested.Map)
	if !ok {
		t.Fatalf("the root is a %T", c.Root)
	}
	if epoch, _ := m.Lookup("epoch"); epoch != nested.Value(nested.Int(3)) {
		t.Errorf("epoch is %v", epoch)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), `"layers.1.weight":{"dtype":"F32"`) {
		t.Errorf("no tensor called layers.1.weight in\n%.400q", raw)
	}
}

func TestOpenString(t *testing.T) {
	file := filepath.Join(t.TempDir(), "model.safetensors")
	if _, err := wick.Save(t.Context(), file, newModel()); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := wick.OpenString(t.Context(), "embedded", string(raw))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var got model
	if _, err := wick.Unmarshal(t.Context(), c, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&got, newModel()) {
		t.Errorf("got %+v", got)
	}
}

// unmarshalBytes loads v from the bytes of a file of the name.
func unmarshalBytes(t *testing.T, file string, b []byte, v any) error {
	t.Helper()
	c, err := wick.OpenBytes(t.Context(), file, b)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = wick.Unmarshal(t.Context(), c, v)
	return err
}

// A record that was cut off or changed anywhere is an error, or says the same as
// before; the value is not half filled and keeps what it was.
func TestDamagedRecordsThroughLoad(t *testing.T) {
	saved(t, newModel(), func(t *testing.T, file string) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		load := func(b []byte) (*model, error) {
			v := &model{Name: "before"}
			return v, unmarshalBytes(t, file, b, v)
		}
		end := len(strings.TrimRight(string(b), "\n"))
		for n := 0; n < end; n += 7 {
			if v, err := load(b[:n]); err == nil || v.Name != "before" || v.Conv.Weight.Data != nil {
				t.Fatalf("%d of %d bytes: %v, %+v", n, len(b), err, v)
			}
		}
		for i := 0; i < len(b); i += 5 {
			b[i] ^= 4
			v, err := load(b)
			if err != nil && (v.Name != "before" || v.Conv.Weight.Data != nil) || err == nil && !reflect.DeepEqual(v, newModel()) {
				t.Fatalf("byte %d of %d changed: %v, %+v", i, len(b), err, v)
			}
			b[i] ^= 4
		}
	})
}
