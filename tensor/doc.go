// Package tensor knows dtypes, lazy strided tensors, packed arrays, and the
// one mover through which all tensor bytes go.
//
// A [Storage] is an immutable run of bytes that may not be in memory. A
// [Tensor] is a dtype, a shape and a set of strided walks over storages; it is
// immutable too, and its view operations ([Tensor.Narrow], [Tensor.Permute],
// [Tensor.Reshape], [Tensor.Expand], [Concat], [Tensor.Cast]) change metadata
// only. [New] proves a tensor's geometry against the bytes that exist; after
// it, reading cannot go out of bounds and nothing downstream checks again.
//
// Bytes move in [Run], which takes any number of [Move] values and reads in
// storage order, in parallel, with bounded memory. The doors on a Tensor
// ([View], [Values], [ReadInto], [Tensor.WriteTo]) are short ways to it.
package tensor
