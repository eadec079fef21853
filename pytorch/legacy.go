package pytorch

import (
	"context"
	"encoding/binary"
	"io"
	"math/big"
	"strconv"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
	"github.com/wick-ml/wick/tensor"
)

// legacyFormat is the container of torch 0.2 to 1.5, still written with
// _use_new_zipfile_serialization=False (torch/serialization.py, _legacy_save):
//
//	pickle  magic number
//	pickle  protocol version, 1001
//	pickle  system info
//	pickle  the object; storages are persistent ids
//	pickle  the list of storage keys
//	then for each key: int64 element count, the elements
//
// The elements are little-endian whatever the machine was: torch converts them
// (torch/csrc/serialization.cpp, THPStorage_writeFileRaw). The flag
// little_endian of the system info tells about the machine only. Versions
// before that took the count along wrote it in the machine's order.
type legacyFormat struct{}

// The magic number is 0x1950a86a20f9469cfc6c. How it is pickled depends on the
// protocol: as decimal text, as LONG1, or as LONG1 in a frame.
const (
	magicText = "L119547037146038801333356L\n."
	magicLong = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
	magicHex  = "1950a86a20f9469cfc6c"

	legacyProtocol = 1001
)

var legacyMagics = []string{
	magicText,
	"\x80\x02" + magicLong,
	"\x80\x03" + magicLong,
	"\x80\x04\x95\x0d\x00\x00\x00\x00\x00\x00\x00" + magicLong,
	"\x80\x05\x95\x0d\x00\x00\x00\x00\x00\x00\x00" + magicLong,
}

// Name returns "legacy".
func (legacyFormat) Name() string { return "legacy" }

// Sniff looks for the magic number; a file that ends inside it is one that was
// cut short.
func (legacyFormat) Sniff(head []byte, _ checkpoint.Source) bool {
	for _, magic := range legacyMagics {
		n := min(len(head), len(magic))
		if n >= minFile && string(head[:n]) == magic[:n] {
			return true
		}
	}
	return false
}

// Open reads the five pickles and the counts between the storages.
func (legacyFormat) Open(_ context.Context, src checkpoint.Source, env *checkpoint.Env) (*checkpoint.Checkpoint, error) {
	c := pickle.NewStream(io.NewSectionReader(src, 0, src.Size()))
	o := newLegacyOpener(src, env, &loader{limits: env.Limits, present: src.Size()}, c)
	root, err := o.read()
	if err != nil {
		return nil, err
	}
	o.info.Name, o.info.Format, o.info.Producer = src.Name(), "legacy", "torch"
	o.info.Storages, o.info.Globals = o.loader.storages, o.loader.globals
	return checkpoint.New(root, o.info, env.Following(src.Size()), src.Close)
}

// legacyOpener opens one file of stacked pickles.
type legacyOpener struct {
	src    checkpoint.Source
	env    *checkpoint.Env
	cursor *pickle.Cursor
	loader *loader
	named  map[string]*legacyStorage // by key
	info   checkpoint.Info
}

// legacyStorage is a storage that the object named.
type legacyStorage struct {
	ref     storageRef
	storage *tensor.Storage
	placed  bool
}

func newLegacyOpener(src checkpoint.Source, env *checkpoint.Env, l *loader, c *pickle.Cursor) *legacyOpener {
	o := &legacyOpener{src: src, env: env, cursor: c, named: map[string]*legacyStorage{}, loader: l}
	l.storage = o.storage
	return o
}

// read reads the pickles and places the storages behind them.
func (o *legacyOpener) read() (nested.Value, error) {
	if err := o.readHeader(); err != nil {
		return nil, err
	}
	o.loader.again = again(o.src, o.cursor.Offset())
	root, err := o.load("")
	if err != nil {
		return nil, err
	}
	return root, o.placeStorages()
}

// load reads the next pickle.
func (o *legacyOpener) load(record string) (nested.Value, error) {
	o.loader.record = record
	return o.loader.load(o.cursor)
}

func (o *legacyOpener) readHeader() error {
	magic, err := o.load("magic number")
	if err != nil {
		return err
	}
	want, _ := new(big.Int).SetString(magicHex, 16)
	if n, ok := magic.(nested.BigInt); !ok || n.Int.Cmp(want) != 0 {
		return fault.New(fault.Malformed, "the magic number "+nested.Repr(magic)).Needs("0x"+magicHex, fault.MadeToDeceive)
	}
	version, err := o.load("protocol version")
	if err != nil {
		return err
	}
	if version != nested.Int(legacyProtocol) {
		return fault.New(fault.Unsupported, "protocol version "+nested.Repr(version)).Needs(strconv.Itoa(legacyProtocol), "load it with the torch that wrote it, and save it again")
	}
	system, err := o.load("system info")
	if err != nil {
		return err
	}
	if m, ok := system.(*nested.Map); ok {
		if little, ok := m.Lookup("little_endian"); ok {
			o.info.Metadata = map[string]string{"little_endian": nested.Repr(little)}
		}
	}
	return nil
}

// storage makes a storage of the size that the pickle states. Whether the file
// has the bytes is proved by place, before anybody sees the storage.
func (o *legacyOpener) storage(ref storageRef) (*tensor.Storage, error) {
	size, ok := ref.Bytes()
	if !ok {
		return nil, badSize(ref, legacyName(ref.Key))
	}
	s := tensor.NewStorage(tensor.StorageSpec{Name: legacyName(ref.Key), Size: size, Order: tensor.LittleEndian})
	o.named[ref.Key] = &legacyStorage{ref: ref, storage: s}
	return s, nil
}

func badSize(ref storageRef, name string) error {
	return fault.New(fault.Malformed, "a storage of "+strconv.FormatInt(ref.Elements, 10)+" elements").
		InRecord(name).Needs("a size that fits", fault.MadeToDeceive)
}

func legacyName(key string) string { return "storage " + key }

// placeStorages walks over the storages, which follow one another in the order
// of the list of keys.
func (o *legacyOpener) placeStorages() error {
	keys, err := o.readKeys()
	if err != nil {
		return err
	}
	w := &window{src: o.src, end: o.src.Size()}
	at := o.cursor.Offset()
	for _, key := range keys {
		s := o.named[key]
		switch {
		case s == nil:
			return fault.New(fault.Malformed, "a storage that no tensor names").InRecord(legacyName(key)).At(at).
				Needs("a storage of the pickle", fault.MadeToDeceive)
		case s.placed:
			return fault.New(fault.Malformed, "a storage that stands twice").InRecord(legacyName(key)).At(at).Needs("one", fault.MadeToDeceive)
		}
		if at, err = o.place(s, w, at); err != nil {
			return err
		}
	}
	for _, s := range o.named {
		if !s.placed {
			return fault.New(fault.Malformed, "a storage that is missing").InRecord(s.storage.Name()).
				Needs("all storages that the pickle names", fault.MadeToDeceive)
		}
	}
	return nil
}

func (o *legacyOpener) readKeys() ([]string, error) {
	v, err := o.load("storage keys")
	if err != nil {
		return nil, err
	}
	list, ok := v.(*nested.List)
	if !ok {
		return nil, badKeys(v)
	}
	keys := make([]string, len(list.Items))
	for i, item := range list.Items {
		if keys[i], ok = storageKey(item); !ok {
			return nil, badKeys(item)
		}
	}
	return keys, nil
}

func badKeys(v nested.Value) error {
	return fault.New(fault.Malformed, "a "+nested.TypeName(v)).InRecord("storage keys").Needs("a list of texts", fault.MadeToDeceive)
}

// place proves that a storage lies at an offset, and returns the offset behind
// it.
func (o *legacyOpener) place(s *legacyStorage, w *window, at int64) (int64, error) {
	size := s.storage.Size()
	b, err := w.at(at, 8, size < headerWindow/headerClose)
	if err != nil {
		return 0, err
	}
	if len(b) < 8 || w.end-at-8 < size {
		return 0, fault.New(fault.Malformed, "the file is cut short: "+strconv.FormatInt(max(w.end-at, 0), 10)+" bytes are left").
			InRecord(s.storage.Name()).At(at).
			Needs(strconv.FormatInt(size, 10)+" bytes and their count", "the download is incomplete or was truncated; get it again")
	}
	little, native := binary.LittleEndian.Uint64(b), binary.BigEndian.Uint64(b)
	if want := uint64(s.ref.Elements); little != want && native != want {
		return 0, fault.New(fault.Malformed, strconv.FormatUint(little, 10)+" elements").InRecord(s.storage.Name()).At(at).
			Needs(strconv.FormatInt(s.ref.Elements, 10)+" as the pickle says", fault.MadeToDeceive)
	}
	spec := placed(o.src, at+8, size)
	s.storage.Settle(spec)
	s.placed = true
	o.info.Records = append(o.info.Records, checkpoint.Record{Name: s.storage.Name(), Offset: at + 8, Size: size, Stored: size})
	return at + 8 + size, nil
}

// placed describes size bytes at off of src, which were proved to exist.
func placed(src checkpoint.Source, off, size int64) tensor.StorageSpec {
	spec := tensor.StorageSpec{Size: size}
	spec.File, spec.Offset = checkpoint.Place(src, off)
	spec.Memory, _ = checkpoint.LentRange(src, off, size)
	if guard := checkpoint.GuardOf(src); guard != nil {
		spec.Guard = guard
	}
	return spec
}
