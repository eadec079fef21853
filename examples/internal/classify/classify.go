// Package classify is the command around a network that classifies pictures: from a checkpoint and a picture to classes
// with scores.
package classify

import (
	"context"
	"flag"
	"io"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/examples/adapters/gomlx"
	"github.com/wick-ml/wick/examples/internal/command"
	"github.com/wick-ml/wick/examples/internal/imagenet"
	"github.com/wick-ml/wick/examples/internal/layers"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/tensor"
)

// Network is a pointer to a record that computes logits [batch, classes] of images x [batch, channels, height, width].
type Network interface {
	Forward(w *gomlx.Weights, x *graph.Node) *graph.Node
}

// New makes an empty record whose elements are those of the checkpoint, so that it can alias them.
type New func(elements tensor.DType) Network

// Main is the main function of a network's command.
func Main(name string, network New) {
	command.Main(name, func(ctx context.Context, args []string, out io.Writer) error {
		return Run(ctx, name, network, args, out)
	})
}

// Run is [Main] with arguments and an output of its own.
func Run(ctx context.Context, name string, network New, args []string, out io.Writer) error {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	weights := flags.String("weights", "", "checkpoint `file` or folder")
	picture := flags.String("image", "", "JPEG or PNG `file`")
	key := flags.String("key", "", "where in the checkpoint the state dict is, such as state_dict")
	prefix := flags.String("prefix", "", "what its names begin with, such as module.")
	top := flags.Int("top", 5, "how many classes to print")
	if err := command.Parse(flags, args, "weights", "image"); err != nil {
		return err
	}
	pixels, err := imagenet.Open(*picture)
	if err != nil {
		return err
	}
	var opts []serde.Option
	if *key != "" {
		opts = append(opts, serde.Key(*key))
	}
	if *prefix != "" {
		opts = append(opts, serde.Prefix(*prefix))
	}
	logits, err := File(ctx, network, *weights, pixels, []int{1, 3, imagenet.Size, imagenet.Size}, opts...)
	if err != nil {
		return err
	}
	return imagenet.Print(out, logits, *top)
}

// File returns the logits, row-major, of images of the given shape [batch, channels, height, width]. The checkpoint is
// mapped and the record is views of it, see [Tree].
func File(ctx context.Context, network New, weights string, images []float32, shape []int, opts ...serde.Option) ([]float32, error) {
	ckpt, err := wick.Open(ctx, weights, wick.Mmap())
	if err != nil {
		return nil, err
	}
	defer ckpt.Close()
	return Tree(ctx, network(kernels(ckpt)), ckpt.Root, images, shape, opts...)
}

// kernels returns the dtype of a checkpoint's convolutions.
func kernels(ckpt *wick.Checkpoint) tensor.DType {
	for _, t := range ckpt.Tensors() {
		if t.Dims() == 4 {
			return t.DType()
		}
	}
	return tensor.Invalid
}

// Tree is [File] for a tree that is open. Where the tree's memory can be aliased, the one copy of a weight is the one
// into GoMLX's memory, which widens halves on the way.
func Tree(ctx context.Context, network Network, root nested.Value, images []float32, shape []int, opts ...serde.Option) ([]float32, error) {
	if _, err := serde.Unmarshal(ctx, root, network, append(opts, serde.Alias())...); err != nil {
		return nil, err
	}
	backend, err := gobackend.New("")
	if err != nil {
		return nil, err
	}
	return layers.Run(backend, gomlx.NewWeights(backend, dtypes.Float32), network.Forward, images, shape...)
}
