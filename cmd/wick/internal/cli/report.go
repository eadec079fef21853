package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/cmd/wick/internal/report"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/pytorch"
	"github.com/wick-ml/wick/tensor"
)

// reportFlags is what the report command's flags say.
type reportFlags struct {
	output string
	force  bool
	quick  bool
}

func newReport(a *app) *cobra.Command {
	f := &reportFlags{}
	cmd := &cobra.Command{
		Use:   "report [-o OUT.html] FILE [FILE2]",
		Short: "Write a page to look at: where the bytes are, values, oddities",
		Long: "report writes one page of HTML that needs no network and no other file: a map of the bytes, dtypes and sizes,\n" +
			"every tensor with its statistics and histogram, warnings of NaN, infinite values and dead channels, the objects\n" +
			"that are no tensors, and what a plain torch.load would import. With two files it compares them: what is missing,\n" +
			"added and changed, and how far each tensor drifted. All values are read once; --quick reads none.",
		Example: "  wick report model.pt                      # writes model.html\n" +
			"  wick report epoch10.pt epoch20.pt -o drift.html",
		Args: inputArgs(1, 2, "FILE, or two"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.writeReport(cmd.Context(), f, args) },
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "the `page` to write, - for stdout; FILE's name with .html if absent")
	cmd.Flags().BoolVarP(&f.force, "force", "f", false, "replace the page if it exists")
	cmd.Flags().BoolVar(&f.quick, "quick", false, "metadata alone: read no values")
	return cmd
}

func (a *app) writeReport(ctx context.Context, f *reportFlags, files []string) error {
	if err := f.settle(files); err != nil {
		return err
	}
	p := a.progress("reading")
	page, err := a.makePage(ctx, f, files, p)
	p.done()
	if err != nil {
		return err
	}
	html, err := page.HTML()
	if err != nil {
		return err
	}
	if f.output == "-" {
		_, err = a.out.Write(html)
		return err
	}
	layout := &checkpoint.Layout{}
	layout.Bytes(html)
	if _, err := checkpoint.WriteFile(ctx, f.output, layout, checkpoint.WriteOptions{Force: f.force}); err != nil {
		return err
	}
	a.note(fault.Clean(f.output, maxName) + ": " + page.Count() + ", " + strings.Join(slices.DeleteFunc([]string{human.Plural(len(page.Warnings), "warning"), page.Alert}, isEmpty), ", ") + ", " + human.Bytes(int64(len(html))))
	return nil
}

func isEmpty(text string) bool { return text == "" }

// settle finds the page's name.
func (f *reportFlags) settle(files []string) error {
	switch {
	case f.quick && len(files) == 2:
		return fault.New(fault.Usage, "--quick with two files").Needs("", "values are what two files are compared by: leave it away")
	case f.output != "":
		return localOutput(f.output)
	case files[0] == "-":
		return fault.New(fault.Usage, "a page without a name").Needs("", "name it: -o report.html")
	}
	base := strings.TrimRight(filepath.Base(files[0]), string(filepath.Separator))
	f.output = strings.TrimSuffix(base, filepath.Ext(base)) + ".html"
	return nil
}

// makePage opens one file or two and makes their page.
func (a *app) makePage(ctx context.Context, f *reportFlags, files []string, p *progress) (*report.Page, error) {
	open := func(name string) (*checkpoint.Checkpoint, error) { return a.openArg(ctx, name, false) }
	if len(files) == 2 { // what differs is read again
		open = func(name string) (*checkpoint.Checkpoint, error) { return a.openKept(ctx, name) }
	}
	c, err := open(files[0])
	if err != nil {
		return nil, err
	}
	defer a.close(c)
	l, err := listing.Of(c)
	if err != nil {
		return nil, err
	}
	opts := func(bytes int64) []tensor.RunOption { return []tensor.RunOption{expansion(c), p.stage(bytes)} }
	if len(files) == 2 {
		return a.pairPage(ctx, c, l, files[1], opts)
	}
	page, err := report.Of(ctx, l, f.quick, opts)
	if err != nil {
		return nil, err
	}
	sum := l.Summarize()
	page.Facts = a.pageFacts(c, &sum)
	a.addScan(ctx, page, files[0])
	return page, nil
}

func expansion(c *checkpoint.Checkpoint) tensor.RunOption {
	limits := c.Limits()
	return tensor.Expansion(limits.Expand, limits.ExpandFloor)
}

// pairPage compares with a second file.
func (a *app) pairPage(ctx context.Context, c *checkpoint.Checkpoint, l *listing.Listing, second string, opts report.Options) (*report.Page, error) {
	other, err := a.openKept(ctx, second)
	if err != nil {
		return nil, err
	}
	defer a.close(other)
	m, err := listing.Of(other)
	if err != nil {
		return nil, err
	}
	for _, x := range []*listing.Listing{l, m} {
		if _, err := x.Hash(ctx, opts(asDelivered)...); err != nil {
			return nil, err
		}
	}
	page, err := report.OfPair(ctx, l, m, opts)
	if err != nil {
		return nil, err
	}
	page.Facts = pairFacts(c, other, page)
	return page, nil
}

// pageFacts is what info prints.
func (a *app) pageFacts(c *checkpoint.Checkpoint, sum *listing.Summary) []report.Fact {
	facts := []report.Fact{
		{Name: "format", Text: c.Info.Format + ", " + c.Info.Order.String() + "-endian"},
		{Name: "writer", Text: fault.Clean(c.Info.Producer, maxName)},
		{Name: "tensors", Text: human.Count(sum.Tensors) + ", " + human.Plural(sum.Elements, "element") + ", " + human.Bytes(sum.Bytes)},
		{Name: "storages", Text: human.Count(sum.Storages) + ", " + human.Bytes(sum.Stored)},
		{Name: "notes", Text: notes(sum)},
		{Name: "also", Text: others(*sum)},
		{Name: "convert", Text: planExport(c, sum).text()},
	}
	name := "metadata" // of the file: its keys may be any words
	for _, key := range sortedKeys(c.Info.Metadata) {
		facts = append(facts, report.Fact{Name: name, Text: fault.Clean(key, maxName) + ": " + fault.Clean(c.Info.Metadata[key], maxName)})
		name = ""
	}
	return slices.DeleteFunc(facts, func(f report.Fact) bool { return f.Text == "" })
}

// pairFacts says what the two are and how many tensors differ in which way.
func pairFacts(a, b *checkpoint.Checkpoint, page *report.Page) []report.Fact {
	facts := []report.Fact{
		{Name: "first", Text: fault.Clean(a.Info.Name, maxName) + ", " + a.Info.Format + ", " + human.Plural(a.Len(), "tensor")},
		{Name: "second", Text: fault.Clean(b.Info.Name, maxName) + ", " + b.Info.Format + ", " + human.Plural(b.Len(), "tensor")},
	}
	counts := map[string]int{}
	for i := range page.Rows {
		counts[page.Rows[i].Kind]++
	}
	for _, kind := range sortedKeys(counts) {
		name := kind
		if slices.Contains([]string{"values", "dtype", "shape", "quant"}, kind) {
			name = "other " + kind
		}
		facts = append(facts, report.Fact{Name: name, Text: human.Plural(counts[kind], "tensor")})
	}
	return facts
}

// addScan adds what scan finds, where the input is something that it reads.
func (a *app) addScan(ctx context.Context, page *report.Page, file string) {
	limits, err := parseLimits(a.limits)
	if err != nil || file == "-" {
		return
	}
	scan, err := a.scanAll(ctx, file, limits)
	if err != nil {
		page.Scan = "It cannot be told: " + fault.Clean(describe(err).Error(), maxName)
		return
	}
	var lines []string
	var found []report.Finding
	for _, f := range scan.files {
		verdict, _ := f.verdict()
		lines = append(lines, f.counts()+"; "+verdict)
		for i := range f.report.Globals {
			if g := &f.report.Globals[i]; g.Grade != pytorch.GradeAllowed && g.Grade != pytorch.GradeData {
				found = append(found, report.Finding{
					Grade: string(g.Grade), Name: fault.Clean(g.Module+"."+g.Name, maxName), Place: fault.Clean(g.Record, maxName),
				})
			}
		}
		for _, name := range f.report.Code {
			found = append(found, report.Finding{Grade: "code", Name: "source code", Place: fault.Clean(name, maxName)})
		}
		for _, format := range f.report.Formats {
			found = append(found, report.Finding{Grade: "formats", Name: "a " + fault.Clean(format, maxName) + " as well", Place: fault.Clean(f.report.File, maxName)})
		}
	}
	page.Find(found...)
	page.Scan = strings.Join(lines[:min(len(lines), 20)], "; ")
}
