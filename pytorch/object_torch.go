package pytorch

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// torchConstants are torch's named values that are no dtypes: layouts, memory
// formats and quantization schemes.
var torchConstants = map[string]string{
	"strided": "torch.layout", "sparse_coo": "torch.layout", "sparse_csr": "torch.layout", "sparse_csc": "torch.layout",
	"sparse_bsr": "torch.layout", "sparse_bsc": "torch.layout", "jagged": "torch.layout", "_mkldnn": "torch.layout",
	"contiguous_format": "torch.memory_format", "preserve_format": "torch.memory_format",
	"channels_last": "torch.memory_format", "channels_last_3d": "torch.memory_format",
	"per_tensor_affine": "torch.qscheme", "per_tensor_symmetric": "torch.qscheme", "per_channel_affine": "torch.qscheme",
	"per_channel_symmetric": "torch.qscheme", "per_channel_affine_float_qparams": "torch.qscheme",
}

// otherDTypes are dtypes that torch names and does not save tensors of.
var otherDTypes = map[string]struct{}{}

func init() {
	for i := 1; i < 8; i++ {
		for _, sign := range []string{"int", "uint"} {
			otherDTypes[sign+strconv.Itoa(i)] = struct{}{}
		}
	}
}

// torchConstant returns the value of a global such as torch.float32.
func torchConstant(text string) (nested.Value, bool) {
	name, ok := strings.CutPrefix(text, "torch.")
	if !ok {
		return nil, false
	}
	if d, ok := tensor.ParseDType(name); ok {
		return nested.Symbol{Class: "torch.dtype", Text: "torch." + d.String()}, true
	}
	if _, ok := otherDTypes[name]; ok {
		return nested.Symbol{Class: "torch.dtype", Text: text}, true
	}
	if class, ok := torchConstants[name]; ok {
		return nested.Symbol{Class: class, Text: text}, true
	}
	return nil, false
}

// torchCalls are torch's small values.
var torchCalls = map[string]callFunc{
	"torch.device":                    newDevice,
	"torch.serialization._get_layout": newLayout,
	"torch.storage._load_from_bytes":  loadFromBytes,

	"torch._dynamo.eval_frame.OptimizedModule":          newCompiledModule,
	"torch.fx.graph_module.reduce_graph_module":         newGraphModule(0),
	"torch.fx.graph_module.reduce_package_graph_module": newGraphModule(1),
	"torch.fx.graph_module.reduce_deploy_graph_module":  newGraphModule(0),
}

// newGraphModule is a module that torch.fx wrote: a function that is called with
// its attributes and the source of its forward method. A package has its importer
// in front (torch/fx/graph_module.py).
func newGraphModule(at int) callFunc {
	return func(l *loader, args []nested.Value) (nested.Value, bool) {
		if len(args) <= at {
			return nil, false
		}
		body, ok := args[at].(*nested.Map)
		if !ok || !isModule(body) {
			return nil, false
		}
		o := l.opaque("torch.fx.graph_module.GraphModule", reasonModule, nil)
		o.State = body
		return o, true
	}
}

// newCompiledModule is what torch.compile returns, a class that is called with
// the module and how it is compiled (torch/_dynamo/eval_frame.py). Its state dict
// has the module's under _orig_mod.
func newCompiledModule(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) == 0 {
		return nil, false
	}
	if m, ok := args[0].(*nested.Opaque); !ok || m.Reason == reasonCall {
		return nil, false
	}
	o := l.opaque("torch._dynamo.eval_frame.OptimizedModule", reasonModule, nested.NewList("tuple", slices.Clone(args)...))
	members := nested.NewMap("dict")
	_ = members.Set(nested.String("_orig_mod"), args[0]) // text is hashable
	o.Members = members
	return o, true
}

// newDevice is called with a type and an index or not, or with both in one text.
func newDevice(_ *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) == 0 || len(args) > 2 {
		return nil, false
	}
	kind, ok := args[0].(nested.String)
	if !ok {
		return nil, false
	}
	text := string(kind)
	if len(args) == 2 {
		switch n := args[1].(type) {
		case nested.Int:
			text += ":" + strconv.FormatInt(int64(n), 10)
		case nested.None:
		default:
			return nil, false
		}
	}
	return nested.Symbol{Class: "torch.device", Text: text}, true
}

func newLayout(_ *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 1 {
		return nil, false
	}
	name, ok := args[0].(nested.String)
	return nested.Symbol{Class: "torch.layout", Text: string(name)}, ok
}

// dtypeOf returns the dtype that a value names.
func dtypeOf(v nested.Value) (tensor.DType, bool) {
	s, ok := v.(nested.Symbol)
	if !ok || s.Class != "torch.dtype" {
		return tensor.Invalid, false
	}
	return tensor.ParseDType(s.Text)
}
