package cli

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/remote"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/tensor"
)

// convertFlags is what convert was asked for.
type convertFlags struct {
	json, force, fsync, salvage bool
	record                      bool
	to                          string
	maxMemory, shardSize        size
	part                        partFlag
	change                      modelFlags
}

func newConvert(a *app) *cobra.Command {
	var f convertFlags
	cmd := &cobra.Command{
		Use:   "convert [FLAGS] IN OUT",
		Short: "Write the tensors in another format, bit for bit",
		Long: "convert writes the tensors of IN to OUT, in the format that OUT's extension names: " + outputs() + ".\n" +
			"OUT appears under its name only when it is whole, and is never overwritten without --force.\n" +
			"Patterns and renames are those of rule files.\n" +
			"A folder of Meta's consolidated.NN.pth is joined into one state dict, with params.json beside them;\n" +
			"--keep-shards leaves it a map of shards.",
		Example: "  wick convert model.pt model.safetensors\n" +
			"  curl -s https://example.org/model.pt | wick convert - model.safetensors\n" +
			"  wick convert --key state_dict --exclude '**.num_batches_tracked' model.ckpt model.safetensors\n" +
			"  wick convert --rename 'module.{rest...} -> {rest...}' --dtype float16 model.pt half.safetensors\n" +
			"  wick convert --names hf --shard-size 5GB Llama-2-13b/ llama.safetensors\n" +
			"  wick convert --dtype q8_0 Llama-2-13b/ llama.gguf\n" +
			"  wick convert --to safetensors model.pt - | sha256sum",
		Args: argCount(2, 2, "IN and OUT"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.convert(cmd.Context(), &f, args[0], args[1]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.to, "to", "", "the output `format`, whatever OUT's extension")
	flags.BoolVarP(&f.force, "force", "f", false, "replace OUT if it exists")
	f.change.register(flags)
	flags.BoolVar(&f.record, "record", false, "keep all values, and checksums, in OUT too: a record, as .cbor and .json are always")
	flags.Var(&f.shardSize, "shard-size", "split the output into files of at most this `size`, with an index")
	flags.Var(&f.part, "part", "write only the shards of part `I/N`; when all parts are there, --part index writes the index")
	flags.Var(&f.maxMemory, "max-memory", "the `size` in which bytes are moved, the program counted in; more than a few thousand names take memory beside it (default 32MiB)")
	flags.BoolVar(&f.fsync, "fsync", false, "return only when the disk has the bytes")
	flags.BoolVar(&f.salvage, "salvage", false, "go on over wrong checksums and say which")
	flags.BoolVar(&f.json, "json", false, "print what was written as one JSON document")
	return cmd
}

const (
	// defaultMemory is --max-memory when nothing is said, bytes.
	defaultMemory = 32 << 20
	// programBytes is what the program takes before it opens anything, and what it leaves behind while it moves bytes.
	programBytes = 18 << 20
)

// buffers is how much of --max-memory the program and the tree, which is there by now, leave
// for moving bytes, at least 1 MiB. A third is added to the tree for what the collector has not seen.
func (f *convertFlags) buffers() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	whole := cmp.Or(int64(f.maxMemory), defaultMemory)
	return max(whole-programBytes-int64(m.HeapAlloc)*4/3, 1<<20)
}

// outputs lists the extensions of all output formats.
func outputs() string {
	var list []string
	for _, t := range wick.Targets() {
		list = append(list, t.Extensions()...)
	}
	return strings.Join(list, ", ")
}

func (a *app) convert(ctx context.Context, f *convertFlags, in, out string) error {
	if err := a.checkOutput(f, out); err != nil {
		return err
	}
	if err := f.change.readConfig(); err != nil {
		return err
	}
	element := f.element()
	sets, err := f.change.sets()
	if err != nil {
		return err
	}
	a.memory = int64(f.maxMemory)
	c, err := a.openArg(ctx, in, f.salvage)
	if err != nil {
		return err
	}
	defer a.close(c)
	if err := checkRules(c, sets, f.change.densify || f.change.dequantize); err != nil {
		return err
	}
	p := a.progress("writing")
	defer p.done()
	v, err := wick.PlanConversion(c, out, f.options(ctx, c, p, a.shards.convert(wick.WithRules(sets...), element)...)...)
	if err != nil {
		return err
	}
	if err := a.checkPlan(c, v, &f.change.changeFlags); err != nil {
		return err
	}
	stats, err := a.write(ctx, v, out)
	if err != nil {
		return namedSum(err, c)
	}
	p.clear()
	wrong := wrongSums(c, stats)
	v.Output.Report.Notes = append(v.Output.Report.Notes, sumNotes(c, wrong)...)
	return cmp.Or(a.reportConversion(f, in, out, v, stats), salvaged(stats, wrong))
}

func (f *convertFlags) options(ctx context.Context, c *checkpoint.Checkpoint, p *progress, opts ...wick.ConvertOption) []wick.ConvertOption {
	limits := c.Limits()
	run := []tensor.RunOption{
		tensor.Progress(p.report), tensor.Expansion(limits.Expand, limits.ExpandFloor), tensor.MaxMemory(f.buffers()),
	}
	if f.salvage {
		run = append(run, tensor.Salvage())
	}
	opts = append(opts, wick.As(f.to), wick.ShardBytes(int64(f.shardSize)), wick.Running(run...))
	opts = append(opts, f.change.options(ctx, limits)...)
	if f.record {
		opts = append(opts, wick.AsRecord(checkpoint.RecordHeader{Writer: "wick"}))
	}
	if f.part.option != nil {
		opts = append(opts, f.part.option)
	}
	if f.force {
		opts = append(opts, wick.Overwrite())
	}
	if f.fsync {
		opts = append(opts, wick.Sync())
	}
	return opts
}

// element takes --dtype out of the rules: the output's format may have an answer
// of its own to it, such as GGUF's q8_0.
func (f *convertFlags) element() wick.ConvertOption {
	name := precision(f.change.dtype)
	f.change.dtype = ""
	if d, ok := tensor.ParseDType(name); ok {
		return wick.Precision(d)
	}
	return wick.Quantize(name)
}

// checkOutput refuses what no file of tensors should be written to.
func (a *app) checkOutput(f *convertFlags, out string) error {
	if out == "" {
		return fault.New(fault.Usage, "an output without a name").Needs("", "name a file, or - for standard output")
	}
	if f.to == "" && isModelName(out) {
		return fault.New(fault.Usage, "wick writes no pickles").In(out).Needs("one of "+outputs(), "write .safetensors, which Python reads: safetensors.torch.load_file")
	}
	if err := f.checkFormat(); err != nil {
		return err
	}
	if out != "-" {
		return localOutput(out)
	}
	switch {
	case f.to == "":
		return fault.New(fault.Usage, "the output - says no format").Needs("", "name it with --to")
	case f.json:
		return fault.New(fault.Usage, "--json and the output - both want standard output").Needs("", "name a file")
	case a.outTTY:
		return fault.New(fault.Usage, "standard output is a terminal").Needs("", "name a file, or pipe it somewhere")
	}
	return nil
}

// checkFormat refuses a --to that no format is called.
func (f *convertFlags) checkFormat() error {
	var names []string
	for _, t := range wick.Targets() {
		names = append(names, t.Name())
	}
	if f.to == "" || slices.Contains(names, f.to) {
		return nil
	}
	e := fault.New(fault.Usage, "--to "+f.to).Needs("", "one of "+strings.Join(slices.Compact(names), ", "))
	if near := nested.Nearest(f.to, names); near != "" {
		e.Cure = "did you mean " + near + "?"
	}
	return e
}

// localOutput refuses a URL for an output.
func localOutput(out string) error {
	for _, scheme := range []string{"http://", "https://", "hf://"} {
		if strings.HasPrefix(strings.ToLower(out), scheme) {
			return fault.New(fault.Usage, "wick does not write to URLs").In(remote.Redact(out)).Needs("the name of a file", "write a file, and upload it")
		}
	}
	return nil
}

// unmatchedTexts says what rules match nothing, and which names they may mean.
func unmatchedTexts(reports []*rules.Report, names []string, flags *changeFlags) []string {
	var statements, texts []string
	for _, r := range reports {
		statements = append(statements, r.Unmatched...)
	}
	for _, statement := range statements {
		text := "nothing in the file matches: " + flags.spelled(statement)
		if words := strings.Fields(statement); len(words) > 1 {
			name := strings.Trim(words[1], `"`)
			if near := nearestEnd(name, names); near != "" {
				text += "; did you mean " + near + "?"
			} else if isInside(name, names) {
				text += "; did you mean **." + name + "?"
			}
		}
		texts = append(texts, text)
	}
	return texts
}

// nearestEnd is the name that is nearest to one that a --key may have made shorter.
func nearestEnd(name string, names []string) string {
	if near := nested.Nearest(name, names); near != "" {
		return near
	}
	dots := strings.Count(name, ".")
	ends := make([]string, 0, len(names))
	for _, n := range names {
		parts := strings.Split(n, ".")
		ends = append(ends, strings.Join(parts[max(0, len(parts)-dots-1):], "."))
	}
	if near := nested.Nearest(name, ends); near != "" {
		return near
	}
	if isInside(name, names) {
		return ""
	}
	return nearBeginning(name, names)
}

// checkPlan warns of flags that did nothing and refuses to write nothing.
func (a *app) checkPlan(c *checkpoint.Checkpoint, v *wick.Conversion, flags *changeFlags) error {
	said := unmatchedTexts(v.Rules, c.Names(), flags)
	if v.Output.Report.Tensors == 0 && c.Len() > 0 {
		return fault.New(fault.NotFound, "no tensor is left to write").In(c.Info.Name).Needs("", strings.Join(said, "; "))
	}
	for _, text := range said {
		a.warn(text)
	}
	return nil
}

func (a *app) write(ctx context.Context, v *wick.Conversion, out string) (tensor.Stats, error) {
	if out == "-" {
		a.bytesOut = true
		return v.RunTo(ctx, a.out)
	}
	return v.Run(ctx)
}

// reportConversion says what was written: JSON on stdout, or a line on stderr.
func (a *app) reportConversion(f *convertFlags, in, out string, v *wick.Conversion, stats tensor.Stats) error {
	r := &v.Output.Report
	if f.json {
		_, err := a.out.Write(append(conversionJSON(in, out, v, stats), '\n'))
		return err
	}
	for _, n := range r.Notes {
		a.warn(n)
	}
	if f.part.option != nil && len(v.Output.Files) == 1 {
		a.warn("the output is one file, which one part writes; --shard-size makes several")
	}
	text := fmt.Sprintf("%s: %s, %s, %s", fault.Clean(out, maxName), v.Format, human.Plural(r.Tensors, "tensor"), human.Bytes(r.Bytes))
	text += shardsText(v.Output.Files)
	if f.part.option != nil {
		text += fmt.Sprintf("; part %s wrote %s", f.part.String(), human.Plural(len(v.Files()), "file"))
	}
	if n := len(r.Copies); n > 0 {
		text += fmt.Sprintf("; %s written a second time, since the format has no ties", human.Plural(n, "tied tensor"))
	}
	if loss := lossText(stats.Loss); loss != "" {
		text += "; " + loss
	}
	if n := len(r.LeftOut); n > 0 {
		why := "which the format has no room for"
		if v.Format == "safetensors" && f.part.option == nil {
			why = "which need --record"
			if n == 1 {
				why = "which needs --record"
			}
		}
		text += fmt.Sprintf("; left out %s, %s: %s", human.Plural(n, "other value"), why, leftOut(r.LeftOut))
	}
	a.note(text)
	return nil
}

// shardsText says in how many shards an output is, and which file lists them; "" for
// one file.
func shardsText(files []checkpoint.OutputFile) string {
	i := slices.IndexFunc(files, func(f checkpoint.OutputFile) bool { return f.Index })
	if i < 0 {
		return ""
	}
	return " in " + human.Plural(len(files)-1, "shard") + ", which " + fault.Clean(files[i].Name, maxName) + " lists"
}

// leftOut names the first few values that the format could not hold; what has no
// name, the root or what lies under an empty key, by its type.
func leftOut(list []checkpoint.LeftOut) string {
	const most = 4
	var names []string
	for _, l := range list[:min(len(list), most)] {
		name := l.Path
		if name == "" {
			name = l.Type + " without a name"
		}
		names = append(names, fault.Clean(name, maxName))
	}
	if len(list) > most {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

func conversionJSON(in, out string, v *wick.Conversion, stats tensor.Stats) []byte {
	var o jsonout.Object
	o.String("file", remote.Redact(in))
	o.String("output", out)
	o.String("format", v.Format)
	o.Int("files", int64(len(v.Output.Files)))
	o.Int("wrote", int64(len(v.Files()))) // fewer, in a part
	o.Int("tensors", int64(v.Output.Report.Tensors))
	o.Int("bytes", v.Output.Report.Bytes)
	verified := 0
	for _, check := range stats.Checks {
		if check == tensor.Verified {
			verified++
		}
	}
	o.Int("verified", int64(verified))
	o.Int("overflow", stats.Loss.Overflow)
	o.Raw("overflow_to", lossJSON(stats.Loss))
	o.Raw("copies", list(v.Output.Report.Copies, func(c checkpoint.Copy) []byte {
		var one jsonout.Object
		one.String("name", c.Name)
		one.String("of", c.Of)
		return one.Bytes()
	}))
	o.Raw("notes", list(v.Output.Report.Notes, func(n string) []byte { return jsonout.AppendString(nil, n) }))
	o.Raw("left_out", list(v.Output.Report.LeftOut, func(l checkpoint.LeftOut) []byte {
		var one jsonout.Object
		one.String("path", l.Path)
		one.String("type", l.Type)
		return one.Bytes()
	}))
	return o.Bytes()
}

// list is a JSON list of objects.
func list[T any](items []T, object func(T) []byte) []byte {
	return jsonout.AppendList(nil, items, func(b []byte, item T) []byte { return append(b, object(item)...) })
}
