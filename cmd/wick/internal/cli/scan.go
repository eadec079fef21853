package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/pytorch"
	"github.com/wick-ml/wick/remote"
)

func newScan(a *app) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "scan [--json] FILE|FOLDER",
		Short: "List what a plain torch.load of a file would import or call",
		Long: "scan lists every name that the pickles of FILE, or of all files below FOLDER, ask Python to import, with its\n" +
			"record and offset. Nothing of it is imported or called. Each name has a grade:\n\n" +
			"  allowed    torch.load(weights_only=True) imports it by itself (torch 2.15)\n" +
			"  data       a class that is known to hold data: of Python's own, NumPy, torch.nn, OmegaConf\n" +
			"  unknown    no list names it\n" +
			"  dangerous  runs commands or code, reaches files, the network or any attribute, or loads another pickle\n\n" +
			"It reads zip, legacy and tar checkpoints, plain pickles, pickles in strings and in further records, archives in\n" +
			"archives, and files that are two formats at once; source code in an archive is a finding of its own. Raw elements of\n" +
			"tensors are not looked into: no loader takes them for pickles.\n\n" +
			"The exit code is 0 only when every name is allowed or data; 1 when something else was found; 3 or 4 when wick\n" +
			"cannot tell, be the file damaged or no checkpoint: then what was seen is printed, and is not all there may be. In a\n" +
			"folder, hidden files and folders in it too, findings in one file decide, and stderr says which could not be read: links\n" +
			"to nothing and to folders that are not below FOLDER among them.",
		Example: "  wick scan model.pt\n  wick scan --json downloads/\n  cat model.pt | wick scan -",
		Args:    argCount(1, 1, "FILE or FOLDER"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.scan(cmd.Context(), args[0], json) },
	}
	cmd.Flags().BoolVar(&json, "json", false, "print one JSON document")
	return cmd
}

// scanned is one file's report and why it is not all, if it is not.
type scanned struct {
	report *pytorch.ScanReport
	err    error
}

func (a *app) scan(ctx context.Context, name string, json bool) error {
	limits, err := parseLimits(a.limits)
	if err != nil {
		return err
	}
	s, err := a.scanAll(ctx, name, limits)
	if err != nil {
		return err
	}
	if json {
		_, err = a.out.Write(append(scanJSON(remote.Redact(name), s.files), '\n'))
	} else {
		a.printScan(s.files, s.isFolder)
		if s.isFolder {
			a.line(a.scanTotal(remote.Redact(name), s))
		}
	}
	if err := cmp.Or(err, a.out.Flush()); err != nil {
		return err
	}
	untold, verdict := s.verdict()
	for _, err := range untold {
		a.report(err, json)
	}
	return verdict
}

// scans is what a scan of a file or a folder saw.
type scans struct {
	files    []scanned
	isFolder bool
	skipped  int // files of a folder that torch.load would read nothing of
}

// verdict is the error that decides the exit code: in a folder findings first,
// for they are certain whatever else could not be read, of the same file too,
// then the first file that cannot be told. What else could not be read is untold.
func (s *scans) verdict() (untold []error, verdict error) {
	for _, f := range s.files {
		if f.err != nil {
			untold = append(untold, f.err)
		}
		if f.report.Found() && (s.isFolder || f.err == nil) {
			verdict = errNo
		}
	}
	if verdict == nil && len(untold) > 0 {
		return untold[1:], untold[0]
	}
	return untold, verdict
}

// scanTotal is the last line on a folder.
func (a *app) scanTotal(name string, s *scans) string {
	findings, partly, untold := 0, 0, 0
	for _, f := range s.files {
		switch {
		case f.report.Found() && f.err != nil:
			findings++
			partly++
		case f.report.Found():
			findings++
		case f.err != nil:
			untold++
		}
	}
	colour := green
	if findings+untold > 0 {
		colour = red
	}
	counts := human.Count(findings) + " with findings"
	if partly > 0 {
		counts += " (" + human.Count(partly) + " read in part)"
	}
	counts += ", " + human.Count(untold) + " cannot tell, " + human.Count(s.skipped) + " skipped"
	return fault.Clean(name, maxName) + ": " + human.Plural(len(s.files)+s.skipped, "file") + ", " + a.paint(colour, counts)
}

// scanAll scans a file, or every file of a folder.
func (a *app) scanAll(ctx context.Context, name string, limits checkpoint.Limits) (*scans, error) {
	src, err := a.openSource(ctx, name, limits)
	if err != nil {
		return nil, err
	}
	defer func() { _ = src.Close() }() // only read from
	if folder, ok := src.(checkpoint.Folder); ok {
		return scanMembers(ctx, folder, remote.Redact(name), limits)
	}
	return &scans{files: []scanned{scanSource(ctx, src, limits)}}, nil
}

// scanMembers scans every file of a folder that can hold a pickle. name is what errors
// call the folder.
func scanMembers(ctx context.Context, folder checkpoint.Folder, name string, limits checkpoint.Limits) (*scans, error) {
	names, elsewhere, err := listAll(folder)
	if err != nil {
		return nil, err
	}
	s := &scans{isFolder: true}
	for _, n := range elsewhere {
		s.files = append(s.files, scanned{&pytorch.ScanReport{File: n}, leadsElsewhere(filepath.Join(name, filepath.FromSlash(n)))})
	}
	for _, n := range names {
		file, skip, err := scanMember(ctx, folder, n, limits)
		if err != nil {
			return nil, err
		}
		if skip {
			s.skipped++
		} else {
			s.files = append(s.files, file)
		}
	}
	if len(s.files) == 0 {
		return nil, fault.New(fault.Unsupported, "a folder of "+human.Plural(len(names), "file")+" without a checkpoint").In(name).
			Needs("a file that torch.load reads", "")
	}
	return s, nil
}

// listAll lists all files of a folder, and the links in it to folders that are not.
func listAll(folder checkpoint.Folder) (names, elsewhere []string, err error) {
	if all, ok := folder.(checkpoint.AllLister); ok {
		return all.ListAll()
	}
	names, err = folder.List()
	return names, nil, err
}

func leadsElsewhere(name string) error {
	return fault.New(fault.Unsupported, "a link to a folder elsewhere, which was not looked into").In(name).
		Needs("", "scan that folder too")
}

// scanMember scans one file of a folder. What is no checkpoint beside others is
// skipped, such as a README: torch.load would read nothing of it.
func scanMember(ctx context.Context, folder checkpoint.Folder, name string, limits checkpoint.Limits) (file scanned, skip bool, err error) {
	src, err := folder.Sibling(name)
	if err != nil {
		return scanned{report: &pytorch.ScanReport{File: name}, err: err}, false, nil
	}
	defer func() { _ = src.Close() }() // only read from
	file = scanSource(ctx, src, limits)
	if err := ctx.Err(); err != nil {
		return file, false, err
	}
	isPart := file.report.Format == "pickle" && file.err != nil && !file.report.Found() && exitCode(file.err) == exitUnsupported
	if isPart { // the data.pkl of an unpacked archive
		file.err = nil
	}
	return file, file.report.Format == "" && !isModelName(name), nil
}

// isModelName tells the names under which people load checkpoints.
func isModelName(name string) bool {
	for _, suffix := range []string{".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle", ".tar", ".t7", ".pt2", ".distcp"} {
		if strings.HasSuffix(strings.ToLower(name), suffix) {
			return true
		}
	}
	return false
}

// scanSource scans one file. A sound file of a format without pickles is clean,
// also when its first bytes could begin one, as long as no name was met.
func scanSource(ctx context.Context, src checkpoint.Source, limits checkpoint.Limits) scanned {
	report, err := pytorch.Scan(ctx, src, pytorch.WithLimits(limits))
	if err == nil || len(report.Globals) > 0 || (report.Format != "" && report.Format != "pickle") {
		return scanned{report, err}
	}
	formats := slices.DeleteFunc(wick.Formats(), func(f checkpoint.Format) bool {
		return slices.ContainsFunc(pytorch.Formats(), func(p checkpoint.Format) bool { return p.Name() == f.Name() })
	})
	c, openErr := checkpoint.Open(ctx, checkpoint.Section(src, 0, src.Size(), src.Name()), formats, checkpoint.Options{Limits: limits})
	switch {
	case openErr == nil:
		report.Format, report.Pickles = c.Info.Format, 0
		return scanned{report, errors.Join(c.Close())}
	case report.Format == "" && exitCode(openErr) == exitMalformed:
		return scanned{report, openErr}
	default:
		return scanned{report, err}
	}
}

// printScan prints; Flush reports what went wrong.
func (a *app) printScan(files []scanned, isFolder bool) {
	for _, f := range files {
		for i := range f.report.Globals {
			a.printGlobal(&f.report.Globals[i], f.report, isFolder)
		}
		for _, name := range f.report.Code {
			_, _ = fmt.Fprintf(a.out, "%s  %s  source code, which torch.jit.load or torch.package runs\n", a.paint(red, "code     "), fault.Clean(name, maxName))
		}
		for _, format := range f.report.Formats {
			_, _ = fmt.Fprintf(a.out, "%s  the file is a %s as well: two readers see two files\n", a.paint(red, "formats  "), fault.Clean(format, maxName))
		}
		_, _ = fmt.Fprintln(a.out, a.scanLine(f))
	}
}

func (a *app) printGlobal(g *pytorch.ScanGlobal, r *pytorch.ScanReport, isFolder bool) {
	grade := fmt.Sprintf("%-9s", g.Grade)
	switch g.Grade {
	case pytorch.GradeAllowed, pytorch.GradeData:
		grade = a.paint(green, grade)
	default:
		grade = a.paint(red, grade)
	}
	place := g.Record
	if isFolder || place == "" {
		place = strings.TrimSuffix(r.File+" › "+place, " › ")
	}
	called := ""
	if g.Called {
		called = "called; "
	}
	name, reason := fault.Clean(g.Module+"."+g.Name, maxName), called+g.Reason
	place = fmt.Sprintf("%s@0x%x", fault.Clean(place, maxName), g.Offset)
	const gap, gradeWidth = "  ", 9
	before := gradeWidth + columnGap + textWidth(name) + columnGap
	if a.width > 0 && before+textWidth(place+gap+reason) > a.width { // the reason on a line of its own
		place = squeezed(place, max(a.width-before, leastCut))
		reason = "\n" + strings.Repeat(" ", gradeWidth) + gap + a.paint(dim, reason)
	} else {
		reason = gap + reason
	}
	_, _ = fmt.Fprintln(a.out, grade+gap+name+gap+place+reason)
}

// scanLine is the last line on a file: what it holds and the verdict.
func (a *app) scanLine(f scanned) string {
	verdict, colour := f.verdict()
	return f.counts() + "; " + a.paint(colour, verdict)
}

// verdict is the scan in a word or two.
func (f *scanned) verdict() (string, style) {
	switch {
	case f.err != nil && f.report.Found():
		return "findings, and cannot tell the rest", red
	case f.err != nil:
		return "cannot tell", red
	case f.report.Found():
		return "findings", red
	default:
		return "clean", green
	}
}

// counts says what a file holds.
func (f *scanned) counts() string {
	counts := map[pytorch.Grade]int{}
	for _, g := range f.report.Globals {
		counts[g.Grade]++
	}
	format := f.report.Format
	if format == "" {
		format = "no checkpoint"
	}
	return fmt.Sprintf("%s: %s, %s: %s allowed, %s data, %s unknown, %s dangerous", fault.Clean(f.report.File, maxName), format,
		human.Plural(f.report.Pickles, "pickle"), human.Count(counts[pytorch.GradeAllowed]), human.Count(counts[pytorch.GradeData]),
		human.Count(counts[pytorch.GradeUnknown]), human.Count(counts[pytorch.GradeDangerous]))
}

func scanJSON(name string, files []scanned) []byte {
	var o jsonout.Object
	o.String("file", name)
	o.Bool("clean", !slices.ContainsFunc(files, func(f scanned) bool { return f.err != nil || f.report.Found() }))
	o.Raw("files", list(files, scannedJSON))
	return o.Bytes()
}

func scannedJSON(f scanned) []byte {
	var o jsonout.Object
	o.String("file", f.report.File)
	o.StringOrNull("format", f.report.Format)
	verdict := "clean"
	switch { // a file with findings and an error was read in part
	case f.report.Found():
		verdict = "findings"
	case f.err != nil:
		verdict = "unknown"
	}
	o.String("verdict", verdict)
	o.Int("pickles", int64(f.report.Pickles))
	o.Raw("globals", list(f.report.Globals, globalJSON))
	o.Raw("code", stringsJSON(f.report.Code))
	o.Raw("formats", stringsJSON(f.report.Formats))
	if f.err != nil {
		o.Raw("error", errorObject(f.err))
	} else {
		o.Null("error")
	}
	return o.Bytes()
}

func globalJSON(g pytorch.ScanGlobal) []byte {
	var o jsonout.Object
	o.String("module", g.Module)
	o.String("name", g.Name)
	o.String("grade", string(g.Grade))
	o.String("reason", g.Reason)
	o.StringOrNull("record", g.Record)
	o.Int("offset", g.Offset)
	o.Bool("called", g.Called)
	return o.Bytes()
}

func stringsJSON(list []string) []byte { return jsonout.AppendList(nil, list, jsonout.AppendString) }
