package pytorch

import (
	"io"
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
	if top, ok := z.storagesTop(); ok {
		return nil, fault.New(fault.Malformed, "no record data.pkl: it is missing").InRecord(top+"data.pkl").
			Needs("the pickle that says what the storages are of", "the file is damaged or incomplete; get it again")
	}
	return z.openOnly()
}

// storagesTop finds the folder in which torch.save left its version and
// storages.
func (z *zipOpener) storagesTop() (string, bool) {
	for _, name := range z.names() {
		top, isVersion := strings.CutSuffix(name, "version")
		if isVersion && (top == "" || strings.HasSuffix(top, "/")) && z.hasBelow(top+"data/") {
			return top, true
		}
	}
	return "", false
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
	{"a zip archive with backslashes in its names, as old tools of Windows write", suffix(`\data.pkl`), false, "unpack it, and open the folder with data.pkl"},
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

// files lists the records that a person put into the archive.
func (z *zipOpener) files() []*entry {
	var files []*entry
	for _, i := range z.byPlace {
		if e := &z.entries[i]; !e.isFolder() && !isShadow(e.name) {
			files = append(files, e)
		}
	}
	return files
}

// openOnly opens the one file of the archive that is a checkpoint itself.
func (z *zipOpener) openOnly() (*checkpoint.Checkpoint, error) {
	files := z.files()
	only, err := findOnly("zip", packedEntries(z, files))
	if err != nil {
		return nil, err
	}
	inner, err := z.source(files[only])
	if err != nil {
		return nil, err
	}
	c, err := z.env.Open(z.ctx, checkpoint.Owned(inner, z.src))
	if err != nil {
		return nil, err
	}
	c.Info.Rest = append(c.Info.Rest, z.rest(z.env.Limits)...) // the file itself too, where it is stored: its checksum is another
	return inside(c, "zip"), nil
}

func packedEntries(z *zipOpener, files []*entry) []packed {
	list := make([]packed, len(files))
	for i, e := range files {
		list[i] = packed{e.name, e.size, func() ([]byte, error) { return z.head(e) }}
	}
	return list
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
	if err == nil {
		err = r.verify()
	}
	if err != nil {
		return nil, err
	}
	e.used = true
	return checkpoint.NewReaderAt(name, &held, n), nil
}
