package tensor

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTwinsAgree holds that all kernels give the same bytes and losses with
// vectors in front and without: of every value of the small types, of float32
// and float64 around every place where rounding turns, in every length up to some
// blocks and wherever in memory. In programs without vectors both are the same.
func TestTwinsAgree(t *testing.T) {
	plain := newKernels(func(*kernelTable) {})
	for _, from := range []DType{F16, BF16, F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU, F32, F64} {
		src := twinInputs(from)
		for to := range dtypeCount {
			twin := plain[from][to]
			if twin == nil || to.Size() == 0 {
				continue
			}
			n := len(src) / from.Size()
			want, got := make([]byte, n*to.Size()), make([]byte, n*to.Size())
			wantLoss, gotLoss := twin(want, src), kernels()[from][to](got, src)
			if i := firstDifference(got, want) / to.Size(); i < n || gotLoss != wantLoss {
				at := min(i, n-1)
				t.Errorf("%v to %v: element %d (% x) is % x and lost %+v; the plain loop has % x, %+v", from, to, at,
					src[at*from.Size():][:from.Size()], got[at*to.Size():][:to.Size()], gotLoss, want[at*to.Size():][:to.Size()], wantLoss)
			}
			tails(t, from, to, twin, src)
		}
	}
}

func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}

// tails converts every small number of elements, off any alignment.
func tails(t *testing.T, from, to DType, twin kernel, src []byte) {
	t.Helper()
	for n := range 3*vectorMost + 1 {
		in := slices.Concat([]byte{0}, src[:n*from.Size()])[1:]
		want, got := make([]byte, n*to.Size()+1)[1:], bytes.Repeat([]byte{0xee}, n*to.Size()+9)
		wantLoss := twin(want, in)
		if gotLoss := kernels()[from][to](got[1:][:n*to.Size()], in); gotLoss != wantLoss || !bytes.Equal(got[1:][:n*to.Size()], want) {
			t.Errorf("%v to %v: %d elements differ", from, to, n)
		}
		if got[0] != 0xee || !bytes.Equal(got[1+n*to.Size():], bytes.Repeat([]byte{0xee}, 8)) {
			t.Errorf("%v to %v: %d elements: written beside them", from, to, n)
		}
	}
}

// vectorMost is the most elements that any loop takes in one step.
const vectorMost = 16

func twinInputs(d DType) []byte {
	switch d {
	case F32:
		return twinFloats()
	case F64:
		return twinDoubles()
	default:
		return allBits(d)
	}
}

// twinFloats are numbers of every exponent, just at, below and above the middle
// of what a mantissa of 2, 3, 7 or 10 bits can hold, shuffled, behind many that
// are all in range; then blocks in which one is not.
func twinFloats() (b []byte) {
	rng := rand.New(rand.NewPCG(3, 4))
	b = weights(1 << 12)
	var odd []uint32
	for exponent := range uint32(256) {
		for _, mantissa := range []int{0, 2, 3, 7, 10, 23} {
			last := uint32(1) << (23 - mantissa) >> 1
			for range 6 {
				bits := exponent<<23 | rng.Uint32()&(1<<23-1)&^(2*last-1)
				odd = append(odd, bits, bits|last, bits|last-1, (bits|last)+1, bits^signBit, bits|last|signBit, (bits|last+1)|signBit)
			}
		}
	}
	rng.Shuffle(len(odd), func(i, j int) { odd[i], odd[j] = odd[j], odd[i] })
	for _, x := range odd {
		b = binary.NativeEndian.AppendUint32(b, x)
	}
	inRange := weights(64)
	for i := range 64 {
		block := slices.Clone(inRange)
		binary.NativeEndian.PutUint32(block[4*i:], odd[i])
		b = append(b, block...)
	}
	return b
}

func twinDoubles() (b []byte) {
	rng := rand.New(rand.NewPCG(5, 6))
	add := func(f float64) { b = binary.NativeEndian.AppendUint64(b, math.Float64bits(f)) }
	for range 1 << 14 {
		add(math.Ldexp(rng.Float64()*2-1, rng.IntN(320)-160))
	}
	for range 1 << 14 {
		b = binary.NativeEndian.AppendUint64(b, rng.Uint64())
	}
	for _, f := range []float64{0, 1, math.MaxFloat32, math.Nextafter(math.MaxFloat32, math.Inf(1)), 0x1.ffffffp127, math.Inf(1), math.NaN(), 0x1p-149, 0x1p-150, 0x1.8p-149} {
		add(f)
		add(-f)
	}
	return b
}

func TestSwapOfEveryLength(t *testing.T) {
	for _, component := range []int{1, 2, 4, 8} {
		for n := range 130 {
			got, want := make([]byte, n+2), make([]byte, n+2)
			for i := range got {
				got[i] = byte(i)
			}
			copy(want, got)
			for at := 1; at+component <= n+1; at += component {
				slices.Reverse(want[at : at+component])
			}
			if swapBytes(got[1:n+1], component); !bytes.Equal(got, want) {
				t.Fatalf("%d bytes of %d: % x, want % x", n, component, got, want)
			}
		}
	}
}
