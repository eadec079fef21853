// Package pickle reads Python's pickles of protocols 0 to 5 without running
// anything in them: opcodes move values on a stack, and whatever would name,
// call or build an object is handed to a resolver that gives a known value or
// an opaque one. Work and memory are bounded by the bytes that are there and by
// the caller's limits.
package pickle
