package pytorch

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
	"github.com/wick-ml/wick/tensor"
)

// tarFormat is the container of torch 0.1, a tar file of four members
// (torch/serialization.py, legacy_load inside _legacy_load), or any tar around
// one checkpoint:
//
//	sys_info  pickle: protocol version 1000 and the machine
//	storages  pickle n; n times: pickle (key, location, class), int64 count,
//	          elements; pickle of views [(key, root key, offset, elements)]
//	tensors   pickle n; n times: pickle (key, storage key, class), int32 ndim,
//	          4 bytes, ndim sizes, ndim strides, offset, each int64
//	pickle    the object; tensors and storages are persistent ids, the text of
//	          their keys
type tarFormat struct{}

var tarMembers = []string{"sys_info", "storages", "tensors", "pickle"}

// Name returns "tar".
func (tarFormat) Name() string { return "tar" }

// Sniff takes every tar: which of them is a checkpoint, its members say.
func (tarFormat) Sniff(head []byte, _ checkpoint.Source) bool { return isTar(head) }

func isTarMember(name string) bool { return slices.Contains(tarMembers, name) }

// Open reads everything but the elements, or opens the one file that is a
// checkpoint itself.
func (tarFormat) Open(ctx context.Context, src checkpoint.Source, env *checkpoint.Env) (*checkpoint.Checkpoint, error) {
	head, err := checkpoint.Head(src)
	if err != nil {
		return nil, err
	}
	if (legacyFormat{}).Sniff(head, src) {
		return nil, fault.New(fault.Malformed, "a tar archive that is stacked pickles as well").Needs("one of both", fault.MadeToDeceive)
	}
	o := &tarOpener{src: src, env: env, members: map[string]*tarMember{}, storages: map[string]*tarStorage{}, tensors: map[string]*nested.Tensor{}}
	o.loader = &loader{limits: env.Limits, present: src.Size(), object: o.object}
	if err := o.readMembers(); errors.Is(err, errPacked) {
		return openTarred(ctx, src, env)
	} else if err != nil {
		return nil, err
	}
	for _, step := range []func() error{o.readStorages, o.readTensors} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	root, err := o.readObject()
	if err != nil {
		return nil, err
	}
	o.info.Name, o.info.Format, o.info.Producer = src.Name(), "tar", "torch"
	o.info.Globals = o.loader.globals
	return checkpoint.New(root, o.info, env.Following(src.Size()), src.Close)
}

// tarOpener opens one tar file.
type tarOpener struct {
	src      checkpoint.Source
	env      *checkpoint.Env
	loader   *loader
	members  map[string]*tarMember
	storages map[string]*tarStorage    // by key, views too
	tensors  map[string]*nested.Tensor // by key
	info     checkpoint.Info
}

// tarMember is a file in the tar, read from its beginning to its end.
type tarMember struct {
	name string
	src  checkpoint.Source
	base int64 // of the member's first byte in src
	size int64
	at   int64 // of what is read next, in the member
}

// tarStorage is a storage, or a window of one, which for torch is a storage
// that begins elsewhere.
type tarStorage struct {
	ref     storageRef
	class   string
	storage *tensor.Storage
	off     int64 // of the first byte in the file
	isView  bool
	node    *nested.Tensor // once the object has named it
}

// tarFiles lists the members of a tar.
func tarFiles(src checkpoint.Source, limits checkpoint.Limits, each func(*tarHeader) error) error {
	r := newTarReader(src, limits)
	for n := int64(1); ; n++ {
		h, err := r.next()
		if err != nil || h == nil {
			return err
		}
		if err := checkpoint.At("records", n, limits.Records); err != nil {
			return err
		}
		h.name = strings.TrimPrefix(h.name, "./")
		if err := each(h); err != nil {
			return err
		}
	}
}

// badTar is the fault of a header; cut says that bytes are missing.
func badTar(cut error) error {
	if cut != nil {
		return fault.New(fault.Malformed, "a tar file that is cut short").
			Needs("a whole file", "the download is incomplete or was truncated; get it again")
	}
	return fault.New(fault.Malformed, "a tar header that makes no sense").Needs("a sound tar file", fault.MadeToDeceive)
}

func (o *tarOpener) readMembers() error {
	var odd error
	err := tarFiles(o.src, o.env.Limits, func(h *tarHeader) error {
		switch {
		case h.odd != "":
			odd = cmp.Or(odd, error(fault.New(fault.Malformed, "a member "+h.odd).InRecord(h.name).At(h.off).Needs("plain files", fault.MadeToDeceive)))
		case o.members[h.name] != nil:
			odd = cmp.Or(odd, error(fault.New(fault.Malformed, "two members of one name").InRecord(h.name).At(h.off).Needs("one", fault.MadeToDeceive)))
		}
		o.members[h.name] = &tarMember{name: h.name, src: o.src, base: h.off, size: h.size}
		o.info.Records = append(o.info.Records, checkpoint.Record{Name: h.name, Offset: h.off, Size: h.size, Stored: h.size})
		return nil
	})
	if err != nil {
		return err
	}
	return o.whole(odd)
}

// errPacked says that a tar has none of the members of torch 0.1.
var errPacked = errors.New("a tar of other files")

// whole fails where members are missing, or odd: readers would differ on what they
// hold.
func (o *tarOpener) whole(odd error) error {
	has := func(name string) bool { return o.members[name] != nil }
	if !slices.ContainsFunc(tarMembers, has) {
		return errPacked
	}
	if odd != nil {
		return odd
	}
	for _, name := range tarMembers[1:] {
		if !has(name) {
			return fault.New(fault.Malformed, "no member "+name).InRecord(name).
				Needs("the members "+strings.Join(tarMembers, ", "), fault.MadeToDeceive)
		}
	}
	return nil
}

// load reads the next pickle of a member.
func (o *tarOpener) load(m *tarMember) (nested.Value, error) {
	c := pickle.NewStream(io.NewSectionReader(o.src, m.base+m.at, m.size-m.at))
	c.Skip(m.at)
	o.loader.record = m.name
	v, err := o.loader.load(c)
	m.at = c.Offset()
	return v, err
}

// count reads the pickle of an integer that is not negative.
func (o *tarOpener) count(m *tarMember) (int64, error) {
	v, err := o.load(m)
	if err != nil {
		return 0, err
	}
	n, ok := v.(nested.Int)
	if !ok || n < 0 {
		return 0, m.bad("a count that is "+nested.Repr(v), "a number")
	}
	return int64(n), nil
}

// tuple reads the pickle of a tuple of three: two keys, or a key and a place,
// and a class.
func (o *tarOpener) tuple(m *tarMember) (key, second, class string, err error) {
	v, err := o.load(m)
	if err != nil {
		return "", "", "", err
	}
	t, ok := v.(*nested.List)
	if !ok || len(t.Items) != 3 {
		return "", "", "", m.bad("a "+nested.TypeName(v), "a tuple of key, second and class")
	}
	key, isKey := storageKey(t.Items[0])
	second, isSecond := storageKey(t.Items[1])
	symbol, isClass := t.Items[2].(nested.Symbol)
	if !isKey || !isSecond || !isClass {
		return "", "", "", m.bad("the tuple "+nested.Repr(t), "key, text or key, class")
	}
	return key, second, symbol.Text, nil
}

// take returns the next n bytes of a member.
func (m *tarMember) take(n int64) ([]byte, error) {
	if n > m.size-m.at {
		return nil, m.bad(strconv.FormatInt(m.size-m.at, 10)+" bytes before its end", strconv.FormatInt(n, 10)+" bytes more")
	}
	b := make([]byte, n)
	err := readFull(m.src, b, m.base+m.at)
	m.at += n
	return b, err
}

func (m *tarMember) bad(found, need string) error {
	return fault.New(fault.Malformed, found).InRecord(m.name).At(m.at).Needs(need, fault.MadeToDeceive)
}

func (o *tarOpener) readStorages() error {
	m := o.members["storages"]
	n, err := o.count(m)
	if err != nil {
		return err
	}
	for range n {
		if err := o.readStorage(m); err != nil {
			return err
		}
	}
	views, err := o.load(m)
	if err != nil {
		return err
	}
	list, ok := views.(*nested.List)
	if !ok {
		return m.bad("a "+nested.TypeName(views), "a list of views")
	}
	for _, v := range list.Items {
		if err := o.addView(m, v); err != nil {
			return err
		}
	}
	return nil
}

func (o *tarOpener) readStorage(m *tarMember) error {
	key, device, class, err := o.tuple(m)
	if err != nil {
		return err
	}
	b, err := m.take(8)
	if err != nil {
		return err
	}
	dtype, untyped, ok := storageType(class)
	ref := storageRef{Key: key, DType: dtype, Untyped: untyped, Device: device, Elements: int64(binary.LittleEndian.Uint64(b))}
	size, fits := ref.Bytes()
	switch {
	case !ok:
		return m.bad("a storage of class "+class, "a storage class of torch")
	case !fits || size > m.size-m.at:
		return m.bad("a storage of "+strconv.FormatInt(ref.Elements, 10)+" elements", "a size that the file has")
	case o.storages[key] != nil:
		return m.bad("two storages with key "+key, "one")
	}
	s := &tarStorage{ref: ref, class: class, off: m.base + m.at}
	m.at += size
	o.addStorage(key, s, size)
	o.info.Storages = append(o.info.Storages, s.storage)
	return nil
}

func (o *tarOpener) addStorage(key string, s *tarStorage, size int64) {
	spec := placed(o.src, s.off, size)
	spec.Name, spec.Order = "storages/"+key, tensor.LittleEndian
	s.storage = tensor.NewStorage(spec)
	o.storages[key] = s
}

// addView adds a window of a storage, (key, root key, offset, elements).
func (o *tarOpener) addView(m *tarMember, v nested.Value) error {
	t, ok := v.(*nested.List)
	if !ok || len(t.Items) != 4 {
		return m.bad("a view that is "+nested.Repr(v), "(key, root key, offset, elements)")
	}
	key, ok := storageKey(t.Items[0])
	view, isView := viewID(nested.NewList("tuple", t.Items[1:]...))
	if !ok || !isView || view == nil || o.storages[key] != nil || o.storages[view.Key] == nil || o.storages[view.Key].isView {
		return m.bad("a view that is "+nested.Repr(v), "a new key, the key of a storage, offset, elements")
	}
	root := o.storages[view.Key]
	s := &tarStorage{ref: root.ref, class: root.class, isView: true}
	s.ref.Elements = view.Elements
	start, fits := storageBytes(s.ref.DType, view.Offset)
	size, fits2 := s.ref.Bytes()
	if !fits || !fits2 || start > root.storage.Size() || size > root.storage.Size()-start {
		return m.bad("a view that is "+nested.Repr(v), "a window inside its storage of "+strconv.FormatInt(root.storage.Size(), 10)+" bytes")
	}
	s.off = root.off + start
	o.addStorage(key, s, size)
	return nil
}

func (o *tarOpener) readTensors() error {
	m := o.members["tensors"]
	n, err := o.count(m)
	if err != nil {
		return err
	}
	for range n {
		if err := o.readTensor(m); err != nil {
			return err
		}
	}
	return nil
}

func (o *tarOpener) readTensor(m *tarMember) error {
	key, storageKey, _, err := o.tuple(m)
	if err != nil {
		return err
	}
	s := o.storages[storageKey]
	if s == nil || o.tensors[key] != nil {
		return m.bad("a tensor with key "+key+" over storage "+storageKey, "a new key, and a storage")
	}
	b, err := m.take(8) // torch wrote an int32 and, by mistake, four bytes more
	if err != nil {
		return err
	}
	ndim := int64(int32(binary.LittleEndian.Uint32(b)))
	if ndim < 0 || ndim > tensor.MaxDims {
		return m.bad(strconv.FormatInt(ndim, 10)+" dimensions", "0 to "+strconv.Itoa(tensor.MaxDims))
	}
	if b, err = m.take(16*ndim + 8); err != nil {
		return err
	}
	numbers := make([]int64, 2*ndim+1)
	for i := range numbers {
		numbers[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	spec := tensor.Spec{Shape: numbers[:ndim], Strides: numbers[ndim : 2*ndim], Offset: numbers[2*ndim]}
	if ndim == 0 && s.storage.Size() == 0 {
		spec.Shape, spec.Strides = []int64{0}, []int64{1} // before torch 0.4 no dimension meant no element
	}
	o.tensors[key] = s.lay(spec, "torch.Tensor")
	return nil
}

// lay returns a tensor over the storage, or one without bytes that says why.
func (s *tarStorage) lay(spec tensor.Spec, class string) *nested.Tensor {
	spec.Storage, spec.DType = s.storage, s.ref.DType
	t, err := tensor.New(spec)
	if err != nil {
		t = unavailable(spec, err)
	}
	return &nested.Tensor{Tensor: t, Class: class, Device: s.ref.Device}
}

func (o *tarOpener) readObject() (nested.Value, error) {
	return o.load(o.members["pickle"])
}

// object resolves a persistent id: the key of a tensor or a storage, as a
// number or as text, or (class, source file, source text) for a module's class.
func (o *tarOpener) object(id nested.Value) (nested.Value, error) {
	if t, ok := id.(*nested.List); ok && len(t.Items) > 0 {
		return t.Items[0], nil
	}
	key, _ := storageKey(id)
	if t := o.tensors[key]; t != nil {
		return t, nil
	}
	s := o.storages[key]
	if s == nil {
		return nil, badPersistent(id)
	}
	if s.node == nil {
		s.node = s.lay(tensor.Spec{Shape: []int64{s.ref.Elements}}, s.class)
	}
	return s.node, nil
}
