package tensor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/wick-ml/wick/fault"
	"pgregory.net/rapid"
)

// bytesFrom returns the elements of s in host order.
func bytesFrom[T Element](s ...T) []byte { return encode(s) }

// fataler is what tests, benchmarks and properties have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// mustConvert converts src and fails the test on an error.
func mustConvert(t fataler, to DType, src []byte, from DType) ([]byte, Loss) {
	t.Helper()
	dst := make([]byte, len(src)/from.Size()*to.Size())
	loss, err := convert(dst, to, src, from)
	if err != nil {
		t.Fatalf("convert %v to %v: %v", from, to, err)
	}
	return dst, loss
}

func TestConvertValues(t *testing.T) {
	inf, nan, negativeZero := math.Inf(1), math.NaN(), math.Copysign(0, -1)
	for name, test := range map[string]struct {
		from, to  DType
		src, want []byte
		loss      Loss
	}{
		"float64 to float32 rounds to even and overflows": {
			F64, F32, bytesFrom(1+0x1p-24, 1+0x3p-24, 1e39, -1e39, inf, negativeZero), bytesFrom(1, 1+0x1p-22, float32(inf), float32(-inf), float32(inf), float32(negativeZero)), Loss{Overflow: 2},
		},
		"float64 to float16 goes through float32 as torch does": {
			F64, F16, bytesFrom(1+0x1p-11+0x1p-40, 65519.9, 1e300, inf), bytesFrom[Float16](0x3c00, 0x7bff, 0x7c00, 0x7c00), Loss{Overflow: 1},
		},
		"float64 to float8_e4m3fn counts each number beyond it once": {
			F64, F8E4M3FN, bytesFrom(1e300, 464.1, 464, inf, nan), bytesFrom[Float8E4M3FN](0x7e, 0x7e, 0x7e, 0x7e, 0x7f), Loss{Overflow: 3, Saturated: 3},
		},
		"float32 to float8_e8m0fnu counts zero and negative numbers": {
			F32, F8E8M0FNU, bytesFrom[float32](0, -1, 2, float32(inf), float32(nan)), bytesFrom[Float8E8M0FNU](0, 127, 128, 255, 255), Loss{Overflow: 3, NaN: 1, Unsigned: 2},
		},
		"float32 to float8_e4m3fnuz has NaN for what is beyond it": {
			F32, F8E4M3FNUZ, bytesFrom[float32](1, -300, float32(inf)), bytesFrom[Float8E4M3FNUZ](0x40, 0x80, 0x80), Loss{Overflow: 2, NaN: 2},
		},
		"float32 to bfloat16 overflows": {
			F32, BF16, bytesFrom[float32](1, math.MaxFloat32, float32(-inf), float32(nan)), bytesFrom[BFloat16](0x3f80, 0x7f80, 0xff80, 0xffff), Loss{Overflow: 1},
		},
		"bfloat16 to float16 overflows": {
			BF16, F16, bytesFrom[BFloat16](0x4f80, 0x3f80), bytesFrom[Float16](0x7c00, 0x3c00), Loss{Overflow: 1},
		},
		"float64 to int32 is exact or counted": {
			F64, I32, bytesFrom(-7, 0.5, 2147483648, -2147483648, nan, -inf, negativeZero), bytesFrom[int32](-7, 0, 0, -2147483648, 0, 0, 0), Loss{Inexact: 4},
		},
		"float32 to uint64 up to its last float": {
			F32, U64, bytesFrom[float32](0x1p64, 0x1.fffffep63, -1), bytesFrom[uint64](0, 0xffffff0000000000, 0), Loss{Inexact: 2},
		},
		"float64 to int64 up to its last float": {
			F64, I64, bytesFrom(0x1p63, 0x1.fffffffffffffp62, -0x1p63), bytesFrom[int64](0, 0x7ffffffffffffc00, math.MinInt64), Loss{Inexact: 1},
		},
		"float16 to uint8": {
			F16, U8, bytesFrom[Float16](0x5bf8, 0x5c00, 0x3800), bytesFrom[uint8](255, 0, 0), Loss{Inexact: 2},
		},
		"int64 to float16 goes through float32 as torch does": {
			I64, F16, bytesFrom[int64](2049, 2051, 65520), bytesFrom[Float16](0x6800, 0x6802, 0x7c00), Loss{Overflow: 1},
		},
		"uint64 to float32 rounds once": {
			U64, F32, bytesFrom[uint64](1<<63+1<<39+1, math.MaxUint64), bytesFrom[float32](0x1p63+0x1p40, 0x1p64), Loss{},
		},
		"int64 to float64 rounds to even": {
			I64, F64, bytesFrom[int64](1<<53+1, 1<<53+3), bytesFrom(0x1p53, 0x1p53+4), Loss{},
		},
		"bool from floats: not zero, NaN too": {
			F16, Bool, bytesFrom[Float16](0, 0x8000, 1, 0x7e00), []byte{0, 0, 1, 1}, Loss{},
		},
		"bool from float8_e4m3fnuz: 0x80 is NaN": {
			F8E4M3FNUZ, Bool, []byte{0, 0x80, 1}, []byte{0, 1, 1}, Loss{},
		},
		"bool from integers": {
			I64, Bool, bytesFrom[int64](0, 256, -1), []byte{0, 1, 1}, Loss{},
		},
		"bool from complex64": {
			C64, Bool, bytesFrom[complex64](0, 1, 1i, complex(float32(nan), 0)), []byte{0, 1, 1, 1}, Loss{},
		},
		"bool to float64: any byte is true": {
			Bool, F64, []byte{0, 1, 2, 255}, bytesFrom(0.0, 1, 1, 1), Loss{},
		},
		"bool to bfloat16": {
			Bool, BF16, []byte{0, 7}, bytesFrom[BFloat16](0, 0x3f80), Loss{},
		},
		"bool to complex128": {
			Bool, C128, []byte{0, 7}, bytesFrom[complex128](0, 1), Loss{},
		},
		"bool to bool normalises": {
			Bool, Bool, []byte{0, 1, 2, 0x80, 0, 0, 0, 0, 3, 0}, []byte{0, 1, 1, 1, 0, 0, 0, 0, 1, 0}, Loss{},
		},
		"complex64 to complex32": {
			C64, C32, bytesFrom[complex64](complex(1.5, -1e6)), bytesFrom[Float16](0x3e00, 0xfc00), Loss{Overflow: 1},
		},
		"complex32 to complex128": {
			C32, C128, bytesFrom[Float16](0x3e00, 0xbc00), bytesFrom(complex(1.5, -1)), Loss{},
		},
		"float16 to complex64 has no imaginary part": {
			F16, C64, bytesFrom[Float16](0x3e00, 0xbc00), bytesFrom[complex64](1.5, -1), Loss{},
		},
		"float32 to complex64": {
			F32, C64, bytesFrom[float32](1.5, -1), bytesFrom[complex64](1.5, -1), Loss{},
		},
		"int16 to complex32": {
			I16, C32, bytesFrom[int16](3), bytesFrom[Float16](0x4200, 0), Loss{},
		},
		"qint8 to int8 keeps the bits": {
			QI8, I8, []byte{0x80, 5}, []byte{0x80, 5}, Loss{},
		},
		"float16 to itself keeps a signalling NaN": {
			F16, F16, bytesFrom[Float16](0x7c01), bytesFrom[Float16](0x7c01), Loss{},
		},
	} {
		got, loss := mustConvert(t, test.to, test.src, test.from)
		if !bytes.Equal(got, test.want) || loss != test.loss {
			t.Errorf("%s: got %x, %+v, want %x, %+v", name, got, loss, test.want, test.loss)
		}
	}
}

func TestConvertIntegers(t *testing.T) {
	for name, test := range map[string]struct {
		from, to DType
		src      []byte
		inexact  int64
	}{
		"int64 to int8":    {I64, I8, bytesFrom[int64](127, 128, -128, -129, math.MaxInt64), 3},
		"uint64 to int64":  {U64, I64, bytesFrom[uint64](math.MaxInt64, math.MaxInt64+1, math.MaxUint64), 2},
		"int64 to uint64":  {I64, U64, bytesFrom[int64](-1, 0, math.MaxInt64, math.MinInt64), 2},
		"int8 to uint8":    {I8, U8, bytesFrom[int8](-1, 127, -128), 2},
		"uint8 to int8":    {U8, I8, bytesFrom[uint8](127, 128, 255), 2},
		"int32 to uint16":  {I32, U16, bytesFrom[int32](65535, 65536, -1), 2},
		"uint32 to int32":  {U32, I32, bytesFrom[uint32](math.MaxInt32, math.MaxInt32+1), 1},
		"int8 to int64":    {I8, I64, bytesFrom[int8](-128, 127), 0},
		"uint16 to uint64": {U16, U64, bytesFrom[uint16](65535), 0},
	} {
		if _, loss := mustConvert(t, test.to, test.src, test.from); loss != (Loss{Inexact: test.inexact}) {
			t.Errorf("%s: %+v, want %d inexact", name, loss, test.inexact)
		}
	}
}

func TestLossIsAnErrorOnlyWhereInexact(t *testing.T) {
	var sum Loss
	sum.Add(Loss{Overflow: 3})
	if err := sum.err(F64, F16); err != nil {
		t.Errorf("overflow to infinity is no error, got %v", err)
	}
	sum.Add(Loss{Inexact: 2})
	sum.Add(Loss{Inexact: 1, Overflow: 1})
	if sum != (Loss{Inexact: 3, Overflow: 4}) {
		t.Errorf("sum is %+v", sum)
	}
	if err := sum.err(F64, I8); !errors.Is(err, fault.ErrMismatch) {
		t.Errorf("three inexact elements gave %v, want a mismatch", err)
	}
}

func TestConvertRefuses(t *testing.T) {
	for _, pair := range [][2]DType{
		{C64, F32}, {C128, I64}, {C32, F16}, // would lose the imaginary part
		{QI8, F32}, {QI8, I32}, {QU8, I8}, {F32, QI8}, {I8, QI8}, {QI32, C64}, // need scale and zero point
		{F4E2M1FNx2, F32}, {F32, F4E2M1FNx2}, {QU4x2, U8}, {U8, QU2x4}, // several elements in a byte
		{Bits8, U8}, {U16, Bits16}, {Bits4x2, Bits8}, {C64, Bits1x8}, // of no meaning
		{Invalid, F32}, {F32, Invalid}, {dtypeCount, F32}, {255, 255},
	} {
		_, err := convert(make([]byte, 16), pair[1], make([]byte, 16), pair[0])
		var e *fault.Error
		if !errors.As(err, &e) || e.Kind != fault.Unsupported || e.Need == "" {
			t.Errorf("%v to %v: got %v, want an unsupported error that says why", pair[0], pair[1], err)
		}
		if Convertible(pair[0], pair[1]) {
			t.Errorf("Convertible(%v, %v) is true", pair[0], pair[1])
		}
	}
}

func TestConvertRefusesLengths(t *testing.T) {
	for _, test := range []struct {
		dst  int
		to   DType
		src  int
		from DType
	}{
		{8, F32, 2, F16},
		{4, F32, 3, F16},
		{6, F32, 4, F16},
		{8, F32, 4, F32},
		{3, F32, 3, F32},
		{2, QU4x2, 1, QU4x2},
	} {
		if _, err := convert(make([]byte, test.dst), test.to, make([]byte, test.src), test.from); !errors.Is(err, fault.ErrUsage) {
			t.Errorf("%d bytes of %v for %d bytes of %v: got %v, want a usage error", test.src, test.from, test.dst, test.to, err)
		}
	}
}

func TestEveryDTypeConvertsToItself(t *testing.T) {
	for d := Invalid + 1; d < dtypeCount; d++ {
		src := []byte{1, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1}
		dst := make([]byte, len(src))
		if loss, err := convert(dst, d, src, d); err != nil || loss != (Loss{}) || !bytes.Equal(dst, src) {
			t.Errorf("%v: %x, %+v, %v", d, dst, loss, err)
		}
	}
}

func TestCopyBoolsInPlace(t *testing.T) {
	b := make([]byte, 256+3)
	for i := range b {
		b[i] = byte(i)
	}
	copyBools(b, b)
	for i, v := range b {
		if want := byte(min(i%256, 1)); v != want {
			t.Errorf("byte %d became %d, want %d", i%256, v, want)
		}
	}
}

// drawPair draws two dtypes that convert to each other.
func drawPair(t *rapid.T) (from, to DType) {
	dtypes := rapid.SampledFrom(allDTypes())
	for {
		from, to = dtypes.Draw(t, "from"), dtypes.Draw(t, "to")
		if Convertible(from, to) && from.Size() > 0 {
			return from, to
		}
	}
}

func allDTypes() []DType {
	all := make([]DType, 0, dtypeCount)
	for d := Invalid + 1; d < dtypeCount; d++ {
		all = append(all, d)
	}
	return all
}

// drawElements draws elements of any bits, more of them than pass at once.
func drawElements(t *rapid.T, d DType) []byte {
	n := rapid.IntRange(0, 2*blockElements+10).Draw(t, "elements")
	seed := rapid.Uint64().Draw(t, "seed")
	b := make([]byte, n*d.Size())
	for i := range b {
		seed = seed*6364136223846793005 + 1442695040888963407
		b[i] = byte(seed >> 56)
	}
	return b
}

// Memory that cannot be seen as typed slices is converted through copies, with
// the same result.
func TestConvertMisaligned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := drawPair(t)
		src := drawElements(t, from)
		want, wantLoss := mustConvert(t, to, src, from)
		shifted := append([]byte{0}, src...)[1:]
		got := append(make([]byte, 1), bytes.Repeat([]byte{0xaa}, len(want))...)[1:]
		loss, err := convert(got, to, shifted, from)
		if err != nil || loss != wantLoss || !bytes.Equal(got, want) {
			t.Fatalf("%v to %v: misaligned memory gives another result (%+v, %+v, %v)", from, to, loss, wantLoss, err)
		}
	})
}

// A tensor may be cut anywhere between elements.
func TestConvertInPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := drawPair(t)
		src := drawElements(t, from)
		want, wantLoss := mustConvert(t, to, src, from)
		cut := rapid.IntRange(0, len(src)/from.Size()).Draw(t, "cut")
		got, loss := mustConvert(t, to, src[:cut*from.Size()], from)
		rest, restLoss := mustConvert(t, to, src[cut*from.Size():], from)
		loss.Add(restLoss)
		if loss != wantLoss || !bytes.Equal(append(got, rest...), want) {
			t.Fatalf("%v to %v: two pieces give another result (%+v, %+v)", from, to, loss, wantLoss)
		}
	})
}

// The bulk conversions give what the methods and functions of the types do.
func TestConvertAsScalars(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Uint32().Draw(t, "bits")
		value := math.Float32frombits(f)
		src := binary.NativeEndian.AppendUint32(nil, f)
		for _, test := range []struct {
			to   DType
			want []byte
		}{
			{F16, bytesFrom(Float16From(value))},
			{BF16, bytesFrom(brainOfTensor(value))},
			{F8E4M3FN, bytesFrom(Float8E4M3FNFrom(value))},
			{F8E5M2, bytesFrom(Float8E5M2From(value))},
			{F8E4M3FNUZ, bytesFrom(Float8E4M3FNUZFrom(value))},
			{F8E5M2FNUZ, bytesFrom(Float8E5M2FNUZFrom(value))},
			{F8E8M0FNU, bytesFrom(Float8E8M0FNUFrom(value))},
		} {
			if got, _ := mustConvert(t, test.to, src, F32); !bytes.Equal(got, test.want) {
				t.Fatalf("float32 %#08x to %v: %x, want %x", f, test.to, got, test.want)
			}
		}
	})
}

// brainOfTensor is BFloat16From with the NaN of torch's whole tensors.
func brainOfTensor(f float32) BFloat16 {
	if f != f {
		return vectorBrainNaN
	}
	return BFloat16From(f)
}

func TestConvertAllSmallFloatsAsScalars(t *testing.T) {
	for d, widen := range map[DType]func(int) float32{
		F16:        func(x int) float32 { return Float16(x).Float32() },
		BF16:       func(x int) float32 { return BFloat16(x).Float32() },
		F8E4M3FN:   func(x int) float32 { return Float8E4M3FN(x).Float32() },
		F8E5M2:     func(x int) float32 { return Float8E5M2(x).Float32() },
		F8E4M3FNUZ: func(x int) float32 { return Float8E4M3FNUZ(x).Float32() },
		F8E5M2FNUZ: func(x int) float32 { return Float8E5M2FNUZ(x).Float32() },
		F8E8M0FNU:  func(x int) float32 { return Float8E8M0FNU(x).Float32() },
	} {
		got, _ := mustConvert(t, F32, allBits(d), d)
		for x := range 1 << d.Bits() {
			if g, want := binary.NativeEndian.Uint32(got[4*x:]), math.Float32bits(widen(x)); g != want {
				t.Fatalf("%v %#x to float32: %#08x, the scalar is %#08x", d, x, g, want)
			}
		}
	}
}

// allBits returns every element of a dtype of one or two bytes, in host order.
func allBits(d DType) []byte {
	var b []byte
	for x := range 1 << d.Bits() {
		if d.Size() == 1 {
			b = append(b, byte(x))
		} else {
			b = binary.NativeEndian.AppendUint16(b, uint16(x))
		}
	}
	return b
}

func TestHotConversionsDoNotAllocate(t *testing.T) {
	src, dst := make([]byte, 1<<12), make([]byte, 1<<14)
	for _, pair := range hotPairs {
		n := len(src) / pair.from.Size() * pair.to.Size()
		allocs := testing.AllocsPerRun(10, func() {
			if _, err := convert(dst[:n], pair.to, src, pair.from); err != nil {
				t.Fatal(err)
			}
		})
		if _, ok := viewAs[float64](src); ok && allocs > 0 {
			t.Errorf("%v to %v allocates %v times", pair.from, pair.to, allocs)
		}
	}
}

var hotPairs = []struct{ from, to DType }{
	{F16, F32}, {BF16, F32}, {F8E4M3FN, F32}, {F8E5M2, F32},
	{F32, F16}, {F32, BF16}, {F32, F8E4M3FN}, {F32, F8E4M3FNUZ}, {F64, F32}, {F32, F64},
}

// BenchmarkConvert converts a MiB elements of normally distributed weights; the
// rate is that of float32 read or written (of float64 ⇄ float32, of float32).
func BenchmarkConvert(b *testing.B) {
	const n = 1 << 20
	for _, pair := range append(hotPairs, struct{ from, to DType }{F32, F32}, struct{ from, to DType }{F64, F16}, struct{ from, to DType }{F32, I32}, struct{ from, to DType }{I64, F32}) {
		b.Run(pair.from.String()+"-"+pair.to.String(), func(b *testing.B) {
			src, _ := mustConvert(b, pair.from, weights(n), F32)
			dst := make([]byte, n*pair.to.Size())
			b.SetBytes(4 * n)
			for b.Loop() {
				if _, err := convert(dst, pair.to, src, pair.from); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// weights returns n float32 that look like those of a layer: a bell curve
// around zero.
func weights(n int) []byte {
	var b []byte
	seed := uint64(1)
	for range n {
		sum := 0.0
		for range 6 {
			seed = seed*6364136223846793005 + 1442695040888963407
			sum += float64(seed>>40)/(1<<24) - 0.5
		}
		b = binary.NativeEndian.AppendUint32(b, math.Float32bits(float32(sum*0.03)))
	}
	return b
}
