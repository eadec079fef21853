package checkpoint

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/wick-ml/wick/fault"
)

// OpenPath opens what is called name in the file system: a [Folder] for a
// directory, else what [OpenFile] gives, or [MapFile] when opts ask for a map.
func OpenPath(name string, opts Options) (Source, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, cannotOpen(name, err)
	}
	if info.IsDir() {
		return OpenDir(name, opts)
	}
	if opts.Mmap {
		return MapFile(name)
	}
	return OpenFile(name)
}

// OpenFile opens a regular file. The source is safe for concurrent use; it has
// [Siblings], and it is [Pinned]: Close waits for running reads, and the end of
// a read fails with [fault.ErrChanged] when the file's size or time of
// modification is no longer what it was here.
func OpenFile(name string) (Source, error) { return openLocal(name) }

// MapFile opens a regular file as [OpenFile] does and maps it, so that the
// source is a [Lender] too. The map is private: writing to lent memory changes
// that memory alone, never the file. It ends with Close, after which lent
// memory must not be touched: that is fatal to the process, and so is touching
// lent memory of a file that was cut short meanwhile. Reads through the source
// do not use the map and return an error instead. MapFile fails with
// [fault.ErrUnsupported] on systems without maps.
func MapFile(name string) (Source, error) {
	f, err := openLocal(name)
	if err != nil {
		return nil, err
	}
	m := &mappedFile{localFile: f}
	if m.memory, err = mapFile(f.file, f.size); err != nil {
		return nil, closing(fault.InFile(err, name), f)
	}
	return m, nil
}

// localFile is a file of the operating system.
type localFile struct {
	pin
	name  string
	file  *os.File
	size  int64
	mtime time.Time
}

func openLocal(name string) (*localFile, error) {
	// Looking first keeps a named pipe from blocking in open.
	info, err := os.Stat(name)
	if err != nil {
		return nil, cannotOpen(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(name, info.Mode())
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, cannotOpen(name, err)
	}
	if info, err = file.Stat(); err != nil {
		return nil, closing(cannotOpen(name, err), file)
	}
	return &localFile{name: name, file: file, size: info.Size(), mtime: info.ModTime()}, nil
}

func cannotOpen(name string, err error) error {
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return fault.Wrap(fault.IO, "cannot be opened", err).In(name)
}

// closing closes c after err, and joins what comes of it.
func closing(err error, c io.Closer) error {
	if closeErr := c.Close(); closeErr != nil {
		return errors.Join(err, closeErr)
	}
	return err
}

func notRegular(name string, mode fs.FileMode) error {
	if mode.IsDir() {
		return fault.New(fault.Usage, "a folder").In(name).Needs("a file", "")
	}
	if mode&fs.ModeNamedPipe != 0 {
		return fault.New(fault.Unsupported, "a pipe").In(name).
			Needs("a file that can be read at any place", "give - and pipe it to standard input, or copy it into a file first")
	}
	return fault.New(fault.Unsupported, "no regular file but "+mode.Type().String()).In(name).
		Needs("a file that can be read at any place", "copy it into a file first")
}

// Name returns the name that the file was opened by.
func (f *localFile) Name() string { return f.name }

// Size returns the file's size when it was opened, bytes.
func (f *localFile) Size() int64 { return f.size }

// OSFile returns the open file, for copies inside the kernel. It must only be
// used while the source is acquired, and never be closed or seeked.
func (f *localFile) OSFile() *os.File { return f.file }

// ReadAt reads from the file, never from a map.
func (f *localFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.file.ReadAt(p, off)
	if err == nil || err == io.EOF {
		return n, err
	}
	if errors.Is(err, os.ErrClosed) {
		return n, closedError(f.name)
	}
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return n, fault.Wrap(fault.IO, "read failed", err).In(f.name).At(off)
}

// Acquire keeps the file open until Release.
func (f *localFile) Acquire() error { return f.acquire(f.name) }

// Release ends the use, and fails with [fault.ErrChanged] when the file is no
// longer as it was opened.
func (f *localFile) Release() error {
	defer f.release()
	info, err := f.file.Stat()
	if err != nil {
		return cannotOpen(f.name, err)
	}
	if info.Size() != f.size || !info.ModTime().Equal(f.mtime) {
		return changed(f.name)
	}
	return nil
}

func changed(name string) error {
	return fault.New(fault.Changed, "its size or time of modification differs").In(name).
		Needs("a file that nobody writes to", "wait until the writer is done, then read it again")
}

// Close waits for running reads and closes the file.
func (f *localFile) Close() error { return f.close(f.closeFile) }

func (f *localFile) closeFile() error {
	if err := f.file.Close(); err != nil {
		return fault.Wrap(fault.IO, "close failed", err).In(f.name)
	}
	return nil
}

// Sibling opens another file of the same folder.
func (f *localFile) Sibling(name string) (Source, error) {
	path, err := siblingPath(filepath.Dir(f.name), name)
	if err != nil {
		return nil, err
	}
	return shard(OpenFile(path))
}

// mappedFile is a localFile that lends its memory.
type mappedFile struct {
	*localFile
	memory []byte
}

// Lend returns the map, nil after Close.
func (m *mappedFile) Lend() []byte {
	if m.isClosed() {
		return nil
	}
	return m.memory
}

// Close waits for running reads, ends the map, and closes the file.
func (m *mappedFile) Close() error {
	return m.close(func() error {
		err := unmap(m.memory)
		if err != nil {
			err = fault.Wrap(fault.IO, "the map cannot be undone", err).In(m.name)
		}
		return errors.Join(err, m.closeFile())
	})
}

// Sibling opens another file of the same folder, mapped too.
func (m *mappedFile) Sibling(name string) (Source, error) {
	path, err := siblingPath(filepath.Dir(m.name), name)
	if err != nil {
		return nil, err
	}
	return shard(MapFile(path))
}
