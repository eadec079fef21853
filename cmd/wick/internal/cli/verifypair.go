package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// comparison is what comparing two files showed.
type comparison struct {
	a, b        *listing.Listing
	same        int
	differences []listing.Difference
}

func (a *app) verifyPair(ctx context.Context, f *modelFlags, first, second string, json bool) error {
	x, err := a.compare(ctx, f, first, second)
	if err != nil {
		return err
	}
	if json {
		_, err = a.out.Write(append(x.json(), '\n'))
	} else {
		err = a.printComparison(x)
	}
	return cmp.Or(err, x.err())
}

// compare opens two files, changes the first, and compares every tensor of it.
func (a *app) compare(ctx context.Context, f *modelFlags, first, second string) (*comparison, error) {
	one, err := a.openChanged(ctx, first, openOptions{}, f)
	if err != nil {
		return nil, err
	}
	defer a.close(one)
	two, err := a.openArg(ctx, second, false)
	if err != nil {
		return nil, err
	}
	defer a.close(two)
	x, err := a.compareOpen(ctx, one, two)
	if err != nil {
		return nil, err
	}
	return x, f.checkLeft(x)
}

// compareOpen compares two open checkpoints.
func (a *app) compareOpen(ctx context.Context, one, two *checkpoint.Checkpoint) (x *comparison, err error) {
	x = &comparison{}
	if x.a, err = a.hashed(ctx, one); err != nil {
		return nil, err
	}
	if x.b, err = a.hashed(ctx, two); err != nil {
		return nil, err
	}
	x.same, x.differences = listing.Compare(x.a, x.b)
	return x, nil
}

// hashed lists a checkpoint and reads all of it.
func (a *app) hashed(ctx context.Context, c *checkpoint.Checkpoint) (*listing.Listing, error) {
	l, err := listing.Of(c)
	if err != nil {
		return nil, err
	}
	return l, a.hash(ctx, c, l, tensor.Verify())
}

// err is the worst that was found: a file that is broken, else the answer "no".
func (x *comparison) err() error {
	if err := cmp.Or(x.a.Err(), x.b.Err()); err != nil {
		return err
	}
	if len(x.differences) > 0 {
		return errNo
	}
	return nil
}

func (x *comparison) json() []byte {
	var o jsonout.Object
	o.String("a", x.a.File)
	o.String("b", x.b.File)
	o.Int("tensors", int64(len(x.a.Tensors)))
	o.Int("same", int64(x.same))
	o.Raw("differences", list(x.differences, func(d listing.Difference) []byte {
		var one jsonout.Object
		one.String("name", d.Name)
		one.Raw("path", listing.AppendPath(nil, d.Path))
		one.String("kind", d.Kind)
		one.StringOrNull("a", d.A)
		one.StringOrNull("b", d.B)
		return one.Bytes()
	}))
	o.Bool("ok", x.err() == nil)
	return o.Bytes()
}

func (a *app) printComparison(x *comparison) error {
	t := table{cut: []int{1, 2}}
	for _, d := range x.differences {
		t.add(cell{d.Kind, red}, cell{fault.Clean(d.Name, maxName), bold}, cell{differenceText(d), plain})
	}
	if err := t.print(a.streams); err != nil {
		return err
	}
	verdict := a.paint(green, allSame(len(x.a.Tensors)))
	if len(x.differences) > 0 {
		verdict = a.paint(red, human.Count(len(x.differences))+" of "+human.Count(len(x.a.Tensors))+" tensors differ")
	}
	_, err := fmt.Fprintf(a.out, "%s, %s: %s\n", fault.Clean(x.a.File, maxName), fault.Clean(x.b.File, maxName), verdict)
	return err
}

// allSame is the verdict on so many tensors without a difference.
func allSame(n int) string {
	if n == 1 {
		return "the one tensor is the same bit for bit"
	}
	return "all " + human.Plural(n, "tensor") + " are the same bit for bit"
}

func differenceText(d listing.Difference) string {
	switch {
	case d.A == "":
		return fault.Clean(d.B, maxName)
	case d.B == "":
		return fault.Clean(d.A, maxName)
	default:
		return fault.Clean(d.A, maxName) + " → " + fault.Clean(d.B, maxName)
	}
}
