package cli

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/cmd/wick/internal/numbers"
	"github.com/wick-ml/wick/fault"
)

func newDiff(a *app) *cobra.Command {
	var tol float64
	var json bool
	var f modelFlags
	cmd := &cobra.Command{
		Use:   "diff [FLAGS] A B",
		Short: "Compare two checkpoints: missing, added, changed and by how much",
		Long: "diff compares every tensor of A with the one of the same name in B. Of changed values it shows the largest\n" +
			"difference (MAX DIFF), the largest relative one (MAX REL: that of two numbers over the larger magnitude of the two), and how\n" +
			"many elements differ. With --tol T a tensor is the same if no element differs by more than T.\n" +
			"Flags that change A, such as --key, are those of convert.",
		Example: "  wick diff epoch10.pt epoch20.pt\n  wick diff --tol 1e-3 full.pt half.safetensors\n" +
			"  wick diff --key state_dict --tol 1e-3 model.ckpt half.safetensors",
		Args: inputArgs(2, 2, "two files"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case math.IsNaN(tol):
				return fault.New(fault.Usage, "--tol NaN").Needs("", "give a number such as 1e-3; 0 asks for the same bits")
			case tol < 0:
				return fault.New(fault.Usage, "a negative --tol").Needs("", "0 asks for the same bits")
			}
			return a.diff(cmd.Context(), &f, args[0], args[1], tol, json)
		},
	}
	cmd.Flags().Float64Var(&tol, "tol", 0, "the largest absolute `difference` that is none; dtypes may then differ too")
	f.register(cmd.Flags())
	cmd.Flags().BoolVar(&json, "json", false, "print one JSON document")
	return cmd
}

// change is a difference with its measure.
type change struct {
	listing.Difference
	measured bool
	distance numbers.Distance
}

// drift is what diff found.
type drift struct {
	a, b    *listing.Listing
	same    int
	changes []change
}

func (a *app) diff(ctx context.Context, f *modelFlags, first, second string, tol float64, json bool) error {
	one, err := a.openChanged(ctx, first, openOptions{keep: true}, f)
	if err != nil {
		return err
	}
	defer a.close(one)
	two, err := a.openKept(ctx, second)
	if err != nil {
		return err
	}
	defer a.close(two)
	x, err := a.compareOpen(ctx, one, two)
	if err != nil {
		return err
	}
	if err := f.checkLeft(x); err != nil {
		return err
	}
	d := &drift{a: x.a, b: x.b, same: x.same}
	p := a.progress("comparing")
	defer p.done()
	if err := d.measure(ctx, x.differences, tol, p); err != nil {
		return err
	}
	for _, row := range listing.Added(x.a, x.b) {
		d.changes = append(d.changes, change{Difference: row})
	}
	if json {
		_, err = a.out.Write(append(d.json(), '\n'))
	} else {
		err = a.printDrift(d)
	}
	return cmp.Or(err, d.err())
}

// measure says how far changed values are apart, and drops what is within tol.
func (d *drift) measure(ctx context.Context, differences []listing.Difference, tol float64, p *progress) error {
	done, total := int64(0), int64(0)
	for _, x := range differences {
		if x.Measurable() {
			total += x.RowA.Tensor().Bytes()
		}
	}
	for _, x := range differences {
		c := change{Difference: x}
		if x.Measurable() && (x.Kind == "values" || tol > 0) {
			var err error
			if c.distance, err = numbers.Between(ctx, x.RowA.Tensor(), x.RowB.Tensor()); err != nil {
				return listing.Locate(err, d.a.File, x.Name)
			}
			c.measured = true
			done += x.RowA.Tensor().Bytes()
			p.report(done, total)
			// Values can differ in nothing but a NaN's bits: that is no number.
			if tol > 0 && c.distance.MaxAbs <= tol {
				d.same++
				continue
			}
		}
		d.changes = append(d.changes, c)
	}
	return nil
}

func (d *drift) err() error {
	if err := cmp.Or(d.a.Err(), d.b.Err()); err != nil {
		return err
	}
	if len(d.changes) > 0 {
		return errNo
	}
	return nil
}

func (a *app) printDrift(d *drift) error {
	t := table{head: []string{"KIND", "NAME", "MAX DIFF", "MAX REL", "WHAT"}, cut: []int{1, 4}, right: []bool{2: true, 3: true}}
	for i := range d.changes {
		t.add(d.changes[i].cells()...)
	}
	if err := t.print(a.streams); err != nil {
		return err
	}
	text := a.paint(green, "no difference")
	if n := len(d.changes); n > 0 {
		text = a.paint(red, human.Plural(n, "difference"))
	}
	_, err := fmt.Fprintf(a.out, "%s, %s: %s, %s the same\n", fault.Clean(d.a.File, maxName), fault.Clean(d.b.File, maxName), text, human.Plural(d.same, "tensor"))
	return err
}

func changeStyle(kind string) style {
	switch kind {
	case "added":
		return green
	case "values":
		return yellow
	default:
		return red
	}
}

// cells are a row of the table.
func (c *change) cells() []cell {
	row := []cell{{c.Kind, changeStyle(c.Kind)}, {nameOrEmpty(c.Name), bold}, {}, {}, {c.what(), plain}}
	if c.measured {
		row[2].text, row[3].text = number(c.distance.MaxAbs), number(c.distance.MaxRel)
	}
	return row
}

// what says what differs: of values, how many.
func (c *change) what() string {
	if !c.measured {
		return differenceText(c.Difference)
	}
	n := c.RowA.Tensor().Len()
	text := human.Count(c.distance.Differ) + " of " + human.Plural(n, "element")
	if c.distance.Differ == n && n > 1 {
		text = "all " + human.Plural(n, "element")
	}
	if c.Kind == "dtype" {
		text = differenceText(c.Difference) + ", " + text
	}
	return text
}

func (d *drift) json() []byte {
	var o jsonout.Object
	o.String("a", d.a.File)
	o.String("b", d.b.File)
	o.Int("same", int64(d.same))
	o.Raw("differences", list(d.changes, func(c change) []byte {
		var one jsonout.Object
		one.String("name", c.Name)
		one.Raw("path", listing.AppendPath(nil, c.Path))
		one.String("kind", c.Kind)
		one.StringOrNull("a", c.A)
		one.StringOrNull("b", c.B)
		if c.measured {
			one.Int("differ", c.distance.Differ)
			one.Float("max_abs", c.distance.MaxAbs)
			one.Float("max_rel", c.distance.MaxRel)
			one.Float("mean_abs", c.distance.MeanAbs)
		}
		return one.Bytes()
	}))
	o.Bool("ok", d.err() == nil)
	return o.Bytes()
}
