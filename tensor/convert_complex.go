package tensor

// addComplex adds the conversions to complex dtypes, and from them to bool.
func (t *kernelTable) addComplex() {
	parts := map[DType]DType{C32: F16, C64: F32, C128: F64}
	for to, part := range parts {
		t[part][part] = copyElements
		for from := Invalid + 1; from < dtypeCount; from++ {
			if p, ok := parts[from]; ok {
				// The parts convert as the elements of a real tensor of twice the length.
				t[from][to] = t[p][part]
			} else if t[from][part] != nil {
				t[from][to] = t.realTo(from, part)
			}
		}
		t[to][Bool] = chain{t[part][Bool], eitherPart, to.Size(), 2, 1}.run
	}
}

// realTo returns the kernel from a real dtype to the complex one with the
// given parts; the imaginary ones are zero.
func (t *kernelTable) realTo(from, part DType) kernel {
	size := part.Size()
	widen := func(dst, src []byte) Loss {
		for ; len(src) >= size; dst, src = dst[2*size:], src[size:] {
			copy(dst[:size], src)
			clear(dst[size : 2*size])
		}
		return Loss{}
	}
	return chain{t[from][part], widen, from.Size(), size, 2 * size}.run
}

// eitherPart writes 1 for each pair of bytes in src, 0 or 1 for the parts of a
// complex number, that is not both 0.
func eitherPart(dst, src []byte) Loss {
	for i := range dst {
		dst[i] = src[2*i] | src[2*i+1]
	}
	return Loss{}
}
