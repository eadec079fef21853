// Package shards opens checkpoints that are kept in several files: the index
// files of Hugging Face over .bin or .safetensors shards, folders that hold
// such shards without an index, those of torch.distributed.checkpoint in which
// every rank has a piece of each tensor, the folders of DeepSpeed's ZeRO, in which
// every rank has a share of all parameters in one vector, and Meta's
// consolidated.NN.pth, of which each holds a slice of every tensor.
//
// The shards themselves are of any format that the front door knows. Only
// their metadata is read; the ones that an index does not name stay closed.
//
// An index whose metadata has the tree of a record makes the shards that record: with
// its numbers and texts, its type and its structure.
//
// # Security
//
// An index is a stranger's file. The names in it must stay inside their folder
// (see [checkpoint.Siblings]), a shard cannot be an index, and the number of
// shards is bounded by [checkpoint.Limits].
package shards

import "github.com/wick-ml/wick/checkpoint"

// Formats returns the formats of checkpoints in several files, in the order in
// which they are to be tried.
func Formats() []checkpoint.Format {
	return []checkpoint.Format{indexFormat{}, zeroFormat{}, folderFormat{}}
}
