package pytorch

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// Grade says what is known of a global that a pickle names.
type Grade string

// The grades, best first.
const (
	// GradeAllowed is for what torch.load(weights_only=True) imports by itself
	// (torch/_weights_only_unpickler.py, _get_allowed_globals, torch 2.15).
	GradeAllowed Grade = "allowed"
	// GradeData is for other classes that are known to hold data and nothing else.
	GradeData Grade = "data"
	// GradeUnknown is for everything that no list names.
	GradeUnknown Grade = "unknown"
	// GradeDangerous is for what can run commands or code, reach files or the
	// network, or open the way to what can.
	GradeDangerous Grade = "dangerous"
)

// ScanGlobal is a global with its grade. Nothing of it was imported or called.
// Module and Name are as the file spells them, unescaped.
type ScanGlobal struct {
	checkpoint.Global
	Grade  Grade
	Reason string // why it has its grade
}

// ScanReport is what a plain torch.load of one file would import.
type ScanReport struct {
	File    string
	Format  string       // "zip", "legacy", "tar", "pickle", or the compression around one
	Pickles int          // how many were read, those inside of others too
	Globals []ScanGlobal // in the order in which they were met, each once for each pickle
	Code    []string     // records with Python source or TorchScript, which other loaders run
	Formats []string     // what the file is besides Format, when a second reader would see another file
}

// Found reports whether the report holds anything that is neither on the allow
// list nor known data.
func (r *ScanReport) Found() bool {
	for _, g := range r.Globals {
		if g.Grade == GradeUnknown || g.Grade == GradeDangerous {
			return true
		}
	}
	return len(r.Code) > 0 || len(r.Formats) > 0
}

// Scan lists what a plain torch.load of src would import or call, and what
// pickles inside of strings, further records and further formats of the same
// file would. Nothing is imported, called or written. It reads files that [Open]
// refuses as well: then the report holds what was seen, and the error says why
// that is not all, or that this is no checkpoint. A report is clean only when
// the error is nil and [ScanReport.Found] is false; then [Open] opens the file. Scan borrows src, which must
// not be a folder; the report is never nil.
//
// Records of raw elements (below a folder data beside data.pkl) are not looked
// into, since no loader takes them for pickles; nor is data that is encoded in
// another way than as a pickle, a zip, a tar, gzip, zstd or bzip2.
func Scan(ctx context.Context, src checkpoint.Source, opts ...Option) (*ScanReport, error) {
	o, err := checkpoint.NewOptions(opts...)
	report := &ScanReport{File: src.Name()}
	if err != nil {
		return report, err
	}
	s := &scan{ctx: ctx, env: &checkpoint.Env{Limits: o.Limits.Default()}, opts: o, report: report}
	s.allow(src.Size())
	err = s.source(src, "", 0)
	return report, fault.InFile(err, src.Name())
}

// scan is one run of Scan.
type scan struct {
	ctx    context.Context // of one call of Scan
	env    *checkpoint.Env
	opts   checkpoint.Options
	report *ScanReport
	own    int   // how deep the file itself lies, in so many compressions
	work   int64 // bytes of pickles that may still be gone over
	most   int64 // of them in all
	// instead takes every pickle, if it is set: a disassembly goes through files as a scan does.
	instead *disassembly
}

// inflatePrice is how many bytes are inflated in the time that one byte of a
// pickle takes.
const inflatePrice = 8

// allow sets what may be gone over of a file of so many bytes. Sound ones need
// their own size, for each level of pickles in strings again. Compressed, damaged and overlapping
// ones can be a thousand times as long, in every record anew.
func (s *scan) allow(size int64) {
	s.most = 16*min(size, 1<<58) + inflateRoom(size, s.env.Limits)/inflatePrice
	s.work = s.most
}

// spend takes n bytes of what may be gone over.
func (s *scan) spend(n int64) error {
	if s.work -= n; s.work >= 0 {
		return nil
	}
	e := fault.NewLimit("expand", s.env.Limits.Expand+1, s.env.Limits.Expand)
	e.Found = "pickles of more than " + strconv.FormatInt(s.most, 10) + " bytes in all, or compressed data of " + strconv.Itoa(inflatePrice) + " times as many"
	return e
}

// spent reports whether nothing more may be gone over.
func (s *scan) spent() bool { return s.work < 0 }

// spending pays for what is read.
type spending struct {
	s     *scan
	r     io.Reader
	price int64 // bytes for one of what may be gone over
}

// Read reads on, as long as there is something left to pay with.
func (p *spending) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if short := p.s.spend((int64(n) + p.price - 1) / p.price); short != nil {
		return 0, short
	}
	return n, err
}

// inflate holds what comes out of a compressed whole of so many bytes.
func (s *scan) inflate(r io.Reader, present int64) (held *chunks, n int64, err error) {
	held = &chunks{}
	n, err = held.fill(&spending{s, &contextReader{s.ctx, r}, inflatePrice}, inflateRoom(present, s.env.Limits))
	if errors.Is(err, errRoom) {
		err = tooBig(n, present, s.env.Limits)
	}
	return held, n, err
}

// maxScanNesting bounds pickles and archives inside of one another.
const maxScanNesting = 8

// source scans a file, or what has a file's form inside of one. within is the
// record that it was found in, "" for the file itself.
func (s *scan) source(src checkpoint.Source, within string, depth int) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if err := checkpoint.At("nesting", int64(depth), maxScanNesting); err != nil {
		return err
	}
	head, err := checkpoint.Head(src)
	if err != nil {
		return err
	}
	for _, f := range wrapFormats {
		if f.Sniff(head, src) {
			s.format(f.name, depth)
			return errors.Join(s.wrapped(src, f, within, depth), s.before(src, head, within, depth))
		}
	}
	err = s.container(src, head, within, depth)
	if depth == 0 && s.report.Format == "pickle" {
		err = cmp.Or(s.ranges(src, depth), err)
	}
	if err == nil && depth == s.own && s.instead == nil && !s.report.Found() {
		err = s.opens(src)
	}
	return err
}

func (s *scan) container(src checkpoint.Source, head []byte, within string, depth int) error {
	switch {
	case zipFormat{}.Sniff(head, src):
		s.format("zip", depth)
		return s.zips(src, within, depth)
	case isTar(head):
		s.format("tar", depth)
		members, err := s.tar(src, within, depth)
		return errors.Join(err, s.before(src, head, within, depth), s.behind(src, within, depth, members...))
	default:
		return s.stacked(src, head, within, depth)
	}
}

// opens fails where a loader that is as strict as this package does: of what is
// damaged nobody can say that it is clean, though all of its pickles were.
func (s *scan) opens(src checkpoint.Source) error {
	parts, err := s.distributedParts(src)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		parts = []span{{0, src.Size()}}
	}
	for _, p := range parts {
		c, err := checkpoint.Open(s.ctx, p.within(src), Formats(), s.opts)
		if err != nil {
			return err
		}
		if err := c.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) format(name string, depth int) {
	if depth == 0 {
		s.report.Format = name
	}
}

// before scans the pickle that a file of another format begins with as well:
// torch.load reads that where it is given the bytes rather than the file.
func (s *scan) before(src checkpoint.Source, head []byte, within string, depth int) error {
	if s.instead != nil || !s.startsPickle(src, head) {
		return nil
	}
	s.report.Formats = append(s.report.Formats, "pickle")
	format := s.report.Format
	err := s.stacked(src, head, within, depth)
	s.report.Format = format
	return err
}

// behind scans a zip archive that ends a file of another format: readers that
// begin at the end of a file see it. Known are the offsets of those that belong
// to the file and were scanned.
func (s *scan) behind(src checkpoint.Source, within string, depth int, known ...int64) error {
	start, ok := archiveShift(src)
	if !ok || start < 0 || start >= src.Size() || slices.Contains(known, start) {
		return nil
	}
	s.report.Formats = append(s.report.Formats, "zip")
	return s.zip(checkpoint.Section(src, start, src.Size()-start, src.Name()), nestedRecord(within, "zip archive behind it"), depth+1)
}

// wrapped scans what is inside of a compression.
func (s *scan) wrapped(src checkpoint.Source, f wrapFormat, within string, depth int) error {
	r, done, err := f.open(sectionReader(src))
	if err != nil {
		return f.explain(err, 0)
	}
	defer done()
	if s.own == depth {
		s.own++
	}
	held, n, err := s.inflate(r, src.Size())
	if err != nil {
		err = f.explain(err, n)
	}
	if s.spent() {
		return err
	}
	// What came out before a fault is looked at all the same.
	return cmp.Or(err, s.source(checkpoint.NewReaderAt(src.Name(), held, n), nestedRecord(within, f.name), depth+1))
}

// nestedRecord names a record inside of another.
func nestedRecord(within, record string) string {
	switch {
	case within == "":
		return record
	case record == "":
		return within
	default:
		return within + " › " + record
	}
}

// isSource reports whether a record is code that torch.jit.load or
// torch.package would compile or run.
func isSource(name string) bool { return strings.HasSuffix(fold(name), ".py") }
