package checkpoint_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch"
	"github.com/wick-ml/wick/safetensors"
	"github.com/wick-ml/wick/tensor"
)

const resnet = "../pytorch-tests/demo-resnet/demo-resnet-torch2.15.pt"

func try[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// Open tries formats over a source. The front door, package wick, does this with
// all of them.
func ExampleOpen() {
	src := try(checkpoint.OpenFile(resnet))
	c := try(checkpoint.Open(context.Background(), src, pytorch.Formats(), checkpoint.Options{}))
	defer c.Close()
	fmt.Println(c.Info.Format, c.Len())
	// Output: zip 122
}

// A source is bytes that can be read from any place: a file, a folder, memory,
// a part of another source.
func ExampleOpenPath() {
	src := try(checkpoint.OpenPath(resnet, checkpoint.Options{}))
	defer src.Close()
	head := try(checkpoint.Head(src))
	fmt.Println(string(head[:2]), src.Size() > 80_000)

	part := checkpoint.Section(src, 0, 2, "two bytes")
	b := make([]byte, 2)
	n, err := part.ReadAt(b, 0)
	fmt.Println(part.Size(), n, err, string(b))

	folder := try(checkpoint.OpenDir("../pytorch-tests/folders/index_bin-torch2.15", checkpoint.Options{}))
	defer folder.Close()
	fmt.Println(len(try(folder.List())) > 2)
	// Output:
	// PK true
	// 2 2 <nil> PK
	// true
}

func ExampleNewBytes() {
	a := checkpoint.NewBytes("a", []byte("hello"))
	b := checkpoint.NewReaderAt("b", bytes.NewReader([]byte("hello")), 5)
	c := try(checkpoint.OpenFS(os.DirFS("../pytorch-tests"), "README.md", checkpoint.Options{}))
	defer c.Close()
	lent, ok := checkpoint.LentRange(a, 1, 3)
	fmt.Println(a.Size(), b.Size(), c.Size() > 0, string(lent), ok)
	// Output: 5 5 true ell true
}

// Limits have defaults, and are checked once.
func ExampleNewOptions() {
	o := try(checkpoint.NewOptions(checkpoint.WithLimits(checkpoint.Limits{Tensors: 10}), checkpoint.Mmap(), checkpoint.Salvage(),
		checkpoint.Spool(os.TempDir()), checkpoint.SpoolMemory(1<<20)))
	fmt.Println(o.Limits.Default().Tensors, o.Limits.Default().Depth > 0)
	_, err := checkpoint.NewOptions(checkpoint.WithLimits(checkpoint.Limits{Tensors: -1}))
	fmt.Println(err != nil, checkpoint.At("tensors", 10, 10), checkpoint.At("tensors", 11, 10) != nil)
	// Output:
	// 10 true
	// true <nil> true
}

// A program that makes trees itself gets a checkpoint of them.
func ExampleNew() {
	root := nested.NewMap("dict")
	if err := root.Set(nested.String("w"), &nested.Tensor{Tensor: tensor.Of([]float32{1, 2}, 2), Class: "torch.Tensor"}); err != nil {
		log.Fatal(err)
	}
	c := try(checkpoint.New(root, checkpoint.Info{Name: "made"}, &checkpoint.Env{Limits: checkpoint.Limits{}.Default()}, nil))
	defer c.Close()
	fmt.Println(c.Names())
	// Output: [w]
}

// A target turns a tree into the layouts of files; the writers of this package
// write a file whole, or not at all.
func ExampleWriteFiles() {
	ctx := context.Background()
	dir := try(os.MkdirTemp("", "wick-example-"))
	defer func() { try(0, os.RemoveAll(dir)) }()
	c := try(pytorch.Open(ctx, resnet))
	defer c.Close()
	name := filepath.Join(dir, "resnet.safetensors")
	target := try(checkpoint.FindTarget([]checkpoint.Target{safetensors.Target{}}, name))
	out := try(target.Plan(c.Root, checkpoint.TargetOptions{}))
	stats := try(checkpoint.WriteFile(ctx, name, out.Files[0].Layout, checkpoint.WriteOptions{}))
	fmt.Println(target.Name(), out.Report.Tensors, stats.Bytes > 40_000)

	try(checkpoint.WriteFiles(ctx, []checkpoint.File{{Path: filepath.Join(dir, "again.safetensors"), Layout: try(target.Plan(c.Root, checkpoint.TargetOptions{})).Files[0].Layout}},
		checkpoint.WriteOptions{}))
	var stream bytes.Buffer
	try(checkpoint.WriteStream(ctx, &stream, try(target.Plan(c.Root, checkpoint.TargetOptions{})).Files[0].Layout))
	fmt.Println(stream.Len() == int(try(os.Stat(name)).Size()))
	// Output:
	// safetensors 122 true
	// true
}

// Flatten gives the tensors of a tree the names that a file of one namespace
// needs, and fails where two would have the same.
func ExampleFlatten() {
	c := try(pytorch.Open(context.Background(), resnet))
	defer c.Close()
	named, report, err := checkpoint.Flatten(c.Root, checkpoint.Limits{}.Default())
	fmt.Println(len(named), named[0].Name, len(report.LeftOut), err)
	// Output: 122 state_dict.conv1.weight 12 <nil>
}
