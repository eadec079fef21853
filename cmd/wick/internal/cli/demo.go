package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/cmd/wick/internal/demo"
	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/tensor"
)

func newDemo(a *app) *cobra.Command {
	var save string
	cmd := &cobra.Command{
		Use:   "demo [--save FILE]",
		Short: "See it work; needs no file",
		Long: "demo imports a small ResNet checkpoint, saved by PyTorch and built into this program, into a Go struct,\n" +
			"converts it to safetensors in a temporary folder, and compares the two.",
		Example: "  wick demo\n  wick demo --save resnet.pt && wick tree resnet.pt",
		Args:    argCount(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if save != "" {
				return a.saveDemo(save)
			}
			return a.demo(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&save, "save", "", "write the checkpoint to this `file` instead, to try the other commands on")
	return cmd
}

// saveDemo writes the built-in checkpoint to a file that does not exist yet.
func (a *app) saveDemo(name string) error {
	file, err := demo.File()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fault.New(fault.Usage, "the output exists").In(name).Needs("a new name", "")
	}
	if err != nil {
		return err
	}
	_, err = f.Write(file)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	a.note(fmt.Sprintf("%s: %s; try: wick tree %[1]s", fault.Clean(name, maxName), human.Bytes(int64(len(file)))))
	return nil
}

// demo tells the story.
func (a *app) demo(ctx context.Context) error {
	file, err := demo.File()
	if err != nil {
		return err
	}
	c, err := wick.OpenBytes(ctx, demo.FileName, file)
	if err != nil {
		return err
	}
	defer a.close(c)
	a.line("wick demo: from a PyTorch checkpoint into a Go struct, and on into safetensors.\nNo Python, no network, and nothing that is in the file is run.")
	if err := a.demoFile(c, int64(len(file))); err != nil {
		return err
	}
	for _, step := range []func(context.Context, *checkpoint.Checkpoint) error{a.demoTypes, a.demoLoad, a.demoConvert} {
		if err := step(ctx, c); err != nil {
			return err
		}
	}
	a.heading("Next")
	a.indented("wick demo --save resnet.pt                 this checkpoint as a file\n" +
		"wick tree resnet.pt                        everything in it\n" +
		"wick convert resnet.pt resnet.safetensors  step 5\n" +
		"go get github.com/wick-ml/wick             steps 2 to 4 in your program:\n" +
		"                                           wick.Load(ctx, file, &ckpt)")
	return a.out.Flush()
}

func (a *app) heading(title string) { a.line("\n" + a.paint(bold, title)) }

func (a *app) indented(text string) {
	for line := range strings.Lines(text) {
		a.line(strings.TrimRight("   "+strings.ReplaceAll(line, "\t", "    "), " \n"))
	}
}

func (a *app) demoFile(c *checkpoint.Checkpoint, size int64) error {
	l, err := listing.Of(c)
	if err != nil {
		return err
	}
	sum := l.Summarize()
	a.heading("1. The file")
	a.indented(fmt.Sprintf("%s, %s, saved by torch.save and built into this program\n%s of %s, %s elements",
		demo.FileName, human.Bytes(size), human.Plural(sum.Tensors, "tensor"), dtypeList(&sum), human.Count(sum.Elements)))
	var values []string
	groups, _ := l.Groups(maxGroups)
	for _, g := range groups {
		if g.Only != nil {
			values = append(values, g.Name+" = "+nested.Repr(g.Only))
		}
	}
	a.indented("and " + strings.Join(values, ", ") + ", …")
	return nil
}

func dtypeList(sum *listing.Summary) string {
	var names []string
	for _, d := range sum.DTypes {
		names = append(names, d.DType.String())
	}
	return strings.Join(names, " and ")
}

func (a *app) demoTypes(context.Context, *checkpoint.Checkpoint) error {
	a.heading("2. The Go types it goes into")
	a.indented(demo.Source())
	return nil
}

// demoLoad plans and fills the struct.
func (a *app) demoLoad(ctx context.Context, c *checkpoint.Checkpoint) error {
	var ckpt demo.Checkpoint
	plan, err := serde.NewPlan(c.Root, &ckpt)
	if err != nil {
		return err
	}
	a.heading("3. The plan, before a byte of a tensor is read")
	a.demoPlan(plan)
	start := time.Now()
	report, err := plan.Run(ctx)
	if err != nil {
		return err
	}
	a.heading("4. The struct, filled in " + elapsed(start))
	m := &ckpt.Model
	t := table{right: []bool{false, true}}
	t.add(cell{"   ckpt.Epoch", bold}, cell{}, cell{fmt.Sprint(ckpt.Epoch), plain})
	t.add(cell{"   ckpt.BestAcc1", bold}, cell{}, cell{fmt.Sprint(ckpt.BestAcc1), plain})
	t.addArray("   ckpt.Model.Conv1.Weight", m.Conv1.Weight)
	t.addArray("   ckpt.Model.Layer4[1].BN2.RunningVar", m.Layer4[1].BN2.RunningVar)
	t.addArray("   ckpt.Model.FC.Bias", m.FC.Bias)
	if err := t.print(a.streams); err != nil {
		return err
	}
	a.indented(fmt.Sprintf("%s copied once, from file to %s; %d checksums verified",
		human.Bytes(report.Copied), "packed slices", report.Checks.Verified))
	return nil
}

// addArray adds an array's shape and its first values.
func (t *table) addArray(name string, x tensor.Array[float32]) {
	var b strings.Builder
	for _, v := range x.Data[:min(3, len(x.Data))] {
		fmt.Fprintf(&b, "%7.4f ", v)
	}
	t.add(cell{name, bold}, cell{tensor.ShapeString(x.Shape), cyan}, cell{b.String() + "…", plain})
}

// demoPlan prints the first rows and the last of a plan, and its verdict.
func (a *app) demoPlan(plan *serde.Plan) {
	const head, tail = 6, 2
	t := table{spare: []int{3}, cut: []int{0, 2}}
	for i := range plan.Applied {
		switch r := &plan.Applied[i]; {
		case i < head || i >= len(plan.Applied)-tail:
			t.add(cell{"   " + r.Name, plain}, cell{r.From, cyan}, cell{"→ " + r.Field, bold}, cell{r.To, cyan})
		case i == head:
			t.add(cell{fmt.Sprintf("   … %d more", len(plan.Applied)-head-tail), dim})
		}
	}
	_ = t.print(a.streams) // Flush reports what went wrong
	a.indented(fmt.Sprintf("%d applied, %d missing, %d unexpected, %d mismatched", len(plan.Applied), len(plan.Missing), len(plan.Unexpected), len(plan.Mismatched)))
}

// demoConvert converts the checkpoint in a temporary folder and compares.
func (a *app) demoConvert(ctx context.Context, c *checkpoint.Checkpoint) (err error) {
	dir, err := os.MkdirTemp("", "wick-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	out := filepath.Join(dir, "resnet.safetensors")
	start := time.Now()
	report, err := wick.Convert(ctx, c, out)
	if err != nil {
		return err
	}
	a.heading("5. Converted in " + elapsed(start) + ", and compared")
	a.indented(fmt.Sprintf("%s: %s, %s", filepath.Base(out), human.Plural(report.Tensors, "tensor"), human.Bytes(report.Bytes)))
	back, err := wick.Open(ctx, out)
	if err != nil {
		return err
	}
	defer a.close(back)
	x, err := a.compareOpen(ctx, c, back)
	if err != nil {
		return err
	}
	if err := x.err(); err != nil {
		return err
	}
	a.indented(a.paint(green, allSame(x.same)))
	return nil
}
