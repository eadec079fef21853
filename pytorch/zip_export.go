package pytorch

import (
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// Archives of torch.export have had three layouts for their weights:
//
//	torch 2.1 to 2.6   serialized_state_dict.pt, serialized_constants.pt: files
//	                   of torch.save; .json in the first versions
//	torch 2.7, 2.8     data/weights/MODEL.pt, data/constants/MODEL.pt
//	since              data/weights/MODEL_weights_config.json: name → record
//	                   with the raw bytes of a storage, and how it is seen
//
// (torch/export/pt2_archive/_package.py and constants.py, torch/export/__init__.py,
// load.) What AOTInductor packages has its weights in data/weights too, each a
// file of torch.save, and data/aotinductor/MODEL/weights_config.json.
const (
	exportWeights   = "data/weights/"
	exportConstants = "data/constants/"
	exportInductor  = "data/aotinductor/"

	weightsConfig   = "_weights_config.json"
	constantsConfig = "_constants_config.json"

	customPrefix = "custom_obj_"
	opaquePrefix = "opaque_obj_"
)

// exportDTypes are the numbers of dtypes in torch.export's schema
// (torch/_export/serde/schema.py, ScalarType).
var exportDTypes = map[int]tensor.DType{
	1: tensor.U8, 2: tensor.I8, 3: tensor.I16, 4: tensor.I32, 5: tensor.I64, 6: tensor.F16, 7: tensor.F32, 8: tensor.F64,
	9: tensor.C32, 10: tensor.C64, 11: tensor.C128, 12: tensor.Bool, 13: tensor.BF16, 28: tensor.U16, 29: tensor.F8E4M3FN,
	30: tensor.F8E5M2, 31: tensor.F8E4M3FNUZ, 32: tensor.F8E5M2FNUZ, 33: tensor.F8E8M0FNU, 34: tensor.U32, 35: tensor.U64,
}

// strided is the layout of ordinary tensors in the schema.
const stridedLayout = 7

// exportTop finds the folder of an archive of torch.export.
func (z *zipOpener) exportTop() (string, bool) {
	for _, name := range z.names() {
		switch dir, base := path.Split(name); base {
		case "archive_format", "serialized_exported_program.json":
			return dir, true
		}
	}
	return "", false
}

// openExport opens what torch.export.save or AOTInductor wrote. The weights and
// constants of the only model stand at the root under their names; those of
// several stand under the models' names.
func (z *zipOpener) openExport(top string) (*checkpoint.Checkpoint, error) {
	z.top = top
	if err := z.readOrder(); err != nil {
		return nil, err
	}
	x := &exportOpener{zipOpener: z, storages: map[string]*tensor.Storage{}, files: map[string]nested.Value{}}
	steps := []func() error{x.addSerialized, x.addModels, x.addInductor}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return z.finish(x.root(), "pt2", &loader{storages: x.used, globals: x.globals})
}

// exportOpener collects the models of one archive.
type exportOpener struct {
	*zipOpener
	models   []exportModel
	storages map[string]*tensor.Storage // by record
	files    map[string]nested.Value    // by record: files of torch.save
	used     []*tensor.Storage
	globals  []checkpoint.Global
}

type exportModel struct {
	name    string
	weights *nested.Map
}

// model returns the map of a model's weights.
func (x *exportOpener) model(name string) *nested.Map {
	for _, m := range x.models {
		if m.name == name {
			return m.weights
		}
	}
	m := exportModel{name, nested.NewMap("dict")}
	x.models = append(x.models, m)
	return m.weights
}

func (x *exportOpener) root() nested.Value {
	if len(x.models) == 1 {
		return x.models[0].weights
	}
	root := nested.NewMap("dict")
	for _, m := range x.models {
		_ = root.Set(nested.String(m.name), m.weights) // a text is a sound key
	}
	return root
}

// addSerialized adds the state dict and the constants of torch 2.1 to 2.6.
func (x *exportOpener) addSerialized() error {
	for _, name := range []string{"serialized_state_dict", "serialized_constants"} {
		for _, suffix := range []string{".pt", ".json"} { // both are files of torch.save
			if !x.has(x.top + name + suffix) {
				continue
			}
			if err := x.merge("model", name+suffix); err != nil {
				return err
			}
		}
	}
	return nil
}

// addModels adds the models of which there are weights or constants.
func (x *exportOpener) addModels() error {
	for _, name := range x.names() {
		name, inTop := strings.CutPrefix(name, x.top)
		dir, base := path.Split(name)
		if !inTop || (dir != exportWeights && dir != exportConstants) {
			continue
		}
		var err error
		if model, ok := strings.CutSuffix(base, weightsConfig); ok {
			err = x.addConfig(model, dir, name)
		} else if model, ok := strings.CutSuffix(base, constantsConfig); ok {
			err = x.addConfig(model, dir, name)
		} else if model, ok := strings.CutSuffix(base, ".pt"); ok {
			err = x.merge(model, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// merge adds the entries of a file of torch.save in the archive.
func (x *exportOpener) merge(model, record string) error {
	v, err := x.file(record)
	if err != nil {
		return err
	}
	m, ok := v.(*nested.Map)
	if !ok {
		return fault.New(fault.Malformed, "a "+nested.TypeName(v)).InRecord(x.top+record).Needs("a state dict", fault.MadeToDeceive)
	}
	weights := x.model(model)
	for key, value := range m.All() {
		if err := weights.Set(key, value); err != nil {
			return inRecord(err, x.top+record, 0)
		}
	}
	return nil
}

// file opens a file of torch.save in the archive, once.
func (x *exportOpener) file(record string) (nested.Value, error) {
	if v, ok := x.files[record]; ok {
		return v, nil
	}
	e, err := x.find(x.top + record)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, x.missing(record)
	}
	if e.size == 0 {
		return nested.NewMap("dict"), nil // nothing to save
	}
	src, err := x.source(e)
	if err != nil {
		return nil, err
	}
	c, err := x.env.Open(x.ctx, src) // its source only borrows ours: it needs no closing
	if err != nil {
		return nil, err
	}
	x.used, x.info.Rest = append(x.used, c.Info.Storages...), append(x.info.Rest, c.Info.Rest...)
	for _, g := range c.Info.Globals {
		g.Record = path.Join(e.name, g.Record)
		x.globals = append(x.globals, g)
	}
	x.files[record] = c.Root
	return c.Root, nil
}

func (x *exportOpener) missing(record string) error {
	return fault.New(fault.Malformed, "no record "+record+": it is missing").InRecord(x.top+record).
		Needs("a record for every weight of the model", fault.MadeToDeceive)
}

// payload is one entry of a configuration of weights or constants
// (torch/_export/serde/schema.py, PayloadMeta).
type payload struct {
	PathName   string      `json:"path_name"`
	IsParam    bool        `json:"is_param"`
	UsePickle  bool        `json:"use_pickle"`
	TensorMeta *tensorMeta `json:"tensor_meta"`
}

// tensorMeta is how a tensor is seen (TensorMeta there).
type tensorMeta struct {
	DType         int         `json:"dtype"`
	Sizes         []exportInt `json:"sizes"`
	RequiresGrad  bool        `json:"requires_grad"`
	Device        exportPlace `json:"device"`
	Strides       []exportInt `json:"strides"`
	StorageOffset exportInt   `json:"storage_offset"`
	Layout        int         `json:"layout"`
}

// exportInt is a size that could be an expression; weights have numbers.
type exportInt struct {
	AsInt *int64 `json:"as_int"`
}

type exportPlace struct {
	Type  string `json:"type"`
	Index *int   `json:"index"`
}

// addConfig adds the weights or constants that a configuration lists.
func (x *exportOpener) addConfig(model, dir, record string) error {
	data, err := x.readJSON(record)
	if err != nil {
		return err
	}
	var config struct {
		Config jsonObject `json:"config"`
	}
	if err := parseJSON(data, &config); err != nil {
		return inRecord(err, x.top+record, 0)
	}
	weights := x.model(model)
	for _, m := range config.Config {
		var p payload
		if err := parseJSON(m.value, &p); err != nil {
			return inRecord(err, x.top+record, 0)
		}
		v, err := x.value(dir+p.PathName, p)
		if err != nil {
			return err
		}
		if err := weights.Set(nested.String(m.key), v); err != nil {
			return err
		}
	}
	return nil
}

// value is one weight or constant.
func (x *exportOpener) value(record string, p payload) (nested.Value, error) {
	base := path.Base(p.PathName)
	switch {
	case strings.HasPrefix(base, customPrefix) || strings.HasPrefix(base, opaquePrefix):
		return &nested.Opaque{Class: base, Reason: reasonClass}, nil
	case p.UsePickle:
		return x.file(record)
	case p.TensorMeta == nil:
		return nil, fault.New(fault.Malformed, "a weight without its dtype and sizes").InRecord(x.top+record).Needs("tensor_meta", fault.MadeToDeceive)
	}
	class := "torch.Tensor"
	if p.IsParam {
		class = "torch.nn.parameter.Parameter"
	}
	t := &nested.Tensor{Class: class, RequiresGrad: p.TensorMeta.RequiresGrad, Device: p.TensorMeta.Device.text()}
	t.Tensor = x.tensor(record, p.TensorMeta)
	return t, nil
}

func (d exportPlace) text() string {
	if d.Index == nil {
		return d.Type
	}
	return d.Type + ":" + strconv.Itoa(*d.Index)
}

// tensor lays a tensor over the record that has its storage's raw bytes.
func (x *exportOpener) tensor(record string, meta *tensorMeta) *tensor.Tensor {
	spec, err := meta.spec()
	if err == nil {
		spec.Storage, err = x.rawStorage(record)
	}
	if err != nil {
		return unavailable(spec, err)
	}
	if spec.Storage.Size() == 0 && !slices.Contains(spec.Shape, 0) {
		return unavailable(spec, fault.New(fault.NoData, "a weight that was exported without its bytes")) // torch makes zeros of it
	}
	t, err := tensor.New(spec)
	if err != nil {
		return unavailable(spec, err)
	}
	return t
}

func (m *tensorMeta) spec() (tensor.Spec, error) {
	d, ok := exportDTypes[m.DType]
	spec := tensor.Spec{DType: d, Shape: []int64{}, Strides: []int64{}}
	if !ok || m.Layout != stridedLayout {
		return spec, fault.New(fault.Unsupported, "dtype "+strconv.Itoa(m.DType)+" in layout "+strconv.Itoa(m.Layout)).
			Needs("a strided tensor of a dtype of torch", "")
	}
	for _, list := range []struct {
		from []exportInt
		to   *[]int64
	}{{m.Sizes, &spec.Shape}, {m.Strides, &spec.Strides}} {
		for _, n := range list.from {
			if n.AsInt == nil {
				return spec, fault.New(fault.Unsupported, "a weight with a symbolic size").Needs("numbers", "")
			}
			*list.to = append(*list.to, *n.AsInt)
		}
	}
	if m.StorageOffset.AsInt != nil {
		spec.Offset = *m.StorageOffset.AsInt
	}
	return spec, nil
}

// rawStorage is the storage in a record, once.
func (x *exportOpener) rawStorage(record string) (*tensor.Storage, error) {
	if s := x.storages[record]; s != nil {
		return s, nil
	}
	s, err := x.storageAt(x.top + record)
	if err == nil {
		x.storages[record] = s
		x.used = append(x.used, s)
	}
	return s, err
}

// addInductor adds weights that AOTInductor keeps outside of its library:
// name → (record, shape, stride, offset) over a tensor of torch.save.
func (x *exportOpener) addInductor() error {
	for _, name := range x.names() {
		record, inTop := strings.CutPrefix(name, x.top)
		dir, base := path.Split(record)
		if !inTop || base != "weights_config.json" || !strings.HasPrefix(dir, exportInductor) {
			continue
		}
		data, err := x.readJSON(record)
		if err != nil {
			return err
		}
		list, err := members(data)
		if err != nil {
			return inRecord(err, name, 0)
		}
		for _, m := range list {
			if err := x.addWindow(path.Base(dir), m, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *exportOpener) addWindow(model string, m member, record string) error {
	var parts [4]json.RawMessage
	var file string
	var shape, strides []int64
	var offset int64
	err := parseJSON(m.value, &parts)
	for i, to := range []any{&file, &shape, &strides, &offset} {
		if err == nil {
			err = parseJSON(parts[i], to)
		}
	}
	if err != nil {
		return inRecord(err, record, 0)
	}
	v, err := x.file(exportWeights + file)
	if err != nil {
		return err
	}
	whole, ok := v.(*nested.Tensor)
	if !ok {
		return fault.New(fault.Malformed, "a "+nested.TypeName(v)).InRecord(x.top+exportWeights+file).Needs("a tensor", fault.MadeToDeceive)
	}
	view := *whole
	view.Tensor = partOf(whole.Tensor, shape, strides, offset, m.key)
	return x.model(model).Set(nested.String(m.key), &view)
}

// partOf is the part of a tensor that the weight called name is, or why there is none.
func partOf(whole *tensor.Tensor, shape, strides []int64, offset int64, name string) *tensor.Tensor {
	spec := tensor.Spec{DType: whole.DType(), Shape: shape, Strides: strides}
	storage, _, start, ok := whole.Strided()
	if !ok {
		return unavailable(spec, fault.New(fault.Unsupported, "a weight inside a tensor that is no plain one").OnPath(name))
	}
	spec.Storage, spec.Offset = storage, start+offset
	view, err := tensor.New(spec)
	if err != nil {
		return unavailable(spec, err)
	}
	return view
}
