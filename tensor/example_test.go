package tensor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

var ctx = context.Background() // of a command or a request

func try[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// matrix is [[1 2 3] [4 5 6]].
func matrix() *tensor.Tensor { return tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 2, 3) }

// Views are metadata; elements move when they are read.
func Example() {
	t := try(matrix().Permute(1, 0))
	t = try(t.Narrow(0, 1, 3))
	fmt.Println(t.Shape(), t.Contiguous())
	fmt.Println(tensor.Values[float32](ctx, t))
	// Output:
	// [2 2] false
	// [2 5 3 6] <nil>
}

func ExampleValues() {
	fmt.Println(tensor.Values[float64](ctx, matrix())) // converted on the way
	_, err := tensor.Values[int8](ctx, tensor.Of([]float32{0.5}, 1))
	fmt.Println(err != nil) // half a number is none
	// Output:
	// [1 2 3 4 5 6] <nil>
	// true
}

// ReadInto takes memory of the caller's and allocates none for elements.
func ExampleReadInto() {
	dst := make([]float32, 6)
	fmt.Println(tensor.ReadInto(ctx, matrix(), dst), dst)
	// Output: <nil> [1 2 3 4 5 6]
}

// New proves that a tensor's geometry lies in its storage.
func ExampleNew() {
	storage := tensor.NewStorage(tensor.StorageSpec{Name: "data/0", Size: 16, Memory: []byte{0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64, 0, 0, 128, 64}})
	column := try(tensor.New(tensor.Spec{Storage: storage, DType: tensor.F32, Shape: []int64{2}, Strides: []int64{2}, Offset: 1}))
	fmt.Println(tensor.Values[float32](ctx, column))
	_, err := tensor.New(tensor.Spec{Storage: storage, DType: tensor.F32, Shape: []int64{5}})
	fmt.Println(errors.Is(err, fault.ErrMalformed))
	// Output:
	// [2 4] <nil>
	// true
}

func ExampleOf() {
	t := tensor.Of([]int64{1, 2, 3, 4}, 2, 2)
	fmt.Println(t.DType(), t.Shape(), t.Len(), t.Bytes())
	fmt.Println(tensor.Of([]int64{5}), tensor.Of([]int64{5}, []int{}...)) // a vector, a scalar
	// Output:
	// int64 [2 2] 4 32
	// int64 [1] int64 []
}

func ExampleConcat() {
	t := try(tensor.Concat(1, matrix(), matrix()))
	fmt.Println(t.Shape())
	fmt.Println(tensor.Values[float32](ctx, t))
	// Output:
	// [2 6]
	// [1 2 3 1 2 3 4 5 6 4 5 6] <nil>
}

// Assemble puts blocks where they belong, as the shards of a distributed
// checkpoint say.
func ExampleAssemble() {
	left, right := tensor.Of([]float32{1, 3}, 2, 1), tensor.Of([]float32{2, 4}, 2, 1)
	t := try(tensor.Assemble(tensor.F32, []int{2, 2}, tensor.Part{Tensor: right, At: []int{0, 1}}, tensor.Part{Tensor: left, At: []int{0, 0}}))
	fmt.Println(tensor.Values[float32](ctx, t))
	// Output: [1 2 3 4] <nil>
}

// Unavailable is a tensor of which everything is known but the elements.
func ExampleUnavailable() {
	t := tensor.Unavailable(tensor.F16, []int{2, 2}, fault.New(fault.NoData, "a meta tensor"))
	_, err := tensor.Values[float32](ctx, t)
	fmt.Println(t.Shape(), errors.Is(err, fault.ErrNoData))
	// Output: [2 2] true
}

// Run moves many tensors at once, in the order in which they lie in their
// storages: into memory, to writers, to places of a file.
func ExampleRun() {
	values := make([]float64, 6)
	var out bytes.Buffer
	f := try(os.CreateTemp("", "wick-example-"))
	defer func() { try(0, os.Remove(f.Name())) }()
	defer f.Close()
	stats := try(tensor.Run(ctx, []tensor.Move{
		{From: matrix(), To: tensor.Into(values)},
		{From: matrix(), To: tensor.Stream(&out)},
		{From: matrix(), To: tensor.FileAt(f, 8)},
	}, tensor.Workers(2), tensor.MaxMemory(1<<20), tensor.Expansion(64, 1<<20), tensor.Verify(),
		tensor.Progress(func(done, total int64) {}), tensor.Each(func(move int, err error) {})))
	fmt.Println(stats.Moves, stats.Bytes, values, out.Len())
	// Output: 3 96 [1 2 3 4 5 6] 24
}

// A Feed takes storages as they arrive, in any order.
func ExampleNewFeed() {
	storage := tensor.NewStorage(tensor.StorageSpec{Name: "data/0", Size: 2})
	t := try(tensor.New(tensor.Spec{Storage: storage, DType: tensor.I8, Shape: []int64{2}}))
	values := make([]int8, 2)
	feed := try(tensor.NewFeed(ctx, []tensor.Move{{From: t, To: tensor.Into(values)}}, tensor.Spool(os.TempDir()), tensor.Salvage()))
	if err := feed.Storage(storage, bytes.NewReader([]byte{7, 8})); err != nil {
		log.Fatal(err)
	}
	try(feed.Close())
	fmt.Println(values)
	// Output: [7 8]
}

func ExampleParseDType() {
	d, ok := tensor.ParseDType("torch.bfloat16")
	fmt.Println(d, ok, d.Size(), d == tensor.DTypeOf[tensor.BFloat16](), tensor.Convertible(d, tensor.F32))
	// Output: bfloat16 true 2 true true
}

// Small floats are types of their own; a plain uint16 means the integer.
func ExampleFloat16From() {
	fmt.Println(tensor.Float16From(1.0/3).Float32(), tensor.BFloat16From(1.0/3).Float32())
	fmt.Println(tensor.Float8E4M3FNFrom(300).Float32(), tensor.Float8E5M2From(300).Float32())
	fmt.Println(tensor.Float8E4M3FNUZFrom(3).Float32(), tensor.Float8E5M2FNUZFrom(3).Float32(), tensor.Float8E8M0FNUFrom(8).Float32())
	fmt.Println(tensor.Complex32From(1 + 2i).Complex64())
	// Output:
	// 0.33325195 0.33398438
	// 288 320
	// 3 3 8
	// (1+2i)
}

// Slabs cut many slices from few allocations.
func ExampleNewSlab() {
	slab := tensor.NewSlab([]int64{8, 16})
	a, b := tensor.SlabSlice[float32](slab, 0, 2), tensor.SlabSlice[float64](slab, 1, 2)
	fmt.Println(len(a), len(b))
	// Output: 2 2
}

func ExampleTensor_String() {
	fmt.Println(tensor.Of(make([]tensor.BFloat16, 6), 2, 3))
	// Output: bfloat16 [2, 3]
}

func ExampleShapeString() {
	fmt.Println(tensor.ShapeString([]int{64, 3, 7, 7}), tensor.ShapeString([]int64{147, 49, 7, 1}))
	// Output: [64, 3, 7, 7] [147, 49, 7, 1]
}
