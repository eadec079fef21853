// Package safetensors reads and writes the safetensors format: eight bytes of
// header length, a JSON header that gives each tensor its dtype, shape and
// range of bytes, and the bytes, packed in little-endian order, without gaps.
//
// Reading is strict, as the format asks: every byte behind the header belongs
// to exactly one tensor, names are unique, sizes agree with shapes. Opening
// reads the header only. Writing gives, for the same tensors and metadata, the
// same bytes as the format's own implementation in Rust (version 0.8).
//
// A record has three members more in its __metadata__, free text to every other
// reader: "wick" is what the record says of itself and its tree as JSON, in which
// {"$tensor": name} stands for a tensor; "wick.crc32" has the CRC-32 of each tensor's
// bytes, in the header's order; "wick.header_crc32" that of the header, its own eight
// digits read as zeros. In shards each file is a record of its tensors, and the
// metadata of the index has the tree of them all, as "wick", with its sum as
// "wick.text_crc32"; see [github.com/wick-ml/wick/record/meta.TextReader].
//
// # Security
//
// A header is bounded by the file's size and by [checkpoint.Limits.HeaderBytes].
// Nothing is allocated from a number in it. Names and metadata are a stranger's
// text and are passed on as they are.
package safetensors
