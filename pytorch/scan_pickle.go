package pytorch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
)

func sectionReader(src checkpoint.Source) *io.SectionReader {
	return io.NewSectionReader(src, 0, src.Size())
}

// legacyPickles is how many pickles torch.load reads of a legacy file.
const legacyPickles = 5

// stacked scans a file of pickles: a legacy checkpoint, whose five pickles come
// before the storages, or a plain pickle, of which torch.load runs the first
// before it knows that it is none.
func (s *scan) stacked(src checkpoint.Source, head []byte, within string, depth int) error {
	isLegacy := legacyFormat{}.Sniff(head, src)
	if !isLegacy && !s.startsPickle(src, head) {
		return explain(head, src, s.env.Limits)
	}
	most := 1
	if isLegacy {
		s.format("legacy", depth)
		most = legacyPickles
	} else {
		s.format("pickle", depth)
	}
	at, n := int64(0), 0
	for ; at < src.Size() && (n < most || !isLegacy && startsProtocol(src, at)); n++ {
		from := at
		end, err := s.pickle(within, from, src.Size(), func() io.Reader { return io.NewSectionReader(src, from, src.Size()-from) }, depth)
		if err != nil {
			return errors.Join(err, s.behind(src, within, depth))
		}
		at = end
	}
	if err := s.behind(src, within, depth); err != nil {
		return err
	}
	switch {
	case isLegacy && n < most:
		return fault.New(fault.Malformed, count(n, "pickle")+" in a legacy checkpoint").Needs("five, and the storages",
			"the download is incomplete or was truncated; get it again")
	case !isLegacy && depth == 0 && !s.report.Found() && s.instead == nil:
		return explain(head, src, s.env.Limits)
	default:
		return nil
	}
}

// startsPickle reports whether a file reads as a pickle: by its protocol, or
// because an instruction of it asks for a name, whatever follows, or because it
// goes through to STOP.
func (s *scan) startsPickle(src checkpoint.Source, head []byte) bool {
	if isProtocol(head) {
		return true
	}
	if len(head) == 0 || bytes.IndexByte(firstOpcodes, head[0]) < 0 {
		return false
	}
	sc := pickle.NewScanner(pickle.NewStream(sectionReader(src)), s.env.Limits)
	var op pickle.Op
	for {
		ok, err := sc.Next(&op)
		switch {
		case err != nil: // a text over the limit may have more behind it
			return fault.KindOf(err) == fault.Limit && op.Int < src.Size()-op.Offset
		case op.Asks():
			return true
		case !ok:
			return sc.Count() > 1
		}
	}
}

// firstOpcodes are those that can be carried out on an empty stack.
var firstOpcodes = []byte("(FIJKLMNPSTUVX]})cGBC\x80\x82\x83\x84\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x95\x96\x97")

func isProtocol(head []byte) bool {
	return len(head) >= 2 && head[0] == byte(pickle.PROTO) && head[1] <= 5
}

func startsProtocol(src checkpoint.Source, at int64) bool {
	var two [2]byte
	n, _ := src.ReadAt(two[:], at) // a file that cannot be read is the next pickle's error
	return isProtocol(two[:n])
}

// pickle scans one pickle, which begins at an offset of its record, and returns
// where it ends. It goes over it twice: opcode by opcode, which finds the names
// that stand in the file and what is packed into strings, also where a damaged
// pickle could not be carried out; and with the machine, which finds the names
// that are put together on the stack.
func (s *scan) pickle(record string, base, present int64, open func() io.Reader, depth int) (int64, error) {
	s.report.Pickles++
	if s.instead != nil {
		return s.instead.pickle(record, base, &spending{s, open(), 1})
	}
	h := &scanHost{scan: s, record: record, seen: map[string]int{}}
	end, listErr := s.list(h, base, &spending{s, open(), 1}, depth)
	if s.spent() {
		return end, inRecord(listErr, record, base)
	}
	c := pickle.NewStream(&contextReader{s.ctx, open()})
	c.Skip(base)
	_, runErr := pickle.Load(c, h, s.env.Limits, present, nil)
	for _, err := range []error{listErr, runErr} {
		if err != nil {
			return end, inRecord(err, record, base)
		}
	}
	return end, nil
}

// leastPickle is the length of the shortest pickle that names something: a GLOBAL of
// two names of one letter, and STOP.
const leastPickle = 6

// list goes over the opcodes.
func (s *scan) list(h *scanHost, base int64, r io.Reader, depth int) (int64, error) {
	c := pickle.NewStream(&contextReader{s.ctx, r})
	c.Skip(base)
	sc := pickle.NewScanner(c, s.env.Limits)
	var op pickle.Op
	for {
		ok, err := sc.Next(&op)
		if err != nil || !ok {
			return c.Offset(), err
		}
		switch {
		case op.Code == pickle.GLOBAL || op.Code == pickle.INST:
			h.add(string(op.Data), string(op.More), op.Offset)
		case len(op.Data) >= leastPickle:
			if err := s.inString(op.Data, h.record, op.Offset, depth); err != nil {
				return c.Offset(), err
			}
		}
	}
}

// inString scans a string, and the bytes that it stands for where a pickle of
// protocol 2 or below spells them as Latin-1 text.
func (s *scan) inString(data []byte, record string, at int64, depth int) error {
	err := s.packed(data, record, at, depth)
	if raw, ok := latin1Bytes(string(data)); ok && len(raw) < len(data) {
		err = errors.Join(err, s.packed([]byte(raw), record, at, depth))
	}
	return firstFault(err)
}

// packed scans a string or byte string that is itself a pickle or a file of
// another format. Text that is neither costs one look at its first bytes.
func (s *scan) packed(data []byte, record string, at int64, depth int) error {
	within := nestedRecord(record, fmt.Sprintf("string at 0x%x", at))
	switch src := checkpoint.NewBytes(within, data); {
	case zipFormat{}.Sniff(data, src):
		return s.source(checkpoint.NewBytes(within, bytes.Clone(data)), within, depth+1)
	case legacyFormat{}.Sniff(data, src):
		had := len(s.report.Globals)
		return s.orNone(had, s.source(checkpoint.NewBytes(within, bytes.Clone(data)), within, depth+1))
	case isProtocol(data), isPickle(data, s.env.Limits):
		if depth >= maxScanNesting {
			return checkpoint.At("nesting", int64(depth+1), maxScanNesting)
		}
		had := len(s.report.Globals)
		_, err := s.pickle(within, 0, int64(len(data)), func() io.Reader { return bytes.NewReader(data) }, depth+1)
		return s.orNone(had, err)
	default:
		return nil
	}
}

// orNone passes over the error of bytes that begin like a pickle and are none:
// nothing was named since there were so many names.
func (s *scan) orNone(had int, err error) error {
	if kind := fault.KindOf(err); len(s.report.Globals) == had && (kind == fault.Malformed || kind == fault.Unsupported) {
		return nil
	}
	return err
}

// isPickle reports whether data is from end to end a pickle without a protocol
// that names something.
func isPickle(data []byte, limits checkpoint.Limits) bool {
	if data[len(data)-1] != byte(pickle.STOP) || !bytes.ContainsRune(data, '\n') {
		return false
	}
	c := pickle.NewCursor(data)
	sc := pickle.NewScanner(c, limits)
	var op pickle.Op
	for names := false; ; {
		ok, err := sc.Next(&op)
		switch {
		case err != nil:
			return false
		case !ok:
			return names && c.Offset() == int64(len(data))
		case op.Code == pickle.GLOBAL || op.Code == pickle.INST:
			names = true
		}
	}
}

// scanHost answers the machine with values that stand for nothing, and keeps
// what was named.
type scanHost struct {
	scan   *scan
	record string
	seen   map[string]int // indexes of globals by what they are called
}

// add keeps a name once for each pickle.
func (h *scanHost) add(module, name string, offset int64) {
	key := module + "\n" + name
	if _, ok := h.seen[key]; ok {
		return
	}
	globals := &h.scan.report.Globals
	h.seen[key] = len(*globals)
	*globals = append(*globals, Graded(checkpoint.Global{Module: module, Name: name, Record: h.record, Offset: offset}))
}

// Global keeps the name.
func (h *scanHost) Global(module, name string, offset int64) (nested.Value, error) {
	h.add(module, name, offset)
	return nested.Symbol{Class: "type", Text: module + "\n" + name}, nil
}

// Persistent gives something for any id.
func (h *scanHost) Persistent(nested.Value) (nested.Value, error) { return h.thing(), nil }

// PersistentText does too.
func (h *scanHost) PersistentText(string) (nested.Value, error) { return h.thing(), nil }

func (h *scanHost) thing() nested.Value { return &nested.Opaque{Class: "object"} }

// Borrows is false: a scan keeps arguments.
func (h *scanHost) Borrows(nested.Value) bool { return false }

// Call notes that a name would be called.
func (h *scanHost) Call(_ pickle.How, callee nested.Value, args *nested.List) (nested.Value, error) {
	h.called(callee)
	if s, ok := callee.(nested.Symbol); ok && isReconstructor(s.Text) && len(args.Items) > 0 {
		h.called(args.Items[0])
	}
	return h.thing(), nil
}

// isReconstructor tells the function by which Python makes most objects of
// their class up to protocol 1.
func isReconstructor(text string) bool {
	module, name, _ := strings.Cut(text, "\n")
	return python3Name(module, name) == "copyreg._reconstructor"
}

func (h *scanHost) called(callee nested.Value) {
	s, ok := callee.(nested.Symbol)
	if !ok {
		return
	}
	if i, ok := h.seen[s.Text]; ok {
		h.scan.report.Globals[i].Called = true
	}
}

// Build returns the object.
func (h *scanHost) Build(object, _ nested.Value) (nested.Value, error) { return object, nil }

// Extend takes anything.
func (h *scanHost) Extend(nested.Value, []nested.Value) error { return nil }

// Store takes anything.
func (h *scanHost) Store(nested.Value, []nested.Value) error { return nil }
