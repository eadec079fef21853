package tensor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/wick-ml/wick/fault"
)

func bytesStorage(n int) *Storage {
	return NewStorage(StorageSpec{Name: "data/0", Size: int64(n), Memory: make([]byte, n)})
}

// TestNewProvesGeometry holds every way in which a file can lie about a
// tensor's place in its storage.
func TestNewProvesGeometry(t *testing.T) {
	huge := int64(math.MaxInt64)
	tests := []struct {
		name string
		spec Spec
		want error // nil for a sound tensor
	}{
		{"whole", Spec{Shape: []int64{4}}, nil},
		{"scalar", Spec{Shape: nil}, nil},
		{"last element", Spec{Shape: []int64{1}, Offset: 3}, nil},
		{"expanded", Spec{Shape: []int64{1 << 20, 1 << 20}, Strides: []int64{0, 0}}, nil},
		{"size one with an odd stride", Spec{Shape: []int64{1, 4}, Strides: []int64{huge, 1}}, nil},
		{"empty far outside", Spec{Shape: []int64{0}, Offset: 1 << 40}, nil},
		{"one too many", Spec{Shape: []int64{5}}, fault.ErrMalformed},
		{"offset past the end", Spec{Shape: []int64{1}, Offset: 4}, fault.ErrMalformed},
		{"offset of a scalar past the end", Spec{Offset: 4}, fault.ErrMalformed},
		{"stride past the end", Spec{Shape: []int64{2}, Strides: []int64{4}}, fault.ErrMalformed},
		{"negative offset", Spec{Shape: []int64{1}, Offset: -1}, fault.ErrMalformed},
		{"negative size", Spec{Shape: []int64{-1}}, fault.ErrMalformed},
		{"negative stride", Spec{Shape: []int64{2}, Strides: []int64{-1}, Offset: 1}, fault.ErrMalformed},
		{"negative stride of an empty", Spec{Shape: []int64{0}, Strides: []int64{-1}}, fault.ErrMalformed},
		{"fewer strides", Spec{Shape: []int64{2, 2}, Strides: []int64{1}}, fault.ErrMalformed},
		{"product overflows", Spec{Shape: []int64{1 << 30, 1 << 30, 1 << 30}, Strides: []int64{0, 0, 0}}, fault.ErrMalformed},
		{"product overflows beside a zero", Spec{Shape: []int64{0, 1 << 30, 1 << 30, 1 << 30}}, fault.ErrMalformed},
		{"stride overflows", Spec{Shape: []int64{3}, Strides: []int64{huge}}, fault.ErrMalformed},
		{"offset overflows in bytes", Spec{Shape: []int64{1}, Offset: huge}, fault.ErrMalformed},
		{"too many dimensions", Spec{Shape: slices.Repeat([]int64{1}, 65)}, fault.ErrLimit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.Storage, tt.spec.DType = bytesStorage(16), F32
			got, err := New(tt.spec)
			if !errors.Is(err, tt.want) || (err == nil) != (got != nil) {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
		})
	}
}

func TestNewPackedDTypes(t *testing.T) {
	for _, tt := range []struct {
		name string
		spec Spec
		want error
	}{
		{"sixteen bytes hold 32 elements", Spec{DType: QU4x2, Shape: []int64{4, 8}}, nil},
		{"33 do not fit", Spec{DType: QU4x2, Shape: []int64{33}}, fault.ErrMalformed},
		{"sixteen bytes hold 64 elements", Spec{DType: QU2x4, Shape: []int64{64}}, nil},
		{"strided", Spec{DType: QU4x2, Shape: []int64{2, 2}, Strides: []int64{1, 2}}, fault.ErrUnsupported},
		{"starts inside a byte", Spec{DType: QU4x2, Shape: []int64{2}, Offset: 1}, fault.ErrUnsupported},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.Storage = bytesStorage(16)
			if _, err := New(tt.spec); !errors.Is(err, tt.want) {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
		})
	}
}

// TestContiguous follows torch's is_contiguous.
func TestContiguous(t *testing.T) {
	for _, tt := range []struct {
		shape, strides []int64
		want           bool
	}{
		{[]int64{2, 3}, []int64{3, 1}, true},
		{[]int64{2, 3}, []int64{1, 2}, false},
		{[]int64{1, 3}, []int64{77, 1}, true},
		{[]int64{2, 1}, []int64{1, 9}, true},
		{[]int64{0, 3}, []int64{1, 1}, true},
		{[]int64{2, 3}, []int64{0, 1}, false},
		{nil, nil, true},
	} {
		v, err := New(Spec{Storage: bytesStorage(64), DType: F32, Shape: tt.shape, Strides: tt.strides})
		if err != nil {
			t.Fatal(err)
		}
		if got := v.Contiguous(); got != tt.want {
			t.Errorf("shape %v strides %v: %v, want %v", tt.shape, tt.strides, got, tt.want)
		}
	}
}

func TestDTypeNames(t *testing.T) {
	for d := Invalid + 1; d < dtypeCount; d++ {
		for _, name := range []string{d.String(), "torch." + d.String()} {
			if got, ok := ParseDType(name); !ok || got != d {
				t.Errorf("ParseDType(%q) = %v, %v", name, got, ok)
			}
		}
	}
	if _, ok := ParseDType("float33"); ok {
		t.Error("float33 is a dtype")
	}
}

// TestErrorsAreNotShared holds that what one reader adds to a tensor's error is
// not in another's, and what is added to a move's not in those of its neighbours.
func TestErrorsAreNotShared(t *testing.T) {
	broken := Unavailable(F32, []int{2}, fault.New(fault.Malformed, "cut"))
	_, viewed := View[float32](broken)
	_, read := Values[float32](ctx, broken)
	_, ran := Run(ctx, []Move{{broken, Into(make([]float32, 2))}})
	errs := map[string]error{"Err": broken.Err(), "View": viewed, "Values": read, "Run": ran}

	cut := NewStorage(StorageSpec{Name: "data/0", Size: 8, Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("cut")), nil
	}})
	moves := []Move{{vector(cut, U8, 4, 0), Into(make([]uint8, 4))}, {vector(cut, U8, 4, 4), Into(make([]uint8, 4))}}
	_, _ = Run(ctx, moves, Each(func(i int, err error) { errs[fmt.Sprint("move ", i)] = err }))

	for name, err := range errs {
		var e *fault.Error
		if !errors.As(err, &e) || e.Kind != fault.Malformed || e.Path != "" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		e.OnPath(name)
	}
}

// Bytes that come in order must end where their storage does: what goes on, or
// breaks there, was damaged, though no element shows it.
func TestStorageEndsWithItsBytes(t *testing.T) {
	for name, c := range map[string]struct {
		in   io.Reader
		kind fault.Kind
	}{
		"ends":    {strings.NewReader("wick"), ""},
		"goes on": {strings.NewReader("wicks"), fault.Malformed},
		"breaks":  {io.MultiReader(strings.NewReader("wick"), iotest.ErrReader(fault.New(fault.IO, "gone"))), fault.IO},
	} {
		s := NewStorage(StorageSpec{Name: "data/0", Size: 4, Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(c.in), nil }})
		if _, err := Values[uint8](ctx, vector(s, U8, 4, 0)); fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestViewMisuse(t *testing.T) {
	v := Of(make([]float32, 6), 2, 3)
	other := Of(make([]float64, 6), 2, 3)
	for name, call := range map[string]func() (*Tensor, error){
		"narrow a missing dimension": func() (*Tensor, error) { return v.Narrow(2, 0, 1) },
		"narrow past the end":        func() (*Tensor, error) { return v.Narrow(0, 0, 3) },
		"narrow backwards":           func() (*Tensor, error) { return v.Narrow(0, 2, 1) },
		"permute too few":            func() (*Tensor, error) { return v.Permute(0) },
		"permute twice the same":     func() (*Tensor, error) { return v.Permute(0, 0) },
		"transpose a missing one":    func() (*Tensor, error) { return v.Transpose(0, 2) },
		"reshape to another size":    func() (*Tensor, error) { return v.Reshape(7) },
		"reshape with two unknown":   func() (*Tensor, error) { return v.Reshape(-1, -1) },
		"reshape that overflows":     func() (*Tensor, error) { return v.Reshape(1<<30, 1<<30, -1) },
		"expand what is not one":     func() (*Tensor, error) { return v.Expand(4, 3) },
		"expand to fewer dimensions": func() (*Tensor, error) { return v.Expand(3) },
		"squeeze what is not one":    func() (*Tensor, error) { return v.Squeeze(0) },
		"unsqueeze far away":         func() (*Tensor, error) { return v.Unsqueeze(4) },
		"concat nothing":             func() (*Tensor, error) { return Concat(0) },
		"concat along a missing one": func() (*Tensor, error) { return Concat(2, v, v) },
	} {
		if _, err := call(); !errors.Is(err, fault.ErrUsage) {
			t.Errorf("%s: error %v, want a usage error", name, err)
		}
	}
	if _, err := Concat(0, v, other); !errors.Is(err, fault.ErrMismatch) {
		t.Errorf("concat of two dtypes: %v", err)
	}
	if _, err := Of(make([]complex64, 1)).Cast(F32); !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("complex to float: %v", err)
	}
}
