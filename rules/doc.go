// Package rules is the one mapping grammar of wick: how a tensor in a file
// becomes a tensor somewhere else. Struct tags, options, command-line flags
// and rule files are all parsed here, into the same syntax tree.
//
// # Expressions
//
// An expression names a source and pipes it through view operations. None of
// them reads a byte.
//
//	fc.weight | transpose
//	attn.in_proj_weight | narrow 0 0:512
//	concat 0 (lstm.bias_ih_l0, lstm.bias_hh_l0)
//	wq.weight | unflatten 0 $heads -1 2 | transpose 1 2 | flatten 0 2
//
// A source is a flat name: the keys on the way to it joined with dots. Names
// with blanks or with one of |,()[]=;"' in them are quoted, singly or doubly,
// with Go's escapes. A quoted name is taken literally; in a bare one
//
//	{i}       stands for a text without a dot that is called i,
//	{rest...} for any text, called rest; between other texts and not alone between dots it may be empty,
//	*         for any text without a dot,
//	**        for any text, dots included; "**." also for nothing.
//
// Where a pattern stands for several tensors, as in concat 0 (experts.*.w1),
// they come in natural order: 2 before 10. ["a.b", 0] is a source by its exact
// path, for trees in which two flat names are the same; where a pattern may stand it
// means what lies at that path in the tree as it came, or after the last key.
//
// The operations, with the names that PyTorch gives them:
//
//	transpose [A B]      swap two dimensions, the only two of a matrix if none are given
//	permute A B …        put the dimensions in this order
//	reshape N …          the same elements in another shape; one size may be -1
//	flatten [A B]        join the dimensions A to B, all of them if none are given
//	unflatten A N …      split dimension A into these sizes; one may be -1
//	expand N …           repeat dimensions of size 1; -1 keeps a size
//	squeeze [A]          drop dimension A, all of size 1 if none is given
//	unsqueeze A          add a dimension of size 1 before A
//	narrow A LO:HI       the part from LO up to HI of dimension A; either may be left out
//	select A I           the I-th part of dimension A, without that dimension
//	chunk A I of N       the I-th, from 0, of N equal parts of dimension A
//	cast DTYPE           convert the elements
//	concat A (X, Y, …)   join along dimension A
//	stack A (X, Y, …)    join along a new dimension A
//
// Dimensions and bounds may count from the end, as -1. A number may be a
// parameter, $heads, or a product or quotient such as $heads*$head_dim/2.
//
// # Fields
//
// A struct tag is an expression, which may be left out, and then flags after
// commas; see [Flags].
//
//	`torch:"fc.bias, optional"`
//	`torch:"conv1.weight, shape 64 3 7 7"`
//	`torch:"'learning rate', default=0.1"`
//
// # Statements
//
// A rule file has one statement on a line, or several separated by semicolons;
// # starts a comment.
//
//	let heads = 32                       a parameter, unless the caller gives it another value
//	key state_dict                       go on with what is below this name
//	rename /^module\./ -> ""             a regular expression of Go's package regexp
//	rename enc.{i}.w -> layers.{i}.w     a pattern
//	strip module.                        cut this text off the beginning of names
//	add model.                           put this text before every name
//	select encoder                       keep only what matches, or lies below a match
//	drop **.num_batches_tracked          leave out what matches, or lies below a match
//	TARGET = EXPRESSION, FLAGS           make a tensor; see [Assign]
//	alias lm_head.weight = embed.weight  the same tensor under a second name
//	rest error                           what no assignment has used: keep, drop or error
//
// Statements work on flat names and in order, except that neighbouring
// assignments all see the tree as it was before the first of them; a rest keep
// between two of them separates them.
package rules
