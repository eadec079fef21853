package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/cmd/wick/internal/gen"
	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/remote"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/tensor"
)

// planFlags is what plan was asked for.
type planFlags struct {
	json       bool
	file, typ  string // the Go file and the type in it
	unexpected bool
	change     modelFlags
}

func newPlan(a *app) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan [FLAGS] FILE",
		Short: "Show what rules or a Go struct would take, without moving a byte",
		Long: "plan says what would become of every tensor in FILE, from metadata alone: what rules rename, make and drop; or\n" +
			"which field of a Go struct takes it, and what is missing, unexpected or mismatched. The struct is read from Go\n" +
			"source, such as gen writes it: nothing is compiled. Rules that gen wrote beside a type apply by themselves, unless\n" +
			"flags say others. The exit code is 1 when it does not match: a field without a tensor, a tensor without a field,\n" +
			"shapes that differ, a rule that matches nothing or fails. Flags that change FILE are those of convert.",
		Example: "  wick plan --rules my.rules model.pt\n" +
			"  wick plan --rename 'module.{rest...} -> {rest...}' model.pt\n" +
			"  wick plan --names hf Llama-2-13b/\n" +
			"  wick plan --struct resnet18.go --type ResNet18 resnet18.pt\n" +
			"  wick plan --json --struct resnet18.go resnet18.pt | jq '.plan.missing'",
		Args: argCount(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.plan(cmd.Context(), &f, args[0]) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print one JSON document")
	flags.StringVar(&f.file, "struct", "", "match to a struct of this Go `file`")
	flags.StringVar(&f.typ, "type", "", "the `name` of the type; default the first in the file")
	flags.BoolVar(&f.unexpected, "allow-unexpected", false, "tensors that no field takes are no mismatch")
	f.change.register(flags)
	return cmd
}

// planned is what a plan says.
type planned struct {
	file    string
	root    nested.Value  // after the rules, nil if they failed
	rules   *rules.Report // what became of the names in the file
	flags   *modelFlags   // that rules came from
	err     error         // why the rules failed
	tensors []rules.Entry // that are left

	typ  *gen.Struct // nil without --struct
	plan *serde.Plan
	fits bool
}

func (a *app) plan(ctx context.Context, f *planFlags, file string) error {
	p := &planned{file: remote.Redact(file), flags: &f.change}
	set, err := p.asked(f)
	if err := cmp.Or(err, f.change.readConfig()); err != nil {
		return err
	}
	c, err := a.openArg(ctx, file, false)
	if err != nil {
		return err
	}
	defer a.close(c)
	if err := checkWhole(c); err != nil {
		return err
	}
	if err := p.match(ctx, c, set, f); err != nil {
		return err
	}
	return a.printPlanned(p, f.json)
}

// asked reads the struct, and returns the rules: those of flags, else those beside
// the struct.
func (p *planned) asked(f *planFlags) (*rules.Set, error) {
	sets, err := f.change.sets()
	if err != nil {
		return nil, err
	}
	set := rules.Merge(sets...)
	switch {
	case f.file != "":
		p.typ, err = gen.ReadStruct(f.file, f.typ)
	case !f.change.changes():
		err = fault.New(fault.Usage, "plan needs rules or a struct").Needs("", "give --rules, --rename, --key or their like, or --struct; to list tensors: wick ls")
	}
	if err != nil || p.typ == nil || p.typ.Rules == "" || len(set.Statements) > 0 {
		return set, err
	}
	return rules.Parse(f.file, p.typ.Rules)
}

// match applies the changes and matches the struct. What does not fit is in p, and
// no error.
func (p *planned) match(ctx context.Context, c *checkpoint.Checkpoint, set *rules.Set, f *planFlags) error {
	changed, stages, err := wick.Changed(c, append(f.change.options(ctx, c.Limits()), wick.WithRules(set))...)
	switch fault.KindOf(err) {
	case "":
		p.root = changed.Root
	case fault.NotFound, fault.Mismatch, fault.Collision, fault.Ambiguous, fault.Unsupported:
		p.err = err
		return nil
	default:
		return err
	}
	index, err := rules.NewIndex(p.root)
	if err != nil {
		return err
	}
	p.rules = fates(index.Entries, stages, c)
	for i := range index.Entries {
		if index.Entries[i].Tensor() != nil {
			p.tensors = append(p.tensors, index.Entries[i])
		}
	}
	p.fits = len(p.rules.Unmatched) == 0
	if p.typ == nil {
		return nil
	}
	var opts []serde.Option
	if f.unexpected {
		opts = append(opts, serde.AllowUnexpected())
	}
	if p.plan, err = serde.NewPlan(p.root, p.typ.New(), opts...); err != nil {
		return err
	}
	p.fits = p.fits && p.plan.Err() == nil
	return nil
}

func (a *app) printPlanned(p *planned, json bool) error {
	if json {
		if _, err := a.out.Write(append(p.json(), '\n')); err != nil {
			return err
		}
	} else if err := a.plannedTables(p); err != nil {
		return err
	}
	if !p.fits {
		return errNo
	}
	return nil
}

// plannedTables prints a plan for people: what becomes of each tensor, then what
// does not fit, then the verdict.
func (a *app) plannedTables(p *planned) error {
	verdict := cell{"it fits", green}
	if !p.fits {
		verdict = cell{"it does not fit", red}
	}
	if p.err != nil {
		a.line(a.paint(red, "the rules fail: ") + strings.TrimPrefix(errorLine(p.err), "wick: "))
		a.line(a.paint(verdict.style, verdict.text))
		return nil //nolint:nilerr // that the rules fail is the answer
	}
	t := table{head: []string{"", "NAME", "FROM", "", "TO", ""}, cut: []int{1, 3, 5}}
	if p.plan != nil {
		t.head[3] = "FIELD"
		a.structRows(&t, p, false)
		if a.width > 0 && lineWidth(t.widths()) > a.width {
			t.rows = nil
			a.structRows(&t, p, true)
		}
	} else {
		t.head[2] = "IS"
		a.ruleRows(&t, p)
	}
	if err := cmp.Or(t.print(a.streams), a.unmatchedTable(p)); err != nil {
		return err
	}
	a.line(a.paint(verdict.style, verdict.text) + ": " + p.totals())
	return nil
}

func (p *planned) totals() string {
	text := fmt.Sprintf("%s renamed, %s made, %s dropped", human.Count(len(p.rules.Renamed)), human.Count(len(p.rules.Made)), human.Count(len(p.rules.Dropped)))
	if p.plan == nil {
		n, elements, bytes := p.sizes()
		return text + fmt.Sprintf("; %s left, %s elements, %s", human.Plural(n, "tensor"), human.Count(elements), human.Bytes(bytes))
	}
	t := fmt.Sprintf("%s applied, %s mismatched, %s missing, %s unexpected, %s ignored; %s in fields",
		human.Count(len(p.plan.Applied)), human.Count(len(p.plan.Mismatched)), human.Count(len(p.plan.Missing)),
		human.Count(len(p.plan.Unexpected)), human.Count(len(p.plan.Ignored)), human.Bytes(p.plan.FieldBytes))
	if len(p.rules.Renamed)+len(p.rules.Made)+len(p.rules.Dropped) > 0 {
		t += "; rules: " + text
	}
	return t
}

func (p *planned) sizes() (n int, elements, bytes int64) {
	for i := range p.tensors {
		t := p.tensors[i].Tensor()
		elements, bytes = elements+t.Len(), bytes+t.Bytes()
	}
	return len(p.tensors), elements, bytes
}

// structRows adds what becomes of every value and every field. Where a terminal
// has room for names alone, types are told where they matter.
func (a *app) structRows(t *table, p *planned, narrow bool) {
	for _, group := range p.groups() {
		for i := range group.rows {
			r := &group.rows[i]
			mark := cell{group.name, group.style}
			if group.name == "applied" {
				mark = cell{string(r.How), dim}
			}
			note := r.Note
			if r.Near != "" {
				note = strings.TrimSpace("did you mean " + r.Near + "? " + note)
			}
			field := ""
			if r.Field != "" {
				field = "→ " + fault.Clean(r.Field, maxName)
			}
			from, to := fault.Clean(r.From, 40), fault.Clean(p.typ.TypeText(r.To), 40)
			if narrow {
				from, to, note = "", "", narrowNote(group.name, from, to, note)
			}
			t.add(mark, cell{nameOrEmpty(r.Name), bold}, cell{from, cyan}, cell{field, plain}, cell{to, cyan}, cell{fault.Clean(note, maxName), yellow})
		}
	}
}

// narrowNote says in a note what has no column on a narrow terminal, where that
// matters.
func narrowNote(group, from, to, note string) string {
	switch group {
	case "mismatch":
		return strings.TrimSpace(from + " for " + to + ": " + note)
	case "missing":
		return strings.TrimSpace(to + " " + note)
	default:
		return note
	}
}

// rowGroup is one of a plan's lists.
type rowGroup struct {
	name  string
	style style
	rows  []serde.Row
}

func (p *planned) groups() []rowGroup {
	return []rowGroup{
		{"applied", dim, p.plan.Applied}, {"ignored", dim, p.plan.Ignored}, {"mismatch", red, p.plan.Mismatched},
		{"missing", red, p.plan.Missing}, {"unexpected", red, p.plan.Unexpected},
	}
}

// ruleRows adds every tensor that is left, how it came about, and what is gone.
func (a *app) ruleRows(t *table, p *planned) {
	renamed, made := changesTo(p.rules.Renamed), changesTo(p.rules.Made)
	for i := range p.tensors {
		e := &p.tensors[i]
		mark, from := cameFrom(e.Name, renamed, made)
		t.add(mark, cell{nameOrEmpty(e.Name), bold}, cell{e.Tensor().String(), cyan}, cell{fault.Clean(from, maxName), plain}, cell{}, cell{})
	}
	for _, name := range p.rules.Dropped {
		t.add(cell{"dropped", yellow}, cell{nameOrEmpty(name), bold}, cell{}, cell{}, cell{}, cell{})
	}
}

// cameFrom says how a tensor came about, and what it was called in the file.
func cameFrom(name string, renamed, made map[string][]string) (mark cell, from string) {
	mark = cell{"kept", dim}
	sources := []string{name}
	if list, ok := made[name]; ok {
		mark, sources = cell{"made", green}, list
	} else if list, ok := renamed[name]; ok {
		mark, sources = cell{"renamed", cyan}, list
	}
	if slices.Equal(sources, []string{name}) {
		return mark, ""
	}
	return mark, "← " + strings.Join(sources, " + ")
}

// unmatchedTable says which rules match nothing. It is a table of its own: a rule is
// no name, and would take the room of names.
func (a *app) unmatchedTable(p *planned) error {
	t := table{wrap: true}
	for _, statement := range p.rules.Unmatched {
		t.add(cell{"unmatched", red}, cell{fault.Clean(p.flags.spelled(statement), maxName) + ": matches nothing", bold})
	}
	return t.print(a.streams)
}

// json is the plan for programs.
func (p *planned) json() []byte {
	var o jsonout.Object
	o.String("file", p.file)
	o.Bool("fits", p.fits)
	if p.err != nil {
		o.Raw("error", errorObject(p.err))
		return o.Bytes()
	}
	o.Append("rules", p.appendRules)
	if p.plan != nil {
		o.String("type", p.typ.Name)
		o.Raw("plan", p.structJSON())
		return o.Bytes()
	}
	o.Raw("tensors", list(p.tensors, func(e rules.Entry) []byte { return tensorJSON(e.Name, e.Tensor()) }))
	return o.Bytes()
}

func tensorJSON(name string, t *tensor.Tensor) []byte {
	var o jsonout.Object
	o.String("name", name)
	o.String("dtype", t.DType().String())
	o.Append("shape", func(b []byte) []byte { return jsonout.AppendInts(b, t.Shape()) })
	o.Int("bytes", t.Bytes())
	return o.Bytes()
}

// appendRules appends what rules did as JSON, in place: it can be millions of names.
func (p *planned) appendRules(b []byte) []byte {
	var one jsonout.Object
	change := func(b []byte, c rules.Change) []byte {
		one.Reset()
		one.Append("from", func(b []byte) []byte { return jsonout.AppendList(b, c.From, jsonout.AppendString) })
		one.String("to", c.To)
		return append(b, one.Bytes()...)
	}
	b = jsonout.AppendList(append(b, `{"renamed":`...), p.rules.Renamed, change)
	b = jsonout.AppendList(append(b, `,"made":`...), p.rules.Made, change)
	b = jsonout.AppendList(append(b, `,"dropped":`...), p.rules.Dropped, jsonout.AppendString)
	b = jsonout.AppendList(append(b, `,"unmatched":`...), p.rules.Unmatched, jsonout.AppendString)
	return append(b, '}')
}

func (p *planned) structJSON() []byte {
	var o jsonout.Object
	for _, group := range p.groups() {
		name := group.name
		if name == "mismatch" {
			name = "mismatched"
		}
		o.Raw(name, list(group.rows, p.rowJSON))
	}
	o.Int("field_bytes", p.plan.FieldBytes)
	o.Int("peak_bytes", p.plan.PeakBytes)
	return o.Bytes()
}

func (p *planned) rowJSON(r serde.Row) []byte {
	var o jsonout.Object
	o.String("name", r.Name)
	for _, part := range []struct{ name, text string }{
		{"field", r.Field}, {"from", r.From}, {"to", p.typ.TypeText(r.To)}, {"how", string(r.How)}, {"near", r.Near}, {"note", r.Note},
	} {
		if part.text != "" {
			o.String(part.name, part.text)
		}
	}
	o.Int("bytes", r.Bytes)
	return o.Bytes()
}
