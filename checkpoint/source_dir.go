package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wick-ml/wick/fault"
)

// OpenDir opens a directory as a [Folder]. Its files are mapped when opts ask
// for maps.
func OpenDir(name string, opts Options) (Folder, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, cannotOpen(name, err)
	}
	if !info.IsDir() {
		return nil, fault.New(fault.Usage, "a file").In(name).Needs("a folder", "")
	}
	return &folder{name: name, open: opts.openLocal(), limits: opts.Limits.Default()}, nil
}

func (o Options) openLocal() func(string) (Source, error) {
	if o.Mmap {
		return MapFile
	}
	return OpenFile
}

// folder is a directory of the operating system. It holds nothing open; being
// closed ends the reading of the files in it.
type folder struct {
	pin
	name   string
	open   func(string) (Source, error)
	limits Limits
}

// Name returns the name that the folder was opened by.
func (d *folder) Name() string { return d.name }

// Size returns 0: a folder has no bytes of its own.
func (d *folder) Size() int64 { return 0 }

// ReadAt fails.
func (d *folder) ReadAt([]byte, int64) (int, error) { return 0, folderBytes(d.name) }

// Acquire lets Close wait until Release.
func (d *folder) Acquire() error { return d.acquire(d.name) }

// Release ends the use.
func (d *folder) Release() error {
	d.release()
	return nil
}

// Close waits for running reads.
func (d *folder) Close() error { return d.close(func() error { return nil }) }

// Sibling opens a file in the folder.
func (d *folder) Sibling(name string) (Source, error) {
	if d.isClosed() {
		return nil, closedError(d.name)
	}
	path, err := siblingPath(d.name, name)
	if err != nil {
		return nil, err
	}
	return shard(d.open(path))
}

// List returns the files below the folder. Links to files are listed, as the
// folders of hub caches are made of them; links to folders are not entered, and
// neither are folders with a leading dot, where tools keep their own things.
func (d *folder) List() ([]string, error) {
	files, _, err := (&lister{name: d.name, limits: d.limits}).list(d.walk)
	return files, err
}

// ListAll is List with all that List passes over.
func (d *folder) ListAll() (files, elsewhere []string, err error) {
	return (&lister{name: d.name, limits: d.limits, all: true}).list(d.walk)
}

func (d *folder) walk(list *lister) error {
	root, err := filepath.EvalSymlinks(d.name) // WalkDir does not enter a link, be it the first
	if err != nil {
		return cannotOpen(d.name, err)
	}
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return cannotOpen(path, err)
		}
		if path == root {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return cannotOpen(path, err)
		}
		follow := func() (fs.FileInfo, error) { return os.Stat(path) }
		return list.add(filepath.ToSlash(rel), entry, follow, func() bool { return leadsInto(root, path) })
	})
}

func isLink(entry fs.DirEntry) bool { return entry.Type()&fs.ModeSymlink != 0 }

// leadsInto reports whether a link leads to something below the folder root.
func leadsInto(root, link string) bool {
	root, err := absolute(root)
	if err != nil {
		return false
	}
	target, err := absolute(link)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(root, target)
	return err == nil && filepath.IsLocal(rel)
}

// absolute is the path of what a name leads to, without links.
func absolute(name string) (string, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(name)
}

// lister collects the names of files under the limit.
type lister struct {
	name      string
	limits    Limits
	all       bool // what is hidden or no regular file too
	files     []string
	elsewhere []string // links to folders that are not below this one
}

// add takes an entry; follow says what a link leads to, and isInside whether that is
// where the walk comes by anyway.
func (l *lister) add(rel string, entry fs.DirEntry, follow func() (fs.FileInfo, error), isInside func() bool) error {
	if entry.IsDir() {
		if strings.HasPrefix(entry.Name(), ".") && !l.all {
			return fs.SkipDir
		}
		return nil
	}
	mode := entry.Type()
	if isLink(entry) {
		if to, err := follow(); err == nil {
			mode = to.Mode()
		}
	}
	switch {
	case mode.IsRegular():
		l.files = append(l.files, rel)
	case !l.all || mode.IsDir() && isInside():
	case mode.IsDir():
		l.elsewhere = append(l.elsewhere, rel)
	default: // such as a link to nothing, which opening it will tell
		l.files = append(l.files, rel)
	}
	return At("shards", int64(len(l.files)+len(l.elsewhere)), l.limits.Shards)
}

// list has walk add the entries of a folder, and returns them in order.
func (l *lister) list(walk func(*lister) error) (files, elsewhere []string, err error) {
	if err := walk(l); err != nil {
		return nil, nil, fault.InFile(err, l.name)
	}
	slices.Sort(l.files)
	return l.files, l.elsewhere, nil
}

func folderBytes(name string) error {
	return fault.New(fault.Usage, "a folder").In(name).Needs("a file", "a folder has no bytes of its own")
}

// OpenSibling is how a source opens a file of its folder, for implementations of
// [Siblings]: it refuses a name that leaves the folder, calls open, and makes
// of its [fs.ErrNotExist] an [fault.ErrNotFound] error about a part that is absent.
func OpenSibling(name string, open func(name string) (Source, error)) (Source, error) {
	if err := checkSibling(name); err != nil {
		return nil, err
	}
	return shard(open(name))
}

// siblingPath is the path of a slash-separated name below dir.
func siblingPath(dir, name string) (string, error) {
	if err := checkSibling(name); err != nil {
		return "", err
	}
	local := filepath.FromSlash(name)
	if !filepath.IsLocal(local) { // the system's own rules, such as NUL and COM1 of Windows
		return "", leavesFolder(name)
	}
	return filepath.Join(dir, local), nil
}

// checkSibling refuses names that leave their folder on any system, and the folder itself, so that a
// checkpoint is sound or not wherever it is read.
func checkSibling(name string) error {
	slashed := strings.ReplaceAll(name, `\`, "/")
	hasDrive := len(name) >= 2 && name[1] == ':' && (name[0]|0x20) >= 'a' && (name[0]|0x20) <= 'z'
	switch {
	case path.Clean(slashed) == ".", strings.ContainsRune(name, 0), strings.HasPrefix(slashed, "/"), hasDrive:
		return leavesFolder(name)
	case slices.Contains(strings.Split(slashed, "/"), ".."):
		return leavesFolder(name)
	default:
		return nil
	}
}

func leavesFolder(name string) error {
	return fault.New(fault.Malformed, "the file name "+name).
		Needs("a name inside the checkpoint's own folder", "the index is damaged or was made to deceive")
}

// shard turns the failure to open a file that a checkpoint names into what it
// is: a part of the checkpoint that is absent.
func shard(src Source, err error) (Source, error) {
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return src, err
	}
	e := fault.Wrap(fault.NotFound, "a file of the checkpoint is missing", fs.ErrNotExist)
	var inner *fault.Error
	if errors.As(err, &inner) {
		e.File = inner.File
	}
	return nil, e.Needs("all its files", "download the missing one into the same folder")
}
