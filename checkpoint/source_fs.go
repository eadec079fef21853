package checkpoint

import (
	"bytes"
	"io"
	"io/fs"
	"path"
	"sync"

	"github.com/wick-ml/wick/fault"
)

// OpenFS opens name of fsys: a [Folder] for a directory, else a source with
// [Siblings]. A file that implements [io.ReaderAt] is read in place; one that
// can only seek is read under a lock; any other is read into memory whole.
func OpenFS(fsys fs.FS, name string, opts Options) (Source, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, cannotOpen(name, err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, closing(cannotOpen(name, err), file)
	}
	if info.IsDir() {
		if err := file.Close(); err != nil {
			return nil, cannotOpen(name, err)
		}
		return &fsFolder{folder: folder{name: name, limits: opts.Limits.Default()}, fsys: fsys}, nil
	}
	r, err := readerAt(file, info.Size())
	if err != nil {
		return nil, closing(fault.InFile(err, name), file)
	}
	return &fsFile{borrowed: borrowed{name: name, r: r, size: info.Size()}, fsys: fsys, file: file, opts: opts}, nil
}

func readerAt(file fs.File, size int64) (io.ReaderAt, error) {
	switch f := file.(type) {
	case io.ReaderAt:
		return f, nil
	case io.ReadSeeker:
		return &seeker{r: f}, nil
	default:
		return readWhole(f, size)
	}
}

// readWhole holds a file that can only be read in order. It grows with the
// bytes that come, never to the size that the file system claims.
func readWhole(r io.Reader, size int64) (io.ReaderAt, error) {
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(r, size+1))
	if err != nil {
		return nil, fault.Wrap(fault.IO, "read failed", err).At(n)
	}
	if n != size {
		return nil, fault.New(fault.Changed, "its size differs from what the file system says")
	}
	return bytes.NewReader(b.Bytes()), nil
}

// seeker makes an [io.ReaderAt] of a file that can only seek.
type seeker struct {
	mu sync.Mutex
	r  io.ReadSeeker
}

// ReadAt seeks and reads under a lock.
func (s *seeker) ReadAt(p []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.r.Seek(off, io.SeekStart); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(s.r, p)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}

// fsFile is a file of an fs.FS.
type fsFile struct {
	borrowed
	fsys fs.FS
	file fs.File
	opts Options
}

// Close waits for running reads and closes the file.
func (f *fsFile) Close() error {
	return f.close(func() error {
		if err := f.file.Close(); err != nil {
			return fault.Wrap(fault.IO, "close failed", err).In(f.name)
		}
		return nil
	})
}

// Sibling opens another file of the same folder.
func (f *fsFile) Sibling(name string) (Source, error) {
	return openBelow(f.fsys, path.Dir(f.name), name, f.opts)
}

// fsFolder is a directory of an fs.FS.
type fsFolder struct {
	folder
	fsys fs.FS
}

// Sibling opens a file in the folder.
func (d *fsFolder) Sibling(name string) (Source, error) {
	if d.isClosed() {
		return nil, closedError(d.name)
	}
	return openBelow(d.fsys, d.name, name, Options{Limits: d.limits})
}

// List returns the files below the folder, as the list of a directory does.
func (d *fsFolder) List() ([]string, error) {
	files, _, err := (&lister{name: d.name, limits: d.limits}).list(d.walk)
	return files, err
}

// ListAll is List with all that List passes over. No link to a folder is known to
// stay inside.
func (d *fsFolder) ListAll() (files, elsewhere []string, err error) {
	return (&lister{name: d.name, limits: d.limits, all: true}).list(d.walk)
}

func (d *fsFolder) walk(list *lister) error {
	return fs.WalkDir(d.fsys, d.name, func(p string, entry fs.DirEntry, err error) error {
		if err != nil {
			return cannotOpen(p, err)
		}
		if p == d.name {
			return nil
		}
		follow := func() (fs.FileInfo, error) { return fs.Stat(d.fsys, p) }
		return list.add(below(d.name, p), entry, follow, func() bool { return false })
	})
}

func below(dir, p string) string {
	if dir == "." {
		return p
	}
	return p[len(dir)+1:]
}

func openBelow(fsys fs.FS, dir, name string, opts Options) (Source, error) {
	return OpenSibling(name, func(name string) (Source, error) { return OpenFS(fsys, path.Join(dir, name), opts) })
}
