package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/cmd/wick/internal/numbers"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch"
	"github.com/wick-ml/wick/tensor"
)

// showFlags is what show was asked for.
type showFlags struct {
	json        bool
	path, slice string
	change      changeFlags // --key
}

func newShow(a *app) *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show [--slice S] [--key NAME] [--json] FILE NAME",
		Short: "Show a tensor's values, statistics and distribution",
		Example: "  wick show model.pt conv1.weight\n" +
			"  wick show --slice '0,:,2:5' model.pt conv1.weight\n" +
			"  wick show --key state_dict model.ckpt layer.weight\n" +
			"  wick show --path '[\"fc.weight\"]' model.pt",
		Args: targetArgs(&f.path),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.show(cmd.Context(), &f, args[0], targetOf(args, f.path))
		},
	}
	f.change.registerKey(cmd.Flags())
	cmd.Flags().StringVar(&f.slice, "slice", "", sliceHelp)
	cmd.Flags().StringVar(&f.path, "path", "", "the tensor's exact path, as `JSON`, in place of NAME")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// bins is the number of bars of a histogram.
const bins = 32

func (a *app) show(ctx context.Context, f *showFlags, file string, name target) error {
	c, err := a.openBelow(ctx, file, &f.change)
	if err != nil {
		return err
	}
	defer a.close(c)
	l, err := listing.Of(c)
	if err != nil {
		return err
	}
	row, err := name.pick(l)
	if err != nil {
		return err
	}
	t, err := slice(row.Tensor(), f.slice)
	if err != nil {
		return err
	}
	if err := t.Err(); err != nil {
		return listing.Locate(err, l.File, row.Name())
	}
	v := &view{row: row, t: t}
	if file == "-" || a.streamed {
		src, err := a.keep(ctx, v, l.File)
		if err != nil {
			return listing.Locate(err, l.File, row.Name())
		}
		defer func() { _ = src.Close() }() // only read from
	}
	if err := v.read(ctx, a); err != nil {
		return listing.Locate(err, l.File, row.Name())
	}
	if f.json {
		_, err = a.out.Write(append(v.json(l), '\n'))
		return err
	}
	return a.printView(v)
}

// keep holds the tensor of a stream, which show reads more than once.
func (a *app) keep(ctx context.Context, v *view, file string) (checkpoint.Source, error) {
	r, w := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err := tensor.Run(ctx, []tensor.Move{{From: v.t, To: tensor.Stream(w)}})
		_ = w.CloseWithError(err) // never fails; Hold is told err
	}()
	src, err := pytorch.Hold(ctx, file, r, pytorch.Spool(a.spool))
	_ = r.Close() // never fails; ends a run that is not read to its end
	if <-ended; err != nil {
		return nil, err
	}
	shape := make([]int64, v.t.Dims())
	for d := range shape {
		shape[d] = int64(v.t.Size(d))
	}
	s := tensor.NewStorage(tensor.StorageSpec{Name: v.row.Name(), Size: src.Size(), File: src})
	v.t, err = tensor.New(tensor.Spec{Storage: s, DType: v.t.DType(), Shape: shape})
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return src, nil
}

// view is what show shows of a tensor.
type view struct {
	row    *listing.Tensor
	t      *tensor.Tensor
	sample *sample
	stats  *numbers.Stats // nil for complex numbers
	counts []int64
}

func (v *view) read(ctx context.Context, a *app) (err error) {
	if v.sample, err = newSample(ctx, v.t); err != nil {
		return err
	}
	if v.t.DType().Class() == tensor.ComplexClass {
		return nil
	}
	p := a.progress("reading")
	defer p.done()
	progress := tensor.Progress(p.report)
	if v.stats, err = numbers.Describe(ctx, v.t, progress); err != nil {
		return err
	}
	if v.stats.Finite() > 0 {
		v.counts, err = numbers.Histogram(ctx, v.t, v.stats, bins, progress)
	}
	return err
}

func (a *app) printView(v *view) error {
	a.line(a.paint(bold, nameOrEmpty(v.row.Name())) + "  " + a.paint(dtypeStyle(v.t.DType()), v.t.DType().String()) + " " +
		tensor.ShapeString(v.t.Shape()) + "  " + human.Bytes(v.t.Bytes()))
	if q := v.quant(); q != nil {
		a.line("integers n that stand for numbers: " + q.Scheme + quantText(q))
	}
	if v.stats != nil {
		a.printStats(v)
	}
	a.line(v.sample.text(cmp.Or(a.width, usualWidth)))
	return a.out.Flush()
}

// quant is how a tensor is quantized, nil if it is not.
func (v *view) quant() *nested.Quant {
	if leaf, ok := v.row.Leaf.(*nested.Tensor); ok {
		return leaf.Quant
	}
	return nil
}

func quantText(q *nested.Quant) string {
	if q.Scales != nil {
		return fmt.Sprintf(", each index of dimension %d with a scale of its own", q.Axis)
	}
	return fmt.Sprintf(", (n - %d) * %s", q.ZeroPoint, strconv.FormatFloat(q.Scale, 'g', -1, 64))
}

// printStats prints what the values are like: of bools how many are true, of numbers
// their statistics, what cannot be in them, and their distribution.
func (a *app) printStats(v *view) {
	s := v.stats
	elements := human.Plural(s.Count, "element")
	if v.t.DType().Class() == tensor.BoolClass {
		a.line(fmt.Sprintf("%s: %s true, %s false", elements, human.Count(s.Count-s.Zero), human.Count(s.Zero)))
		return
	}
	lo, hi := number(s.Min), number(s.Max)
	if s.Whole != nil {
		lo, hi = s.Whole.Min.String(), s.Whole.Max.String()
	}
	if s.Finite() > 0 {
		text := "min " + lo + "  max " + hi + "  mean " + number(s.Mean)
		if s.Finite() > 1 {
			text += "  std " + number(s.Std())
		}
		if s.Finite() < s.Count {
			text += "  of the finite values"
		}
		a.line(text)
	}
	a.line(fmt.Sprintf("%s: %s zero, %s NaN, %s infinite", elements, human.Count(s.Zero), human.Count(s.NaN), human.Count(s.PosInf+s.NegInf)))
	if s.Max > s.Min {
		a.line(lo + " " + a.paint(cyan, bars(v.counts)) + " " + hi)
	}
}

// number prints a number in few digits; a zero has no sign.
func number(f float64) string { return strconv.FormatFloat(f+0, 'g', 6, 64) }

// bars draws counts as blocks of eight heights; what is not zero is seen.
func bars(counts []int64) string {
	most := int64(1)
	for _, n := range counts {
		most = max(most, n)
	}
	blocks := []rune(" ▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, n := range counts {
		height := int(math.Ceil(float64(n) / float64(most) * 8))
		b.WriteRune(blocks[height])
	}
	return b.String()
}

func (v *view) json(l *listing.Listing) []byte {
	var o jsonout.Object
	o.String("file", l.File)
	o.String("name", v.row.Name())
	o.Raw("path", listing.AppendPath(nil, v.row.Path))
	o.String("dtype", v.t.DType().String())
	o.Raw("shape", jsonout.AppendInts(nil, v.t.Shape()))
	if v.stats != nil {
		o.Raw("stats", v.statsJSON())
	}
	if v.sample.whole {
		o.Raw("values", v.sample.json())
	}
	return o.Bytes()
}

func (v *view) statsJSON() []byte {
	var o jsonout.Object
	s := v.stats
	o.Int("count", s.Count)
	o.Int("nan", s.NaN)
	o.Int("pos_inf", s.PosInf)
	o.Int("neg_inf", s.NegInf)
	o.Int("zero", s.Zero)
	if s.Finite() == 0 {
		return o.Bytes()
	}
	if s.Whole != nil {
		o.Raw("min", []byte(s.Whole.Min.String()))
		o.Raw("max", []byte(s.Whole.Max.String()))
	} else {
		o.Float("min", s.Min)
		o.Float("max", s.Max)
	}
	o.Float("mean", s.Mean)
	if s.Finite() > 1 {
		o.Float("std", s.Std())
	} else {
		o.Null("std")
	}
	o.Raw("histogram", jsonout.AppendInts(nil, v.counts))
	return o.Bytes()
}

// checkDims refuses to print what would fill a book of brackets.
func checkDims(t *tensor.Tensor) error {
	if t.Dims() > maxSampleDims {
		return fault.New(fault.Unsupported, "printing a tensor of "+human.Plural(t.Dims(), "dimension")).
			Needs("at most "+strconv.Itoa(maxSampleDims), "take a part with --slice")
	}
	return nil
}
