// Package gguf writes models of the Llama family as GGUF files, the format of
// llama.cpp, and lists and reads the tensors of such files.
//
// [Target] lays a file out from metadata alone: it gives the tensors llama.cpp's
// names and the order that it keeps the heads of q and k in (see [llama.Rename]),
// and says of the model what the config and the tokenizer beside the weights say.
// Tensors are written as float32, float16, bfloat16, or quantized to 8 bits in
// blocks of 32 ([Q8]); what has one dimension, the norms, always as float32, as
// llama.cpp wants it.
//
// The format is that of docs/gguf.md in ggml's repository, version 3; the names of
// keys and tensors are those of gguf-py/gguf/constants.py in llama.cpp's.
package gguf
