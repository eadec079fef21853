package pytorch

import (
	"io"
	"path"
	"slices"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// openOther opens archives without data.pkl.
func (z *zipOpener) openOther() (*checkpoint.Checkpoint, error) {
	if top, ok := z.exportTop(); ok {
		return z.openExport(top)
	}
	if top, ok := z.packageTop(); ok {
		return z.openPackage(top)
	}
	if top, ok := z.scriptModelTop(); ok {
		return z.openScriptModel(top)
	}
	if err := z.foreign(); err != nil {
		return nil, err
	}
	return z.openOnly()
}

// foreignZips are the kinds of zip archives that other programs make, told by
// their records.
var foreignZips = []struct {
	what   string
	record func(name string) bool
	all    bool // whether every record must be such
	cure   string
}{
	{"a TorchServe archive (MAR)", under("MAR-INF/"), false, "unpack it and open the .pt or .pth file inside"},
	{"a NumPy archive (.npz)", suffix(".npy"), true, "save its arrays with torch.save, or as safetensors"},
	{"a Keras model", named("model.weights.h5"), false, cureTorch},
	{"a Core ML package", suffix(".mlmodel"), false, "use the checkpoint that it was converted from"},
	{"an Office document", named("[Content_Types].xml"), false, cureRename},
	{"a Java archive", named("META-INF/MANIFEST.MF"), false, cureRename},
	{"a Python package (wheel)", suffix(".dist-info/WHEEL"), false, cureRename},
}

func under(folder string) func(string) bool {
	return func(name string) bool { return strings.HasPrefix(name, folder) }
}

func named(name string) func(string) bool {
	return func(have string) bool { return have == name }
}

func suffix(s string) func(string) bool {
	return func(name string) bool { return strings.HasSuffix(name, s) }
}

func (z *zipOpener) foreign() error {
	names := z.names()
	for _, f := range foreignZips {
		found := slices.ContainsFunc(names, f.record)
		if found && f.all {
			found = !slices.ContainsFunc(names, func(name string) bool { return !f.record(name) })
		}
		if found {
			return fault.New(fault.Unsupported, f.what).Needs("a checkpoint of PyTorch", f.cure)
		}
	}
	return nil
}

// files lists the records that a person put into the archive: no folders, no
// hidden files, none of the shadows of macOS.
func (z *zipOpener) files() []*entry {
	var files []*entry
	for _, i := range z.byPlace {
		e := &z.entries[i]
		hidden := strings.HasPrefix(path.Base(e.name), ".")
		if !e.isFolder() && !hidden && !strings.Contains("/"+e.name, "/__MACOSX/") {
			files = append(files, e)
		}
	}
	return files
}

// maxLook is how many files of an archive are looked into for a checkpoint.
const maxLook = 1000

// openOnly opens the one file of the archive that is a checkpoint itself.
func (z *zipOpener) openOnly() (*checkpoint.Checkpoint, error) {
	files := z.files()
	only, err := z.findOnly(files)
	if err != nil {
		return nil, err
	}
	inner, err := z.source(only)
	if err != nil {
		return nil, err
	}
	c, err := z.env.Open(z.ctx, checkpoint.Owned(inner, z.src))
	if err != nil {
		return nil, err
	}
	return inside(c, "zip"), nil
}

func (z *zipOpener) findOnly(files []*entry) (*entry, error) {
	switch {
	case len(files) == 0:
		return nil, fault.New(fault.Malformed, "a zip archive without files").Needs("a checkpoint of PyTorch", "get it again")
	case len(files) == 1 && files[0].size < minFile && !isCheckpointName(files[0].name):
		return nil, noneOf(files) // nothing was cut short: nobody said that it is a checkpoint
	case len(files) == 1:
		return files[0], nil // whatever it is: its own format will say
	case len(files) > maxLook:
		return nil, noneOf(files)
	}
	var found []*entry
	for _, e := range files {
		head, err := z.head(e)
		if err != nil {
			return nil, err
		}
		if looksLikeCheckpoint(head) {
			found = append(found, e)
		}
	}
	switch len(found) {
	case 0:
		return nil, noneOf(files)
	case 1:
		return found[0], nil
	default:
		return nil, fault.New(fault.Unsupported, "several checkpoints in a zip archive: "+entryNames(found)).
			Needs("one", "unpack it and open the one that you want")
	}
}

// isCheckpointName tells the names that people give to checkpoints.
func isCheckpointName(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle", ".tar", ".t7", ".pt2", ".ptl", ".distcp", ".model", ".zip", ".safetensors", ".gguf", ".cbor":
		return true
	}
	return false
}

func noneOf(files []*entry) error {
	return fault.New(fault.Unsupported, "a zip archive of "+count(len(files), "file")+" without a checkpoint: "+entryNames(files)).
		Needs("data.pkl, or one file that is a checkpoint", "unpack it and open the checkpoint inside, if there is one")
}

// entryNames lists the first few names.
func entryNames(files []*entry) string {
	var names []string
	for i, e := range files {
		if i == 5 {
			names = append(names, "…")
			break
		}
		names = append(names, fault.Clean(e.name, 60))
	}
	return strings.Join(names, ", ")
}

// head returns the first bytes of an entry, nil for one that cannot be read.
func (z *zipOpener) head(e *entry) ([]byte, error) {
	if z.usable(e) != nil {
		return nil, nil //nolint:nilerr // such a file is not the one
	}
	head := make([]byte, min(e.size, checkpoint.SniffLen))
	n, err := io.ReadFull(z.open(e), head)
	if fault.KindOf(err) == fault.IO {
		return nil, err
	}
	return head[:n], nil
}

// looksLikeCheckpoint reports whether a file's head is one of a checkpoint.
func looksLikeCheckpoint(head []byte) bool {
	for _, f := range Formats() {
		if _, isForeign := f.(foreignFormat); !isForeign && f.Sniff(head, nil) {
			return true
		}
	}
	return isSafetensors(head) || hasPrefix(head, "GGUF")
}

// source returns an entry as a source of its own: a section of the file where
// it is stored, else its bytes in memory.
func (z *zipOpener) source(e *entry) (checkpoint.Source, error) {
	if err := z.usable(e); err != nil {
		return nil, err
	}
	name := z.src.Name() + "/" + e.name
	if e.method == methodStored {
		return checkpoint.Section(z.src, z.data(e), e.size, name), nil
	}
	if err := checkInflate(e, z.env.Limits); err != nil {
		return nil, err
	}
	if most := inflateRoom(e.stored, z.env.Limits); e.size > most {
		return nil, inRecord(tooBig(e.size, e.stored, z.env.Limits), e.name, 0)
	}
	r := z.summed(e)
	var held chunks
	n, err := held.fill(&contextReader{z.ctx, r}, e.size)
	if err != nil {
		return nil, err
	}
	return checkpoint.NewReaderAt(name, &held, n), r.verify()
}
