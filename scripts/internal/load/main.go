// Load reads a checkpoint with wick in one of several ways, and prints the line that scripts/bench reads.
//
//	load struct FILE    ResNet-152 into nested structs
//	load run FILE       all tensors into memory from few large allocations, in one run
//	load values FILE    one tensor after the other, each into a slice of its own
//	load alias FILE     ResNet-152 into nested structs whose fields are the mapped file itself
//	load mapped FILE    open with mmap and touch no value
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/scripts/internal/tally"
	"github.com/wick-ml/wick/tensor"
)

// loader loads what it wants of an open checkpoint and returns the values.
type loader func(ctx context.Context, c *wick.Checkpoint) (loaded, error)

// ways are the loaders by name, with the options to open for them.
var ways = map[string]struct {
	load loader
	open []wick.Option
}{
	"struct": {load: structs},
	"run":    {load: run},
	"values": {load: values},
	"alias":  {load: aliased, open: []wick.Option{wick.Mmap()}},
	"mapped": {load: nothing, open: []wick.Option{wick.Mmap()}},
}

// loaded are the values of all tensors, sorted by the types that a checkpoint of weights has.
type loaded struct {
	tensors  int
	float32s [][]float32
	int64s   [][]int64
}

func main() {
	if len(os.Args) != 3 || ways[os.Args[1]].load == nil {
		fmt.Fprintln(os.Stderr, "usage: load struct|run|values|alias|mapped FILE")
		os.Exit(2)
	}
	if err := measure(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func measure(way, name string) error {
	ctx := context.Background()
	begin := time.Now()
	c, err := wick.Open(ctx, name, ways[way].open...)
	if err != nil {
		return err
	}
	got, err := ways[way].load(ctx, c)
	if err != nil {
		return err
	}
	result := tally.Result{Tensors: got.tensors, LoadSeconds: time.Since(begin).Seconds(), AnonKiB: anonymous()}
	got.sum(&result) // before Close, which takes a map away
	if err := c.Close(); err != nil {
		return err
	}
	return result.Print(os.Stdout)
}

// sum adds up the values, several slices at a time.
func (l loaded) sum(r *tally.Result) {
	for _, s := range l.float32s {
		r.Values += int64(len(s))
	}
	for _, s := range l.int64s {
		r.Values += int64(len(s))
	}
	if r.Values == 0 {
		return
	}
	sum := tally.Parallel(len(l.float32s), func(i int) uint64 { return tally.Float32s(l.float32s[i]) })
	r.Checksum = tally.Hex(sum + tally.Parallel(len(l.int64s), func(i int) uint64 { return tally.Ints(l.int64s[i]) }))
}

// run moves all tensors at once. Floats of every size become float32, integers int64.
func run(ctx context.Context, c *wick.Checkpoint) (loaded, error) {
	var got loaded
	var sizes []int64
	for _, t := range c.Tensors() {
		sizes = append(sizes, t.Len()*width(t.Tensor))
	}
	slab := tensor.NewSlab(sizes)
	var moves []tensor.Move
	for _, t := range c.Tensors() {
		i, n := len(moves), int(t.Len())
		if isFloat(t.Tensor) {
			got.float32s = append(got.float32s, tensor.SlabSlice[float32](slab, i, n))
			moves = append(moves, tensor.Move{From: t.Tensor, To: tensor.Into(got.float32s[len(got.float32s)-1])})
		} else {
			got.int64s = append(got.int64s, tensor.SlabSlice[int64](slab, i, n))
			moves = append(moves, tensor.Move{From: t.Tensor, To: tensor.Into(got.int64s[len(got.int64s)-1])})
		}
	}
	got.tensors = len(moves)
	_, err := tensor.Run(ctx, moves)
	return got, err
}

// values reads each tensor on its own.
func values(ctx context.Context, c *wick.Checkpoint) (loaded, error) {
	var got loaded
	for name, t := range c.Tensors() {
		var err error
		if isFloat(t.Tensor) {
			err = appendValues(ctx, t.Tensor, &got.float32s)
		} else {
			err = appendValues(ctx, t.Tensor, &got.int64s)
		}
		if err != nil {
			return got, fmt.Errorf("%s: %w", name, err)
		}
		got.tensors++
	}
	return got, nil
}

func appendValues[T tensor.Element](ctx context.Context, t *tensor.Tensor, list *[][]T) error {
	v, err := tensor.Values[T](ctx, t)
	*list = append(*list, v)
	return err
}

// nothing leaves the values where they are.
func nothing(_ context.Context, c *wick.Checkpoint) (loaded, error) {
	return loaded{tensors: c.Len()}, nil
}

func isFloat(t *tensor.Tensor) bool { return t.DType().Class() == tensor.FloatClass }

// width is the size in bytes of an element in memory.
func width(t *tensor.Tensor) int64 {
	if isFloat(t) {
		return 4
	}
	return 8
}

// anonymous returns the process's anonymous memory in KiB, or 0 where the system does not tell.
func anonymous() int64 {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	var kib int64
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "RssAnon:"); ok {
			kib, err = strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			break
		}
	}
	if errors.Join(err, lines.Err(), file.Close()) != nil {
		return 0
	}
	return kib
}
