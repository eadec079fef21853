package pytorch

import (
	"bytes"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/flate"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// zip scans every record that a loader may take for a pickle or for code. An
// archive whose directory cannot be relied on is looked through from its
// beginning.
func (s *scan) zip(src checkpoint.Source, within string, depth int) error {
	a, err := readArchive(src, s.env.Limits)
	if err == nil {
		err = a.prove()
	}
	if err != nil {
		return errors.Join(err, s.loose(src, within, depth))
	}
	raw := rawFolders(a.names())
	var faults []error
	for _, i := range a.byPlace {
		e := &a.entries[i]
		isRaw := func(dir string) bool { return strings.HasPrefix(fold(e.name), dir) }
		if e.isFolder() || !isPickleName(e.name) && slices.ContainsFunc(raw, isRaw) {
			continue
		}
		if s.instead != nil && strings.HasPrefix(e.name, "__MACOSX/") {
			continue // what macOS keeps beside a file has its name
		}
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if err := s.record(a, e, within, depth); err != nil {
			faults = append(faults, err)
		}
		if s.spent() {
			break
		}
	}
	if len(faults) > 0 && len(s.report.Globals) == 0 {
		return faults[0]
	}
	return errors.Join(faults...)
}

// rawFolders are the folders whose records are elements of tensors and never
// pickles, unless they are called so: those called data beside a data.pkl, and
// constants of TorchScript. They are folded.
func rawFolders(names []string) []string {
	var dirs []string
	for _, name := range names {
		dir, file := path.Split(fold(name))
		switch file {
		case "data.pkl":
			dirs = append(dirs, dir+"data/")
		case "constants.pkl":
			dirs = append(dirs, dir+"constants/")
		}
	}
	return dirs
}

// record scans one record by what it begins with and by what it is called.
func (s *scan) record(a *archive, e *entry, within string, depth int) error {
	name := nestedRecord(within, e.name)
	if isSource(e.name) {
		s.report.Code = append(s.report.Code, name)
		return nil
	}
	if err := a.usable(e); err != nil {
		return inRecord(err, name, 0)
	}
	if err := checkInflate(e, s.env.Limits); err != nil {
		return inRecord(err, name, 0)
	}
	isNamed := isPickleName(e.name)
	if most := inflateRoom(e.stored, s.env.Limits); isNamed && e.method != methodStored && e.size > most {
		return inRecord(tooBig(e.size, e.stored, s.env.Limits), name, 0)
	}
	head := make([]byte, min(e.size, checkpoint.SniffLen))
	if _, err := io.ReadFull(a.open(e), head); err != nil {
		return err
	}
	switch {
	case zipFormat{}.Sniff(head, nil) || legacyFormat{}.Sniff(head, nil) && !isNamed || isTar(head) || isWrapped(head):
		return s.held(a, e, name, depth)
	case isNamed || isProtocol(head) || len(head) > 0 && int64(len(head)) == e.size && isPickle(head, s.env.Limits):
		_, err := s.pickle(name, 0, e.stored, func() io.Reader { return a.open(e) }, depth+1)
		if !isNamed && fault.KindOf(err) == fault.Malformed {
			return nil // bytes that begin like a pickle, in a record that nobody calls one
		}
		return err
	default:
		return nil
	}
}

func isPickleName(name string) bool {
	switch path.Ext(fold(name)) {
	case ".pkl", ".pickle", ".pk", ".metadata":
		return true
	}
	return false
}

func isWrapped(head []byte) bool {
	return slices.ContainsFunc(wrapFormats, func(f wrapFormat) bool { return f.Sniff(head, nil) })
}

// held scans a record that is a file of its own: in place when it is stored,
// else in memory.
func (s *scan) held(a *archive, e *entry, name string, depth int) error {
	if e.method == methodStored {
		return s.source(checkpoint.Section(a.src, a.data(e), e.size, name), name, depth+1)
	}
	inner, n, err := s.inflate(a.open(e), e.stored)
	if err != nil {
		return inRecord(err, name, n)
	}
	return s.source(checkpoint.NewReaderAt(name, inner, n), name, depth+1)
}

// looseWindow is how much of a damaged archive is looked through at a time.
const looseWindow = 1 << 20

// loose looks for local headers of pickles in an archive without a directory
// that can be relied on. What it finds counts; what it fails at does not, since
// the archive's own fault is reported.
func (s *scan) loose(src checkpoint.Source, within string, depth int) error {
	sig := []byte("PK\x03\x04")
	window := make([]byte, min(looseWindow, src.Size()))
	for at := int64(0); at < src.Size(); {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		n, err := src.ReadAt(window[:min(int64(len(window)), src.Size()-at)], at)
		if n < lenLocal {
			return s.ended(err)
		}
		i := bytes.Index(window[:n], sig)
		if i < 0 {
			at += int64(n - len(sig) + 1)
			continue
		}
		if s.looseRecord(src, at+int64(i), within, depth); s.spent() {
			return nil // the archive's own fault says that this is not all
		}
		at += int64(i + len(sig))
	}
	return nil
}

// ended is the error of a read at the end of a file.
func (s *scan) ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// looseRecord scans the record behind a local header, if it is called a pickle.
func (s *scan) looseRecord(src checkpoint.Source, at int64, within string, depth int) {
	head := make([]byte, lenLocal)
	if readFull(src, head, at) != nil {
		return
	}
	name := make([]byte, le16(head, 26))
	data := at + lenLocal + int64(len(name)) + int64(le16(head, 28))
	if data >= src.Size() || readFull(src, name, at+lenLocal) != nil || !isPickleName(string(name)) {
		return
	}
	open := func() io.Reader {
		r := io.NewSectionReader(src, data, src.Size()-data)
		if le16(head, 8) == methodDeflate {
			return flate.NewReader(r)
		}
		return r
	}
	// The archive's own fault says already that what is found is not all.
	_, _ = s.pickle(nestedRecord(within, string(name)), 0, src.Size(), open, depth+1)
}

// tar scans the members of a tar: those of torch 0.1, which torch.load takes
// for a checkpoint, and files with a form of their own. It returns where the
// members begin.
func (s *scan) tar(src checkpoint.Source, within string, depth int) (members []int64, err error) {
	isCheckpoint := false
	err = tarFiles(src, s.env.Limits, func(h *tarHeader) error {
		members = append(members, h.off)
		member := checkpoint.Section(src, h.off, h.size, src.Name())
		within := nestedRecord(within, h.name)
		switch {
		case h.name == "storages" || h.name == "tensors":
			isCheckpoint = true
			return nil
		case isTarMember(h.name):
			isCheckpoint = true
			_, err := s.pickle(within, 0, h.size, func() io.Reader { return sectionReader(member) }, depth+1)
			return err
		default:
			return s.member(member, within, depth)
		}
	})
	if isCheckpoint && s.instead == nil {
		err = errors.Join(err, s.tarCounts(src, within))
	}
	return members, err
}

// tarCounts scans the two members in which pickles stand between counts and
// elements: only who follows the counts knows where the next one begins.
func (s *scan) tarCounts(src checkpoint.Source, within string) error {
	o := &tarOpener{src: src, env: s.env, members: map[string]*tarMember{}, storages: map[string]*tarStorage{}, tensors: map[string]*nested.Tensor{}}
	o.loader = &loader{limits: s.env.Limits, present: src.Size(), object: o.object}
	err := o.readMembers()
	for _, step := range []func() error{o.readStorages, o.readTensors} {
		if err == nil {
			err = step()
		}
	}
	seen := map[string]bool{}
	for _, g := range o.loader.globals {
		if key := g.Record + "\n" + g.Module + "\n" + g.Name; !seen[key] {
			seen[key] = true
			g.Record = nestedRecord(within, g.Record)
			s.report.Globals = append(s.report.Globals, Graded(g))
		}
	}
	s.report.Pickles += 2
	return err
}

// member scans a file of a tar that has the form of a checkpoint or a pickle.
func (s *scan) member(src checkpoint.Source, name string, depth int) error {
	if isSource(name) {
		s.report.Code = append(s.report.Code, name)
		return nil
	}
	head, err := checkpoint.Head(src)
	switch {
	case err != nil:
		return err
	case zipFormat{}.Sniff(head, src), isTar(head), isWrapped(head), isProtocol(head), isPickleName(name), legacyFormat{}.Sniff(head, src):
		return s.source(src, name, depth+1)
	default:
		return nil
	}
}
