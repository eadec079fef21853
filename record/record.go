package record

import "github.com/wick-ml/wick/checkpoint"

// Formats returns the readers of this package. Compressed records are read
// through the formats for compressed files of any content.
func Formats() []checkpoint.Format { return []checkpoint.Format{CBOR{}, JSON{}} }

// Targets returns the writers of this package.
func Targets() []checkpoint.Target {
	return []checkpoint.Target{CBORTarget{}, CBORTarget{Compression: Gzip}, CBORTarget{Compression: Zstd}, JSONTarget{}}
}
