// Package parsertest holds the GGUF files that wick writes against
// gpustack/gguf-parser-go, which reads those of llama.cpp. It has tests alone.
package parsertest
