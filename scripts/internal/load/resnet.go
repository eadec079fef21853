package main

import (
	"context"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/scripts/internal/resnet"
	"github.com/wick-ml/wick/serde"
)

// structs fills a resnet.Net with copies.
func structs(ctx context.Context, c *wick.Checkpoint) (loaded, error) { return fill(ctx, c) }

// aliased fills a resnet.Net with views of the file.
func aliased(ctx context.Context, c *wick.Checkpoint) (loaded, error) {
	return fill(ctx, c, serde.Alias())
}

func fill(ctx context.Context, c *wick.Checkpoint, opts ...serde.Option) (loaded, error) {
	var model resnet.Net
	if _, err := serde.Unmarshal(ctx, c.Root, &model, opts...); err != nil {
		return loaded{}, err
	}
	var got loaded
	got.conv(model.Conv1, model.BN1)
	for _, layer := range [][]resnet.Bottleneck{model.Layer1, model.Layer2, model.Layer3, model.Layer4} {
		for _, b := range layer {
			got.conv(b.Conv1, b.BN1)
			got.conv(b.Conv2, b.BN2)
			got.conv(b.Conv3, b.BN3)
			if b.Downsample != nil {
				got.conv(b.Downsample.Conv, b.Downsample.BN)
			}
		}
	}
	got.floats(model.FC.Weight.Data, model.FC.Bias.Data)
	return got, nil
}

// conv collects a convolution without bias and the norm after it.
func (l *loaded) conv(c nn.Conv2d[float32], n nn.BatchNorm2d[float32]) {
	l.floats(c.Weight.Data, n.Weight.Data, n.Bias.Data, n.RunningMean.Data, n.RunningVar.Data)
	l.int64s = append(l.int64s, n.NumBatchesTracked.Data)
	l.tensors++
}

func (l *loaded) floats(slices ...[]float32) {
	l.float32s = append(l.float32s, slices...)
	l.tensors += len(slices)
}
