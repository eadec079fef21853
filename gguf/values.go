package gguf

import (
	"encoding/binary"
	"math"
)

const (
	magic     = "GGUF"
	version   = 3
	alignment = 32 // of tensors, bytes: GGUF_DEFAULT_ALIGNMENT in ggml's gguf.h
)

// valueType is enum gguf_type in ggml's gguf.h.
type valueType uint32

const (
	typeUint8 valueType = iota
	typeInt8
	typeUint16
	typeInt16
	typeUint32
	typeInt32
	typeFloat32
	typeBool
	typeString
	typeArray
	typeUint64
	typeInt64
	typeFloat64
)

// pairs collects the key-value pairs of a header in order.
type pairs struct {
	count uint64
	b     []byte
}

func (p *pairs) key(name string, t valueType) {
	p.count++
	p.b = appendString(p.b, name)
	p.b = binary.LittleEndian.AppendUint32(p.b, uint32(t))
}

func appendString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}

func (p *pairs) text(name, s string) {
	p.key(name, typeString)
	p.b = appendString(p.b, s)
}

func (p *pairs) uint(name string, n int) {
	p.key(name, typeUint32)
	p.b = binary.LittleEndian.AppendUint32(p.b, uint32(n))
}

func (p *pairs) float(name string, f float64) {
	p.key(name, typeFloat32)
	p.b = binary.LittleEndian.AppendUint32(p.b, math.Float32bits(float32(f)))
}

func (p *pairs) bool(name string, v bool) {
	p.key(name, typeBool)
	n := byte(0)
	if v {
		n = 1
	}
	p.b = append(p.b, n)
}

func (p *pairs) array(name string, t valueType, n int) {
	p.key(name, typeArray)
	p.b = binary.LittleEndian.AppendUint32(p.b, uint32(t))
	p.b = binary.LittleEndian.AppendUint64(p.b, uint64(n))
}

func (p *pairs) texts(name string, list []string) {
	p.array(name, typeString, len(list))
	for _, s := range list {
		p.b = appendString(p.b, s)
	}
}

func (p *pairs) floats(name string, list []float32) {
	p.array(name, typeFloat32, len(list))
	for _, f := range list {
		p.b = binary.LittleEndian.AppendUint32(p.b, math.Float32bits(f))
	}
}

func (p *pairs) ints(name string, list []int32) {
	p.array(name, typeInt32, len(list))
	for _, n := range list {
		p.b = binary.LittleEndian.AppendUint32(p.b, uint32(n))
	}
}
