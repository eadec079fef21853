// Package record reads and writes record files: trees of values with their
// tensors, each in a known standard. CBOR (RFC 8949) holds packed tensors as
// typed arrays (RFC 8746), plain or behind gzip or zstd; JSON is for small
// records and for people. Package safetensors has the third form, a record that
// every reader of safetensors takes for an ordinary file.
//
// # A CBOR record
//
//	55799({
//	  "wick":  {"version": 1, "type": …, "precision": …, "writer": …},
//	  "root":  {"conv.weight": 40([[64, 3, 7, 7], 85(h'…')]), "epoch": 3},
//	  "crc32": [CRC-32 of each tensor's bytes …, CRC-32 of all other bytes before this number]
//	})
//
// Tensors are row-major (tag 40) and little-endian. A dtype that RFC 8746 does
// not know is the object 27(["wick.tensor", "bfloat16", 40([…])]) over its bits;
// a complex number is two floats in a last dimension of its own. A quantized tensor
// is an object of its integers, scheme, scale and zero point, see [meta.Plain].
// Values that CBOR has no words for are objects too, see package meta.
//
// # Security
//
// Lengths are compared with the bytes that exist before anything is allocated.
// Tensors are never read in opening. Names of classes are text.
package record
