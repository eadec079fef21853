package pytorch

import (
	"strconv"

	"github.com/wick-ml/wick/nested"
)

// torch.jit.freeze makes constants of a module's parameters. They are a tuple in
// constants.pkl over storages in constants/, which code/ calls CONSTANTS.c0,
// CONSTANTS.c1 … (torch/csrc/jit/serialization/export_module.cpp).

// scriptStart is how the data.pkl of a TorchScript archive begins.
const scriptStart = "\x80\x02c__torch__"

// addConstants lists the constants of a module that has no tensor of its own.
// Those of others are literals of their code, and no part of the state dict.
func (z *zipOpener) addConstants(root nested.Value, l *loader) error {
	module, ok := root.(*nested.Opaque)
	if !ok || module.Reason != reasonScript || len(l.storages) > 0 {
		return nil
	}
	e, err := z.find(z.top + "constants.pkl")
	if err != nil || e == nil {
		return err
	}
	inner := z.loaderBelow("constants/")
	v, err := z.load(inner, e)
	if err != nil {
		return err
	}
	l.storages, l.globals = inner.storages, append(l.globals, inner.globals...)
	list, ok := v.(*nested.List)
	if !ok || len(list.Items) == 0 {
		return nil
	}
	constants := nested.NewMap("dict")
	for i, item := range list.Items {
		_ = constants.Set(nested.String("c"+strconv.Itoa(i)), item) // text is hashable
	}
	members := nested.NewMap("dict")
	if have, ok := module.Members.(*nested.Map); ok {
		_ = fillMap(members, have) // keys of a map are hashable
	}
	module.Members = members
	return members.Set(nested.String("CONSTANTS"), constants)
}
