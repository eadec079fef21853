//go:build goexperiment.simd

package tensor

import (
	"encoding/binary"
	"simd/archsimd"
)

// The twins of the plain loops for processors with AVX2, in programs that are
// built with GOEXPERIMENT=simd. They load and store bytes, so alignment does not
// matter, and leave what is not a number in range, and the last elements, to the
// plain loops. Tests compare both over all values of the small types. Shifts go by
// vectors: the compiler loads a number to shift by with an instruction of the
// old kind (not VEX), and going to and fro costs a hundred cycles here. For the
// same reason no vector of 128 bits is kept over a step.

// vectorBlock is how many elements the plain loop takes where the vectors stop.
const vectorBlock = 16

// hasVectors reports whether the processor can run the loops below.
func hasVectors() bool { return archsimd.X86.AVX2() }

// addVectors puts the vector loops in front of the plain ones that are there.
func (t *kernelTable) addVectors() {
	if !hasVectors() {
		return
	}
	t.front(BF16, F32, widenBrains)
	t.front(F32, BF16, narrowBrains)
	t.front(F64, F32, doublesToFloats)
	t.front(F32, F64, floatsToDoubles)
	for d, f := range map[DType]*format{F16: half, F8E4M3FN: e4m3fn, F8E5M2: e5m2, F8E4M3FNUZ: e4m3fnuz, F8E5M2FNUZ: e5m2fnuz} {
		w, v, size := wideningOf(f), narrowingOf(f), d.Size()
		t.front(d, F32, func(dst, src []byte) int { return widen(dst, src, &w, size) })
		t.front(F32, d, func(dst, src []byte) int { return narrow(dst, src, &v, size) })
	}
}

// front lets a vector loop, which returns how many elements it has done, run in
// front of a plain kernel. That one takes a block where the loop stops.
func (t *kernelTable) front(from, to DType, loop func(dst, src []byte) int) {
	plain, in, out := t[from][to], from.Size(), to.Size()
	t[from][to] = func(dst, src []byte) (loss Loss) {
		for len(src) > 0 {
			n := loop(dst, src)
			archsimd.ClearAVXUpperBits()
			dst, src = dst[n*out:], src[n*in:]
			k := min(vectorBlock, len(src)/in)
			loss.Add(plain(dst[:k*out], src[:k*in]))
			dst, src = dst[k*out:], src[k*in:]
		}
		return loss
	}
}

// widening holds what turns the bits of a small float into those of a float32.
type widening struct {
	shift, up            uint32 // of the magnitude to its place, and of the sign
	mag, rebias          uint32 // mask of the magnitude; difference of the biases
	least                uint32 // first bits behind the subnormal ones
	special, nan         int32  // magnitudes from which on bits are set:
	specialBits, nanBits uint32 // those of infinity and NaN, those of NaN alone
	zeroFlips            uint32 // of minus zero, for a format in which it is NaN
}

func wideningOf(f *format) widening {
	top := int32(f.sign) - 1
	w := widening{
		shift: uint32(23 - f.mantissa), up: 24, mag: uint32(top), rebias: uint32(127-f.bias) << 23,
		least: 1 << 23, special: top, nan: top,
	}
	if f.sign == 1<<15 {
		w.up = 16
	}
	switch f.specials {
	case ieeeSpecials:
		w.special, w.specialBits = int32(f.beyond)-1, infinityBits
		w.nan, w.nanBits = int32(f.beyond), quietBit
	case finiteAndNaN:
		w.special, w.specialBits = int32(f.nan)-1, infinityBits|quietBit
	default:
		w.zeroFlips = signBit | infinityBits | 1
	}
	return w
}

// widen widens floats of 8 or 16 bits. It adds the difference of the biases to
// the exponents. Of subnormal numbers, whose leading one is not hidden, it makes
// the least normal exponent and subtracts that one again: the processor
// normalizes. No subnormal float32 comes up, which would take a hundred cycles.
func widen(dst, src []byte, w *widening, size int) (n int) {
	mask, sign := archsimd.BroadcastUint32x8(w.mag), archsimd.BroadcastUint32x8(signBit)
	shift, up := archsimd.BroadcastUint32x8(w.shift), archsimd.BroadcastUint32x8(w.up)
	rebias, one := archsimd.BroadcastUint32x8(w.rebias), archsimd.BroadcastUint32x8(w.rebias+w.least)
	least := archsimd.BroadcastInt32x8(int32(w.least))
	special, specialBits := archsimd.BroadcastInt32x8(w.special), archsimd.BroadcastUint32x8(w.specialBits)
	nan, nanBits := archsimd.BroadcastInt32x8(w.nan), archsimd.BroadcastUint32x8(w.nanBits)
	flips := archsimd.BroadcastUint32x8(w.zeroFlips)
	for len(src) >= 16 && len(dst) >= 32 {
		x := archsimd.LoadUint8x16Slice(src).AsUint16x8().ExtendToUint32()
		if size == 1 {
			x = archsimd.LoadUint8x16Slice(src).ExtendLo8ToUint32()
		}
		small := x.And(mask)
		mag := small.ShiftLeft(shift)
		subnormal := mag.Add(one).AsFloat32x8().Sub(one.AsFloat32x8()).AsUint32x8()
		r := subnormal.Merge(mag.Add(rebias), least.Greater(mag.AsInt32x8()))
		r = r.Or(specialBits.Masked(small.AsInt32x8().Greater(special)))
		r = r.Or(nanBits.Masked(small.AsInt32x8().Greater(nan)))
		r = r.Or(x.ShiftLeft(up).And(sign))
		r = r.Xor(flips.Masked(r.Equal(sign)))
		r.AsUint8x32().StoreSlice(dst)
		dst, src, n = dst[32:], src[8*size:], n+8
	}
	return n
}

func widenBrains(dst, src []byte) (n int) {
	up := archsimd.BroadcastUint32x8(16)
	for len(src) >= 16 && len(dst) >= 32 {
		x := archsimd.LoadUint8x16Slice(src).AsUint16x8().ExtendToUint32().ShiftLeft(up)
		x.AsUint8x32().StoreSlice(dst)
		dst, src, n = dst[32:], src[16:], n+8
	}
	return n
}

// narrowing holds what turns the bits of a float32 into those of a small float.
type narrowing struct {
	drop, down    uint32 // bits of the mantissa that go; shift of the sign
	half, rebias  uint32 // a half of the last bit that stays, less one; difference of the biases
	least, magic  uint32 // the least normal number; what rounds the subnormal ones
	limit         int32  // magnitudes beyond are left to the plain loop
	sign, noMinus uint32 // the sign; the same where it alone must be no result
}

func narrowingOf(f *format) narrowing {
	v := narrowing{
		drop: uint32(23 - f.mantissa), down: 24, half: 1<<(22-f.mantissa) - 1, rebias: uint32(127-f.bias) << 23,
		least: uint32(128-f.bias) << 23, magic: uint32(127+24-f.bias-f.mantissa) << 23,
		limit: int32(f.limit) - 1, sign: uint32(f.sign),
	}
	if f.sign == 1<<15 {
		v.down = 16
	}
	if f.specials == unsignedZero {
		v.noMinus = v.sign
	}
	return v
}

// narrow rounds to nearest even: normal numbers by adding half of the last bit
// that stays, less one if that is even; subnormal ones by adding a power of two
// whose last bit is the last bit of the result. It stops at numbers out of range.
func narrow(dst, src []byte, v *narrowing, size int) (n int) {
	unsigned, sign := archsimd.BroadcastUint32x8(^uint32(signBit)), archsimd.BroadcastUint32x8(v.sign)
	drop, down := archsimd.BroadcastUint32x8(v.drop), archsimd.BroadcastUint32x8(v.down)
	limit, least := archsimd.BroadcastInt32x8(v.limit), archsimd.BroadcastInt32x8(int32(v.least))
	one, half := archsimd.BroadcastUint32x8(1), archsimd.BroadcastUint32x8(v.half-v.rebias)
	magic, noMinus := archsimd.BroadcastUint32x8(v.magic), archsimd.BroadcastUint32x8(v.noMinus)
	for len(src) >= 32 && len(dst) >= 16 {
		b := archsimd.LoadUint8x32Slice(src).AsUint32x8()
		mag := b.And(unsigned)
		if mag.AsInt32x8().Greater(limit).ToBits() != 0 {
			return n
		}
		normal := mag.Add(mag.ShiftRight(drop).And(one)).Add(half).ShiftRight(drop)
		subnormal := mag.AsFloat32x8().Add(magic.AsFloat32x8()).AsUint32x8().Sub(magic)
		r := subnormal.Merge(normal, least.Greater(mag.AsInt32x8())).Or(b.ShiftRight(down).And(sign))
		r = r.Xor(noMinus.Masked(r.Equal(noMinus)))
		if words := words(r); size == 1 {
			low := archsimd.LoadInt8x16(&lowOctets)
			binary.LittleEndian.PutUint64(dst, words.AsUint8x16().PermuteOrZero(low).AsUint64x2().GetElem(0))
		} else {
			words.AsUint8x16().StoreSlice(dst)
		}
		dst, src, n = dst[8*size:], src[32:], n+8
	}
	return n
}

// lowOctets takes the lower byte of each word.
var lowOctets = [16]int8{0, 2, 4, 6, 8, 10, 12, 14, -1, -1, -1, -1, -1, -1, -1, -1}

// words takes the lower halves, of which no more is used, together.
func words(x archsimd.Uint32x8) archsimd.Uint16x8 {
	s := x.AsInt32x8()
	return s.GetLo().SaturateToUint16Concat(s.GetHi())
}

func narrowBrains(dst, src []byte) (n int) {
	half, one, limit := archsimd.BroadcastUint32x8(0x7fff), archsimd.BroadcastUint32x8(1), archsimd.BroadcastInt32x8(brainLimit-1)
	unsigned, down := archsimd.BroadcastUint32x8(^uint32(signBit)), archsimd.BroadcastUint32x8(16)
	for len(src) >= 32 && len(dst) >= 16 {
		b := archsimd.LoadUint8x32Slice(src).AsUint32x8()
		if b.And(unsigned).AsInt32x8().Greater(limit).ToBits() != 0 {
			return n
		}
		r := b.Add(half).Add(b.ShiftRight(down).And(one)).ShiftRight(down)
		words(r).AsUint8x16().StoreSlice(dst)
		dst, src, n = dst[16:], src[32:], n+8
	}
	return n
}

func doublesToFloats(dst, src []byte) (n int) {
	unsigned, largest := archsimd.BroadcastUint32x4(^uint32(signBit)), archsimd.BroadcastInt32x4(infinityBits-1)
	for len(src) >= 32 && len(dst) >= 16 {
		f := archsimd.LoadUint8x32Slice(src).AsFloat64x4().ConvertToFloat32().AsUint32x4()
		if f.And(unsigned).AsInt32x4().Greater(largest).ToBits() != 0 {
			return n
		}
		f.AsUint8x16().StoreSlice(dst)
		dst, src, n = dst[16:], src[32:], n+4
	}
	return n
}

func floatsToDoubles(dst, src []byte) (n int) {
	for len(src) >= 16 && len(dst) >= 32 {
		d := archsimd.LoadUint8x16Slice(src).AsFloat32x4().ConvertToFloat64()
		d.AsUint8x32().StoreSlice(dst)
		dst, src, n = dst[32:], src[16:], n+4
	}
	return n
}

// swapVectors reverses the bytes of components in place and returns what is left.
func swapVectors(b []byte, component int) []byte {
	if !hasVectors() || component < 2 || len(b) < 32 {
		return b
	}
	var order [32]int8
	for i := range order {
		order[i] = int8(i&15 ^ (component - 1)) // each half of a vector apart
	}
	indices := archsimd.LoadInt8x32Slice(order[:])
	for ; len(b) >= 32; b = b[32:] {
		archsimd.LoadUint8x32Slice(b).PermuteOrZeroGrouped(indices).StoreSlice(b)
	}
	archsimd.ClearAVXUpperBits()
	return b
}
