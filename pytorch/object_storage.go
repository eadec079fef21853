package pytorch

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// storageDTypes are the dtypes of typed storages by the names that torch saves
// (torch/storage.py, _dtype_to_storage_type_map).
var storageDTypes = map[string]tensor.DType{
	"DoubleStorage": tensor.F64, "FloatStorage": tensor.F32, "HalfStorage": tensor.F16, "BFloat16Storage": tensor.BF16,
	"LongStorage": tensor.I64, "IntStorage": tensor.I32, "ShortStorage": tensor.I16, "CharStorage": tensor.I8,
	"ByteStorage": tensor.U8, "BoolStorage": tensor.Bool, "ComplexDoubleStorage": tensor.C128,
	"ComplexFloatStorage": tensor.C64, "ComplexHalfStorage": tensor.C32, "QInt8Storage": tensor.QI8, "QUInt8Storage": tensor.QU8,
	"QInt32Storage": tensor.QI32, "QUInt4x2Storage": tensor.QU4x2, "QUInt2x4Storage": tensor.QU2x4,
}

// storageType reads the class of a storage: torch.FloatStorage,
// torch.cuda.FloatStorage, torch.storage.UntypedStorage, _UntypedStorage …
func storageType(class string) (d tensor.DType, untyped, ok bool) {
	name := class[strings.LastIndexByte(class, '.')+1:]
	if name == "UntypedStorage" || name == "_UntypedStorage" {
		d, untyped = tensor.U8, true
	} else {
		d = storageDTypes[name]
	}
	return d, untyped, d.Valid() && strings.HasPrefix(class, "torch.")
}

// storageClass is a class that was read; a file has few.
type storageClass struct {
	text    string
	dtype   tensor.DType
	untyped bool
}

// storageSlot is a storage of the container, once resolved. Nearly every storage
// is used in one way: the first has its place here.
type storageSlot struct {
	storage *tensor.Storage
	err     error
	first   storageEntry
	more    []*storageEntry
}

// storageSlots finds slots by their keys. torch numbers the storages of a zip
// file from zero, in the order in which it meets them: those need no map. The
// keys of legacy files are addresses.
type storageSlots struct {
	near  []*storageSlot
	far   map[string]*storageSlot
	spare []storageSlot
}

// get returns the slot of a key, and whether it was there before.
func (s *storageSlots) get(key string) (slot *storageSlot, known bool) {
	at := numberKey(key)
	if at >= 0 && at < len(s.near) && s.near[at] != nil {
		return s.near[at], true
	}
	if slot, known = s.far[key]; known {
		return slot, true
	}
	slot = s.next()
	if at >= 0 && at <= len(s.near) {
		s.near = append(s.near[:at], slot)
		return slot, false
	}
	if s.far == nil {
		s.far = map[string]*storageSlot{}
	}
	s.far[key] = slot
	return slot, false
}

// known reports whether there is a slot of a key.
func (s *storageSlots) known(key string) bool {
	at := numberKey(key)
	return at >= 0 && at < len(s.near) && s.near[at] != nil || s.far[key] != nil
}

// next cuts a slot from a block of them.
func (s *storageSlots) next() *storageSlot {
	const block = 32
	if len(s.spare) == 0 {
		s.spare = make([]storageSlot, min(block, len(s.near)+1))
	}
	slot := &s.spare[0]
	s.spare = s.spare[1:]
	return slot
}

// numberKey returns the number that a key spells in torch's way, -1 if none.
func numberKey(key string) int {
	if len(key) == 0 || len(key) > 9 || (key[0] == '0' && len(key) > 1) {
		return -1
	}
	n := 0
	for i := range len(key) {
		if key[i] < '0' || key[i] > '9' {
			return -1
		}
		n = 10*n + int(key[i]-'0')
	}
	return n
}

// storageEntry is a storage as one persistent id sees it: with a dtype, and
// whole or a window. It stands in the Attrs of the tensor that represents the
// storage in the tree, until that tensor is laid out; see [loader.finish].
type storageEntry struct {
	nested.None // makes it a Value
	ref         storageRef
	storage     *tensor.Storage // nil with err
	err         error
	start, end  int64 // the window in bytes
	node        nested.Tensor
}

func badPersistent(id nested.Value) error {
	return fault.New(fault.Malformed, "a persistent id that is a "+nested.TypeName(id)+": "+nested.Repr(id)).
		Needs("('storage', class, key, device, size)", fault.MadeToDeceive)
}

// persistent resolves a persistent id.
func (l *loader) persistent(id nested.Value) (nested.Value, error) {
	t, ok := id.(*nested.List)
	if !ok || t.Class != "tuple" || len(t.Items) < 2 {
		return l.otherObject(id)
	}
	switch asciiText(t.Items[0]) {
	case "storage":
		ref, err := l.storageID(t)
		if err != nil {
			return nil, err
		}
		return l.storageNode(ref, l.class.text), nil
	case "module": // ('module', class, source file, source text) stands for the class
		return t.Items[1], nil
	}
	return l.otherObject(id)
}

// otherObject resolves an id that only the container knows. It may keep the id.
func (l *loader) otherObject(id nested.Value) (nested.Value, error) {
	if l.object == nil {
		return nil, badPersistent(id)
	}
	if t, ok := id.(*nested.List); ok {
		id = t.Clone()
	}
	return l.object(id)
}

// asciiText returns text that Python 2 may have written as bytes.
func asciiText(v nested.Value) string {
	switch v := v.(type) {
	case nested.String:
		return string(v)
	case nested.Bytes:
		return string(v)
	}
	return ""
}

// storageID reads ('storage', class, key, device, size) and, in legacy files,
// a sixth item: None or (view key, offset, size).
func (l *loader) storageID(t *nested.List) (storageRef, error) {
	var ref storageRef
	if len(t.Items) < 5 || len(t.Items) > 6 {
		return ref, badPersistent(t)
	}
	class, ok := t.Items[1].(nested.Symbol)
	if !ok {
		return ref, badPersistent(t)
	}
	if class.Text != l.class.text {
		d, untyped, ok := storageType(class.Text)
		if !ok {
			return ref, fault.New(fault.Unsupported, "a storage of class "+class.Text).Needs("a storage class of torch", "the file is damaged, or of a program with storages of its own: save it again with plain tensors")
		}
		l.class = storageClass{class.Text, d, untyped}
	}
	ref.DType, ref.Untyped = l.class.dtype, l.class.untyped
	ref.Key, ok = storageKey(t.Items[2])
	n, isInt := t.Items[4].(nested.Int)
	if ref.Elements = int64(n); !ok || !isInt || n < 0 {
		return ref, badPersistent(t)
	}
	ref.Device = asciiText(t.Items[3])
	if len(t.Items) == 6 {
		ref.View, ok = viewID(t.Items[5])
		if !ok {
			return ref, badPersistent(t)
		}
	}
	return ref, nil
}

func storageKey(v nested.Value) (string, bool) {
	if n, ok := v.(nested.Int); ok {
		return strconv.FormatInt(int64(n), 10), true
	}
	key := asciiText(v)
	return key, key != ""
}

func viewID(v nested.Value) (*storageView, bool) {
	if _, ok := v.(nested.None); ok {
		return nil, true
	}
	t, ok := v.(*nested.List)
	if !ok || len(t.Items) != 3 {
		return nil, false
	}
	key, ok := storageKey(t.Items[0])
	offset, isInt := t.Items[1].(nested.Int)
	size, isInt2 := t.Items[2].(nested.Int)
	if !ok || !isInt || !isInt2 || offset < 0 || size < 0 {
		return nil, false
	}
	return &storageView{Key: key, Offset: int64(offset), Elements: int64(size)}, true
}

// storageNode returns the value of a storage, the same one for the same id.
func (l *loader) storageNode(ref storageRef, class string) nested.Value {
	l.waiting = true
	slot, known := l.slots.get(ref.Key)
	if !known {
		l.resolve(slot, ref)
		return slot.first.begin(ref, class, slot, l.clash(ref))
	}
	if slot.first.ref.same(ref) {
		return &slot.first.node
	}
	for _, e := range slot.more {
		if e.ref.same(ref) {
			return &e.node
		}
	}
	e := &storageEntry{}
	slot.more = append(slot.more, e)
	return e.begin(ref, class, slot, l.clash(ref))
}

// clash refuses a key with two meanings. Torch keeps storages and views by their
// keys in one table and takes what it met first, whatever the next id says of it
// (torch/serialization.py, persistent_load in _legacy_load).
func (l *loader) clash(ref storageRef) error {
	if l.views == nil && ref.View == nil {
		return nil
	}
	key := ref.Key
	_, twice := l.views[key]
	if v := ref.View; v != nil && !twice {
		have, known := l.views[v.Key]
		key, twice = v.Key, l.slots.known(v.Key) || known && !(have.Key == ref.Key && have.same(ref))
	}
	if twice {
		return fault.New(fault.Malformed, "key "+strconv.Quote(key)+" of two storages or views").
			InRecord(legacyName(ref.Key)).Needs("one for each key", fault.MadeToDeceive)
	}
	if l.views == nil {
		l.views = map[string]storageRef{}
	}
	if ref.View != nil {
		l.views[key] = ref
	}
	return nil
}

// begin fills an entry.
func (e *storageEntry) begin(ref storageRef, class string, slot *storageSlot, clash error) *nested.Tensor {
	e.ref, e.storage, e.err = ref, slot.storage, cmp.Or(slot.err, clash)
	e.bound()
	e.node = nested.Tensor{Class: class, Device: ref.Device, Attrs: e}
	return &e.node
}

// same reports whether two ids of one key ask for the same.
func (r storageRef) same(o storageRef) bool {
	if r.DType != o.DType || r.Untyped != o.Untyped || r.Elements != o.Elements {
		return false
	}
	if r.View == nil || o.View == nil {
		return r.View == o.View
	}
	return *r.View == *o.View
}

// resolve asks the container for a storage.
func (l *loader) resolve(slot *storageSlot, ref storageRef) {
	switch {
	case ref.Device == "meta":
		slot.err = noData()
	case l.storage == nil:
		slot.err = fault.New(fault.NotFound, "no storage "+ref.Key).Needs("the container that the pickle was taken from", "")
	default:
		slot.storage, slot.err = l.storage(ref)
	}
	if slot.err == nil {
		l.storages = append(l.storages, slot.storage)
	} else if fault.KindOf(slot.err) == fault.IO {
		l.fatal = slot.err
	}
}

func noData() error {
	return fault.New(fault.NoData, "a tensor of the meta device").Needs("a tensor with data", "save the model after it was given data")
}

// bound checks that the storage holds what the id says, and finds the window.
func (e *storageEntry) bound() {
	size, ok := e.ref.Bytes()
	e.end = size
	if v := e.ref.View; v != nil && ok {
		var fits bool
		e.start, ok = storageBytes(e.ref.DType, v.Offset)
		e.end, fits = storageBytes(e.ref.DType, v.Elements)
		ok = ok && fits && e.end <= size && e.start <= size-e.end
		e.end += e.start
	}
	switch {
	case e.err != nil:
	case !ok:
		e.err = fault.New(fault.Malformed, "a storage of "+strconv.FormatInt(e.ref.Elements, 10)+" elements with a view outside of it").
			Needs("a view inside the storage", fault.MadeToDeceive)
	case e.storage.Size() < size:
		e.err = fault.New(fault.Malformed, strconv.FormatInt(e.storage.Size(), 10)+" bytes where the pickle says "+
			strconv.FormatInt(size, 10)).InRecord(e.storage.Name()).
			Needs("a record as long as its storage", fault.CutShort)
	}
	if e.err != nil {
		e.storage = nil
	}
}

// lay returns a tensor over the window, or one without bytes that says why.
// The spec's Storage is set here; its Offset counts from the window's start.
func (e *storageEntry) lay(maker *tensor.Maker, spec tensor.Spec) *tensor.Tensor {
	if e.err != nil {
		return unavailable(spec, e.err)
	}
	spec.Storage = e.storage
	if e.start > 0 {
		size := int64(max(spec.DType.Size(), 1))
		if e.start%size != 0 || spec.Offset < 0 || spec.Offset > e.end {
			return unavailable(spec, fault.New(fault.Malformed, "a view that begins inside an element").InRecord(e.storage.Name()).
				Needs("whole elements", fault.MadeToDeceive))
		}
		spec.Offset += e.start / size
	}
	if e.end < e.storage.Size() { // the window binds, not the record
		window := spec
		window.Storage = tensor.NewStorage(tensor.StorageSpec{Name: e.storage.Name(), Size: e.end})
		if _, err := tensor.New(window); err != nil {
			return unavailable(spec, err)
		}
	}
	t, err := maker.New(spec)
	if err != nil {
		return unavailable(spec, fault.InRecord(err, e.storage.Name()))
	}
	return t
}

// whole is the storage as a tensor of one dimension.
func (e *storageEntry) whole() *tensor.Tensor {
	n := e.end - e.start
	if size := int64(e.ref.DType.Size()); size > 0 {
		n /= size
	}
	d := e.ref.DType
	if d.Size() == 0 {
		d = tensor.U8
	}
	return e.lay(&tensor.Maker{}, tensor.Spec{DType: d, Shape: []int64{n}})
}

// unavailable is a row without bytes. A shape that cannot be is left out of it:
// the error shows it.
func unavailable(spec tensor.Spec, err error) *tensor.Tensor {
	if len(spec.Shape) > tensor.MaxDims {
		return tensor.Unavailable(spec.DType, nil, err)
	}
	shape := make([]int, len(spec.Shape))
	total := int64(1)
	for i, n := range spec.Shape {
		if n < 0 || n > maxElements/max(total, 1) {
			return tensor.Unavailable(spec.DType, nil, err)
		}
		shape[i] = int(n)
		total *= n
	}
	return tensor.Unavailable(spec.DType, shape, err)
}

// maxElements keeps the sizes of a row that has no bytes printable everywhere.
const maxElements = 1<<31 - 1
