package pytorch

import "github.com/wick-ml/wick/nested"

// sparseCalls are torch's functions that make tensors of several tensors.
var sparseCalls = map[string]callFunc{
	"torch._utils._rebuild_sparse_tensor":     rebuildSparse,
	"torch._utils._rebuild_sparse_csr_tensor": rebuildSparse,
	"torch._utils._rebuild_nested_tensor":     rebuildNested,

	"torch.nested._internal.nested_tensor._rebuild_njt": rebuildJagged,
}

// sparseParts are the components of each layout, in the order of the arguments.
var sparseParts = map[string][]string{
	"torch.sparse_coo": {"indices", "values"},
	"torch.sparse_csr": {"crow_indices", "col_indices", "values"},
	"torch.sparse_csc": {"ccol_indices", "row_indices", "values"},
	"torch.sparse_bsr": {"crow_indices", "col_indices", "values"},
	"torch.sparse_bsc": {"ccol_indices", "row_indices", "values"},
}

// rebuildSparse is _rebuild_sparse_tensor(layout, data). Data are the
// components, then the size, then for COO whether it is coalesced. The object's
// state is a dict of "size" and "is_coalesced".
func rebuildSparse(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 2 {
		return nil, false
	}
	layout, ok := args[0].(nested.Symbol)
	data, isList := args[1].(*nested.List)
	parts := sparseParts[layout.Text]
	if !ok || !isList || parts == nil || len(data.Items) <= len(parts) {
		return nil, false
	}
	state := nested.NewMap("dict")
	rest := data.Items[len(parts):]
	for i, name := range []string{"size", "is_coalesced"} {
		if i < len(rest) && state.Set(nested.String(name), rest[i]) != nil {
			return nil, false
		}
	}
	o, ok := l.components(layout.Text, parts, data.Items)
	if !ok {
		return nil, false
	}
	o.State = state
	return o, true
}

// rebuildNested is _rebuild_nested_tensor(buffer, sizes, strides, offsets).
func rebuildNested(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 4 {
		return nil, false
	}
	o, ok := l.components(reasonNested, []string{"values", "sizes", "strides", "storage_offsets"}, args)
	if !ok {
		return nil, false
	}
	return o, true
}

// rebuildJagged is _rebuild_njt(constructor_kwargs): values and offsets, lengths
// where rows have gaps between them, and what is no data.
func rebuildJagged(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 1 {
		return nil, false
	}
	kwargs, ok := args[0].(*nested.Map)
	if !ok {
		return nil, false
	}
	var names []string
	var parts []nested.Value
	for _, name := range []string{"values", "offsets", "lengths"} {
		v, _ := kwargs.Lookup(name)
		if _, isTensor := v.(*nested.Tensor); isTensor {
			names, parts = append(names, name), append(parts, v)
		} else if name != "lengths" {
			return nil, false
		}
	}
	o, ok := l.components(reasonJagged, names, parts)
	if !ok {
		return nil, false
	}
	o.State = kwargs
	return o, true
}

// components is a tensor whose members are named tensors.
func (l *loader) components(reason string, names []string, values []nested.Value) (*nested.Opaque, bool) {
	members := nested.NewMap("dict")
	for i, name := range names {
		if _, ok := values[i].(*nested.Tensor); !ok {
			if _, isList := values[i].(*nested.List); !isList { // old nested tensors have lists of offsets
				return nil, false
			}
		}
		if members.Set(nested.Component(name), values[i]) != nil {
			return nil, false
		}
	}
	o := l.opaque(classTensor, reason, nil)
	o.Members = members
	return o, true
}
