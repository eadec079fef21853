package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/remote"
	"github.com/wick-ml/wick/tensor"
)

// packFlags is what pack was asked for.
type packFlags struct {
	json, force          bool
	pkg, typ, fn, record string
	change               changeFlags
}

// packAlign is where the tensors of a packed record begin: at a cache line.
const packAlign = 64

func newPack(a *app) *cobra.Command {
	var f packFlags
	cmd := &cobra.Command{
		Use:   "pack [FLAGS] IN OUT.go",
		Short: "Put a model into a Go program: a record and its Go file",
		Long: "pack writes the tensors and values of IN as an aligned safetensors record, OUT.safetensors, and OUT.go,\n" +
			"which embeds it as bytes and has a function that fills a Go value from it. At run time the weights stay\n" +
			"where they are in the program: nothing is copied unless a field's dtype asks for it, or the record is not\n" +
			"aligned in memory, which is checked while it loads and reported.",
		Example: "  wick pack model.pt model.go\n" +
			"  wick pack --type Net --dtype float16 model.pt net/weights.go\n" +
			"  wick pack --key state_dict --exclude '**.num_batches_tracked' model.ckpt model.go",
		Args: argCount(2, 2, "IN and OUT.go"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.pack(cmd.Context(), &f, args[0], args[1]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.typ, "type", "", "the Go `type` to fill; without it the function takes a pointer to any")
	flags.StringVar(&f.pkg, "package", "", "the Go `package` of OUT.go (default: that of its folder)")
	flags.StringVar(&f.fn, "func", "", "the `name` of the function (default: Load and the type, LoadEmbedded if the package has that already)")
	flags.StringVar(&f.record, "record", "", "the `name` of the record beside OUT.go (default: OUT.safetensors)")
	flags.BoolVarP(&f.force, "force", "f", false, "replace files that exist")
	f.change.register(flags)
	flags.BoolVar(&f.json, "json", false, "print what was written as one JSON document")
	return cmd
}

func (a *app) pack(ctx context.Context, f *packFlags, in, out string) error {
	if err := localOutput(out); err != nil {
		return err
	}
	g, err := newGoFile(f, out)
	if err != nil {
		return err
	}
	sets, err := f.change.sets()
	if err != nil {
		return err
	}
	c, err := a.openArg(ctx, in, false)
	if err != nil {
		return err
	}
	defer a.close(c)
	if err := checkRules(c, sets, false); err != nil {
		return err
	}
	p := a.progress("writing")
	defer p.done()
	record := filepath.Join(filepath.Dir(out), g.Record)
	v, err := wick.PlanConversion(c, record, f.options(c, p, g, a.shards.convert(wick.WithRules(sets...))...)...)
	if err != nil {
		return err
	}
	if err := a.checkPlan(c, v, &f.change); err != nil {
		return err
	}
	text, err := g.text(v.Output.Report)
	if err != nil {
		return err
	}
	layout := &checkpoint.Layout{}
	layout.Bytes(text)
	v.Output.Files = append(v.Output.Files, checkpoint.OutputFile{Name: filepath.Base(out), Layout: layout})
	if _, err := v.Run(ctx); err != nil {
		return otherRecord(err, record)
	}
	p.clear()
	return a.reportPack(f, in, out, g, &v.Output.Report)
}

// otherRecord adds to the cures of an error about the record's name, which the
// user did not type, the flag that gives it another one.
func otherRecord(err error, record string) error {
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != fault.Usage || e.File != record {
		return err
	}
	c := *e
	c.Cure += ", --record NAME gives the record another name"
	return &c
}

func (f *packFlags) options(c *checkpoint.Checkpoint, p *progress, g *goFile, opts ...wick.ConvertOption) []wick.ConvertOption {
	limits := c.Limits()
	opts = append(opts, wick.As("safetensors"), wick.Align(packAlign), wick.Changing(plainTree),
		wick.AsRecord(checkpoint.RecordHeader{Type: g.recordType(), Writer: "wick"}),
		wick.Running(tensor.Progress(p.report), tensor.Expansion(limits.Expand, limits.ExpandFloor)))
	if f.force {
		opts = append(opts, wick.Overwrite())
	}
	return opts
}

// reportPack says what was written: JSON on stdout, or a line on stderr.
func (a *app) reportPack(f *packFlags, in, out string, g *goFile, r *checkpoint.Report) error {
	if f.json {
		var o jsonout.Object
		o.String("file", remote.Redact(in))
		o.String("output", out)
		o.String("record", filepath.Join(filepath.Dir(out), g.Record))
		o.String("package", g.Package)
		o.String("func", g.Func)
		o.String("type", g.Type)
		o.Int("tensors", int64(r.Tensors))
		o.Int("bytes", r.Bytes)
		_, err := a.out.Write(append(o.Bytes(), '\n'))
		return err
	}
	text := fmt.Sprintf("%s, %s: %s, %s; call %s of package %s", fault.Clean(out, maxName),
		fault.Clean(filepath.Join(filepath.Dir(out), g.Record), maxName), human.Plural(r.Tensors, "tensor"), human.Bytes(r.Bytes), g.Func, g.Package)
	if g.Taken != "" {
		text += ", which has a " + g.Taken + " already"
	}
	a.note(text)
	return nil
}

// plainTree returns the tree with plain dicts in the place of Python's others
// and without what was put beside their entries: a state dict's _metadata. A
// program that only wants its weights would parse it for nothing.
func plainTree(root nested.Value) (nested.Value, error) {
	p := plainer{done: map[nested.Value]nested.Value{}}
	return p.value(root, 0)
}

type plainer struct{ done map[nested.Value]nested.Value }

func (p *plainer) value(v nested.Value, depth int) (nested.Value, error) {
	if depth > nested.DefaultDepth {
		return nil, fault.NewLimit("depth", int64(depth), nested.DefaultDepth)
	}
	switch v := v.(type) {
	case *nested.Map:
		return p.dict(v, depth)
	case *nested.List:
		return p.list(v, depth)
	default:
		return v, nil
	}
}

func (p *plainer) dict(m *nested.Map, depth int) (nested.Value, error) {
	if known, ok := p.done[m]; ok {
		return known, nil // shared stays shared, and a cycle closes
	}
	out := nested.NewMap("dict")
	p.done[m] = out
	for key, value := range m.All() {
		plain, err := p.value(value, depth+1)
		if err == nil {
			err = out.Set(key, plain)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (p *plainer) list(l *nested.List, depth int) (nested.Value, error) {
	if len(l.Items) == 0 {
		return l, nil // there can be a million
	}
	if known, ok := p.done[l]; ok {
		return known, nil
	}
	out := l.Clone()
	p.done[l] = out
	for i, item := range l.Items {
		plain, err := p.value(item, depth+1)
		if err != nil {
			return nil, err
		}
		out.Items[i] = plain
	}
	return out, nil
}
