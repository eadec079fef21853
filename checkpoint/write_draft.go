package checkpoint

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// draftPrefix begins the name of every file that is being written.
const draftPrefix = ".wick-"

// draft is a file on its way to its name. It is locked while it is written, so
// that another process can tell it from a leftover.
type draft struct {
	path   string
	name   string // of the temporary file
	temp   string // the same until it has its name or is gone, then ""
	kept   string // a second name of what is replaced, "" if it has none
	old    os.FileInfo
	file   *os.File
	layout *Layout
	sums   *summer
	closed bool
	placed bool
}

// draftStem begins the names of the drafts of path: drafts of other files have
// another stem, and the names stay short however long that of path is.
func draftStem(path string) string {
	return fmt.Sprintf("%s%08x-", draftPrefix, crc32.ChecksumIEEE([]byte(filepath.Base(path))))
}

func newDraft(f File, old os.FileInfo) (*draft, error) {
	d := &draft{path: f.Path, old: old, layout: f.Layout}
	if err := d.create(); err != nil {
		return nil, err
	}
	if old != nil && old.Mode().IsRegular() {
		if err := d.file.Chmod(old.Mode().Perm()); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			d.discard()
			return nil, d.fails(err)
		}
	}
	d.sums = newSummer(d.file, f.Layout)
	return d, nil
}

// create makes and locks the file. Between the two a sweep of another process
// may take it for a leftover and remove it; then the next name is tried.
func (d *draft) create() error {
	for range 100 {
		var random [6]byte
		_, _ = rand.Read(random[:]) // never fails, says its documentation
		name := filepath.Join(filepath.Dir(d.path), draftStem(d.path)+hex.EncodeToString(random[:]))
		file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return d.fails(err)
		}
		d.file, d.name, d.temp, d.closed = file, name, name, false
		if lock(file) && sameFile(file, name) {
			return nil
		}
		d.discard()
	}
	return d.fails(errors.New("no free name for a temporary file"))
}

func sameFile(file *os.File, name string) bool {
	a, errA := file.Stat()
	b, errB := os.Lstat(name)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// sweep removes the drafts of path that nobody holds: those of processes that
// were killed. Where the system has no locks that end with their process,
// nothing is removed. What cannot be removed does no harm.
func sweep(path string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return
	}
	stem := draftStem(path)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), stem) && e.Type().IsRegular() {
			removeIfAbandoned(filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
}

// moves returns the moves of the tensors to their places. A tensor whose sum is
// wanted goes through the summer, all others straight to the file, so that the
// system can copy them by itself.
func (d *draft) moves() []tensor.Move {
	var moves []tensor.Move
	for i := range d.layout.parts {
		p := &d.layout.parts[i]
		if p.tensor == nil {
			continue
		}
		var to io.WriterAt = d.file
		if p.sum != nil && !p.sum.known {
			to = d.sums
		}
		moves = append(moves, tensor.Move{From: p.tensor, To: tensor.FileAt(to, p.offset)})
	}
	return moves
}

// literals writes all that is no tensor.
func (d *draft) literals() error {
	for i := range d.layout.parts {
		p := &d.layout.parts[i]
		if p.tensor != nil {
			continue
		}
		b, err := p.bytes()
		if err != nil {
			return err
		}
		if _, err := d.file.WriteAt(b, p.offset); err != nil {
			return err
		}
	}
	return nil
}

// bytes returns a part that is no tensor.
func (p *part) bytes() ([]byte, error) {
	if p.late == nil {
		return p.literal, nil
	}
	b, err := p.late()
	if err == nil && int64(len(b)) != p.size {
		err = fault.New(fault.IO, fmt.Sprintf("BUG: %d late bytes where %d were announced", len(b), p.size))
	}
	return b, err
}

// close ends the writing; the lock goes with it.
func (d *draft) close(sync bool) error {
	var err error
	if sync {
		err = d.file.Sync()
	}
	d.closed = true
	return errors.Join(err, d.file.Close())
}

// rename gives the file its name. Without force it never replaces a file that
// has come since the start, where the file system has hard links.
func (d *draft) rename(force bool) error {
	if !force {
		err := os.Link(d.temp, d.path)
		if errors.Is(err, fs.ErrExist) {
			return exists(d.path)
		}
		if err == nil {
			d.placed = true
			return nil // the second name goes with discard
		}
		if _, err := os.Lstat(d.path); err == nil {
			return exists(d.path)
		}
	}
	if err := os.Rename(d.temp, d.path); err != nil {
		return d.fails(err)
	}
	d.temp, d.placed = "", true
	return nil
}

// keep gives what is at the path a second name. It can come back from there; and
// its bytes are freed, which takes its time, when all files have their names.
// Without hard links it is replaced as it is.
func (d *draft) keep() {
	if d.old != nil && os.Link(d.path, d.name+"-old") == nil {
		d.kept = d.name + "-old"
	}
}

// makeWay takes the name from what has another.
func (d *draft) makeWay() {
	if d.kept != "" {
		_ = os.Remove(d.path) // it would be replaced anyway
	}
}

// retract takes a new file's name away again, and gives it back to the one that
// had it.
func (d *draft) retract() {
	switch { // the error that led here is the one to report
	case d.kept != "":
		_ = os.Rename(d.kept, d.path)
	case d.placed && d.old == nil:
		_ = os.Remove(d.path)
	}
}

// discard removes the draft unless it has its name and no other, and the second
// name of what was there before.
func (d *draft) discard() {
	if d.kept != "" {
		_ = os.Remove(d.kept) // gone if it came back
		d.kept = ""
	}
	if d.temp == "" {
		return
	}
	if !d.closed {
		d.closed = true
		_ = d.file.Close() // nothing of it is kept
	}
	_ = os.Remove(d.temp) // a leftover is swept by the next run
	d.temp = ""
}

// fails turns an error of the system about the output into a fault that names
// it. All other errors stay as they are.
func (d *draft) fails(err error) error {
	var known *fault.Error
	var system *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &system) && system.Path == d.name:
		return cannotWrite(d.path, system.Err)
	case errors.As(err, &known) && (known.File != "" || !full(err)) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return cannotWrite(d.path, err)
}

func cannotWrite(path string, err error) error {
	if full(err) {
		return fault.New(fault.IO, "no space left for the output").In(path).
			Needs("room for the whole file beside what it replaces", "free space, or write to another disk")
	}
	var system *fs.PathError
	var link *os.LinkError
	switch { // without the draft's name, which says nothing to anybody
	case errors.As(err, &system):
		err = system.Err
	case errors.As(err, &link):
		err = link.Err
	}
	e := fault.Wrap(fault.IO, "cannot write the output", err).In(path)
	if dir := filepath.Dir(path); errors.Is(err, fs.ErrNotExist) && isAbsent(dir) {
		return e.Needs("a folder that exists", "make the folder first: "+makeFolder(dir))
	}
	return e
}

// makeFolder is the command that makes a folder.
func makeFolder(dir string) string {
	if isAbsent(filepath.Dir(dir)) {
		return "mkdir -p " + dir
	}
	return "mkdir " + dir
}

func isAbsent(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// full reports whether err says that the disk or the quota is full.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || isFull(err)
}
