// Package arith holds the changes to tensors that are arithmetic and so no view.
//
// Dequantizing and densifying give torch's values bit for bit. Dequantizing is
// lazy: the floats are computed while they are read, in bounded memory. Densifying
// reads the components at once, as it must.
//
// Folding a batch norm into the layer before it and undoing weight norm work on
// records in memory, in float64, and say how far from torch's own result they are
// at most.
package arith
