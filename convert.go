package wick

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/gguf"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/record"
	"github.com/wick-ml/wick/record/meta"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/safetensors"
	"github.com/wick-ml/wick/tensor"
)

// Targets returns every format that wick writes. A file name's extension
// chooses among them.
func Targets() []checkpoint.Target {
	return slices.Concat([]checkpoint.Target{safetensors.Target{}, gguf.Target{}}, record.Targets())
}

// ConvertOption is one thing that a caller asks of [Convert] or
// [PlanConversion].
type ConvertOption func(*convertConfig)

type convertConfig struct {
	format string
	rules  []*rules.Set
	change []func(nested.Value) (nested.Value, error)
	target checkpoint.TargetOptions
	write  checkpoint.WriteOptions
	model  model

	precision tensor.DType             // of all floats; Invalid keeps each
	inherited *checkpoint.RecordHeader // what makes a record of the output if nothing else does
}

// As chooses the output's format by name rather than by the file's extension.
func As(format string) ConvertOption { return func(c *convertConfig) { c.format = format } }

// WithRules changes the tree before it is written: renames, selections, views
// and casts, all of them lazily. Sets apply in the order given.
func WithRules(sets ...*rules.Set) ConvertOption {
	return func(c *convertConfig) { c.rules = append(c.rules, sets...) }
}

// Changing applies f to the tree before the rules, for what is arithmetic and
// not a view, such as dequantizing.
func Changing(f func(nested.Value) (nested.Value, error)) ConvertOption {
	return func(c *convertConfig) { c.change = append(c.change, f) }
}

// Overwrite replaces an output that exists.
func Overwrite() ConvertOption { return func(c *convertConfig) { c.write.Force = true } }

// Sync returns only when the disk has the bytes.
func Sync() ConvertOption { return func(c *convertConfig) { c.write.Sync = true } }

// AsRecord makes a record of the output: the whole tree with its scalars, what
// wrote it, and checksums.
func AsRecord(h checkpoint.RecordHeader) ConvertOption {
	return func(c *convertConfig) { c.target.Record = &h }
}

// Precision converts all tensors of floats to d while they are written:
// [tensor.F16], [tensor.BF16], [tensor.F32], [tensor.F64] or a smaller float. The
// report's Stats.Loss counts the numbers that became infinite, or in a
// dtype without infinity something else. It is the last of
// the rules.
func Precision(d tensor.DType) ConvertOption {
	return func(c *convertConfig) { c.precision = d }
}

// ShardBytes splits the output into files of at most that many bytes each, with
// an index file. A tensor is never cut.
func ShardBytes(n int64) ConvertOption { return func(c *convertConfig) { c.target.ShardBytes = n } }

// Align makes the tensors begin at a multiple of n bytes in the file, a power of
// two of at least 8, where the format has room for that: safetensors, in which each
// tensor then lies at a multiple of its element's size. Whoever lends the file's
// bytes as elements needs it.
func Align(n int) ConvertOption { return func(c *convertConfig) { c.target.Align = n } }

// Metadata puts free text into the output, where its format has room for it.
func Metadata(m map[string]string) ConvertOption {
	return func(c *convertConfig) { c.target.Metadata = m }
}

// Running passes options to the run that moves the bytes, such as
// [tensor.MaxMemory] or [tensor.Progress].
func Running(opts ...tensor.RunOption) ConvertOption {
	return func(c *convertConfig) { c.write.Run = append(c.write.Run, opts...) }
}

// Conversion is a planned conversion: all that will be written is known and
// nothing has moved.
type Conversion struct {
	Format string             // of the output
	Output *checkpoint.Output // files and what they hold
	Rules  []*rules.Report    // what each set of rules did, those of [Names] last

	in     string // the name of the checkpoint, "" for a tree
	out    string
	config convertConfig
}

// PlanConversion plans to write the checkpoint's tree to the file out, from
// metadata alone. Meta's model-parallel shards are joined, unless [KeepShards]. A
// record stays a record, of the same type, also in shards, whose index has its tree; only [Part] writes plain ones. Whatever the rules or the format cannot do is an error here.
// The checkpoint must stay open until the conversion has run.
func PlanConversion(c *Checkpoint, out string, opts ...ConvertOption) (*Conversion, error) {
	if h, ok := meta.Told(c.Info); ok {
		opts = append([]ConvertOption{stillRecord(h)}, opts...)
	}
	v, err := PlanTree(c.Root, c.Limits(), out, append([]ConvertOption{of(c), Running(expansion(c))}, opts...)...)
	if err != nil {
		return nil, fault.InFile(err, c.Info.Name)
	}
	v.in = c.Info.Name
	return v, nil
}

// expansion gives the checkpoint's limits to a run.
func expansion(c *Checkpoint) tensor.RunOption {
	l := c.Limits()
	return tensor.Expansion(l.Expand, l.ExpandFloor)
}

// stillRecord makes a record of the output, of the type that the input had.
func stillRecord(h checkpoint.RecordHeader) ConvertOption {
	return func(c *convertConfig) { c.inherited = &checkpoint.RecordHeader{Type: h.Type, Writer: writer} }
}

// PlanTree plans to write any tree, as [PlanConversion] does a checkpoint's.
func PlanTree(root nested.Value, limits Limits, out string, opts ...ConvertOption) (*Conversion, error) {
	v := &Conversion{out: out}
	for _, o := range opts {
		o(&v.config)
	}
	v.config.target.Name, v.config.target.Limits, v.config.target.Beside = filepath.Base(out), limits, v.config.beside()
	target, err := findTarget(v.config.format, out)
	if err != nil {
		return nil, err
	}
	v.Format = target.Name()
	if err := errors.Join(v.config.model.part.check(), v.elements(target)); err != nil {
		return nil, err
	}
	if root, err = v.whole(root); err != nil {
		return nil, err
	}
	if root, err = v.changed(root); err != nil {
		return nil, err
	}
	if err := v.record(target); err != nil {
		return nil, err
	}
	if v.Output, err = target.Plan(root, v.config.target); err != nil {
		return nil, err
	}
	return v, nil
}

// record decides whether the output is a record: when one is asked for, and when the
// input is one and the format takes records. Parts of a conversion are none, for
// the index part could not tell shards of one record from those of another.
func (v *Conversion) record(target checkpoint.Target) error {
	asked, h := v.config.target.Record, v.config.inherited
	if v.config.model.part.kind != allParts {
		if asked != nil {
			return fault.New(fault.Usage, "a record in parts").Needs("one conversion that writes all shards of a record", "leave out wick.Part or wick.AsRecord")
		}
		return nil
	}
	if h == nil || choosesElements(target) { // a Caster writes no records
		return nil
	}
	if asked == nil {
		v.config.target.Record = h
	} else if asked.Type == "" {
		typed := *asked
		typed.Type = h.Type
		v.config.target.Record = &typed
	}
	return nil
}

// Changed returns the checkpoint with the tree that a conversion under the same
// options writes, and what each set of rules did: what [Changing], [WithRules],
// [Precision] and [Names] make of it, lazily. Other options that are not about the
// tree are ignored; Meta's shards stay as c has them, see [Join]. The checkpoint
// that it returns takes the place of c and owns what c owned, as
// [checkpoint.Checkpoint.WithRoot] says. On an error c is as it was.
func Changed(c *Checkpoint, opts ...ConvertOption) (*Checkpoint, []*rules.Report, error) {
	v := &Conversion{}
	for _, o := range append([]ConvertOption{of(c)}, opts...) {
		o(&v.config)
	}
	v.config.target.Beside = v.config.beside()
	root, err := v.changed(c.Root)
	if err != nil {
		return nil, nil, fault.InFile(err, c.Info.Name)
	}
	out, err := c.WithRoot(root, c.Info.Format)
	return out, v.Rules, err
}

// changed applies all that options do to a tree, in their order.
func (v *Conversion) changed(root nested.Value) (nested.Value, error) {
	root, err := v.tree(root)
	if err != nil {
		return nil, err
	}
	return v.named(root)
}

// tree applies changes and rules.
func (v *Conversion) tree(root nested.Value) (nested.Value, error) {
	var err error
	for _, f := range v.config.change {
		if root, err = f(root); err != nil {
			return nil, err
		}
	}
	sets := v.config.rules
	if v.config.precision != tensor.Invalid {
		floats, err := rules.Floats(v.config.precision)
		if err != nil {
			return nil, err
		}
		sets = append(slices.Clip(sets), floats)
	}
	return v.ruled(root, sets)
}

// ruled applies sets of rules, and keeps what they say they did.
func (v *Conversion) ruled(root nested.Value, sets []*rules.Set) (nested.Value, error) {
	for _, set := range sets {
		var report *rules.Report
		var err error
		if root, report, err = set.Apply(root); err != nil {
			return nil, err
		}
		v.Rules = append(v.Rules, report)
	}
	return root, nil
}

func findTarget(format, out string) (checkpoint.Target, error) {
	if format == "" {
		return checkpoint.FindTarget(Targets(), out)
	}
	var known []string
	for _, t := range Targets() {
		if t.Name() == format {
			return t, nil
		}
		known = append(known, t.Name())
	}
	e := fault.New(fault.Usage, "no output format is called "+format)
	if near := nested.Nearest(format, known); near != "" {
		e.Cure = "did you mean " + near + "?"
	}
	return nil, e
}

// Run writes the files beside their final names and renames them once they are
// whole. On an error, or when ctx is done, nothing is left behind.
func (v *Conversion) Run(ctx context.Context) (tensor.Stats, error) {
	if err := v.before(ctx); err != nil {
		return tensor.Stats{}, err
	}
	var files []checkpoint.File
	for _, f := range v.Files() {
		files = append(files, checkpoint.File{Path: v.path(f), Layout: f.Layout})
	}
	stats, err := checkpoint.WriteFiles(ctx, files, v.config.write)
	return stats, v.damaged(err)
}

// damaged names the checkpoint in an error of its bytes that names no file.
func (v *Conversion) damaged(err error) error {
	if kind := fault.KindOf(err); kind == fault.Checksum || kind == fault.Malformed {
		return fault.InFile(err, v.in)
	}
	return err
}

// RunTo writes the one file of the conversion to w, in order.
func (v *Conversion) RunTo(ctx context.Context, w io.Writer) (tensor.Stats, error) {
	if len(v.Output.Files) != 1 || v.config.model.part.kind != allParts {
		return tensor.Stats{}, fault.New(fault.Usage, "several files into one stream").Needs("one file", "leave out the shard size, or name a file")
	}
	if err := v.before(ctx); err != nil {
		return tensor.Stats{}, err
	}
	stats, err := checkpoint.WriteStream(ctx, w, v.Output.Files[0].Layout, v.config.write.Run...)
	return stats, v.damaged(err)
}

// ConvertReport says what a conversion wrote.
type ConvertReport struct {
	checkpoint.Report
	Format string
	Rules  []*rules.Report
	Stats  tensor.Stats
}

// Convert writes the checkpoint's tensors to the file out, in the format that
// its extension names. Bytes move once, in bounded memory; between two files of
// one system they need not pass through the process.
func Convert(ctx context.Context, c *Checkpoint, out string, opts ...ConvertOption) (*ConvertReport, error) {
	v, err := PlanConversion(c, out, opts...)
	if err != nil {
		return nil, err
	}
	return v.report(ctx)
}

func (v *Conversion) report(ctx context.Context) (*ConvertReport, error) {
	stats, err := v.Run(ctx)
	if err != nil {
		return nil, err
	}
	return &ConvertReport{Report: v.Output.Report, Format: v.Format, Rules: v.Rules, Stats: stats}, nil
}
