package wick

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/llama"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// model is what a conversion does to a tree because of the model that it is of.
type model struct {
	from       *Checkpoint // nil for a tree without a file
	keepShards bool
	names      string
	config     []byte // nil for the one beside the weights
	form       string // a form of the target's own for the elements
	part       part
	joined     *llama.Joined // nil where nothing was joined
}

// of tells a conversion what checkpoint the tree comes from.
func of(c *Checkpoint) ConvertOption {
	return func(v *convertConfig) { v.model.from = c }
}

// KeepShards leaves Meta's consolidated.NN.pth as they are: a map of shards.
// Otherwise [PlanConversion] joins them into one state dict, see [llama.PlanJoin].
func KeepShards() ConvertOption { return func(c *convertConfig) { c.model.keepShards = true } }

// Names gives a Llama's tensors the names of "hf" (transformers), "meta" or "gguf"
// (llama.cpp), and the heads of q and k the order that goes with them, after all
// other changes. See [llama.Rename].
func Names(names string) ConvertOption { return func(c *convertConfig) { c.model.names = names } }

// Config reads the model's config, Meta's params.json or Hugging Face's config.json,
// from text rather than from beside the weights.
func Config(text []byte) ConvertOption {
	return func(c *convertConfig) { c.model.config = text }
}

// Quantize writes tensors in a form that only the output's format has, such as
// GGUF's "q8_0". A format without forms of its own makes it a [fault.ErrUsage]
// error.
func Quantize(form string) ConvertOption { return func(c *convertConfig) { c.model.form = form } }

// Part writes only a share of the output's shards: the i-th of n, always the same
// one. Any n numbers in a row, such as 0 to n-1 or 1 to n, are all of them; i is
// counted modulo n. The index is left to [PartIndex]. What all parts and the index
// write is, byte for byte, what one conversion writes.
func Part(i, n int) ConvertOption {
	return func(c *convertConfig) { c.model.part = part{kind: sharePart, i: i, n: n} }
}

// PartIndex is the last step of a conversion in parts: it checks that all shards
// are there, of the right size and with the right header, and writes the index.
func PartIndex() ConvertOption {
	return func(c *convertConfig) { c.model.part = part{kind: indexPart} }
}

// part is which files of the output a conversion writes.
type part struct {
	kind partKind
	i, n int
}

type partKind uint8

const (
	allParts partKind = iota
	sharePart
	indexPart
)

func (p part) check() error {
	if p.kind == sharePart && (p.n < 1 || p.i < 0 || p.i > p.n) {
		return fault.New(fault.Usage, "part "+strconv.Itoa(p.i)+" of "+strconv.Itoa(p.n)).Needs("a part from 0 to N-1, or from 1 to N", "")
	}
	return nil
}

// has reports whether the part writes the k-th file of an output.
func (p part) has(k int, index bool) bool {
	switch p.kind {
	case sharePart:
		return !index && k%p.n == p.i%p.n
	case indexPart:
		return index
	default:
		return true
	}
}

// whole joins Meta's shards.
func (v *Conversion) whole(root nested.Value) (nested.Value, error) {
	m := &v.config.model
	if m.from == nil || m.keepShards || m.from.Info.Format != consolidated {
		return root, nil
	}
	var err error
	if m.joined, err = llama.PlanJoin(m.from, v.config.target.Beside); err != nil {
		return nil, err
	}
	return m.joined.Root, nil
}

// named gives the tensors their names.
func (v *Conversion) named(root nested.Value) (nested.Value, error) {
	m := &v.config.model
	if m.names == "" {
		return root, nil
	}
	sets, err := llama.RenameRules(root, v.config.target.Beside, m.names)
	if err != nil {
		return nil, err
	}
	before := len(v.Rules)
	root, err = v.ruled(root, sets)
	for _, report := range v.Rules[before:] {
		report.Unmatched = nil // nobody asked for these statements one by one
	}
	return root, err
}

// beside is where files that lie with the weights are read: with a config that
// was given, that one stands in for both of its names.
func (c *convertConfig) beside() checkpoint.Beside {
	near := (&Checkpoint{}).Beside // nobody is near
	if c.model.from != nil {
		near = c.model.from.Beside
	}
	if c.model.config == nil {
		return near
	}
	return func(name string, most int64) ([]byte, error) {
		if name == "params.json" || name == "config.json" {
			return c.model.config, nil
		}
		return near(name, most)
	}
}

// elements hands what was asked of the elements to a target that chooses them
// itself.
func (v *Conversion) elements(target checkpoint.Target) error {
	own, ok := target.(checkpoint.Caster)
	c := &v.config
	switch {
	case ok && c.model.form != "":
		c.target.DType = c.model.form
	case ok && c.precision != tensor.Invalid:
		c.target.DType, c.precision = c.precision.String(), tensor.Invalid
	case c.model.form != "":
		return fault.New(fault.Usage, "no dtype of "+target.Name()+" is called "+c.model.form).Needs("", "such as float32, float16, bfloat16")
	}
	if ok && c.target.DType != "" {
		return own.CheckDType(c.target.DType)
	}
	return nil
}

// choosesElements reports whether a target is a [checkpoint.Caster].
func choosesElements(target checkpoint.Target) bool {
	_, ok := target.(checkpoint.Caster)
	return ok
}

// Files are the files of the output that this conversion writes: all of them,
// or those of its [Part].
func (v *Conversion) Files() []checkpoint.OutputFile {
	var files []checkpoint.OutputFile
	for k, f := range v.Output.Files {
		if v.config.model.part.has(k, f.Index) {
			files = append(files, f)
		}
	}
	return files
}

// path is where a file of the output goes.
func (v *Conversion) path(f checkpoint.OutputFile) string {
	if f.Name == "" {
		return v.out
	}
	return filepath.Join(filepath.Dir(v.out), f.Name)
}

// before does what must succeed before a byte is written.
func (v *Conversion) before(ctx context.Context) error {
	if j := v.config.model.joined; j != nil {
		if err := j.Check(ctx); err != nil {
			return err
		}
	}
	if v.config.model.part.kind != indexPart {
		return nil
	}
	for _, f := range v.Output.Files {
		if f.Index {
			continue
		}
		if err := v.written(f); err != nil {
			return err
		}
	}
	return nil
}

// unreadable makes a fault of what the system says of a file.
func unreadable(err error, path string) error {
	if err == nil {
		return nil
	}
	var system *fs.PathError
	if errors.As(err, &system) {
		err = system.Err // without the path, which stands before it
	}
	return fault.Wrap(fault.IO, "cannot be read", err).In(path)
}

// written fails unless a shard is there as this conversion would write it.
func (v *Conversion) written(f checkpoint.OutputFile) error {
	path := v.path(f)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.NotFound, "this shard is missing", fs.ErrNotExist).In(path).
			Needs("all parts before the index", "convert the part that it belongs to")
	}
	if err != nil {
		return unreadable(err, path)
	}
	return errors.Join(fault.InFile(f.Layout.Matches(file), path), unreadable(file.Close(), path))
}
