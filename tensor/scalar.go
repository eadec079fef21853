package tensor

import "math"

// Float32 returns the value of h, which float32 holds exactly. A signalling
// NaN becomes quiet and keeps its sign and payload, as the processor's own
// instruction and torch's conversion of whole tensors do it.
func (h Float16) Float32() float32 { return math.Float32frombits(half.widen(uint16(h))) }

// Float16From returns the half nearest to f, ties to even. Magnitudes of 65520
// and more become infinity. A NaN becomes quiet and keeps its sign and the upper
// bits of its payload.
func Float16From(f float32) Float16 { return Float16(half.narrow(math.Float32bits(f))) }

// Float32 returns the value of b, which float32 holds exactly: all bits of b,
// those of a NaN too, become the upper half.
func (b BFloat16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// BFloat16From returns the bfloat16 nearest to f, ties to even. Magnitudes
// that round beyond the largest finite one become infinity. Every NaN becomes
// 0x7fc0, as in torch/headeronly/util/BFloat16.h.
func BFloat16From(f float32) BFloat16 {
	b := math.Float32bits(f)
	if b&^signBit > infinityBits {
		return scalarBrainNaN
	}
	return BFloat16(roundToBrain(b))
}

// Float32 returns the value of f, which float32 holds exactly.
func (f Float8E4M3FN) Float32() float32 { return math.Float32frombits(e4m3fn.widen(uint16(f))) }

// Float8E4M3FNFrom returns the float nearest to f, ties to even. The format has
// no infinity: what rounds beyond 448, infinity included, becomes 448 with its
// sign, as in torch/headeronly/util/Float8_e4m3fn.h.
func Float8E4M3FNFrom(f float32) Float8E4M3FN {
	return Float8E4M3FN(e4m3fn.narrow(math.Float32bits(f)))
}

// Float32 returns the value of f, which float32 holds exactly.
func (f Float8E5M2) Float32() float32 { return math.Float32frombits(e5m2.widen(uint16(f))) }

// Float8E5M2From returns the float nearest to f, ties to even. Magnitudes of
// 61440 and more become infinity, every NaN 0x7f with its sign, as in
// torch/headeronly/util/Float8_e5m2.h.
func Float8E5M2From(f float32) Float8E5M2 { return Float8E5M2(e5m2.narrow(math.Float32bits(f))) }

// Float32 returns the value of f, which float32 holds exactly.
func (f Float8E4M3FNUZ) Float32() float32 { return math.Float32frombits(e4m3fnuz.widen(uint16(f))) }

// Float8E4M3FNUZFrom returns the float nearest to f, ties to even. The format
// has one zero, one NaN and no infinity: magnitudes of 248 and more become the
// NaN, as in torch/headeronly/util/Float8_e4m3fnuz.h.
func Float8E4M3FNUZFrom(f float32) Float8E4M3FNUZ {
	return Float8E4M3FNUZ(e4m3fnuz.narrow(math.Float32bits(f)))
}

// Float32 returns the value of f, which float32 holds exactly.
func (f Float8E5M2FNUZ) Float32() float32 { return math.Float32frombits(e5m2fnuz.widen(uint16(f))) }

// Float8E5M2FNUZFrom returns the float nearest to f, ties to even. The format
// has one zero, one NaN and no infinity: magnitudes of 61440 and more become
// the NaN, as in torch/headeronly/util/Float8_e5m2fnuz.h.
func Float8E5M2FNUZFrom(f float32) Float8E5M2FNUZ {
	return Float8E5M2FNUZ(e5m2fnuz.narrow(math.Float32bits(f)))
}

// Float32 returns the value of f, a power of two from 2^-127 to 2^127, or NaN.
func (f Float8E8M0FNU) Float32() float32 { return math.Float32frombits(widenScale(uint8(f))) }

// Float8E8M0FNUFrom returns the power of two nearest to the magnitude of f; half-way
// is upwards. The format has no sign and no zero: 0 becomes 2^-127, and so do
// magnitudes up to that, while all between it and 2^-126 become 2^-126. Infinity
// and what rounds beyond 2^127 become NaN. This is the rounding of
// torch/headeronly/util/Float8_e8m0fnu.h.
func Float8E8M0FNUFrom(f float32) Float8E8M0FNU {
	return Float8E8M0FNU(narrowScale(math.Float32bits(f)))
}

// e2m1 holds the sixteen values of the 4-bit float of the OCP Microscaling
// Formats specification 1.0, section 5.3.3.
var e2m1 = [16]float32{
	0, 0.5, 1, 1.5, 2, 3, 4, 6,
	float32(math.Copysign(0, -1)), -0.5, -1, -1.5, -2, -3, -4, -6,
}

// Float32s returns the values of the two floats in f, that of the low four bits
// first. float32 holds them exactly.
func (f Float4E2M1FNx2) Float32s() (first, second float32) { return e2m1[f&15], e2m1[f>>4] }

// Complex64 returns the value of c, which complex64 holds exactly. Each part
// is converted as by [Float16.Float32].
func (c Complex32) Complex64() complex64 { return complex(c[0].Float32(), c[1].Float32()) }

// Complex32From returns c with each part converted as by [Float16From].
func Complex32From(c complex64) Complex32 {
	return Complex32{Float16From(real(c)), Float16From(imag(c))}
}
