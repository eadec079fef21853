package tensor

import (
	"math"
	"testing"

	"github.com/x448/float16"
	"pgregory.net/rapid"
)

func TestHalfWidensAsX448(t *testing.T) {
	for i := range 1 << 16 {
		got := math.Float32bits(Float16(i).Float32())
		want := math.Float32bits(float16.Frombits(uint16(i)).Float32())
		if got != want {
			t.Errorf("Float16(%#04x).Float32() = %#08x, x448/float16 gives %#08x", i, got, want)
		}
	}
}

// aroundHalfs yields each half as a float32, what is half-way to the next, and
// the float32 neighbours of both.
func aroundHalfs(yield func(bits uint32)) {
	for i := range 1 << 16 {
		b := math.Float32bits(float16.Frombits(uint16(i)).Float32())
		for _, step := range []uint32{0, 0x0800, 0x1000, 0x1800} {
			for _, near := range []uint32{0, 1, ^uint32(0)} {
				yield(b + step + near)
			}
		}
	}
}

func TestHalfNarrowsAsX448(t *testing.T) {
	check := func(b uint32) {
		f := math.Float32frombits(b)
		if got, want := uint16(Float16From(f)), float16.Fromfloat32(f).Bits(); got != want {
			t.Errorf("Float16From(%#08x) = %#04x, x448/float16 gives %#04x", b, got, want)
		}
	}
	aroundHalfs(check)
	for b := uint32(0); b < 1<<31; b += 4093 { // a prime step through all exponents
		check(b)
		check(b | signBit)
	}
}

func TestBFloat16IsUpperHalf(t *testing.T) {
	for i := range 1 << 16 {
		f := BFloat16(i).Float32()
		if got, want := math.Float32bits(f), uint32(i)<<16; got != want {
			t.Fatalf("BFloat16(%#04x).Float32() = %#08x, want %#08x", i, got, want)
		}
		back := BFloat16From(f)
		if f != f {
			i = 0x7fc0
		}
		if back != BFloat16(i) {
			t.Errorf("BFloat16From(%v) = %#04x, want %#04x", f, back, i)
		}
	}
}

func TestBFloat16FromRounds(t *testing.T) {
	for _, test := range []struct {
		bits uint32
		want BFloat16
	}{
		{0x3f800000, 0x3f80},
		{0x3f808000, 0x3f80}, // half-way, to even
		{0x3f808001, 0x3f81},
		{0x3f818000, 0x3f82}, // half-way, to even
		{0x3f817fff, 0x3f81},
		{0xbf818000, 0xbf82},
		{0x00008000, 0x0000},
		{0x00008001, 0x0001},
		{0x7f7f7fff, 0x7f7f},
		{0x7f7f8000, 0x7f80}, // rounds to infinity
		{0x7f800000, 0x7f80},
		{0xff800000, 0xff80},
		{0x7f800001, 0x7fc0},
		{0xffffffff, 0x7fc0},
	} {
		if got := BFloat16From(math.Float32frombits(test.bits)); got != test.want {
			t.Errorf("BFloat16From(%#08x) = %#04x, want %#04x", test.bits, got, test.want)
		}
	}
}

// float8s are the floats with 8 bits and what torch's headers say of them.
var float8s = []struct {
	dtype                  DType
	widen                  func(uint8) float32
	narrow                 func(float32) uint8
	largest, least         float64 // the largest finite and the least positive value
	beyond, infinity, zero uint8   // what 1e6, +Inf and -0 become
}{
	{F8E4M3FN, func(x uint8) float32 { return Float8E4M3FN(x).Float32() }, func(f float32) uint8 { return uint8(Float8E4M3FNFrom(f)) }, 448, 0x1p-9, 0x7e, 0x7e, 0x80},
	{F8E5M2, func(x uint8) float32 { return Float8E5M2(x).Float32() }, func(f float32) uint8 { return uint8(Float8E5M2From(f)) }, 57344, 0x1p-16, 0x7c, 0x7c, 0x80},
	{F8E4M3FNUZ, func(x uint8) float32 { return Float8E4M3FNUZ(x).Float32() }, func(f float32) uint8 { return uint8(Float8E4M3FNUZFrom(f)) }, 240, 0x1p-10, 0x80, 0x80, 0x00},
	{F8E5M2FNUZ, func(x uint8) float32 { return Float8E5M2FNUZ(x).Float32() }, func(f float32) uint8 { return uint8(Float8E5M2FNUZFrom(f)) }, 57344, 0x1p-17, 0x80, 0x80, 0x00},
	{F8E8M0FNU, func(x uint8) float32 { return Float8E8M0FNU(x).Float32() }, func(f float32) uint8 { return uint8(Float8E8M0FNUFrom(f)) }, 0x1p127, 0x1p-127, 0x93, 0xff, 0x00},
}

func TestFloat8Ranges(t *testing.T) {
	for _, f := range float8s {
		largest, least := 0.0, math.Inf(1)
		for x := range 256 {
			v := float64(f.widen(uint8(x)))
			if !math.IsInf(v, 0) && v > largest {
				largest = v
			}
			if v > 0 && v < least {
				least = v
			}
		}
		if largest != f.largest || least != f.least {
			t.Errorf("%v: values from %v to %v, want %v to %v", f.dtype, least, largest, f.least, f.largest)
		}
		negativeZero := float32(math.Copysign(0, -1))
		for _, test := range []struct {
			from float32
			want uint8
		}{{1e6, f.beyond}, {float32(math.Inf(1)), f.infinity}, {negativeZero, f.zero}} {
			if got := f.narrow(test.from); got != test.want {
				t.Errorf("%v from %v = %#02x, want %#02x", f.dtype, test.from, got, test.want)
			}
		}
		if x := f.narrow(float32(math.NaN())); f.widen(x) == f.widen(x) {
			t.Errorf("%v from NaN = %#02x, which is no NaN", f.dtype, x)
		}
	}
}

// The nearest value of a small float is the one that a search through all of
// them finds; of two equally near, the one with an even last bit.
func TestFloat8RoundsToNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(float8s[:4]).Draw(t, "format")
		v := rapid.OneOf(rapid.Float64Range(-f.largest, f.largest), rapid.Float64Range(-64*f.least, 64*f.least)).Draw(t, "value")
		v = float64(float32(v))
		got := f.narrow(float32(v))
		near := math.Abs(float64(f.widen(got)) - v)
		for x := range 256 {
			other := math.Abs(float64(f.widen(uint8(x))) - v)
			if other < near || other == near && x&1 == 0 && got&1 != 0 {
				t.Fatalf("%v from %v = %#02x (%v), but %#02x (%v) is nearer or even", f.dtype, v, got, f.widen(got), x, f.widen(uint8(x)))
			}
		}
	})
}

func TestFloat8RoundTrip(t *testing.T) {
	for _, f := range float8s {
		for x := range 256 {
			v := f.widen(uint8(x))
			if got := f.narrow(v); v == v && got != uint8(x) {
				t.Errorf("%v: %#02x is %v, which becomes %#02x", f.dtype, x, v, got)
			}
		}
	}
}

func TestScaleRounds(t *testing.T) {
	for _, test := range []struct {
		from float32
		want Float8E8M0FNU
	}{
		{1, 127},
		{-1, 127}, // no sign
		{1.4999999, 127},
		{1.5, 128},
		{0x1p-127, 0},
		{0x1.000004p-127, 1}, // torch does not round subnormals to nearest
		{0x1.fffff8p-128, 0},
		{0, 0},
		{0x1.7ffffep127, 254},
		{0x1.8p127, 255},
	} {
		if got := Float8E8M0FNUFrom(test.from); got != test.want {
			t.Errorf("Float8E8M0FNUFrom(%v) = %d, want %d", test.from, got, test.want)
		}
	}
}

// The values are those of the table in the OCP Microscaling Formats
// specification: sign, two bits of exponent with bias 1, one of mantissa.
func TestFloat4(t *testing.T) {
	for x := range 16 {
		exponent, fraction := x>>1&3, float64(x&1)
		want := (1 + fraction/2) * math.Ldexp(1, exponent-1)
		if exponent == 0 {
			want = fraction / 2
		}
		if x>>3 == 1 {
			want = math.Copysign(want, -1)
		}
		first, second := Float4E2M1FNx2(x | (15-x)<<4).Float32s()
		_, again := Float4E2M1FNx2(x << 4).Float32s()
		if math.Float32bits(first) != math.Float32bits(float32(want)) || again != first {
			t.Errorf("nibble %#x = %v in the low and %v in the high bits, want %v", x, first, again, want)
		}
		if low, _ := Float4E2M1FNx2(15 - x).Float32s(); low != second {
			t.Errorf("nibble %#x = %v in the high bits, %v in the low ones", 15-x, second, low)
		}
	}
}

func TestComplex32(t *testing.T) {
	c := Complex32{0x3e00, 0xc000}
	if got, want := c.Complex64(), complex64(complex(1.5, -2)); got != want {
		t.Errorf("Complex64() = %v, want %v", got, want)
	}
	if got := Complex32From(complex(1.5, -2)); got != c {
		t.Errorf("Complex32From(1.5-2i) = %#04x, want %#04x", got, c)
	}
}
