package pytorch

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
	"github.com/wick-ml/wick/tensor"
)

// distributedFormat is a folder of torch.distributed.checkpoint: .metadata is a
// pickle that says which boxes each tensor was cut into and where they are; every
// box, and every other value, is a small torch.save file at a range of some
// .distcp file (torch/distributed/checkpoint/metadata.py and filesystem.py).
type distributedFormat struct{}

// metadataName is the file that makes a folder a distributed checkpoint.
const metadataName = ".metadata"

// isDistributedPart tells the files that the boxes lie in by their name.
func isDistributedPart(name string) bool { return path.Ext(name) == ".distcp" }

// distributedPart explains why a whole .distcp file is no zip file, though it
// begins as one: it is several of them, one behind the other.
func distributedPart(src checkpoint.Source, err error) error {
	if _, whole := src.(checkpoint.Siblings); !whole || !isDistributedPart(src.Name()) || fault.KindOf(err) != fault.Malformed {
		return err
	}
	return fault.New(fault.Unsupported, "one file of a distributed checkpoint").Needs("its folder, where "+metadataName+" says what is in it", cureFolder)
}

// Name returns "distributed".
func (distributedFormat) Name() string { return "distributed" }

// Sniff looks for .metadata in the folder itself.
func (distributedFormat) Sniff(_ []byte, src checkpoint.Source) bool {
	_, files, err := checkpoint.ListFolder(src)
	return err == nil && slices.Contains(files, metadataName)
}

// Open reads .metadata and the small zip directory of every box.
func (distributedFormat) Open(ctx context.Context, src checkpoint.Source, env *checkpoint.Env) (*checkpoint.Checkpoint, error) {
	dir, ok := src.(checkpoint.Folder)
	if !ok {
		return nil, fault.New(fault.Usage, "a file").Needs("a folder", "")
	}
	o := &distributedOpener{ctx: ctx, dir: dir, env: env, files: map[string]checkpoint.Source{}}
	c, err := o.open()
	if err != nil {
		return nil, errors.Join(err, o.close())
	}
	return c, nil
}

type distributedOpener struct {
	ctx   context.Context
	dir   checkpoint.Folder
	env   *checkpoint.Env
	files map[string]checkpoint.Source
	parts []*checkpoint.Checkpoint
	info  checkpoint.Info

	present int64 // bytes of the files that were opened
}

func (o *distributedOpener) open() (*checkpoint.Checkpoint, error) {
	meta, err := o.readMetadata()
	if err != nil {
		return nil, err
	}
	stored, err := o.entries(meta)
	if err != nil {
		return nil, err
	}
	root, err := o.tree(meta, stored)
	if err != nil {
		return nil, err
	}
	o.info.Name, o.info.Format, o.info.Producer = o.dir.Name(), "distributed", "torch.distributed.checkpoint"
	return checkpoint.New(root, o.info, o.env.Following(o.present), func() error { return errors.Join(o.close(), o.dir.Close()) })
}

func (o *distributedOpener) close() error {
	var errs []error
	for _, c := range o.parts {
		errs = append(errs, c.Close())
	}
	for _, f := range o.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// readMetadata returns the attributes of the pickled Metadata object.
func (o *distributedOpener) readMetadata() (*nested.Map, error) {
	f, err := o.dir.Sibling(metadataName)
	if err != nil {
		return nil, err
	}
	o.present = f.Size()
	l := &loader{limits: o.env.Limits, record: metadataName, present: f.Size()}
	l.again = again(f, 0)
	v, err := l.load(pickle.NewStream(io.NewSectionReader(f, 0, f.Size())))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, firstFault(err)
	}
	o.info.Globals = l.globals
	meta, ok := attrsOf(v)
	if !ok {
		return nil, badMetadata("a " + nested.TypeName(v))
	}
	return meta, nil
}

func badMetadata(found string) *fault.Error {
	return fault.New(fault.Malformed, found).InRecord(metadataName).
		Needs("the Metadata of torch.distributed.checkpoint", "write the checkpoint again")
}

// attrsOf returns what an object of some class was made of.
func attrsOf(v nested.Value) (*nested.Map, bool) {
	if o, ok := v.(*nested.Opaque); ok {
		v = o.State
	}
	m, ok := v.(*nested.Map)
	return m, ok
}

// chunk is one entry of storage_data: a range of a file that holds one box of a
// tensor, or one value.
type chunk struct {
	offsets        []int // of the box; nil for a value
	file           string
	offset, length int64
	transformed    bool // compressed or encoded by an extension
}

// entries reads storage_data: {MetadataIndex(fqn, offset): _StorageInfo(
// relative_path, offset, length)}.
func (o *distributedOpener) entries(meta *nested.Map) (map[string][]chunk, error) {
	data, ok := memberOf[*nested.Map](meta, "storage_data")
	if !ok {
		return nil, badMetadata("no storage_data")
	}
	if err := checkpoint.At("tensors", int64(data.Len()), o.env.Limits.Tensors); err != nil {
		return nil, err
	}
	out := map[string][]chunk{}
	for key, value := range data.All() {
		index, ok1 := attrsOf(key)
		info, ok2 := attrsOf(value)
		if !ok1 || !ok2 {
			return nil, badMetadata("a storage_data entry of another form")
		}
		name, c, err := readChunk(index, info)
		if err != nil {
			return nil, err
		}
		out[name] = append(out[name], c)
	}
	return out, nil
}

func readChunk(index, info *nested.Map) (name string, c chunk, err error) {
	fqn, ok := memberOf[nested.String](index, "fqn")
	path, ok2 := memberOf[nested.String](info, "relative_path")
	offset, ok3 := memberOf[nested.Int](info, "offset")
	length, ok4 := memberOf[nested.Int](info, "length")
	if !ok || !ok2 || !ok3 || !ok4 || offset < 0 || length < 0 {
		return "", c, badMetadata("a storage_data entry without name, file and range").OnPath(string(fqn))
	}
	c = chunk{file: string(path), offset: int64(offset), length: int64(length)}
	if at, ok := memberOf[*nested.List](index, "offset"); ok {
		if c.offsets, ok = ints(at); !ok {
			return "", c, badMetadata("an offset that is no list of integers").OnPath(string(fqn))
		}
	}
	how, ok := memberOf[*nested.List](info, "transform_descriptors")
	c.transformed = ok && len(how.Items) > 0
	return string(fqn), c, nil
}

// memberOf returns an attribute of the given type.
func memberOf[T nested.Value](m *nested.Map, name string) (T, bool) {
	v, _ := m.Lookup(name)
	t, ok := v.(T)
	return t, ok
}

func ints(l *nested.List) ([]int, bool) {
	out := make([]int, len(l.Items))
	for i, item := range l.Items {
		n, ok := item.(nested.Int)
		if !ok || n < 0 || int64(n) != int64(int(n)) {
			return nil, false
		}
		out[i] = int(n)
	}
	return out, true
}

// tree puts every value at its place: planner_data gives the path that a name
// was flattened from (torch/distributed/checkpoint/_nested_dict.py).
func (o *distributedOpener) tree(meta *nested.Map, stored map[string][]chunk) (nested.Value, error) {
	described, ok := memberOf[*nested.Map](meta, "state_dict_metadata")
	if !ok {
		return nil, badMetadata("no state_dict_metadata")
	}
	paths, _ := memberOf[*nested.Map](meta, "planner_data") // absent where nothing was nested
	root := nested.NewMap("dict")
	for key, value := range described.All() {
		fqn, ok := key.(nested.String)
		if !ok {
			return nil, badMetadata("a name that is a " + nested.TypeName(key))
		}
		if err := o.ctx.Err(); err != nil {
			return nil, err
		}
		leaf, err := o.value(string(fqn), value, stored[string(fqn)])
		if err != nil {
			return nil, fault.OnPath(err, string(fqn))
		}
		if err := place(root, pathOf(paths, fqn), leaf); err != nil {
			return nil, err
		}
	}
	return listed(root), nil
}

func pathOf(paths *nested.Map, fqn nested.String) []nested.Value {
	if paths != nil {
		if l, ok := memberOf[*nested.List](paths, string(fqn)); ok && len(l.Items) > 0 {
			return l.Items
		}
	}
	return []nested.Value{fqn}
}

// place stores a leaf under a path of keys, making maps on the way.
func place(root *nested.Map, path []nested.Value, leaf nested.Value) error {
	m := root
	for _, key := range path[:len(path)-1] {
		next, ok := m.Get(key)
		if !ok {
			next = nested.NewMap("dict")
			if err := m.Set(key, next); err != nil {
				return err
			}
		}
		if m, ok = next.(*nested.Map); !ok {
			return badMetadata("a value and a container in one place").OnPath(nested.Path(path).String())
		}
	}
	return m.Set(path[len(path)-1], leaf)
}

// listed turns maps with the keys 0 to n-1 into lists: flattening spelled the
// keys of dicts as text, so an integer is always a position.
func listed(m *nested.Map) nested.Value {
	isList := m.Len() > 0
	for i := range m.Len() {
		e := m.Entry(i)
		isList = isList && e.Key == nested.Value(nested.Int(i))
		if inner, ok := e.Value.(*nested.Map); ok && inner.Class == "dict" && inner.Attrs == nil {
			_ = m.Set(e.Key, listed(inner)) // a key that is in the map can be set
		}
	}
	if !isList {
		return m
	}
	l := nested.NewList("list")
	for _, v := range m.All() {
		l.Items = append(l.Items, v)
	}
	return l
}

// value opens what is stored under one name. A tensor that cannot be put
// together is still a row that says why.
func (o *distributedOpener) value(fqn string, described nested.Value, stored []chunk) (nested.Value, error) {
	kind := nested.TypeName(described)
	if strings.HasSuffix(kind, ".TensorStorageMetadata") {
		return o.tensor(described, stored)
	}
	if len(stored) == 0 {
		return nil, fault.New(fault.Malformed, "a value that is stored nowhere").OnPath(fqn).Needs("its range of a file", "write the checkpoint again")
	}
	return o.openChunk(stored[0])
}

func (o *distributedOpener) tensor(described nested.Value, stored []chunk) (nested.Value, error) {
	attrs, ok := attrsOf(described)
	if !ok {
		return nil, badMetadata("a tensor without a description")
	}
	size, ok := memberOf[*nested.List](attrs, "size")
	if !ok {
		return nil, badMetadata("a tensor without a size")
	}
	shape, ok := ints(size)
	if !ok {
		return nil, badMetadata("a tensor whose size is no list of integers")
	}
	d := storedDType(attrs)
	t, err := o.assemble(d, shape, stored)
	if err != nil {
		if fault.KindOf(err) == fault.IO || o.ctx.Err() != nil {
			return nil, err
		}
		t = tensor.Unavailable(d, shape, err)
	}
	return &nested.Tensor{Tensor: t, Class: "torch.Tensor"}, nil
}

// storedDType reads TensorProperties, whose state is a tuple that starts with the
// dtype, or in older versions its attributes.
func storedDType(attrs *nested.Map) tensor.DType {
	p, _ := attrs.Lookup("properties")
	o, ok := p.(*nested.Opaque)
	if !ok {
		return tensor.Invalid
	}
	var v nested.Value
	switch state := o.State.(type) {
	case *nested.List:
		if len(state.Items) > 0 {
			v = state.Items[0]
		}
	case *nested.Map:
		v, _ = state.Lookup("dtype")
	}
	s, _ := v.(nested.Symbol)
	d, _ := tensor.ParseDType(s.Text)
	return d
}

// assemble lays the boxes of one tensor together. Replicas of a box that other
// ranks wrote are passed over.
func (o *distributedOpener) assemble(d tensor.DType, shape []int, stored []chunk) (*tensor.Tensor, error) {
	var parts []tensor.Part
	seen := map[string]bool{} // places that a part with elements has: others there are replicas
	for _, c := range stored {
		if err := o.ctx.Err(); err != nil {
			return nil, err
		}
		at := c.offsets
		if at == nil {
			at = make([]int, len(shape))
		}
		place := tensor.ShapeString(at)
		if seen[place] {
			continue
		}
		v, err := o.openChunk(c)
		if err != nil {
			return nil, err
		}
		leaf, ok := v.(*nested.Tensor)
		if !ok {
			return nil, fault.New(fault.Malformed, "a "+nested.TypeName(v)+" as a box of a tensor").InRecord(c.file).At(c.offset).Needs("a tensor", "write the checkpoint again")
		}
		seen[place] = leaf.Tensor.Len() > 0
		parts = append(parts, tensor.Part{Tensor: leaf.Tensor, At: at})
	}
	return tensor.Assemble(d, shape, parts...)
}

// openChunk opens the torch.save file at the chunk's range.
func (o *distributedOpener) openChunk(c chunk) (nested.Value, error) {
	if c.transformed {
		return nil, fault.New(fault.Unsupported, "a chunk that an extension transformed").InRecord(c.file).At(c.offset).
			Needs("a plain chunk", "write the checkpoint without extensions")
	}
	f, err := o.file(c.file)
	if err != nil {
		return nil, err
	}
	if c.offset > f.Size() || c.length > f.Size()-c.offset {
		return nil, fault.New(fault.Malformed, "a chunk that ends behind its file").InRecord(c.file).At(c.offset).
			Needs("the whole file", "the file is cut off: get it again")
	}
	part, err := o.env.Open(o.ctx, checkpoint.Section(f, c.offset, c.length, f.Name()))
	if err != nil {
		return nil, err
	}
	o.parts = append(o.parts, part)
	o.info.Storages = append(o.info.Storages, part.Info.Storages...)
	o.info.Rest = append(o.info.Rest, part.Info.Rest...)
	o.info.Order = part.Info.Order
	return part.Root, nil
}

// file opens a .distcp file once.
func (o *distributedOpener) file(name string) (checkpoint.Source, error) {
	if f, ok := o.files[name]; ok {
		return f, nil
	}
	f, err := o.dir.Sibling(name)
	if err != nil {
		return nil, missingChunks(err, name)
	}
	o.files[name] = f
	o.present += f.Size()
	o.info.Records = append(o.info.Records, checkpoint.Record{Name: name, Size: f.Size(), Stored: f.Size()})
	return f, nil
}

func missingChunks(err error, name string) error {
	if fault.KindOf(err) != fault.NotFound {
		return err // the name itself, or the system, is at fault
	}
	return fault.New(fault.Malformed, "the file "+name+" is missing").
		Needs("every .distcp file that .metadata names", "copy the whole folder")
}
