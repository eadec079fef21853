package tensor

import (
	"encoding/binary"
	"sync"
)

// The loops from floats of 8 and 16 bits to float32 load two elements as one
// word and store the two results as one. Both words are in host order, so the
// first element is the first result on every host: where it is the low part of
// the one, it is the low part of the other.

// halfs holds the float32 bits of all halfs. Against one table of 256 KiB all
// arithmetic lost when measured (AMD Zen 3, GB/s of float32 written by one core:
// table 8.2, the same with one element a step 6.4, two lanes of a word at once
// 4.8 falling to 0.6 with zeros among the data, multiplication by 2^112 3.1,
// tables of exponents and mantissas 2.4), and its speed hardly depends on the
// data. It is made at the first use, in about 0.1 ms.
var halfs = sync.OnceValue(func() *[1 << 16]uint32 {
	t := new([1 << 16]uint32)
	for i := range t {
		t[i] = half.widen(uint16(i))
	}
	return t
})

func halfToFloat32(dst, src []byte) Loss {
	t := halfs()
	for len(src) >= 16 && len(dst) >= 32 {
		a, b := binary.NativeEndian.Uint32(src), binary.NativeEndian.Uint32(src[4:])
		c, d := binary.NativeEndian.Uint32(src[8:]), binary.NativeEndian.Uint32(src[12:])
		binary.NativeEndian.PutUint64(dst, uint64(t[a>>16])<<32|uint64(t[a&0xffff]))
		binary.NativeEndian.PutUint64(dst[8:], uint64(t[b>>16])<<32|uint64(t[b&0xffff]))
		binary.NativeEndian.PutUint64(dst[16:], uint64(t[c>>16])<<32|uint64(t[c&0xffff]))
		binary.NativeEndian.PutUint64(dst[24:], uint64(t[d>>16])<<32|uint64(t[d&0xffff]))
		dst, src = dst[32:], src[16:]
	}
	for ; len(src) >= 2; dst, src = dst[4:], src[2:] {
		binary.NativeEndian.PutUint32(dst, t[binary.NativeEndian.Uint16(src)])
	}
	return Loss{}
}

func brainToFloat32(dst, src []byte) Loss {
	const upper = 0xffff0000ffff0000
	for len(src) >= 16 && len(dst) >= 32 {
		a, b := uint64(binary.NativeEndian.Uint32(src)), uint64(binary.NativeEndian.Uint32(src[4:]))
		c, d := uint64(binary.NativeEndian.Uint32(src[8:])), uint64(binary.NativeEndian.Uint32(src[12:]))
		binary.NativeEndian.PutUint64(dst, (a|a<<16)<<16&upper)
		binary.NativeEndian.PutUint64(dst[8:], (b|b<<16)<<16&upper)
		binary.NativeEndian.PutUint64(dst[16:], (c|c<<16)<<16&upper)
		binary.NativeEndian.PutUint64(dst[24:], (d|d<<16)<<16&upper)
		dst, src = dst[32:], src[16:]
	}
	for ; len(src) >= 2; dst, src = dst[4:], src[2:] {
		binary.NativeEndian.PutUint32(dst, uint32(binary.NativeEndian.Uint16(src))<<16)
	}
	return Loss{}
}

// byteToFloat32 returns the kernel for a float of 8 bits, given its widening.
func byteToFloat32(widen func(uint8) uint32) kernel {
	t := new([1 << 8]uint32)
	for i := range t {
		t[i] = widen(uint8(i))
	}
	return func(dst, src []byte) Loss { return widenBytes(dst, src, t) }
}

func widenBytes(dst, src []byte, t *[1 << 8]uint32) Loss {
	for len(src) >= 8 && len(dst) >= 32 {
		a, b := binary.NativeEndian.Uint16(src), binary.NativeEndian.Uint16(src[2:])
		c, d := binary.NativeEndian.Uint16(src[4:]), binary.NativeEndian.Uint16(src[6:])
		binary.NativeEndian.PutUint64(dst, uint64(t[a>>8])<<32|uint64(t[a&0xff]))
		binary.NativeEndian.PutUint64(dst[8:], uint64(t[b>>8])<<32|uint64(t[b&0xff]))
		binary.NativeEndian.PutUint64(dst[16:], uint64(t[c>>8])<<32|uint64(t[c&0xff]))
		binary.NativeEndian.PutUint64(dst[24:], uint64(t[d>>8])<<32|uint64(t[d&0xff]))
		dst, src = dst[32:], src[8:]
	}
	for i, x := range src {
		binary.NativeEndian.PutUint32(dst[4*i:], t[x])
	}
	return Loss{}
}

// The loops to floats of 8 and 16 bits take the bits of the float32 elements.
// One addition of a number from a table rounds (see format): measured at 3.3 to
// 4.2 GB/s of float32 read by one core whatever the data; shifts and comparisons
// 1.6, two lanes of a word at once 2.3 falling to 1.2 with zeros.

func (f *format) fromFloat32() kernel {
	if f.sign == 1<<15 {
		return typed(func(dst []uint16, src []uint32) Loss { return narrowAll(f, dst, src) })
	}
	return typed(func(dst []uint8, src []uint32) Loss { return narrowAll(f, dst, src) })
}

func narrowAll[D uint8 | uint16](f *format, dst []D, src []uint32) (loss Loss) {
	limit := f.limit
	dst = dst[:len(src)]
	for i, b := range src {
		if b&^signBit < limit {
			dst[i] = D(f.round(b))
			continue
		}
		dst[i] = D(f.narrowSpecial(b))
		if f.exceeds(b) {
			loss.Overflow++
		}
	}
	switch f.specials {
	case finiteAndNaN:
		loss.Saturated = loss.Overflow
	case unsignedZero:
		loss.NaN = loss.Overflow
	}
	return loss
}

// float32ToBrain returns the kernel to bfloat16 that writes the given NaN.
func float32ToBrain(nan uint16) kernel {
	return typed(func(dst []uint16, src []uint32) Loss { return narrowToBrain(dst, src, nan) })
}

func narrowToBrain(dst []uint16, src []uint32, nan uint16) (loss Loss) {
	dst = dst[:len(src)]
	for i, b := range src {
		r := roundToBrain(b)
		if b&^signBit >= brainLimit {
			if b&^signBit > infinityBits {
				r = nan
			} else if b&^signBit < infinityBits {
				loss.Overflow++
			}
		}
		dst[i] = r
	}
	return loss
}

func float32ToScale(dst []uint8, src []uint32) (loss Loss) {
	dst = dst[:len(src)]
	for i, b := range src {
		dst[i] = narrowScale(b)
		if scaleExceeds(b) {
			loss.Overflow++
			if dst[i] == scaleNaN {
				loss.NaN++
			} else {
				loss.Unsigned++
			}
		}
	}
	return loss
}

// addSmallFloats adds the conversions of floats of 8 and 16 bits from and to
// float32.
func (t *kernelTable) addSmallFloats() {
	t[F16][F32], t[F32][F16] = halfToFloat32, half.fromFloat32()
	t[BF16][F32], t[F32][BF16] = brainToFloat32, float32ToBrain(vectorBrainNaN)
	t[F8E8M0FNU][F32], t[F32][F8E8M0FNU] = byteToFloat32(widenScale), typed(float32ToScale)
	float8s := map[DType]*format{F8E4M3FN: e4m3fn, F8E5M2: e5m2, F8E4M3FNUZ: e4m3fnuz, F8E5M2FNUZ: e5m2fnuz}
	for d, f := range float8s {
		t[d][F32] = byteToFloat32(func(x uint8) uint32 { return f.widen(uint16(x)) })
		t[F32][d] = f.fromFloat32()
	}
}

// addThroughSmallFloats adds the other conversions from and to floats of 8 and
// 16 bits. All go through float32, as in torch.
func (t *kernelTable) addThroughSmallFloats() {
	small := []DType{F16, BF16, F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU}
	for _, d := range small {
		t.addThroughFloat32(d)
	}
	for _, from := range small {
		for _, to := range small {
			t[from][to] = t.betweenSmall(from, to)
		}
	}
}

// addThroughFloat32 adds the conversions between d and the numbers that Go has.
func (t *kernelTable) addThroughFloat32(d DType) {
	for other := Invalid + 1; other < dtypeCount; other++ {
		switch other.Class() {
		case IntClass, UintClass:
			t[d][other] = t.through(d, F32, other).run
			t[other][d] = t.through(other, F32, d).run
		case BoolClass:
			t[d][other] = t.through(d, F32, other).run
		}
	}
	t[d][F64] = t.through(d, F32, F64).run
	t[F64][d] = t.float64Through(d).run
}

// float64Through is the chain from float64 to a small float. Numbers beyond
// float32 are counted once: by the second step if it takes an infinity for
// too large, else by the first.
func (t *kernelTable) float64Through(d DType) chain {
	c := t.through(F64, F32, d)
	if d == F16 || d == BF16 || d == F8E5M2 {
		return c
	}
	first := c.first
	c.first = func(dst, src []byte) Loss {
		first(dst, src)
		return Loss{}
	}
	return c
}

func (t *kernelTable) betweenSmall(from, to DType) kernel {
	c := t.through(from, F32, to)
	if to == BF16 {
		c.second = float32ToBrain(scalarBrainNaN)
	}
	return c.run
}
