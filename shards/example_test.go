package shards_test

import (
	"context"
	"fmt"
	"log"
	"slices"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/pytorch"
	"github.com/wick-ml/wick/shards"
)

func try[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// A folder of shards is one checkpoint. The front door, package wick, tries
// these formats with all others.
func ExampleFormats() {
	ctx := context.Background()
	folder := try(checkpoint.OpenDir("../pytorch-tests/folders/index_bin-torch2.15", checkpoint.Options{}))
	c := try(checkpoint.Open(ctx, folder, slices.Concat(shards.Formats(), pytorch.Formats()), checkpoint.Options{}))
	defer c.Close()
	fmt.Println(c.Info.Format, c.Len() > 1)
	// Output: shards true
}

// What reads files rather than tensors takes an index for the folder of its shards.
func ExampleListed() {
	index := try(checkpoint.OpenFile("../pytorch-tests/folders/index_bin-torch2.15/pytorch_model.bin.index.json"))
	src := try(shards.Listed(index, checkpoint.Limits{}))
	defer src.Close()
	_, files, err := checkpoint.ListFolder(src)
	fmt.Println(files, err)
	// Output: [pytorch_model-00001-of-00002.bin pytorch_model-00002-of-00002.bin] <nil>
}
