package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// WriteOptions is what a caller may ask of [WriteFile]. The zero value refuses
// to overwrite and leaves it to the system when the bytes reach the disk.
type WriteOptions struct {
	Force bool               // replace a file that exists
	Sync  bool               // return only when the disk has the bytes
	Run   []tensor.RunOption // for the run that moves the tensors
}

// File is a layout and the path that it is written to.
type File struct {
	Path   string
	Layout *Layout
}

// WriteFile writes a layout to a file. The bytes go to a file named .wick-*
// in the same folder, which gets its name when it is whole: until then, and on
// any error or when ctx is done, what was at path stays as it was, and nothing
// is left behind. The tensors may come from the very file that is replaced.
// Leftovers of runs that were killed while they wrote the same path are removed.
//
// It fails with [fault.ErrUsage] when path exists and Force is not set, with
// [fault.ErrIO] when the system fails (disk full, permission), and with the
// faults of the tensors that are read.
func WriteFile(ctx context.Context, path string, l *Layout, o WriteOptions) (tensor.Stats, error) {
	return WriteFiles(ctx, []File{{path, l}}, o)
}

// WriteFiles writes several files that belong together, such as shards and
// their index, in one run of the mover. They get their names in the order of
// files once all are whole. When that fails midway, what was there before is
// there again. The last file, which says what belongs together, makes way before
// the others are replaced: whoever kills the process between two names leaves no
// index over the files of two runs.
func WriteFiles(ctx context.Context, files []File, o WriteOptions) (tensor.Stats, error) {
	w := writer{ctx: ctx, opts: o}
	defer w.discard()
	for _, f := range files {
		if err := w.begin(f); err != nil {
			return w.stats, err
		}
	}
	if err := w.fill(); err != nil {
		return w.stats, err
	}
	return w.stats, w.commit()
}

// writer is one call of [WriteFiles].
type writer struct {
	ctx    context.Context
	opts   WriteOptions
	stats  tensor.Stats
	drafts []*draft
}

// begin refuses what cannot be written and makes the draft of one file.
func (w *writer) begin(f File) error {
	old, err := replaceable(f.Path, w.opts.Force)
	if err != nil {
		return err
	}
	sweep(f.Path)
	d, err := newDraft(f, old)
	if err != nil {
		return err
	}
	w.drafts = append(w.drafts, d)
	if size, ok := f.Layout.Size(); ok && f.Layout.plausible() {
		return d.fails(preallocate(d.file, size))
	}
	return nil
}

// replaceable returns what is at path, nil if nothing, and an error when it
// must stay.
func replaceable(path string, force bool) (os.FileInfo, error) {
	old, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, cannotWrite(path, err)
	}
	if target, err := os.Stat(path); err == nil {
		old = target
	}
	switch {
	case old.IsDir():
		return nil, fault.New(fault.Usage, "the output is a folder").In(path).Needs("the name of a file", "add a name to it")
	case old.Mode().Type()&^os.ModeSymlink != 0:
		return nil, fault.New(fault.Usage, "the output is no regular file").In(path).Needs("a file", "write to standard output with -")
	case !force:
		return nil, exists(path)
	}
	return old, nil
}

func exists(path string) error {
	return fault.New(fault.Usage, "the output exists").In(path).Needs("a new name", "wick.Overwrite() replaces it")
}

// fill writes every draft: the files of known size in one parallel run, the
// others one after another.
func (w *writer) fill() error {
	var moves []tensor.Move
	for _, d := range w.drafts {
		if !d.layout.loose {
			moves = append(moves, d.moves()...)
		}
	}
	if err := w.run(moves); err != nil {
		return err
	}
	for _, d := range w.drafts {
		if err := w.fillOne(d); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) run(moves []tensor.Move) error {
	if len(moves) == 0 {
		return w.ctx.Err()
	}
	stats, err := tensor.Run(w.ctx, moves, w.opts.Run...)
	w.count(stats)
	for _, d := range w.drafts {
		err = d.fails(err)
	}
	return err
}

func (w *writer) fillOne(d *draft) error {
	if d.layout.loose {
		stats, err := WriteStream(w.ctx, d.file, d.layout, w.opts.Run...)
		w.count(stats)
		return d.fails(err)
	}
	if err := d.fails(d.sums.finish(d.layout.size)); err != nil {
		return err
	}
	return d.fails(d.literals())
}

func (w *writer) count(s tensor.Stats) { w.stats = addStats(w.stats, s) }

// commit gives the drafts their names.
func (w *writer) commit() error {
	for _, d := range w.drafts {
		if err := d.fails(d.close(w.opts.Sync)); err != nil {
			return err
		}
	}
	if err := w.place(); err != nil {
		for _, d := range w.drafts {
			d.retract()
		}
		return err
	}
	if w.opts.Sync {
		return w.syncFolders()
	}
	return nil
}

// place renames the drafts one after another until one fails.
func (w *writer) place() error {
	if len(w.drafts) > 1 {
		for _, d := range w.drafts {
			d.keep()
		}
		w.drafts[len(w.drafts)-1].makeWay()
	}
	for _, d := range w.drafts {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if err := d.rename(w.opts.Force); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) syncFolders() error {
	for _, d := range w.drafts {
		if err := d.fails(syncFolder(filepath.Dir(d.path))); err != nil {
			return err
		}
	}
	return nil
}

// discard removes the drafts that did not get their name.
func (w *writer) discard() {
	for _, d := range w.drafts {
		d.discard()
	}
}

func addStats(a, b tensor.Stats) tensor.Stats {
	a.Moves += b.Moves
	a.Bytes += b.Bytes
	a.Read += b.Read
	a.Kernel += b.Kernel
	a.Loss.Add(b.Loss)
	a.Checks = append(a.Checks, b.Checks...)
	a.Wrong = append(a.Wrong, b.Wrong...)
	return a
}
