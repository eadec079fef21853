package pytorch

import "github.com/wick-ml/wick/nested"

// scriptCalls are the functions in TorchScript's pickles
// (torch/csrc/jit/serialization/pickler.cpp).
var scriptCalls = map[string]callFunc{
	"torch.jit._pickle.build_intlist":        scriptList,
	"torch.jit._pickle.build_doublelist":     scriptList,
	"torch.jit._pickle.build_boollist":       scriptList,
	"torch.jit._pickle.build_tensorlist":     scriptList,
	"torch.jit._pickle.restore_type_tag":     scriptTagged,
	"torch.jit._pickle.build_tensor_from_id": scriptTensor,
}

// scriptList is a list of one type, given as a list.
func scriptList(_ *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 1 {
		return nil, false
	}
	list, ok := args[0].(*nested.List)
	return list, ok
}

// scriptTagged is a container with the text of its type.
func scriptTagged(_ *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 2 {
		return nil, false
	}
	switch args[0].(type) {
	case *nested.List, *nested.Map:
		return args[0], true
	}
	return nil, false
}

// scriptTensor is a tensor of the archive's table, before torch 1.3.
func scriptTensor(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 1 || l.tensorByID == nil {
		return nil, false
	}
	id, ok := args[0].(nested.Int)
	if !ok {
		return nil, false
	}
	v, err := l.tensorByID(int64(id))
	if err != nil {
		l.fatal = err
		return nested.None{}, true
	}
	return v, v != nil
}
