package tensor

import "testing"

func TestWhole(t *testing.T) {
	storage := func(order ByteOrder) *Storage {
		return NewStorage(StorageSpec{Size: 16, Memory: make([]byte, 16), Order: order})
	}
	little, big := storage(LittleEndian), storage(BigEndian)
	cases := map[string]struct {
		spec Spec
		want bool
	}{
		"whole":        {Spec{Storage: little, DType: F32, Shape: []int64{2, 2}}, true},
		"odd strides":  {Spec{Storage: little, DType: F32, Shape: []int64{4, 1}, Strides: []int64{1, 7}}, true},
		"part":         {Spec{Storage: little, DType: F32, Shape: []int64{3}}, false},
		"from one on":  {Spec{Storage: little, DType: F32, Shape: []int64{3}, Offset: 1}, false},
		"transposed":   {Spec{Storage: little, DType: F32, Shape: []int64{2, 2}, Strides: []int64{1, 2}}, false},
		"repeated":     {Spec{Storage: little, DType: F32, Shape: []int64{4}, Strides: []int64{0}}, false},
		"negative":     {Spec{Storage: little, DType: F32, Shape: []int64{4}, Neg: true}, false},
		"conjugate":    {Spec{Storage: little, DType: C64, Shape: []int64{2}, Conj: true}, false},
		"big-endian":   {Spec{Storage: big, DType: F32, Shape: []int64{4}}, false},
		"single bytes": {Spec{Storage: big, DType: U8, Shape: []int64{16}}, true},
	}
	for name, c := range cases {
		x, err := New(c.spec)
		if err != nil {
			t.Fatal(name, err)
		}
		if s, ok := x.Whole(); ok != c.want || ok && s != c.spec.Storage {
			t.Errorf("%s: %v, want %v", name, ok, c.want)
		}
	}
	x, err := New(cases["whole"].spec)
	if err != nil {
		t.Fatal(err)
	}
	if x, err = x.Cast(F16); err != nil {
		t.Fatal(err)
	}
	if _, ok := x.Whole(); ok {
		t.Error("converted elements are not the storage's bytes")
	}
}
