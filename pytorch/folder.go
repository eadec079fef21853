package pytorch

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
	"github.com/wick-ml/wick/tensor"
)

// folderFormat is a zip archive that somebody unpacked: data.pkl, data/ and
// byteorder as files, with or without the top folder.
type folderFormat struct{}

// Name returns "folder".
func (folderFormat) Name() string { return "folder" }

// Sniff looks for one data.pkl that counts.
func (folderFormat) Sniff(_ []byte, src checkpoint.Source) bool {
	_, files, err := checkpoint.ListFolder(src)
	return err == nil && slices.ContainsFunc(files, isMainPickle)
}

func isMainPickle(name string) bool {
	return path.Base(name) == "data.pkl" && !strings.Contains("/"+name, "/__MACOSX/")
}

// Open reads data.pkl and the sizes of the files that it names.
func (folderFormat) Open(_ context.Context, src checkpoint.Source, env *checkpoint.Env) (*checkpoint.Checkpoint, error) {
	dir, files, err := checkpoint.ListFolder(src)
	if err != nil {
		return nil, err
	}
	top, _, err := findTop(files)
	if err != nil {
		return nil, err
	}
	o := &folderOpener{dir: dir, env: env, top: top}
	return o.open(files)
}

type folderOpener struct {
	dir   checkpoint.Folder
	env   *checkpoint.Env
	top   string
	order tensor.ByteOrder
}

func (o *folderOpener) open(files []string) (*checkpoint.Checkpoint, error) {
	order, err := o.readOrder(files)
	if err != nil {
		return nil, err
	}
	o.order = order
	main, err := o.dir.Sibling(o.top + "data.pkl")
	if err != nil {
		return nil, err
	}
	l := &loader{limits: o.env.Limits, record: o.top + "data.pkl", present: main.Size(), storage: o.storage}
	l.again = again(main, 0)
	root, err := l.load(pickle.NewStream(io.NewSectionReader(main, 0, main.Size())))
	if err = errors.Join(err, main.Close()); err != nil {
		return nil, firstFault(err)
	}
	info := checkpoint.Info{
		Name: o.dir.Name(), Format: "folder", Producer: "torch", Order: o.order,
		Storages: l.storages, Globals: l.globals,
	}
	for _, name := range files {
		info.Records = append(info.Records, checkpoint.Record{Name: name})
	}
	return checkpoint.New(root, info, o.env.Following(main.Size()+sizes(l.storages)), o.dir.Close)
}

// sizes is how many bytes storages have together.
func sizes(storages []*tensor.Storage) int64 {
	var sum int64
	for _, s := range storages {
		if s != nil {
			sum += s.Size()
		}
	}
	return sum
}

// firstFault returns the fault inside a joined error, which is the one to tell.
func firstFault(err error) error {
	var e *fault.Error
	if errors.As(err, &e) {
		return e
	}
	return err
}

func (o *folderOpener) readOrder(files []string) (tensor.ByteOrder, error) {
	name := o.top + "byteorder"
	if !slices.Contains(files, name) {
		return tensor.LittleEndian, nil
	}
	src, err := o.dir.Sibling(name)
	if err != nil {
		return tensor.LittleEndian, err
	}
	text := make([]byte, min(src.Size(), maxNote))
	err = errors.Join(readFull(src, text, 0), src.Close())
	if err != nil {
		return tensor.LittleEndian, firstFault(err)
	}
	return parseOrder(strings.TrimSpace(string(text)), name)
}

// storage describes a file of the folder data. The file is not kept open: a
// model has thousands.
func (o *folderOpener) storage(ref storageRef) (*tensor.Storage, error) {
	name := o.top + "data/" + ref.Key
	src, err := o.dir.Sibling(name)
	if err != nil {
		return nil, inRecord(missingRecord(err), name, 0)
	}
	size := src.Size()
	if err := src.Close(); err != nil {
		return nil, err
	}
	f := &storageFile{dir: o.dir, name: name, size: size}
	return tensor.NewStorage(tensor.StorageSpec{Name: name, Size: size, Order: o.order, File: f, Guard: f}), nil
}

// missingRecord turns an absent file into what it is here: a damaged
// checkpoint.
func missingRecord(err error) error {
	if !errors.Is(err, fault.ErrNotFound) {
		return err
	}
	return fault.Wrap(fault.Malformed, "a storage that is missing", err).
		Needs("a file for every storage of the pickle", "unpack the archive again, with all its files")
}

// storageFile is a file that is open while somebody has acquired it.
type storageFile struct {
	dir  checkpoint.Folder
	name string
	size int64

	mu    sync.Mutex
	users int
	src   checkpoint.Source // open while users > 0
}

// Acquire keeps the folder from being closed, and opens the file for its first
// user.
func (f *storageFile) Acquire() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	guard := checkpoint.GuardOf(f.dir)
	if guard != nil {
		if err := guard.Acquire(); err != nil {
			return err
		}
	}
	if f.users == 0 {
		src, err := f.open()
		if err != nil {
			return firstFault(errors.Join(err, release(guard)))
		}
		f.src = src
	}
	f.users++
	return nil
}

func release(guard checkpoint.Pinned) error {
	if guard == nil {
		return nil
	}
	return guard.Release()
}

func (f *storageFile) open() (checkpoint.Source, error) {
	src, err := f.dir.Sibling(f.name)
	if err != nil {
		return nil, err
	}
	if src.Size() != f.size {
		err := fault.New(fault.Changed, "its size differs").In(src.Name()).
			Needs("a folder that nobody writes to", "wait until the writer is done, then open it again")
		return nil, firstFault(errors.Join(err, src.Close()))
	}
	return src, nil
}

// Release closes the file after its last user.
func (f *storageFile) Release() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := release(checkpoint.GuardOf(f.dir))
	if f.users--; f.users == 0 {
		err = errors.Join(err, f.src.Close())
		f.src = nil
	}
	return firstFault(err)
}

// ReadAt reads from the file, which it opens for this read when nobody has.
func (f *storageFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.Acquire(); err != nil {
		return 0, err
	}
	f.mu.Lock()
	src := f.src
	f.mu.Unlock()
	n, err := src.ReadAt(p, off)
	if closeErr := f.Release(); err == nil {
		err = closeErr
	}
	return n, err
}
