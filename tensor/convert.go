package tensor

import (
	"strconv"
	"sync"

	"github.com/wick-ml/wick/fault"
)

// Loss counts the elements that a conversion could not carry over.
type Loss struct {
	// Inexact counts the elements that an integer dtype cannot hold: floats
	// with a fraction, infinite or NaN, and numbers out of range. They are an
	// error; what is written in their place says nothing.
	Inexact int64
	// Overflow counts the numbers that a float dtype cannot hold: those beyond
	// its largest finite value. As in torch they became infinity, but for those
	// that the next three fields count. Where the dtype has no infinity,
	// infinities are counted too.
	Overflow int64
	// Saturated counts those of Overflow that became ±448: [F8E4M3FN] has
	// neither infinity nor anything larger.
	Saturated int64
	// NaN counts those of Overflow that became NaN, in dtypes without infinity.
	NaN int64
	// Unsigned counts those of Overflow that are zero or negative and became
	// positive: 2^-127, or their magnitude, in [F8E8M0FNU].
	Unsigned int64
}

// Infinite returns how many numbers became infinite.
func (l Loss) Infinite() int64 { return l.Overflow - l.Saturated - l.NaN - l.Unsigned }

// Add adds the counts of other to l.
func (l *Loss) Add(other Loss) {
	l.Inexact += other.Inexact
	l.Overflow += other.Overflow
	l.Saturated += other.Saturated
	l.NaN += other.NaN
	l.Unsigned += other.Unsigned
}

// err returns the error of a conversion that was not exact where it must be,
// nil if l holds no such loss.
func (l Loss) err(from, to DType) error {
	if l.Inexact == 0 {
		return nil
	}
	return fault.New(fault.Mismatch, strconv.FormatInt(l.Inexact, 10)+" elements of "+from.String()+" that "+to.String()+" cannot hold").
		Needs("integers within the range of "+to.String(), "convert to a wider or a float dtype")
}

// Convertible reports whether elements of one dtype convert to another. Floats,
// integers and bool convert to each other and to complex dtypes; complex ones
// to each other and to bool; quantized ones to their plain integer; each
// dtype to itself.
func Convertible(from, to DType) bool {
	return from.Valid() && to.Valid() && kernels()[from][to] != nil
}

// convert writes the elements of src, packed in host order, to dst, which is
// as many elements of the dtype to and does not overlap src.
//
// The values are those of torch's Tensor.to on x86-64, bit for bit. Floats are
// rounded to nearest, ties to even; as in torch, all that becomes a float of
// 16 or 8 bits is rounded to float32 first. NaNs stay NaNs. Bool is 1 for what
// is not zero, NaN included, and any byte but 0 counts as 1. From a float to
// an integer, and between integers, values must be exact; unlike torch, convert
// neither cuts nor wraps, it counts. The result does not depend on how a
// tensor is cut into calls.
//
// The error is ErrUnsupported for dtypes that are not [Convertible], ErrUsage
// for lengths that do not match. Safe for concurrent use.
func convert(dst []byte, to DType, src []byte, from DType) (Loss, error) {
	if !Convertible(from, to) {
		return Loss{}, refuseConversion(from, to)
	}
	if !sameCount(len(dst), to, len(src), from) {
		return Loss{}, fault.New(fault.Usage, strconv.Itoa(len(src))+" bytes of "+from.String()+" for "+strconv.Itoa(len(dst))+" bytes of "+to.String()).
			Needs("buffers of the same number of whole elements", "")
	}
	return kernels()[from][to](dst, src), nil
}

func sameCount(dst int, to DType, src int, from DType) bool {
	if from == to {
		return dst == src && (from.Size() == 0 || src%from.Size() == 0)
	}
	return src%from.Size() == 0 && dst%to.Size() == 0 && src/from.Size() == dst/to.Size()
}

func refuseConversion(from, to DType) error {
	e := fault.New(fault.Unsupported, "conversion from "+from.String()+" to "+to.String())
	switch {
	case !from.Valid() || !to.Valid():
		return e.Needs("valid dtypes", "")
	case from == F4E2M1FNx2 || to == F4E2M1FNx2 || from.Size() == 0 || to.Size() == 0:
		return e.Needs("a dtype with one element in a byte or more", "keep the dtype")
	case from.Class() == QuantClass || to.Class() == QuantClass:
		return e.Needs("a quantized dtype's own integer: the values depend on scale and zero point", "dequantize the tensor")
	case from.Class() == BitsClass || to.Class() == BitsClass:
		return e.Needs("numbers: what these bits mean, torch does not say", "keep the dtype")
	default:
		return e.Needs("a complex dtype: a real one would lose the imaginary parts", "convert to a complex dtype")
	}
}

// kernel converts all elements of src to dst. The lengths match.
type kernel func(dst, src []byte) Loss

// kernelTable holds the kernels by the dtypes from and to, nil where there is
// no conversion.
type kernelTable [dtypeCount][dtypeCount]kernel

var kernels = sync.OnceValue(func() *kernelTable { return newKernels((*kernelTable).addVectors) })

// newKernels makes the table; faster puts twins in front of some kernels before
// others are made of these.
func newKernels(faster func(*kernelTable)) *kernelTable {
	t := new(kernelTable)
	t.addNumbers()
	t.addSmallFloats()
	faster(t)
	t.addThroughSmallFloats()
	t.addComplex()
	t.addBool()
	t.addCopies()
	return t
}

// addCopies adds the conversions that change no bit.
func (t *kernelTable) addCopies() {
	for d := Invalid + 1; d < dtypeCount; d++ {
		if d != Bool {
			t[d][d] = copyElements
		}
	}
	t[QI8][I8], t[QU8][U8], t[QI32][I32] = copyElements, copyElements, copyElements
}

func copyElements(dst, src []byte) Loss {
	copy(dst, src)
	return Loss{}
}

// blockElements is how many elements pass at once where bytes are not
// converted in place: a block of the widest dtype and its source fit the
// first-level cache.
const blockElements = 1024

// chain converts in two steps through a block that stays in the cache. The
// sizes are bytes of one element before, between and after.
type chain struct {
	first, second kernel
	from, mid, to int
}

// through returns the chain of the kernels from → mid and mid → to.
func (t *kernelTable) through(from, mid, to DType) chain {
	return chain{t[from][mid], t[mid][to], from.Size(), mid.Size(), to.Size()}
}

func (c chain) run(dst, src []byte) (loss Loss) {
	n := len(src) / c.from
	scratch := make([]byte, min(n, blockElements)*c.mid)
	for n > 0 {
		k := min(n, blockElements)
		loss.Add(c.first(scratch[:k*c.mid], src[:k*c.from]))
		loss.Add(c.second(dst[:k*c.to], scratch[:k*c.mid]))
		dst, src, n = dst[k*c.to:], src[k*c.from:], n-k
	}
	return loss
}
