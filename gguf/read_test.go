package gguf_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"testing"
)

// file is a GGUF file as this test reads it, from the format's own description.
type file struct {
	t       *testing.T
	b       []byte
	at      int
	header  map[string]any // of texts, numbers as float64, bools, and lists of these
	tensors map[string]info
}

type info struct {
	Type   string
	Shape  []int
	SHA256 string
}

var typeNames = map[uint32]string{0: "F32", 1: "F16", 8: "Q8_0", 30: "BF16"}

func parse(t *testing.T, b []byte) *file {
	t.Helper()
	f := &file{t: t, b: b, header: map[string]any{}, tensors: map[string]info{}}
	if string(f.take(4)) != "GGUF" || f.u32() != 3 {
		t.Fatal("no GGUF file of version 3")
	}
	tensors, pairs := f.u64(), f.u64()
	for range pairs {
		key := f.text()
		if _, twice := f.header[key]; twice {
			t.Errorf("the key %s stands twice", key)
		}
		f.header[key] = f.value(f.u32())
	}
	f.body(int(tensors))
	return f
}

func (f *file) body(n int) {
	type place struct {
		name         string
		offset, size int
	}
	var places []place
	for range n {
		name := f.text()
		shape := make([]int, f.u32())
		elements := 1
		for i := range shape {
			shape[i] = int(f.u64())
			elements *= shape[i]
		}
		slices.Reverse(shape)
		kind := typeNames[f.u32()]
		size := map[string]int{"F32": elements * 4, "F16": elements * 2, "BF16": elements * 2, "Q8_0": elements / 32 * 34}[kind]
		f.tensors[name] = info{Type: kind, Shape: shape}
		places = append(places, place{name, int(f.u64()), size})
	}
	base, end := (f.at+31)/32*32, 0
	if !allZero(f.b[f.at:base]) {
		f.t.Error("the header is not padded with zeros")
	}
	for _, p := range places {
		if p.offset%32 != 0 || p.offset < end || !allZero(f.b[base+end:base+p.offset]) {
			f.t.Errorf("%s begins at %d behind %d", p.name, p.offset, end)
		}
		end = p.offset + p.size
		sum := sha256.Sum256(f.b[base+p.offset : base+end])
		i := f.tensors[p.name]
		i.SHA256 = hex.EncodeToString(sum[:])
		f.tensors[p.name] = i
	}
	if (base+end+31)/32*32 != len(f.b) {
		f.t.Errorf("%d bytes, want %d and padding", len(f.b), base+end)
	}
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

func (f *file) take(n int) []byte {
	if n < 0 || n > len(f.b)-f.at {
		f.t.Fatalf("%d bytes at %d of %d", n, f.at, len(f.b))
	}
	f.at += n
	return f.b[f.at-n : f.at]
}

func (f *file) u32() uint32  { return binary.LittleEndian.Uint32(f.take(4)) }
func (f *file) u64() uint64  { return binary.LittleEndian.Uint64(f.take(8)) }
func (f *file) text() string { return string(f.take(int(f.u64()))) }

func (f *file) value(kind uint32) any {
	switch kind {
	case 4:
		return float64(f.u32())
	case 5:
		return float64(int32(f.u32()))
	case 6:
		return float64(math.Float32frombits(f.u32()))
	case 7:
		return f.take(1)[0] == 1
	case 8:
		return f.text()
	case 9:
		of, n := f.u32(), f.u64()
		list := []any{}
		for range n {
			list = append(list, f.value(of))
		}
		return list
	default:
		f.t.Fatalf("a value of type %d", kind)
		return nil
	}
}
