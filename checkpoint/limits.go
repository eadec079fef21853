package checkpoint

import (
	"iter"
	"slices"
	"strconv"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// Limits bounds what a file may ask for. They grow with what is really there
// where they can, so that no sound file, however large, meets one. A zero field
// means its default. [NewOptions] refuses a negative field, and one beyond the
// most of this table. What goes over a limit is a [fault.ErrLimit] error, whose
// Limit is the name here, with Value and Max.
//
//	field         name           default      most          bounds
//	PickleBytes   pickle bytes   1073741824   1<<62         bytes of one pickle
//	Opcodes       opcodes        268435456    1<<62         opcodes of one pickle, and so the nodes of its tree
//	Stack         stack          16777216     1<<62         values on the machine's stack
//	Depth         depth          10000        100000        nesting of marks and of the finished tree
//	NDim          ndim           64           64            dimensions of a tensor
//	Paths         paths          16777216     1<<62         ways from the root that a walk visits, of [nested.MeanSteps] steps on the average; see [Env.Following]
//	StringBytes   string bytes   268435456    1<<62         bytes of one string or byte string
//	IntBytes      int bytes      1048576      1<<62         bytes of one big integer
//	Tensors       tensors        16777216     1<<62         tensors of one checkpoint; see [Env.Following]
//	Records       records        16777216     1<<62         entries of a container
//	Shards        shards         65536        1<<62         files of a sharded checkpoint, files of a folder
//	HeaderBytes   header bytes   268435456    1<<62         bytes of the header of safetensors, an index, a record
//	Expand        expand         64           1048576       bytes materialised for each byte present
//	ExpandFloor   expand floor   268435456    1<<62         bytes that may be materialised whatever is present
//	Inflate       inflate        1100         1048576       bytes inflated for each compressed byte; DEFLATE can do 1,032
//	InflateBytes  inflate bytes  1073741824   1<<62         bytes held in memory from one compressed record
type Limits struct {
	PickleBytes  int64
	Opcodes      int64
	Stack        int64
	Depth        int64
	NDim         int64
	Paths        int64
	StringBytes  int64
	IntBytes     int64
	Tensors      int64
	Records      int64
	Shards       int64
	HeaderBytes  int64
	Expand       int64
	ExpandFloor  int64
	Inflate      int64
	InflateBytes int64
}

// LimitField is one field of a [Limits].
type LimitField struct {
	Name    string // as errors call it
	Value   *int64 // the field itself; 0 stands for Default
	Default int64
	Most    int64 // the largest value that may be asked for
}

// Fields yields the fields of l in their order, so that a program can show and
// set them by name.
func (l *Limits) Fields() iter.Seq[LimitField] {
	fields := l.fields()
	return slices.Values(fields[:])
}

func (l *Limits) fields() [16]LimitField {
	const vast = 1 << 62 // half of what an int64 holds: twice it overflows nothing
	return [...]LimitField{
		{"pickle bytes", &l.PickleBytes, 1 << 30, vast},
		{"opcodes", &l.Opcodes, 1 << 28, vast},
		{"stack", &l.Stack, 1 << 24, vast},
		{"depth", &l.Depth, 10_000, 100_000}, // walks recurse
		{"ndim", &l.NDim, tensor.MaxDims, tensor.MaxDims},
		{"paths", &l.Paths, 1 << 24, vast},
		{"string bytes", &l.StringBytes, 256 << 20, vast},
		{"int bytes", &l.IntBytes, 1 << 20, vast},
		{"tensors", &l.Tensors, 1 << 24, vast},
		{"records", &l.Records, 1 << 24, vast},
		{"shards", &l.Shards, 65_536, vast},
		{"header bytes", &l.HeaderBytes, 256 << 20, vast},
		{"expand", &l.Expand, 64, 1 << 20}, // it multiplies sizes of files
		{"expand floor", &l.ExpandFloor, 256 << 20, vast},
		{"inflate", &l.Inflate, 1_100, 1 << 20},
		{"inflate bytes", &l.InflateBytes, 1 << 30, vast},
	}
}

// Default returns the limits with every zero field set to its default.
func (l Limits) Default() Limits {
	for _, f := range l.fields() {
		if *f.Value == 0 {
			*f.Value = f.Default
		}
	}
	return l
}

// Check returns an [fault.ErrUsage] error for a field that is negative or
// beyond its most.
func (l Limits) Check() error {
	for _, f := range l.fields() {
		if *f.Value < 0 || *f.Value > f.Most {
			return fault.New(fault.Usage, "a limit of "+strconv.FormatInt(*f.Value, 10)+" "+f.Name).
				Needs("0 for the default, or 1 to "+strconv.FormatInt(f.Most, 10), "")
		}
	}
	return nil
}

// Following returns e with the limits that the caller did not name lowered to
// what a pickle can hold in a file of so many bytes. A pickle of a kilobyte can
// share one list sixty times over, and the ways through it are 2^60; one
// that shares nothing spells each value in two bytes or more, and each tensor in
// dozens.
func (e *Env) Following(present int64) *Env {
	lower := *e
	lower.present = present
	if e.Asked.Paths == 0 {
		lower.Limits.Paths = min(e.Limits.Paths, 1<<18+present/2)
	}
	if e.Asked.Tensors == 0 {
		lower.Limits.Tensors = min(e.Limits.Tensors, 1<<16+present/8)
	}
	return &lower
}

// At returns an [fault.ErrLimit] error when value is over limit.
func At(name string, value, limit int64) error {
	if value > limit {
		return fault.NewLimit(name, value, limit)
	}
	return nil
}
