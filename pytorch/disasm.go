package pytorch

import (
	"context"
	"io"
	"unicode/utf8"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
)

// Instruction is one instruction of a pickle as it stands in a file.
type Instruction struct {
	Record   string       // that the pickle is in; "" for a file that is one
	Pickle   int          // which of the file's pickles it belongs to, from 0
	Offset   int64        // of the opcode in its record, bytes
	Size     int64        // of opcode and argument, bytes
	Opcode   string       // its name in Python's pickletools
	Protocol int          // the pickle protocol that brought the opcode
	Arg      nested.Value // the argument, nil if there is none; of long texts and bytes the beginning
	Length   int64        // bytes of a text or bytes argument in the file, 0 for others
	Meaning  string       // what a loader would do, one line of printable text
}

// MaxArg is how much of a text or bytes argument an [Instruction] holds, bytes.
const MaxArg = 4096

// Disassemble calls visit for every instruction of every pickle that a loader
// may read of src: those of zip, legacy and tar checkpoints, of archives in
// archives, of plain pickles, in the order of the file. Nothing is carried out
// or imported. What comes before a fault is visited before the error is
// returned. Of the old tar the members tensors and storages are left out, in
// which pickles stand between counts. The Instruction is valid during the call;
// when visit fails, its error is returned. Disassemble borrows src, which must
// not be a folder. The limits on opcodes, pickle bytes, texts and integers apply;
// unless the caller names one on opcodes, there may be two for each byte of src
// beside the first million, which compressed data can go over.
func Disassemble(ctx context.Context, src checkpoint.Source, visit func(*Instruction) error, opts ...Option) error {
	o, err := checkpoint.NewOptions(opts...)
	if err != nil {
		return err
	}
	env := o.Env()
	d := &disassembly{visit: visit, most: env.Asked.Opcodes}
	if d.most == 0 {
		d.most = 1<<20 + 2*src.Size()
	}
	s := &scan{ctx: ctx, env: env, report: &ScanReport{File: src.Name()}, instead: d}
	d.scan = s
	s.allow(src.Size())
	err = s.source(src, "", 0)
	if d.stopped != nil {
		return d.stopped // it is the caller's, and no fault of the file
	}
	return fault.InFile(err, src.Name())
}

// disassembly is what a scan does with pickles instead of looking for names.
type disassembly struct {
	scan    *scan
	visit   func(*Instruction) error
	pickles int
	opcodes int64 // of all pickles
	most    int64
	stopped error
}

// pickle goes over one pickle and returns where it ends.
func (d *disassembly) pickle(record string, base int64, r io.Reader) (int64, error) {
	number := d.pickles
	d.pickles++
	c := pickle.NewStream(&contextReader{d.scan.ctx, r})
	c.Skip(base)
	sc := pickle.NewScanner(c, d.scan.env.Limits)
	w := pickle.NewWalker(d.scan.env.Limits.IntBytes)
	var op pickle.Op
	for {
		ok, err := sc.Next(&op)
		if err == nil && !ok {
			return c.Offset(), nil
		}
		in := Instruction{Record: record, Pickle: number, Offset: op.Offset, Size: op.Size, Opcode: op.Code.String(), Protocol: op.Code.Protocol()}
		if err == nil {
			err = d.count(op.Offset)
		}
		if err == nil {
			in.Arg, in.Meaning, err = w.Walk(&op)
		}
		if err != nil {
			return c.Offset(), inRecord(err, record, base)
		}
		in.cut()
		if d.stopped = d.visit(&in); d.stopped != nil {
			return c.Offset(), d.stopped
		}
	}
}

// count counts the instruction at an offset.
func (d *disassembly) count(offset int64) error {
	if d.opcodes++; d.opcodes > d.most {
		return fault.NewLimit("opcodes", d.opcodes, d.most).At(offset)
	}
	return nil
}

// cut bounds the argument.
func (in *Instruction) cut() {
	var text string
	switch v := in.Arg.(type) {
	case nested.String:
		text = string(v)
	case nested.Bytes:
		text = string(v)
	case nested.ByteArray:
		text = string(v)
	default:
		return
	}
	in.Length = int64(len(text))
	if len(text) <= MaxArg {
		return
	}
	switch in.Arg.(type) {
	case nested.String:
		n := MaxArg
		for n > MaxArg-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		in.Arg = nested.String(text[:n])
	case nested.Bytes:
		in.Arg = nested.Bytes(text[:MaxArg])
	default:
		in.Arg = nested.ByteArray(text[:MaxArg])
	}
}
