package pytorch

import (
	"context"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
	"github.com/wick-ml/wick/tensor"
)

// zipFormat is the container of torch 1.6 and later, and of TorchScript,
// torch.export and torch.package (caffe2/serialize/inline_container.cc): a zip
// file whose records lie in one folder of any name.
type zipFormat struct{}

// Name returns "zip".
func (zipFormat) Name() string { return "zip" }

// Sniff looks for a local header, or the end record of an empty archive.
func (zipFormat) Sniff(head []byte, _ checkpoint.Source) bool {
	return hasPrefix(head, "PK\x03\x04") || hasPrefix(head, "PK\x05\x06")
}

func hasPrefix(head []byte, prefix string) bool {
	return len(head) >= len(prefix) && string(head[:len(prefix)]) == prefix
}

// Open reads the directory, the local headers and the pickle.
func (zipFormat) Open(ctx context.Context, src checkpoint.Source, env *checkpoint.Env) (*checkpoint.Checkpoint, error) {
	a, err := readArchive(src, env.Limits)
	if err != nil {
		return nil, convertedZip(src, distributedPart(src, err))
	}
	if err := a.prove(); err != nil {
		return nil, err
	}
	z := &zipOpener{ctx: ctx, archive: a, env: env}
	top, found, err := a.top()
	if err != nil {
		return nil, err
	}
	if !found {
		return z.openOther()
	}
	z.top = top
	return z.openPickle()
}

// zipOpener opens one archive.
type zipOpener struct {
	*archive
	ctx   context.Context // of one call of Open
	env   *checkpoint.Env
	top   string // the folder of the records with its slash, "" for none
	order tensor.ByteOrder
	info  checkpoint.Info
}

// top finds the folder of the archive that holds data.pkl. Torch takes the folder
// of the directory's first record (init in inline_container.cc); where that
// holds none, the archive was packed by somebody else.
func (a *archive) top() (top string, found bool, err error) {
	if len(a.entries) == 0 {
		return "", false, nil
	}
	if dir, _, ok := strings.Cut(a.entries[0].name, "/"); ok && a.has(dir+"/data.pkl") {
		return dir + "/", true, nil
	}
	names := a.names()
	for i, name := range names {
		if dir, file := path.Split(name); fold(file) != file {
			names[i] = dir + fold(file)
		}
	}
	return findTop(names)
}

// findTop finds the folder that holds data.pkl among names in the order of
// their place. Of several the outermost counts, and among equals the one that
// the first record lies in. macOS keeps shadows of files in a folder __MACOSX.
func findTop(names []string) (top string, found bool, err error) {
	var tops []string
	for _, name := range names {
		if isMainPickle(name) {
			tops = append(tops, strings.TrimSuffix(name, "data.pkl"))
		}
	}
	if len(tops) == 0 {
		return "", false, nil
	}
	depth := func(dir string) int { return strings.Count(dir, "/") }
	least := depth(slices.MinFunc(tops, func(a, b string) int { return depth(a) - depth(b) }))
	tops = slices.DeleteFunc(tops, func(dir string) bool { return depth(dir) > least })
	for _, dir := range tops {
		if len(tops) == 1 || strings.HasPrefix(names[0], dir) {
			return dir, true, nil
		}
	}
	return "", false, fault.New(fault.Unsupported, "several checkpoints: "+strings.Join(tops, "data.pkl, ")+"data.pkl").
		Needs("one", "unpack the one that you want and open its folder")
}

// names lists the names of all records in the order of their place.
func (a *archive) names() []string {
	names := make([]string, len(a.byPlace))
	for k, i := range a.byPlace {
		names[k] = a.entries[i].name
	}
	return names
}

// openPickle opens what torch.save or torch.jit.save wrote.
func (z *zipOpener) openPickle() (*checkpoint.Checkpoint, error) {
	l := z.loader()
	root, err := z.tree(l)
	if err != nil {
		return nil, err
	}
	format := "zip"
	if z.has(z.top+"constants.pkl") || z.hasBelow(z.top+"code/") {
		format = "torchscript"
		err = z.addConstants(root, l)
	}
	if err != nil {
		return nil, err
	}
	return z.finish(root, format, l)
}

// tree reads the main pickle.
func (z *zipOpener) tree(l *loader) (nested.Value, error) {
	main, err := z.find(z.top + "data.pkl")
	if err != nil {
		return nil, err
	}
	if err := z.readOrder(); err != nil {
		return nil, err
	}
	return z.load(l, main)
}

// readOrder reads the record that says how the storages lie, which torch writes
// since 2.1. Files without it are from little-endian machines, or from
// big-endian ones that left no sign.
func (z *zipOpener) readOrder() error {
	text, err := z.readNote("byteorder")
	if err == nil && text == "" {
		err = z.anyFault()
	}
	if err == nil {
		z.order, err = parseOrder(text, z.top+"byteorder")
	}
	return err
}

// anyFault is the first fault of an entry, nil if all are sound. In a file
// without a byte order, any damaged entry may have been it.
func (a *archive) anyFault() error {
	for _, i := range a.byPlace {
		err := a.faults[i]
		if e := &a.entries[i]; a.late != nil && e.size <= int64(len("little")) { // longer ones are not it
			_, err = a.late.locate(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func parseOrder(text, record string) (tensor.ByteOrder, error) {
	switch text {
	case "", "little":
		return tensor.LittleEndian, nil
	case "big":
		return tensor.BigEndian, nil
	default:
		return tensor.LittleEndian, fault.New(fault.Malformed, "byte order "+strconv.Quote(text)).InRecord(record).
			Needs("little or big", fault.MadeToDeceive)
	}
}

// maxNote is the most bytes that a record with one word or number may have.
const maxNote = 4096

// readNote returns the text of a small record, "" if there is none.
func (z *zipOpener) readNote(name string) (string, error) {
	e, err := z.find(z.top + name)
	if err != nil || e == nil {
		return "", err
	}
	b, err := z.read(e, maxNote, z.env.Limits)
	return strings.TrimSpace(string(b)), err
}

// loader returns a loader whose storages are the records of the folder data.
func (z *zipOpener) loader() *loader { return z.loaderBelow("data/") }

func (z *zipOpener) loaderBelow(folder string) *loader {
	return &loader{
		limits:  z.env.Limits,
		storage: func(ref storageRef) (*tensor.Storage, error) { return z.storageAt(z.top + folder + ref.Key) },
	}
}

// storageAt returns the storage in the record with the full name.
func (z *zipOpener) storageAt(name string) (*tensor.Storage, error) {
	e, err := z.find(name)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, fault.New(fault.Malformed, "no record "+strings.TrimPrefix(name, z.top)+": it is missing").InRecord(name).
			Needs("a record for every storage of the pickle", "the file is damaged or incomplete; get it again")
	}
	return z.storage(e, z.order, z.env.Limits)
}

// load reads a pickle record and checks its checksum, also when it cannot be
// understood: then a wrong checksum is the better reason.
func (z *zipOpener) load(l *loader, e *entry) (nested.Value, error) {
	if err := z.usable(e); err != nil {
		return nil, err
	}
	if err := checkInflate(e, z.env.Limits); err != nil {
		return nil, err
	}
	if err := checkpoint.At("pickle bytes", e.size, z.env.Limits.PickleBytes); err != nil {
		return nil, inRecord(err, e.name, 0)
	}
	if e.method != methodStored && e.size > inflateRoom(e.stored, z.env.Limits) { // small files must end soon
		return nil, inRecord(tooBig(e.size, e.stored, z.env.Limits), e.name, 0)
	}
	r := z.summed(e)
	l.record, l.present, l.again = e.name, e.stored, nil
	if e.method == methodStored && !checkpoint.IsDistant(z.src) {
		l.again = func() io.Reader { return z.open(e) }
	}
	root, err := l.load(pickle.NewStream(r))
	if fault.KindOf(err) == fault.Limit {
		return nil, err
	}
	sumErr := r.verify()
	isSum := fault.KindOf(sumErr) == fault.Checksum
	switch {
	case sumErr == nil || (err != nil && !isSum):
		e.used = sumErr == nil
		return root, err
	case isSum && z.env.Salvage && err == nil:
		z.note("salvaged", sumErr.Error())
		return root, nil
	default:
		return nil, sumErr
	}
}

// finish makes the checkpoint, which owns the source from here on.
func (z *zipOpener) finish(root nested.Value, format string, l *loader) (*checkpoint.Checkpoint, error) {
	z.info.Name, z.info.Format, z.info.Order = z.src.Name(), format, z.order
	z.info.Producer = "torch"
	z.info.Records = z.records()
	if l != nil {
		z.info.Storages, z.info.Globals = l.storages, l.globals
	}
	for _, name := range []string{"version", ".data/version", ".format_version", ".storage_alignment", ".data/serialization_id"} {
		text, err := z.readNote(name)
		if err == nil && text != "" { // what one of them says matters to nobody's values
			z.note(path.Base(name), text)
		}
	}
	z.info.Rest = append(z.info.Rest, z.rest(z.env.Limits)...)
	return checkpoint.New(root, z.info, z.env.Following(z.src.Size()), z.src.Close)
}

func (z *zipOpener) note(key, text string) {
	if z.info.Metadata == nil {
		z.info.Metadata = map[string]string{}
	}
	if _, known := z.info.Metadata[key]; !known {
		z.info.Metadata[key] = text
	}
}
