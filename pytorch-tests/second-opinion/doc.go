// Package opinion holds wick's safetensors files against the reader and writer
// of another author. It has tests alone.
package opinion
