package nested

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"testing"

	"github.com/wick-ml/wick/fault"
)

// TestTupleKeys tells tuples apart by what is in them.
func TestTupleKeys(t *testing.T) {
	tuple := func(items ...Value) *List { return NewList("tuple", items...) }
	big1 := BigInt{new(big.Int).Lsh(big.NewInt(1), 100)}
	big2 := BigInt{new(big.Int).Neg(big1.Int)}
	keys := []Value{
		tuple(), tuple(tuple()), tuple(Int(1)), tuple(Int(1), Int(2)), tuple(tuple(Int(1)), Int(2)), tuple(String("1")), tuple(Bytes("1")),
		tuple(String("a"), String("b")), tuple(String("ab")), tuple(None{}), tuple(Bool(false)), tuple(Float(1.5)), NewList("frozenset", Int(1)), NewList("frozenset", Int(1), Int(2)), big1, big2, tuple(big1), tuple(big2),
	}
	m := NewMap("dict")
	for i, k := range keys {
		if err := m.Set(k, Int(i)); err != nil {
			t.Fatal(err)
		}
	}
	if m.Len() != len(keys) {
		t.Fatalf("%d keys, want %d", m.Len(), len(keys))
	}
	if v, ok := m.Get(tuple(Int(1), Int(2))); !ok || v != Value(Int(3)) {
		t.Errorf("an equal tuple finds %v", v)
	}
	if v, ok := m.Get(NewList("frozenset", Int(2), Bool(true))); !ok || v != Value(Int(13)) {
		t.Errorf("an equal frozenset finds %v", v)
	}
}

// TestEqualNumbers has numbers of one value as one key, as Python's dict has: the
// first key stays, with the last value.
func TestEqualNumbers(t *testing.T) {
	long := new(big.Int).Lsh(big.NewInt(1), 100)
	for _, keys := range [][]Value{
		{Int(1), Bool(true), Float(1), Complex(1)}, {Bool(false), Int(0), Float(math.Copysign(0, -1)), Complex(complex(0, math.Copysign(0, -1)))},
		{Float(-2), Int(-2)}, {BigInt{long}, Float(0x1p100), Complex(0x1p100)}, {Int(math.MinInt64), Float(-0x1p63)}, {BigInt{new(big.Int).Lsh(big.NewInt(1), 63)}, Float(0x1p63)},
		{Complex(2i), Complex(complex(math.Copysign(0, -1), 2))}, {NewList("tuple", Int(1)), NewList("tuple", Bool(true)), NewList("torch.Size", Float(1))},
	} {
		m := NewMap("dict")
		for i, key := range keys {
			if err := m.Set(key, Int(i)); err != nil {
				t.Fatal(err)
			}
		}
		for _, key := range keys {
			if v, ok := m.Get(key); m.Len() != 1 || !ok || v != Value(Int(len(keys)-1)) || m.Entry(0).Key != keys[0] {
				t.Errorf("%v: %d keys, %v finds %v", keys, m.Len(), key, v)
			}
		}
	}
	m := NewMap("dict")
	for i, key := range []Value{Float(0x1p53), Int(1<<53 + 1), Float(0.5), Float(math.Inf(1)), Float(math.Inf(-1)), String("1"), Int(1), Complex(1i), Float(math.NaN())} {
		if err := m.Set(key, None{}); err != nil || m.Len() != i+1 {
			t.Errorf("%v: %d keys, %v", key, m.Len(), err)
		}
	}
	if err := m.Set(Float(math.NaN()), None{}); !errors.Is(err, fault.ErrMalformed) {
		t.Errorf("a second NaN: %v", err)
	}
	if got, err := Distinct([]Value{Int(2), Float(2), String("2"), Bool(true), Int(1)}); err != nil || len(got) != 3 || got[0] != Value(Int(2)) || got[2] != Value(Bool(true)) {
		t.Errorf("a set has %v, %v", got, err)
	}
}

// TestMapOfMany sets, changes and finds keys of two types in a map that grows.
func TestMapOfMany(t *testing.T) {
	const n = 3000
	m := NewMap("dict")
	for round := range 2 {
		for i := range n {
			for _, key := range []Value{Int(i), String(strconv.Itoa(i))} {
				if err := m.Set(key, Int(i*round)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if m.Len() != 2*n {
		t.Fatalf("%d keys, want %d", m.Len(), 2*n)
	}
	at := 0
	for key, value := range m.All() {
		if got, ok := m.Get(key); !ok || got != value || value != Value(Int(at/2)) || m.Entry(at).Key != key {
			t.Fatalf("key %d is %v and finds %v", at, key, got)
		}
		at++
	}
	for _, key := range []Value{Int(n), String("x"), Float(1.5)} {
		if got, ok := m.Get(key); ok {
			t.Errorf("%v, which was never set, finds %v", key, got)
		}
	}
}

// TestSharedTupleKey uses tuples of exponential size as keys. Whoever spells out
// their 2^100 items never comes to the end.
func TestSharedTupleKey(t *testing.T) {
	for _, leaf := range []Value{NewList("tuple"), Int(1), String(make([]byte, 1<<20))} {
		key := NewList("tuple", leaf)
		for range 100 {
			key = NewList("tuple", key, key)
		}
		m := NewMap("dict")
		for range 100 {
			if err := m.Set(key, None{}); err != nil {
				t.Fatal(err)
			}
		}
		if m.Len() != 1 {
			t.Errorf("one key is there %d times", m.Len())
		}
	}
}

// TestNearest finds what a person meant, and nothing where nothing is near.
func TestNearest(t *testing.T) {
	names := []string{"model.layer1.weight", "model.layer1.bias", "model.layer2.weight", "head"}
	for name, want := range map[string]string{
		"model.layer1.wieght": "model.layer1.weight", "model.layer3.weight": "model.layer1.weight", // two edits; the first of two as near
		"layer2.weight": "model.layer2.weight", "module.model.encoder.head": "head", // the same last parts
		"optimizer.state": "", "": "",
	} {
		if got := Nearest(name, names); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
