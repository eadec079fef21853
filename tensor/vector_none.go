//go:build !goexperiment.simd || !amd64

package tensor

// The twins of vector_amd64.go for all other programs: there are no vectors.

func (t *kernelTable) addVectors() {}

func swapVectors(b []byte, _ int) []byte { return b }
