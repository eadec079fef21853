package tensor

import "math"

// Bits of a float32.
const (
	signBit      = 1 << 31
	infinityBits = 0xff << 23
	quietBit     = 1 << 22
)

// The NaNs of bfloat16. Torch knows two: c10::BFloat16(float), through which
// halfs and 8-bit floats go, writes the first; the vector code that converts
// whole float32 and float64 tensors (ATen/cpu/vec/vec256/vec256_bfloat16.h)
// writes the second.
const (
	scalarBrainNaN = 0x7fc0
	vectorBrainNaN = 0xffff
)

// specials says which values a small float has besides the finite ones.
type specials uint8

const (
	ieeeSpecials specials = iota // the last exponent is infinity and NaN
	finiteAndNaN                 // only all ones is NaN, no infinity ("fn")
	unsignedZero                 // what would be -0 is NaN, no infinity ("fnuz")
)

// format is a float of 8 or 16 bits: sign, exponent, mantissa. Its tables make
// narrowing a float32 one addition: magic is a power of two so large that the
// sum's last bit is the last bit of the result, so that the processor rounds,
// to nearest even; base then puts exponent and sign in place. Both are indexed
// by the upper 9 bits of the float32.
type format struct {
	sign     uint16
	mantissa int // bits of the mantissa
	bias     int
	specials specials

	limit   uint32 // bits of the least float32 that rounds beyond the largest finite value
	beyond  uint16 // what such a float32 becomes
	nan     uint16 // what a NaN becomes
	payload uint16 // bits of the mantissa that a NaN keeps
	noZero  uint16 // what would be -0 and must be 0; no result at all where -0 exists
	magic   [512]float32
	base    [512]uint16
}

var (
	half     = format{sign: 1 << 15, mantissa: 10, bias: 15, beyond: 0x7c00, nan: 0x7e00, payload: 0x3ff}.upTo(65520)
	e4m3fn   = format{sign: 1 << 7, mantissa: 3, bias: 7, specials: finiteAndNaN, beyond: 0x7e, nan: 0x7f}.upTo(math.Nextafter32(464, 465))
	e5m2     = format{sign: 1 << 7, mantissa: 2, bias: 15, beyond: 0x7c, nan: 0x7f}.upTo(61440)
	e4m3fnuz = format{sign: 1 << 7, mantissa: 3, bias: 8, specials: unsignedZero, beyond: 0x80, nan: 0x80}.upTo(248)
	e5m2fnuz = format{sign: 1 << 7, mantissa: 2, bias: 16, specials: unsignedZero, beyond: 0x80, nan: 0x80}.upTo(61440)
)

// upTo returns the format with its tables; finite values from limit on are
// beyond it.
func (f format) upTo(limit float32) *format {
	f.limit = math.Float32bits(limit)
	f.noZero = math.MaxUint16
	if f.specials == unsignedZero {
		f.noZero = f.sign
	}
	least := 1 - f.bias // exponent of the least normal number
	for i := range f.magic {
		exponent := max(i&0xff-127, least)
		if exponent > f.bias+1 {
			continue // beyond the limit
		}
		f.magic[i] = powerOfTwo(exponent + 23 - f.mantissa)
		f.base[i] = uint16(i>>8)*f.sign | uint16(exponent-least)<<f.mantissa
	}
	return &f
}

// hasInfinity reports whether the format has infinities.
func (f *format) hasInfinity() bool { return f.specials == ieeeSpecials }

// widen returns the bits of the float32 with the value of x.
func (f *format) widen(x uint16) uint32 {
	sign := uint32(x/f.sign) << 31
	mag := uint32(x &^ f.sign)
	exponent, fraction := int(mag>>f.mantissa), mag&(1<<f.mantissa-1)
	switch {
	case f.isSpecial(x):
		return f.widenSpecial(sign, fraction)
	case exponent == 0:
		exponent = 1
	default:
		fraction |= 1 << f.mantissa
	}
	return sign | math.Float32bits(float32(fraction)*powerOfTwo(exponent-f.bias-f.mantissa))
}

// isSpecial reports whether x is infinity or NaN.
func (f *format) isSpecial(x uint16) bool {
	switch f.specials {
	case ieeeSpecials:
		return x&^f.sign >= f.beyond
	case finiteAndNaN:
		return x&^f.sign == f.nan
	default:
		return x == f.nan
	}
}

func (f *format) widenSpecial(sign, fraction uint32) uint32 {
	switch {
	case f.specials == unsignedZero:
		return infinityBits | 1 // so in torch/headeronly/util/Float8_fnuz_cvt.h
	case fraction == 0:
		return sign | infinityBits
	default:
		return sign | infinityBits | quietBit | fraction<<(23-f.mantissa)
	}
}

// narrow returns the bits of the number nearest to the float32 with bits b.
func (f *format) narrow(b uint32) uint16 {
	if b&^signBit >= f.limit {
		return f.narrowSpecial(b)
	}
	return f.round(b)
}

// round is narrow for what is within the format's range.
func (f *format) round(b uint32) uint16 {
	i := b >> 23
	r := uint16(math.Float32bits(math.Float32frombits(b&^signBit)+f.magic[i])) + f.base[i]
	if r == f.noZero {
		return 0
	}
	return r
}

// narrowSpecial is narrow for what is beyond the limit, infinite or NaN.
func (f *format) narrowSpecial(b uint32) uint16 {
	sign := uint16(b>>31) * f.sign
	if b&^signBit > infinityBits {
		return sign | f.nan | uint16(b>>13)&f.payload
	}
	return sign | f.beyond
}

// exceeds reports whether a float32 with bits b, which is not within the
// format's range, is a number that the format cannot hold: a finite one, or an
// infinity where the format has none.
func (f *format) exceeds(b uint32) bool {
	mag := b &^ signBit
	return mag < infinityBits || mag == infinityBits && !f.hasInfinity()
}

// powerOfTwo returns 2^k for k from -126 to 127.
func powerOfTwo(k int) float32 { return math.Float32frombits(uint32(k+127) << 23) }

// brainLimit is the limit of bfloat16, as in [format].
const brainLimit = 0x7f7f8000

// roundToBrain returns the bfloat16 nearest to the float32 with bits b, which
// is no NaN.
func roundToBrain(b uint32) uint16 { return uint16((b + 0x7fff + b>>16&1) >> 16) }

// widenScale is widen for the E8M0 format.
func widenScale(x uint8) uint32 {
	switch x {
	case 0:
		return 1 << 22 // 2^-127 is subnormal
	case scaleNaN:
		return infinityBits | 1
	default:
		return uint32(x) << 23
	}
}

// scaleLimit is the limit of the E8M0 format, as in [format].
const scaleLimit = 0x7f400000 // 1.5 × 2^127

// scaleNaN is NaN in the E8M0 format, the only one.
const scaleNaN = 0xff

// narrowScale is narrow for the E8M0 format. A half carries into the exponent,
// but from a subnormal only more than a half.
func narrowScale(b uint32) uint8 {
	mag := b &^ signBit
	carry := uint32(1 << 22)
	if mag < 1<<23 {
		carry--
	}
	return uint8(min((mag+carry)>>23, scaleNaN))
}

// scaleExceeds reports whether a float32 with bits b is a number outside of the
// range of the E8M0 format: zero, negative, or too large.
func scaleExceeds(b uint32) bool {
	return b-1 >= scaleLimit-1 && b&^signBit <= infinityBits
}
