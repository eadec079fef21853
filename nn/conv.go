package nn

import "github.com/wick-ml/wick/tensor"

// Conv1d is torch.nn.Conv1d.
type Conv1d[T tensor.Element] struct {
	Weight tensor.Array[T] // [out_channels, in_channels / groups, kernel]
	Bias   tensor.Array[T] `torch:", optional"` // [out_channels]
}

// Conv2d is torch.nn.Conv2d.
type Conv2d[T tensor.Element] struct {
	Weight tensor.Array[T] // [out_channels, in_channels / groups, kernel_h, kernel_w]
	Bias   tensor.Array[T] `torch:", optional"` // [out_channels]
}

// Conv3d is torch.nn.Conv3d.
type Conv3d[T tensor.Element] struct {
	Weight tensor.Array[T] // [out_channels, in_channels / groups, kernel_d, kernel_h, kernel_w]
	Bias   tensor.Array[T] `torch:", optional"` // [out_channels]
}

// ConvTranspose1d is torch.nn.ConvTranspose1d, whose weight has the channels
// of the input first.
type ConvTranspose1d[T tensor.Element] struct {
	Weight tensor.Array[T] // [in_channels, out_channels / groups, kernel]
	Bias   tensor.Array[T] `torch:", optional"` // [out_channels]
}

// ConvTranspose2d is torch.nn.ConvTranspose2d, whose weight has the channels
// of the input first.
type ConvTranspose2d[T tensor.Element] struct {
	Weight tensor.Array[T] // [in_channels, out_channels / groups, kernel_h, kernel_w]
	Bias   tensor.Array[T] `torch:", optional"` // [out_channels]
}

// ConvTranspose3d is torch.nn.ConvTranspose3d, whose weight has the channels
// of the input first.
type ConvTranspose3d[T tensor.Element] struct {
	Weight tensor.Array[T] // [in_channels, out_channels / groups, kernel_d, kernel_h, kernel_w]
	Bias   tensor.Array[T] `torch:", optional"` // [out_channels]
}
