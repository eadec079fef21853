// Package serde fills Go values from trees of tensors and makes trees of Go
// values. It knows nothing of files.
//
// [NewPlan] matches names to fields from metadata alone and lists all that
// fits and all that does not; [Plan.Run] then reads the tensors and assigns the
// fields, all or none. [Unmarshal] is both, [Marshal] the way back.
//
// # Fields
//
// A field is looked for under its name in snake_case (RunningMean is
// running_mean, WeightIH weight_ih), below the name of the struct that it is
// in, or where its tag says, in the grammar of package rules:
//
//	type Block struct {
//		Conv nn.Conv2d[float32] `torch:"conv1"`
//		Q    []float32          `torch:"attn.in_proj_weight | narrow 0 0:512"`
//		W    []float32          `torch:"fc.weight | transpose, shape 512 1000"`
//		G    []float32          `torch:"concat 0 (lstm.bias_ih_l0, lstm.bias_hh_l0)"`
//		Bias []float32          `torch:"fc.bias, optional"`
//		Note string             `torch:"-"`
//	}
//
// Flags behind the expression:
//
//	optional       absent is no error; the field stays as it is
//	default=VALUE  the value of an absent number, bool or text
//	shape N …      the shape that the tensor must have; * is any size
//	bits           the raw bits of the elements in unsigned integers of their size
//	mutable        the field will be written: it is never an alias, nor shared
//	alias          the field may be the source's own memory, see [Alias]
//	inline         the names of the struct's fields stand beside this field's, not below it
//	prefix=TEXT    inline, with this text before the names
//	gaps=keep      indexes that a list leaves out stay zero values
//	gaps=close     indexes after a gap move up
//
// The tag "-" leaves a field out; unexported fields are left out too. An
// embedded struct is inline unless it is given a name.
//
// # Types
//
// A tensor goes into a packed slice of any [tensor.Element], row-major; into a
// [tensor.Array] or a [nested.Packed], which keep the shape; into a Go array of
// exactly its shape; if it has one element, into a number or a bool; or, not
// read, into a [*tensor.Tensor] or [*nested.Tensor]. Elements are converted
// where the dtypes differ, which the plan shows: floats to any float, integers
// and floats to integers if every value is exact. A half is never taken for an
// integer: that needs bits. A []uint8 sees the raw bytes of a bool tensor.
//
// Numbers, bools and texts of the tree go into those of Go; lists into slices
// and Go arrays, item by item; a module list, whose names have indexes, into a
// slice of structs; maps into maps with keys of strings or integers of any size, whose
// values, if they are no structs, lists or maps themselves, have all that is
// left of the name as key. A pointer is optional: it stays nil when the tree
// has nothing for it. A [nested.Value] takes a part of the tree as it is. An
// interface takes one of its registered [Variants]. A type can fill itself
// ([Unmarshaler]) or be filled by a function ([Decode]).
//
// # Memory
//
// Slices are cut from few large allocations unless [Separate] is given, and are
// read into once, without a copy in between; Go arrays and single numbers are
// copied from where they were read. A failed run leaves the Go value as it was.
// What the Go value held before, other than behind pointers, is replaced, not
// reused.
package serde
