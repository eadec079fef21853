package nested

import (
	"math/big"
	"strconv"
	"testing"
)

// TestTupleKeys tells tuples apart by what is in them.
func TestTupleKeys(t *testing.T) {
	tuple := func(items ...Value) *List { return NewList("tuple", items...) }
	big1 := BigInt{new(big.Int).Lsh(big.NewInt(1), 100)}
	big2 := BigInt{new(big.Int).Neg(big1.Int)}
	keys := []Value{
		tuple(), tuple(tuple()), tuple(Int(1)), tuple(Int(1), Int(2)), tuple(tuple(Int(1)), Int(2)), tuple(String("1")), tuple(Bytes("1")),
		tuple(String("a"), String("b")), tuple(String("ab")), tuple(None{}), tuple(Bool(true)), tuple(Float(1)), big1, big2, tuple(big1), tuple(big2),
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
	for _, key := range []Value{Int(n), String("x"), Float(1)} {
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
