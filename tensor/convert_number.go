package tensor

import "math"

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

type number interface {
	integer | float32 | float64
}

// typed returns the kernel of f for memory that can be seen as a slice of D
// and of S, and otherwise for copies of it, block by block. There is one for
// each pair of types, so what depends on one type alone is not inlined here: it
// would be in the program a hundred times.
func typed[D, S Element](f func([]D, []S) Loss) kernel {
	return func(dst, src []byte) (loss Loss) {
		d, dok := elementsOf[D](dst)
		s, sok := elementsOf[S](src)
		if dok && sok {
			return f(d, s)
		}
		for len(src) > 0 {
			s, src = takeBlock[S](src)
			d = newBlock[D](len(s))
			loss.Add(f(d, s))
			dst = putBlock(dst, d)
		}
		return loss
	}
}

//go:noinline
func elementsOf[T Element](b []byte) ([]T, bool) { return viewAs[T](b) }

// takeBlock returns the first blockElements elements in b, or all, and the bytes
// behind them.
//
//go:noinline
func takeBlock[T Element](b []byte) ([]T, []byte) {
	size := DTypeOf[T]().Size()
	s := make([]T, min(len(b)/size, blockElements))
	decode(s, b[:len(s)*size])
	if len(s) == 0 {
		return nil, nil
	}
	return s, b[len(s)*size:]
}

//go:noinline
func newBlock[T Element](n int) []T { return make([]T, n) }

// putBlock copies s to the start of b and returns the rest of b.
//
//go:noinline
func putBlock[T Element](b []byte, s []T) []byte { return b[copy(b, encode(s)):] }

// dtypeOf is [DTypeOf], not inlined.
//
//go:noinline
func dtypeOf[T Element]() DType { return DTypeOf[T]() }

// addNumbers adds the conversions among the numbers that Go has itself, and
// from them to bool.
func (t *kernelTable) addNumbers() {
	addInteger[int8](t)
	addInteger[int16](t)
	addInteger[int32](t)
	addInteger[int64](t)
	addInteger[uint8](t)
	addInteger[uint16](t)
	addInteger[uint32](t)
	addInteger[uint64](t)
	add(t, float32ToFloat64)
	add(t, float64ToFloat32)
	t[F32][Bool] = typed(nonzero[float32])
	t[F64][Bool] = typed(nonzero[float64])
}

func addInteger[I integer](t *kernelTable) {
	add(t, integerTo[int8, I])
	add(t, integerTo[int16, I])
	add(t, integerTo[int32, I])
	add(t, integerTo[int64, I])
	add(t, integerTo[uint8, I])
	add(t, integerTo[uint16, I])
	add(t, integerTo[uint32, I])
	add(t, integerTo[uint64, I])
	add(t, integerToFloat[float32, I])
	add(t, integerToFloat[float64, I])
	add(t, floatToInteger[I, float32])
	add(t, floatToInteger[I, float64])
	t[dtypeOf[I]()][Bool] = typed(nonzero[I])
}

func add[D, S Element](t *kernelTable, f func([]D, []S) Loss) {
	t[dtypeOf[S]()][dtypeOf[D]()] = typed(f)
}

func integerTo[D, S integer](dst []D, src []S) (loss Loss) {
	dst = dst[:len(src)]
	for i, v := range src {
		d := D(v)
		dst[i] = d
		if S(d) != v || (d < 0) != (v < 0) {
			loss.Inexact++
		}
	}
	return loss
}

func integerToFloat[D float32 | float64, S integer](dst []D, src []S) Loss {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = D(v)
	}
	return Loss{}
}

func floatToInteger[D integer, S float32 | float64](dst []D, src []S) (loss Loss) {
	least, end := integerRange[D]()
	dst = dst[:len(src)]
	for i, v := range src {
		f := float64(v)
		// Only then is what Go's conversion gives defined.
		if !(f >= least && f < end) || f != math.Trunc(f) {
			dst[i] = 0
			loss.Inexact++
			continue
		}
		dst[i] = D(f)
	}
	return loss
}

// integerRange returns the least value of D and the first one beyond it.
func integerRange[D integer]() (least, end float64) {
	bits := 8 * DTypeOf[D]().Size()
	if d := D(0); d-1 > d {
		return 0, math.Ldexp(1, bits)
	}
	end = math.Ldexp(1, bits-1)
	return -end, end
}

func float64ToFloat32(dst []float32, src []float64) (loss Loss) {
	dst = dst[:len(src)]
	for i, v := range src {
		f := float32(v)
		dst[i] = f
		if math.Float32bits(f)&^signBit == infinityBits && !math.IsInf(v, 0) {
			loss.Overflow++
		}
	}
	return loss
}

func float32ToFloat64(dst []float64, src []float32) Loss {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = float64(v)
	}
	return Loss{}
}

// nonzero writes 1 for what is not zero, a NaN included.
func nonzero[S number](dst []uint8, src []S) Loss {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = 0
		if v != 0 {
			dst[i] = 1
		}
	}
	return Loss{}
}
