package wick

import (
	"context"
	"errors"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/record/meta"
	"github.com/wick-ml/wick/serde"
)

// Load fills the Go value that v points to from a checkpoint in the file system:
// [Open], [Unmarshal] and Close in one. It fails, and leaves the value as it was,
// unless names, shapes and dtypes fit; the error is a [*serde.FitError] that lists
// all that does not. Fields that stay lazy or alias the file need an open
// checkpoint: for those, use Open and Unmarshal. A folder of Meta's shards is
// joined, see [Join].
func Load(ctx context.Context, name string, v any, opts ...serde.Option) (*serde.Report, error) {
	c, err := Open(ctx, name, Join())
	if err != nil {
		return nil, err
	}
	report, err := Unmarshal(ctx, c, v, opts...)
	if err := errors.Join(err, c.Close()); err != nil {
		return nil, err
	}
	return report, nil
}

// Unmarshal fills the Go value that v points to from an open checkpoint, as
// [serde.Unmarshal] does. If the checkpoint is a record, what it says of itself
// must be what v wants: a record of another type, or in another precision than
// the type asks for, is a [fault.ErrMismatch] error that names both sides. See
// [meta.Want]; a record without a type, such as a converted checkpoint, and a Go
// value without a name, such as a map, agree with everything.
func Unmarshal(ctx context.Context, c *Checkpoint, v any, opts ...serde.Option) (*serde.Report, error) {
	if err := meta.CheckFor(v, c.Info); err != nil {
		return nil, fault.InFile(err, c.Info.Name)
	}
	report, err := serde.Unmarshal(ctx, c.Root, v, append([]serde.Option{serde.Mover(expansion(c))}, opts...)...)
	return report, located(err, c.Info.Name)
}

// located puts the checkpoint's name into an error that was made for this load: of a
// value that does not fit, and of bytes that are not those that were written.
func located(err error, name string) error {
	var fit *serde.FitError
	var e *fault.Error
	if errors.As(err, &e) && (errors.As(err, &fit) || e.Kind == fault.Checksum) {
		e.In(name)
	}
	return err
}

// Save writes a Go value to a record file in the format that out's extension
// names, with its scalars, the name of its type, its precision and checksums, so
// that [Load] of that file gives an equal value. [Precision] writes it in another
// one, and the report says what that lost.
func Save(ctx context.Context, out string, v any, opts ...ConvertOption) (*ConvertReport, error) {
	root, err := serde.Marshal(v)
	if err != nil {
		return nil, err
	}
	header := checkpoint.RecordHeader{Type: meta.Want(v).Type, Writer: writer}
	plan, err := PlanTree(root, Limits{}, out, append([]ConvertOption{AsRecord(header)}, opts...)...)
	if err != nil {
		return nil, err
	}
	return plan.report(ctx)
}

// writer is what records say wrote them.
const writer = "wick"
