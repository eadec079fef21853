// Command squeezenet classifies a picture with a SqueezeNet 1.1 of torchvision's.
//
//	go run ./squeezenet -weights squeezenet1_1.pt -image cat.jpg
package main

import (
	"github.com/wick-ml/wick/examples/internal/classify"
	"github.com/wick-ml/wick/tensor"
)

func main() { classify.Main("squeezenet", network) }

// network returns an empty record.
func network(elements tensor.DType) classify.Network {
	switch elements {
	case tensor.F16:
		return new(SqueezeNet[tensor.Float16])
	case tensor.BF16:
		return new(SqueezeNet[tensor.BFloat16])
	default:
		return new(SqueezeNet[float32])
	}
}
