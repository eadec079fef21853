package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch"
	"github.com/wick-ml/wick/remote"
)

// disasmFlags is what disasm was asked for.
type disasmFlags struct {
	json, jsonl bool
	record      string
}

func newDisasm(a *app) *cobra.Command {
	var f disasmFlags
	cmd := &cobra.Command{
		Use:   "disasm [--json|--jsonl] [--record NAME] FILE",
		Short: "Print the instructions of a file's pickles, and what they would do",
		Long: "disasm prints every instruction of every pickle in FILE: where it stands, its name in Python's pickletools, its\n" +
			"argument, and what a loader would do. Nothing is carried out, so it also reads what no loader takes. FILE is a\n" +
			"zip, legacy or tar checkpoint, or a plain pickle. Offsets are those in the record. Texts and bytes are cut: in the\n" +
			"table to a line, in JSON after " + strconv.Itoa(pytorch.MaxArg) + " bytes, where arg_bytes says how many there are.",
		Example: "  wick disasm model.pt | less\n" +
			"  wick disasm --record data.pkl model.pt\n" +
			"  wick disasm --jsonl model.pt | jq -r 'select(.opcode == \"GLOBAL\").arg'",
		Args: argCount(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.disasm(cmd.Context(), &f, args[0]) },
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	cmd.Flags().BoolVar(&f.jsonl, "jsonl", false, "print one JSON object for each instruction")
	cmd.Flags().StringVar(&f.record, "record", "", "only the pickles of the record of this `name`, which may lack its folders")
	return cmd
}

func (a *app) disasm(ctx context.Context, f *disasmFlags, file string) error {
	if f.json && f.jsonl {
		return bothJSON()
	}
	limits, err := parseLimits(a.limits)
	if err != nil {
		return err
	}
	src, err := a.openSource(ctx, file, limits)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // only read from
	p := &instructions{app: a, flags: f, pickle: -1}
	p.begin(src.Name())
	if folder, isFolder := src.(checkpoint.Folder); isFolder {
		err = p.folder(ctx, folder, limits)
	} else {
		err = p.file(ctx, src, limits)
	}
	p.finish()
	switch {
	case err != nil || p.seen:
		return err
	case f.record == "":
		return fault.New(fault.Unsupported, "files without a pickle").In(remote.Redact(file)).Needs("a checkpoint of PyTorch among them", "to see what is in it: wick ls "+remote.Redact(file))
	default:
		return fault.New(fault.NotFound, "no record with a pickle is called "+f.record).In(remote.Redact(file)).Needs("", "without --record all are printed")
	}
}

// instructions prints instructions as they come.
type instructions struct {
	*app
	flags  *disasmFlags
	name   string // of the file of a folder, "" outside of one
	pickle int    // that is being printed, -1 for none yet
	seen   bool
	// Memory of a row, used again: there are millions.
	text []byte
	json jsonout.Object
}

// folder goes through the files of a folder that can have pickles.
func (p *instructions) folder(ctx context.Context, folder checkpoint.Folder, limits checkpoint.Limits) error {
	names, err := folder.List()
	if err != nil {
		return err
	}
	for _, name := range names {
		if !isModelName(name) && !strings.HasSuffix(name, ".metadata") {
			continue
		}
		src, err := folder.Sibling(name)
		if err != nil {
			return err
		}
		p.name, p.pickle = name, -1
		err = errors.Join(p.file(ctx, src, limits), src.Close())
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *instructions) file(ctx context.Context, src checkpoint.Source, limits checkpoint.Limits) error {
	return pytorch.Disassemble(ctx, src, func(in *pytorch.Instruction) error {
		if want := p.flags.record; want != "" && in.Record != want && !strings.HasSuffix(in.Record, "/"+want) {
			return nil
		}
		return p.print(in)
	}, pytorch.WithLimits(limits))
}

// begin and finish print what is around the instructions.
func (p *instructions) begin(file string) {
	if p.flags.json {
		_, _ = p.out.Write(append(jsonout.AppendString([]byte(`{"file":`), file), `,"instructions":[`...)) // Flush reports what went wrong
	}
}

func (p *instructions) finish() {
	if p.flags.json {
		_, _ = p.out.WriteString("]}\n") // as above
	}
}

func (p *instructions) print(in *pytorch.Instruction) error {
	first := !p.seen
	p.seen = true
	if p.flags.json || p.flags.jsonl {
		before, after := ",\n", ""
		switch {
		case p.flags.jsonl:
			before, after = "", "\n"
		case first:
			before = "\n"
		}
		p.text = append(append(append(p.text[:0], before...), p.object(in)...), after...)
		_, err := p.out.Write(p.text)
		return err
	}
	if in.Pickle != p.pickle {
		p.pickle = in.Pickle
		p.heading(in, first)
	}
	return p.row(in)
}

// object is one instruction as JSON, valid until the next.
func (p *instructions) object(in *pytorch.Instruction) []byte {
	o := &p.json
	o.Reset()
	if p.name != "" {
		o.String("file", p.name)
	}
	o.StringOrNull("record", in.Record)
	o.Int("pickle", int64(in.Pickle))
	o.Int("offset", in.Offset)
	o.Int("size", in.Size)
	o.String("opcode", in.Opcode)
	o.Int("protocol", int64(in.Protocol))
	if in.Arg == nil {
		o.Null("arg")
	} else {
		json, encoding := listing.AppendValue(nil, in.Arg)
		o.Raw("arg", json)
		if encoding != "" {
			o.String("encoding", encoding)
		}
	}
	if in.Length > pytorch.MaxArg {
		o.Int("arg_bytes", in.Length)
	}
	o.String("meaning", in.Meaning)
	return o.Bytes()
}

// heading names the pickle that follows.
func (p *instructions) heading(in *pytorch.Instruction, first bool) {
	parts := []string{}
	for _, part := range []string{p.name, in.Record} {
		if part != "" {
			parts = append(parts, fault.Clean(part, maxName))
		}
	}
	title := strings.Join(parts, ": ")
	if title == "" {
		title = fmt.Sprintf("pickle %d", in.Pickle)
	}
	if !first {
		p.line("")
	}
	p.line(p.paint(bold, title))
	p.line(p.paint(dim, fmt.Sprintf("%8s  %-16s  %s", "OFFSET", "OPCODE", p.columns("ARGUMENT", "MEANING"))))
}

// row prints one instruction.
func (p *instructions) row(in *pytorch.Instruction) error {
	arg := ""
	if in.Arg != nil {
		arg = nested.Repr(in.Arg)
	}
	offset := strconv.FormatInt(in.Offset, 10)
	name := p.paint(opcodeStyle(in.Opcode), in.Opcode+strings.Repeat(" ", max(0, 16-len(in.Opcode))))
	p.text = p.text[:0]
	for _, part := range []string{strings.Repeat(" ", max(0, 8-len(offset))), offset, "  ", name, "  ", p.columns(arg, in.Meaning), "\n"} {
		p.text = append(p.text, part...)
	}
	_, err := p.out.Write(p.text)
	return err
}

// opcodeStyle marks what names or calls something.
func opcodeStyle(opcode string) style {
	switch opcode {
	case "GLOBAL", "STACK_GLOBAL", "INST", "EXT1", "EXT2", "EXT4":
		return cyan
	case "REDUCE", "NEWOBJ", "NEWOBJ_EX", "OBJ", "BUILD":
		return yellow
	default:
		return plain
	}
}

// columns aligns an argument and a meaning: on a terminal in what its lines have
// left, elsewhere in a fixed width.
func (p *instructions) columns(arg, meaning string) string {
	const before, leastArg, mostArg, rest = 8 + 2 + 16 + 2, 12, 34, 200
	width, room := mostArg, rest
	if p.width > 0 {
		width = min(max((p.width-before)*2/5, leastArg), mostArg)
		room = max(p.width-before-width-columnGap, leastArg)
	}
	arg = fit(arg, width)
	gap := strings.Repeat(" ", max(0, width-textWidth(arg))+columnGap)
	return strings.TrimRight(arg+gap+fit(meaning, room), " ")
}

// fit cleans a text and cuts its end to some columns.
func fit(text string, width int) string {
	text = fault.Clean(text, 400)
	if textWidth(text) <= width {
		return text
	}
	n := 0
	for i, r := range text {
		if n += runeWidth(r); n > width-1 {
			return text[:i] + "…"
		}
	}
	return text
}
