// Gopickle loads a checkpoint with github.com/nlpodyssey/gopickle, the Go reader that wick is measured against.
//
//	gopickle FILE
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/nlpodyssey/gopickle/pytorch"
	"github.com/nlpodyssey/gopickle/types"

	"github.com/wick-ml/wick/scripts/internal/tally"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gopickle FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "gopickle:", err)
		os.Exit(1)
	}
}

func run(name string) error {
	begin := time.Now()
	root, err := pytorch.Load(name)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	tensors, err := tensorsOf(root)
	if err != nil {
		return err
	}
	sums := make([]func() uint64, len(tensors))
	var values int64
	for i, t := range tensors {
		n := elements(t.Size)
		values += int64(n)
		if sums[i], err = sum(t.Source, t.StorageOffset, t.StorageOffset+n); err != nil {
			return err
		}
	}
	total := tally.Parallel(len(sums), func(i int) uint64 { return sums[i]() })
	return tally.Result{Checksum: tally.Hex(total), Tensors: len(tensors), Values: values, LoadSeconds: took.Seconds()}.Print(os.Stdout)
}

// tensorsOf returns the values of a flat state dict.
func tensorsOf(root any) ([]*pytorch.Tensor, error) {
	var found []*pytorch.Tensor
	add := func(key, value any) error {
		t, ok := value.(*pytorch.Tensor)
		if !ok {
			return fmt.Errorf("%v is a %T, want a flat state dict of tensors", key, value)
		}
		found = append(found, t)
		return nil
	}
	switch dict := root.(type) {
	case *types.Dict:
		for _, entry := range *dict {
			if err := add(entry.Key, entry.Value); err != nil {
				return nil, err
			}
		}
	case *types.OrderedDict:
		for e := dict.List.Front(); e != nil; e = e.Next() {
			entry, ok := e.Value.(*types.OrderedDictEntry)
			if !ok {
				return nil, fmt.Errorf("an entry is a %T", e.Value)
			}
			if err := add(entry.Key, entry.Value); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf("the root is a %T, want a dict", root)
	}
	return found, nil
}

// sum returns the checksum of a contiguous run of elements, to be computed later. Halves are float32 already.
func sum(source pytorch.StorageInterface, from, to int) (func() uint64, error) {
	switch s := source.(type) {
	case *pytorch.FloatStorage:
		return func() uint64 { return tally.Float32s(s.Data[from:to]) }, nil
	case *pytorch.HalfStorage:
		return func() uint64 { return tally.Float32s(s.Data[from:to]) }, nil
	case *pytorch.LongStorage:
		return func() uint64 { return tally.Ints(s.Data[from:to]) }, nil
	}
	return nil, fmt.Errorf("no checksum of a %T", source)
}

func elements(size []int) int {
	n := 1
	for _, d := range size {
		n *= d
	}
	return n
}
