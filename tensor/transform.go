package tensor

// plain reports whether the elements are taken as they are stored.
func (w *walk) plain() bool { return len(w.casts) == 0 && !w.conj && !w.neg }

// convert takes packed elements as the walk's storage holds them through byte
// order, conj and neg bits and casts, and returns them in the wanted order. The
// result is out when that is given and has room for exactly it; else b itself
// or a buffer of the worker's. b is changed only if mutable or if it is out.
func (w *worker) convert(wk *walk, b []byte, mutable bool, want ByteOrder, out []byte) ([]byte, Loss, error) {
	have := wk.storage.spec.Order
	comp := wk.dtype.Component()
	if wk.plain() && (have == want || comp == 1) {
		return settleIn(out, b), Loss{}, nil
	}
	if !mutable {
		b = append(w.buf(stageBuf, len(b))[:0], b...)
	}
	if have != NativeOrder() {
		swapBytes(b, comp)
	}
	wk.flip(b)
	b, loss, err := w.castAll(wk, b, out)
	if err != nil {
		return nil, loss, err
	}
	if want != NativeOrder() {
		swapBytes(b, wk.final().Component())
	}
	return settleIn(out, b), loss, nil
}

// settleIn copies b to out unless it is there.
func settleIn(out, b []byte) []byte {
	if out == nil || len(b) == 0 || &out[0] == &b[0] {
		return b
	}
	copy(out, b)
	return out
}

// final is the dtype that comes out of the walk.
func (w *walk) final() DType {
	if n := len(w.casts); n > 0 {
		return w.casts[n-1]
	}
	return w.dtype
}

// castAll runs the casts one after another, the last one into out if given.
func (w *worker) castAll(wk *walk, b, out []byte) ([]byte, Loss, error) {
	var total Loss
	from := wk.dtype
	spare := [2]int{castBuf, stageBuf}
	if len(wk.casts) == 0 {
		return b, total, nil
	}
	if sameMemory(b, w.bufs[stageBuf]) {
		spare[1] = packedBuf
	}
	for i, to := range wk.casts {
		n := len(b) / from.Size() * to.Size()
		dst := out
		if i < len(wk.casts)-1 || out == nil {
			dst = w.buf(spare[i%2], n)
		}
		loss, err := convert(dst, to, b, from)
		if err != nil {
			return nil, total, err
		}
		total.Add(loss)
		b, from = dst, to
	}
	return b, total, nil
}

func sameMemory(a, b []byte) bool {
	return len(a) > 0 && cap(b) > 0 && &a[0] == &b[:1][0]
}

// flip applies the conj and neg bits to elements in host order: torch keeps
// them beside the tensor and applies them when values are read
// (c10/core/TensorImpl.h, is_conj and is_neg).
func (w *walk) flip(b []byte) {
	size, comp := w.dtype.Size(), w.dtype.Component()
	switch {
	case w.conj && w.neg:
		negate(b, w.dtype, 0, size, comp) // -(a - bi) = -a + bi
	case w.conj:
		negate(b, w.dtype, comp, size, comp)
	case w.neg:
		negate(b, w.dtype, 0, comp, comp)
	}
}

// negate changes the sign of one component in every step bytes.
func negate(b []byte, d DType, from, step, comp int) {
	float := d.Class() == FloatClass || d.Class() == ComplexClass
	for at := from; at+comp <= len(b); at += step {
		c := b[at : at+comp]
		if float {
			flipSign(c)
		} else {
			twosComplement(c)
		}
	}
}

func flipSign(c []byte) {
	if NativeOrder() == LittleEndian {
		c[len(c)-1] ^= 0x80
	} else {
		c[0] ^= 0x80
	}
}

func twosComplement(c []byte) {
	carry := byte(1)
	for i := range c {
		k := i
		if NativeOrder() == BigEndian {
			k = len(c) - 1 - i
		}
		c[k] = ^c[k] + carry
		if c[k] != 0 {
			carry = 0
		}
	}
}
