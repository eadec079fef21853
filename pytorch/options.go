package pytorch

import "github.com/wick-ml/wick/checkpoint"

// Option is one thing that a caller asks of [Open] and its kin.
type Option = checkpoint.Option

// WithLimits bounds what a file may ask for. Zero fields keep their defaults,
// which no sound file meets.
func WithLimits(l checkpoint.Limits) Option { return checkpoint.WithLimits(l) }

// Mmap maps local files, so that tensors can be views of them without copying.
// [checkpoint.MapFile] says what that asks of the caller.
func Mmap() Option { return checkpoint.Mmap() }

// Salvage goes on over wrong checksums; the report says so.
func Salvage() Option { return checkpoint.Salvage() }

// Spool allows a temporary file in the folder dir for a stream that cannot be
// read in order and is too big for the memory of [SpoolMemory].
func Spool(dir string) Option { return checkpoint.Spool(dir) }

// SpoolMemory bounds the bytes of a stream that are held in memory where it
// cannot be read in order: by default 32 MiB.
func SpoolMemory(bytes int64) Option { return checkpoint.SpoolMemory(bytes) }
