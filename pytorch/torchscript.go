package pytorch

import (
	"strconv"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// Before torch 1.3 TorchScript archives had no data.pkl but model.json, the
// JSON of a protobuf with the modules and a table of tensors, whose bytes lie
// in tensors/, and attributes.pkl with the values of attributes
// (caffe2/proto/torch.proto, torch/csrc/jit/serialization/import_legacy.cpp).

// scriptModel is ModelDef of torch.proto.
type scriptModel struct {
	ProtoVersion    jsonInt       `json:"protoVersion"`
	MainModule      scriptModule  `json:"mainModule"`
	ProducerName    string        `json:"producerName"`
	ProducerVersion string        `json:"producerVersion"`
	Tensors         []scriptTable `json:"tensors"`
}

// scriptModule is ModuleDef.
type scriptModule struct {
	Name       string            `json:"name"`
	Submodules []scriptModule    `json:"submodules"`
	Parameters []scriptParameter `json:"parameters"`
	Attributes []scriptAttribute `json:"attributes"`
}

// scriptParameter is ParameterDef.
type scriptParameter struct {
	IsBuffer bool    `json:"isBuffer"`
	TensorID jsonInt `json:"tensorId"`
	Name     string  `json:"name"`
}

// scriptAttribute is AttributeDef; an id below zero has no value.
type scriptAttribute struct {
	Type string  `json:"type"`
	Name string  `json:"name"`
	ID   jsonInt `json:"id"`
}

// scriptTable is TensorDef.
type scriptTable struct {
	Dims         []jsonInt `json:"dims"`
	Offset       jsonInt   `json:"offset"`
	Strides      []jsonInt `json:"strides"`
	RequiresGrad bool      `json:"requiresGrad"`
	DataType     string    `json:"dataType"`
	Device       string    `json:"device"`
	IsQuantized  bool      `json:"isQuantized"`
	Scale        float64   `json:"scale"`
	ZeroPoint    jsonInt   `json:"zeroPoint"`
	Data         struct {
		Key string `json:"key"`
	} `json:"data"`
}

// jsonInt is a 64-bit number, which protobuf writes as text.
type jsonInt int64

// UnmarshalJSON reads a number or its text.
func (n *jsonInt) UnmarshalJSON(data []byte) error {
	if len(data) >= 2 && data[0] == '"' {
		data = data[1 : len(data)-1]
	}
	v, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		return badJSON(err)
	}
	*n = jsonInt(v)
	return nil
}

// scriptDTypes are the dtypes by caffe2's names (caffe2/proto/caffe2.proto,
// TensorProto.DataType).
var scriptDTypes = map[string]tensor.DType{
	"FLOAT": tensor.F32, "INT32": tensor.I32, "BYTE": tensor.U8, "BOOL": tensor.Bool, "UINT8": tensor.U8, "INT8": tensor.I8,
	"INT16": tensor.I16, "INT64": tensor.I64, "FLOAT16": tensor.F16, "DOUBLE": tensor.F64,
}

// quantizedDTypes are what torch makes of them for a quantized tensor (toQIntType).
var quantizedDTypes = map[tensor.DType]tensor.DType{tensor.U8: tensor.QU8, tensor.I8: tensor.QI8, tensor.I32: tensor.QI32}

// openScriptModel opens an archive of before torch 1.3.
func (z *zipOpener) openScriptModel(top string) (*checkpoint.Checkpoint, error) {
	z.top = top
	data, err := z.readJSON("model.json")
	if err != nil {
		return nil, err
	}
	s := &scriptOpener{zipOpener: z, storages: map[string]*tensor.Storage{}, nodes: map[int64]*nested.Tensor{}}
	if err := parseJSON(data, &s.model); err != nil {
		return nil, inRecord(err, top+"model.json", 0)
	}
	s.loader = z.loader()
	s.loader.tensorByID = s.tensorByID
	if err := s.readAttributes(); err != nil {
		return nil, err
	}
	root, err := s.module(&s.model.MainModule, 0)
	if err != nil {
		return nil, inRecord(err, top+"model.json", 0)
	}
	if s.model.ProducerName != "" {
		z.note("producer", s.model.ProducerName+" "+s.model.ProducerVersion)
	}
	s.loader.storages = append(s.loader.storages, s.used...)
	return z.finish(root, "torchscript", s.loader)
}

// scriptOpener opens one such archive.
type scriptOpener struct {
	*zipOpener
	model    scriptModel
	loader   *loader
	values   []nested.Value // the table of attributes
	storages map[string]*tensor.Storage
	nodes    map[int64]*nested.Tensor
	used     []*tensor.Storage
}

// readAttributes reads the table of values, a list or a tuple.
func (s *scriptOpener) readAttributes() error {
	e, err := s.find(s.top + "attributes.pkl")
	if err != nil || e == nil {
		return err
	}
	v, err := s.load(s.loader, e)
	if err != nil {
		return err
	}
	list, ok := v.(*nested.List)
	if !ok {
		return fault.New(fault.Malformed, "a "+nested.TypeName(v)).InRecord(e.name).Needs("a list of values", fault.MadeToDeceive)
	}
	s.values = list.Items
	return nil
}

// module is a map of parameters, buffers, attributes and submodules, which
// gives them the names of the state dict.
func (s *scriptOpener) module(def *scriptModule, depth int64) (nested.Value, error) {
	if err := checkpoint.At("depth", depth, s.env.Limits.Depth); err != nil {
		return nil, err
	}
	m := nested.NewMap("dict")
	for _, p := range def.Parameters {
		v, err := s.tensorByID(int64(p.TensorID))
		if err != nil {
			return nil, err
		}
		if err := m.Set(nested.String(p.Name), v); err != nil {
			return nil, err
		}
	}
	if err := s.attributes(m, def); err != nil {
		return nil, err
	}
	for i := range def.Submodules {
		v, err := s.module(&def.Submodules[i], depth+1)
		if err != nil {
			return nil, err
		}
		if err := m.Set(nested.String(def.Submodules[i].Name), v); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// attributes puts the attributes of a module beside its parameters.
func (s *scriptOpener) attributes(m *nested.Map, def *scriptModule) error {
	for _, a := range def.Attributes {
		if _, known := m.Lookup(a.Name); known || a.ID < 0 { // a buffer is listed as both
			continue
		}
		if int64(a.ID) >= int64(len(s.values)) {
			return fault.New(fault.Malformed, "an attribute with value "+strconv.FormatInt(int64(a.ID), 10)+" of "+strconv.Itoa(len(s.values))).
				OnPath(a.Name).Needs("a value of attributes.pkl", fault.MadeToDeceive)
		}
		if err := m.Set(nested.String(a.Name), s.values[a.ID]); err != nil {
			return err
		}
	}
	return nil
}

// tensorByID returns a tensor of the table, the same one for the same number.
func (s *scriptOpener) tensorByID(id int64) (nested.Value, error) {
	if id < 0 || id >= int64(len(s.model.Tensors)) {
		return nil, fault.New(fault.Malformed, "tensor "+strconv.FormatInt(id, 10)+" of "+strconv.Itoa(len(s.model.Tensors))).
			Needs("a tensor of the table", fault.MadeToDeceive)
	}
	if t := s.nodes[id]; t != nil {
		return t, nil
	}
	def := &s.model.Tensors[id]
	t := &nested.Tensor{Tensor: s.lay(def), Class: "torch.Tensor", RequiresGrad: def.RequiresGrad, Device: def.Device}
	if def.IsQuantized {
		t.Quant = &nested.Quant{Scheme: "per_tensor_affine", Scale: def.Scale, ZeroPoint: int64(def.ZeroPoint)}
	}
	s.nodes[id] = t
	return t, nil
}

func (s *scriptOpener) lay(def *scriptTable) *tensor.Tensor {
	spec := tensor.Spec{DType: scriptDTypes[def.DataType], Shape: numbers(def.Dims), Strides: numbers(def.Strides), Offset: int64(def.Offset)}
	if def.IsQuantized {
		spec.DType = quantizedDTypes[spec.DType]
	}
	if !spec.DType.Valid() {
		return unavailable(spec, fault.New(fault.Unsupported, "data type "+def.DataType).Needs("a dtype of torch", ""))
	}
	storage, err := s.rawStorage(def.Data.Key)
	if err != nil {
		return unavailable(spec, err)
	}
	spec.Storage = storage
	t, err := tensor.New(spec)
	if err != nil {
		return unavailable(spec, err)
	}
	return t
}

func numbers(list []jsonInt) []int64 {
	out := make([]int64, len(list))
	for i, n := range list {
		out[i] = int64(n)
	}
	return out
}

// rawStorage is the storage in a record, once.
func (s *scriptOpener) rawStorage(record string) (*tensor.Storage, error) {
	if have := s.storages[record]; have != nil {
		return have, nil
	}
	storage, err := s.storageAt(s.top + record)
	if err == nil {
		s.storages[record] = storage
		s.used = append(s.used, storage)
	}
	return storage, err
}

// scriptModelTop finds the folder of an archive of before torch 1.3.
func (z *zipOpener) scriptModelTop() (string, bool) {
	for _, name := range z.names() {
		if base, dir := "model.json", len(name)-len("model.json"); dir >= 0 && name[dir:] == base && (dir == 0 || name[dir-1] == '/') &&
			z.hasBelow(name[:dir]+"code/") {
			return name[:dir], true
		}
	}
	return "", false
}
