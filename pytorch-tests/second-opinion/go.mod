// Readers of other authors, against which ours is held. A module of its own, so that they stay out of the library's.
module github.com/wick-ml/wick/pytorch-tests/second-opinion

go 1.26.0

require (
	github.com/nlpodyssey/safetensors v0.0.0-20250209183917-bfb01cc25f7c
	github.com/wick-ml/wick v0.0.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/fxamacker/cbor/v2 v2.10.0 // indirect
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace github.com/wick-ml/wick => ../..
