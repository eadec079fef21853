// Command resnet classifies a picture with a ResNet of torchvision's: any checkpoint of resnet18, 34, 50, 101 or 152, or
// of the wide ones.
//
//	go run ./resnet -weights resnet18.pt -image cat.jpg
package main

import (
	"github.com/wick-ml/wick/examples/internal/classify"
	"github.com/wick-ml/wick/tensor"
)

func main() { classify.Main("resnet", network) }

// network returns an empty record.
func network(elements tensor.DType) classify.Network {
	switch elements {
	case tensor.F16:
		return new(ResNet[tensor.Float16])
	case tensor.BF16:
		return new(ResNet[tensor.BFloat16])
	default:
		return new(ResNet[float32])
	}
}
