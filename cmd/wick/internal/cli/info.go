package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch"
)

func newInfo(a *app) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "info [--json] FILE",
		Short: "Say what a checkpoint is: writer, dtypes, totals, oddities",
		Long: "info says what FILE is, from metadata alone: its format and writer, tensors by dtype, what is tied, strided, quantized or\n" +
			"no tensor, which names a plain torch.load would import that are not known to be harmless, what convert would make of it,\n" +
			"and how much lies below each top-level name.",
		Example: "  wick info model.pt\n  wick info --json model.pt",
		Args:    argCount(1, 1, "FILE"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.info(cmd.Context(), args[0], json) },
	}
	cmd.Flags().BoolVar(&json, "json", false, "print one JSON document")
	return cmd
}

func (a *app) info(ctx context.Context, file string, json bool) error {
	c, err := a.openArg(ctx, file, false)
	if err != nil {
		return err
	}
	defer a.close(c)
	l, err := listing.Of(c)
	if err != nil {
		return err
	}
	sum := l.Summarize()
	export := planExport(c, &sum)
	if json {
		_, err = a.out.Write(append(infoJSON(c, &sum, export), '\n'))
	} else {
		err = a.printInfo(c, l, &sum, export)
	}
	if err != nil {
		return err
	}
	return l.Err()
}

// export is what convert would do.
type export struct {
	report *checkpoint.Report
	err    error // why it would not, as it stands
}

// planExport plans a conversion to safetensors and moves nothing.
func planExport(c *checkpoint.Checkpoint, sum *listing.Summary) export {
	v, err := wick.PlanConversion(c, "out.safetensors")
	if err == nil {
		err = expanded(c.Limits(), sum)
	}
	if err != nil {
		return export{err: err}
	}
	return export{report: &v.Output.Report}
}

// expanded is the error of tensors whose zero strides make more of the bytes that are
// there than a run may deliver.
func expanded(l checkpoint.Limits, sum *listing.Summary) error {
	most := l.ExpandFloor
	if sum.Stored > most/l.Expand {
		most = l.Expand * min(sum.Stored, math.MaxInt64/l.Expand)
	}
	if sum.Bytes <= most {
		return nil
	}
	e := fault.NewLimit("expansion", sum.Bytes, most)
	e.Found = human.Bytes(sum.Bytes) + " made of " + human.Bytes(sum.Stored)
	return e
}

func (e export) text() string {
	if e.err != nil {
		f := describe(e.err)
		text := "stops and writes nothing: " + f.Found
		switch {
		case f.Path != "" && f.Kind == fault.Unsupported:
			text = "stops and writes nothing: " + f.Path + " is " + f.Found
		case f.Path != "":
			text = "stops and writes nothing: " + f.Path + ": " + f.Found
		}
		if f.Cure != "" {
			text += " (" + f.Cure + ")"
		}
		return fault.Clean(text, 300)
	}
	text := human.Plural(e.report.Tensors, "tensor") + ", " + human.Bytes(e.report.Bytes) + " of safetensors"
	if n := len(e.report.Copies); n > 0 {
		text += ", " + human.Plural(n, "tied tensor") + " written a second time"
	}
	if n := len(e.report.LeftOut); n > 0 {
		text += ", " + human.Plural(n, "other value") + " left out"
	}
	return text
}

func (e export) json() []byte {
	var o jsonout.Object
	o.Bool("ok", e.err == nil)
	if e.err != nil {
		o.Raw("error", errorObject(e.err))
		return o.Bytes()
	}
	o.Int("tensors", int64(e.report.Tensors))
	o.Int("bytes", e.report.Bytes)
	o.Int("copies", int64(len(e.report.Copies)))
	o.Int("left_out", int64(len(e.report.LeftOut)))
	return o.Bytes()
}

func infoJSON(c *checkpoint.Checkpoint, sum *listing.Summary, e export) []byte {
	var o jsonout.Object
	o.String("file", c.Info.Name)
	o.String("format", c.Info.Format)
	o.StringOrNull("producer", c.Info.Producer)
	o.String("byte_order", c.Info.Order.String())
	for _, n := range []struct {
		name string
		n    int64
	}{
		{"tensors", int64(sum.Tensors)}, {"elements", sum.Elements}, {"bytes", sum.Bytes},
		{"storages", int64(sum.Storages)}, {"storage_bytes", sum.Stored}, {"shared", int64(sum.Shared)},
		{"strided", int64(sum.Strided)}, {"quantized", int64(sum.Quantized)}, {"no_data", int64(sum.NoData)},
		{"faulty", int64(sum.Faulty)}, {"values", int64(sum.Values)}, {"opaque", int64(sum.Opaque)},
	} {
		o.Int(n.name, n.n)
	}
	o.Raw("dtypes", dtypesJSON(sum))
	o.Raw("globals", globalsJSON(c.Info.Globals))
	o.Raw("metadata", metadataJSON(c.Info.Metadata))
	o.Raw("convert", e.json())
	return o.Bytes()
}

func dtypesJSON(sum *listing.Summary) []byte {
	var o jsonout.Object
	for _, d := range sum.DTypes {
		var one jsonout.Object
		one.Int("tensors", int64(d.Tensors))
		one.Int("elements", d.Elements)
		one.Int("bytes", d.Bytes)
		o.Raw(d.DType.String(), one.Bytes())
	}
	return o.Bytes()
}

func globalsJSON(globals []checkpoint.Global) []byte {
	return list(globals, func(g checkpoint.Global) []byte {
		var o jsonout.Object
		o.String("module", g.Module)
		o.String("name", g.Name)
		o.Bool("called", g.Called)
		return o.Bytes()
	})
}

func metadataJSON(metadata map[string]string) []byte {
	var o jsonout.Object
	for _, key := range sortedKeys(metadata) {
		o.String(key, metadata[key])
	}
	return o.Bytes()
}

// printInfo prints the same for people.
func (a *app) printInfo(c *checkpoint.Checkpoint, l *listing.Listing, sum *listing.Summary, e export) error {
	facts := table{wrap: true, cut: []int{1}}
	fact := func(name, text string) {
		if text != "" {
			facts.add(cell{name, dim}, cell{text, plain})
		}
	}
	fact("file", fault.Clean(c.Info.Name, maxName))
	fact("format", c.Info.Format+", "+c.Info.Order.String()+"-endian")
	fact("writer", fault.Clean(c.Info.Producer, maxName))
	fact("tensors", fmt.Sprintf("%s, %s, %s", human.Count(sum.Tensors), human.Plural(sum.Elements, "element"), human.Bytes(sum.Bytes)))
	fact("storages", fmt.Sprintf("%s, %s", human.Count(sum.Storages), human.Bytes(sum.Stored)))
	for i, d := range sum.DTypes {
		name := "dtypes"
		if i > 0 {
			name = ""
		}
		facts.add(cell{name, dim}, cell{fmt.Sprintf("%s: %s, %s, %s", d.DType, human.Plural(d.Tensors, "tensor"), human.Plural(d.Elements, "element"), human.Bytes(d.Bytes)), plain})
	}
	fact("notes", notes(sum))
	fact("also", others(*sum))
	fact("convert", e.text())
	fact("imports", foreignNames(c.Info))
	name := "metadata" // of the file: its keys may be any words
	for _, key := range sortedKeys(c.Info.Metadata) {
		fact(name, fault.Clean(key, maxName)+": "+fault.Clean(c.Info.Metadata[key], maxName))
		name = ""
	}
	if err := facts.print(a.streams); err != nil {
		return err
	}
	return a.printGroups(l)
}

// foreignNames says which names a plain torch.load would import that are neither
// on the weights-only loader's list nor known data, the dangerous first; "" for
// none. They are those of the pickles that were read, where scan reads all. Classes of
// TorchScript are made of the archive's own code, and not imported.
func foreignNames(info checkpoint.Info) string {
	dangerous, unknown := foreign(info)
	var parts []string
	if len(dangerous) > 0 {
		parts = append(parts, gradeText(pytorch.GradeDangerous, dangerous))
	}
	if len(unknown) > 0 {
		parts = append(parts, gradeText(pytorch.GradeUnknown, unknown))
	}
	if len(parts) == 0 {
		return ""
	}
	what := "them"
	if len(dangerous)+len(unknown) == 1 {
		what = "it"
	}
	return strings.Join(parts, "; ") + " (a plain torch.load would import " + what + "; wick scan tells more)"
}

// foreign lists the names of [foreignNames], each once.
func foreign(info checkpoint.Info) (dangerous, unknown []string) {
	for _, g := range info.Globals {
		text := g.Module + "." + g.Name
		if info.Format == "torchscript" && strings.HasPrefix(text, "__torch__.") {
			continue
		}
		switch graded := pytorch.Graded(g); {
		case graded.Grade == pytorch.GradeDangerous && !slices.Contains(dangerous, text):
			dangerous = append(dangerous, text)
		case graded.Grade == pytorch.GradeUnknown && !slices.Contains(unknown, text):
			unknown = append(unknown, text)
		}
	}
	return dangerous, unknown
}

// gradeText counts the names of a grade and shows the first few.
func gradeText(grade pytorch.Grade, names []string) string {
	const most = 5
	var shown []string
	for _, name := range names[:min(len(names), most)] {
		shown = append(shown, fault.Clean(name, 60))
	}
	if len(names) > most {
		shown = append(shown, "…")
	}
	return human.Count(len(names)) + " " + string(grade) + ": " + strings.Join(shown, ", ")
}

// notes says what is special about the tensors.
func notes(sum *listing.Summary) string {
	var list []string
	for _, n := range []struct {
		n    int
		what string
	}{
		{sum.Shared, "share storage"}, {sum.Strided, "strided"}, {sum.Quantized, "quantized"},
		{sum.NoData, "without data"}, {sum.Faulty, "cannot be read"},
	} {
		if n.n > 0 {
			list = append(list, human.Count(n.n)+" "+n.what)
		}
	}
	return strings.Join(list, ", ")
}

// maxGroups is how many top-level names info shows.
const maxGroups = 24

func (a *app) printGroups(l *listing.Listing) error {
	t := table{cut: []int{0, 1}}
	groups, more := l.Groups(maxGroups + 1)
	for i, g := range groups {
		if i == maxGroups && more > 0 {
			t.add(cell{fmt.Sprintf("… %s more", human.Count(more+1)), dim})
			break
		}
		t.add(cell{nameOrEmpty(g.Name), bold}, cell{groupText(&g), plain})
	}
	if len(t.rows) > 0 {
		_, _ = a.out.WriteString("\n") // Flush reports what went wrong
	}
	return t.print(a.streams)
}

func groupText(g *listing.Group) string {
	if g.Only != nil {
		return fault.Clean(nested.Repr(g.Only), maxName)
	}
	var parts []string
	if g.Tensors > 0 {
		parts = append(parts, fmt.Sprintf("%s, %s, %s", human.Plural(g.Tensors, "tensor"), human.Plural(g.Elements, "element"), human.Bytes(g.Bytes)))
	}
	if more := others(listing.Summary{Values: g.Values, Opaque: g.Opaque}); more != "" {
		parts = append(parts, more)
	}
	return strings.Join(parts, "; ")
}
