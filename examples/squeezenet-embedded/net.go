package main

import (
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/tensor"
)

// SqueezeNet is the state dict of torchvision.models.squeezenet1_1 in half precision.
type SqueezeNet struct {
	Conv       Conv `torch:"features.0"`
	Fire1      Fire `torch:"features.3"`
	Fire2      Fire `torch:"features.4"`
	Fire3      Fire `torch:"features.6"`
	Fire4      Fire `torch:"features.7"`
	Fire5      Fire `torch:"features.9"`
	Fire6      Fire `torch:"features.10"`
	Fire7      Fire `torch:"features.11"`
	Fire8      Fire `torch:"features.12"`
	Classifier Conv `torch:"classifier.1"`
}

// Conv is a convolution with a bias.
type Conv = nn.Conv2d[tensor.Float16]

// Fire squeezes the channels together and expands them with kernels of 1×1 and of 3×3.
type Fire struct {
	Squeeze   Conv
	Expand1x1 Conv `torch:"expand1x1"`
	Expand3x3 Conv `torch:"expand3x3"`
}

// Image is [channels, height, width] in row-major order.
type Image struct {
	Data                    []float32
	Channels, Height, Width int
}

// plane returns the pixels of one channel.
func (m *Image) plane(channel int) []float32 {
	size := m.Height * m.Width
	return m.Data[channel*size : (channel+1)*size]
}

// row returns one row of one channel.
func (m *Image) row(channel, y int) []float32 { return m.plane(channel)[y*m.Width : (y+1)*m.Width] }

// newImage returns an image of zeros.
func newImage(channels, height, width int) *Image {
	return &Image{make([]float32, channels*height*width), channels, height, width}
}

// Logits returns the score of each class.
func (n *SqueezeNet) Logits(x *Image) []float32 {
	x = conv(x, &n.Conv, 2, 0)
	for _, fires := range [][]*Fire{{&n.Fire1, &n.Fire2}, {&n.Fire3, &n.Fire4}, {&n.Fire5, &n.Fire6, &n.Fire7, &n.Fire8}} {
		x = maxPool(x)
		for _, f := range fires {
			x = f.apply(x)
		}
	}
	return means(conv(x, &n.Classifier, 1, 0))
}

// apply computes the two expansions into the halves of one image.
func (f *Fire) apply(x *Image) *Image {
	x = conv(x, &f.Squeeze, 1, 0)
	low, high := f.Expand1x1.Weight.Shape[0], f.Expand3x3.Weight.Shape[0]
	y := newImage(low+high, x.Height, x.Width)
	size := x.Height * x.Width
	convInto(&Image{y.Data[:low*size], low, x.Height, x.Width}, x, &f.Expand1x1, 1, 0)
	convInto(&Image{y.Data[low*size:], high, x.Height, x.Width}, x, &f.Expand3x3, 1, 1)
	return y
}

// conv is a convolution and, as everywhere in this network, ReLU after it.
func conv(x *Image, c *Conv, stride, padding int) *Image {
	shape := c.Weight.Shape
	y := newImage(shape[0], (x.Height+2*padding-shape[2])/stride+1, (x.Width+2*padding-shape[3])/stride+1)
	convInto(y, x, c, stride, padding)
	return y
}

// convInto adds up one output channel after another: a weight times all the pixels that it meets. The half is widened
// when it is used, so that no float32 copy of the weights ever exists.
func convInto(y, x *Image, c *Conv, stride, padding int) {
	high, wide := c.Weight.Shape[2], c.Weight.Shape[3]
	weights := c.Weight.Data
	for out := range y.Channels {
		bias := c.Bias.Data[out].Float32()
		plane := y.plane(out)
		for i := range plane {
			plane[i] = bias
		}
		for in := range x.Channels {
			for i := range high {
				for j := range wide {
					addScaled(y, x, out, in, weights[0].Float32(), stride, i-padding, j-padding)
					weights = weights[1:]
				}
			}
		}
		for i, v := range plane {
			plane[i] = max(v, 0)
		}
	}
}

// addScaled adds w times channel in of x, moved up by down rows and left by right columns and thinned by stride, to channel
// out of y. What lies outside of x is zero.
func addScaled(y, x *Image, out, in int, w float32, stride, down, right int) {
	first, last := inside(y.Width, x.Width, stride, right)
	top, bottom := inside(y.Height, x.Height, stride, down)
	for r := top; r < bottom; r++ {
		to := y.row(out, r)[first:last]
		from := x.row(in, r*stride+down)[first*stride+right:]
		if stride == 1 {
			from = from[:len(to)]
			for i := range to {
				to[i] += w * from[i]
			}
			continue
		}
		for i := range to {
			to[i] += w * from[i*stride]
		}
	}
}

// inside returns the positions p, from first to before last, of n for which p*stride+shift is in 0…size-1.
func inside(n, size, stride, shift int) (first, last int) {
	if shift < 0 {
		first = (-shift + stride - 1) / stride
	}
	return first, min(n, (size-1-shift)/stride+1)
}

// maxPool is torch.nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True).
func maxPool(x *Image) *Image {
	y := newImage(x.Channels, (x.Height-2)/2+1, (x.Width-2)/2+1)
	for c := range y.Channels {
		for r := range y.Height {
			to := y.row(c, r)
			for i := range to {
				best := x.row(c, 2*r)[2*i]
				for k := 2 * r; k < min(2*r+3, x.Height); k++ {
					for _, v := range x.row(c, k)[2*i : min(2*i+3, x.Width)] {
						best = max(best, v)
					}
				}
				to[i] = best
			}
		}
	}
	return y
}

// means returns the average of each channel.
func means(x *Image) []float32 {
	out := make([]float32, x.Channels)
	for c := range out {
		var sum float32
		for _, v := range x.plane(c) {
			sum += v
		}
		out[c] = sum / float32(x.Height*x.Width)
	}
	return out
}
