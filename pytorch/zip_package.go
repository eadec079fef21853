package pytorch

import (
	"path"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// packageTop finds the folder of an archive of torch.package, which keeps its
// own records in .data (torch/package/package_exporter.py).
func (z *zipOpener) packageTop() (string, bool) {
	for _, name := range z.names() {
		if dir, ok := strings.CutSuffix(name, ".data/extern_modules"); ok {
			return dir, true
		}
	}
	return "", false
}

// openPackage opens an archive of torch.package: a map of its pickles by their
// names in the package, such as "model/model.pkl".
func (z *zipOpener) openPackage(top string) (*checkpoint.Checkpoint, error) {
	z.top = top
	if err := z.readOrder(); err != nil {
		return nil, err
	}
	l := z.loader()
	l.storage = func(ref storageRef) (*tensor.Storage, error) {
		return z.storageAt(z.top + ".data/" + ref.Key + ".storage")
	}
	l.object = packageObject
	root := nested.NewMap("dict")
	for _, i := range z.byPlace {
		e := &z.entries[i]
		name, inTop := strings.CutPrefix(e.name, top)
		if !inTop || path.Ext(name) != ".pkl" || strings.HasPrefix(name, ".data/") {
			continue
		}
		v, err := z.load(l, e)
		if err != nil {
			return nil, err
		}
		if err := root.Set(nested.String(name), v); err != nil {
			return nil, err
		}
	}
	return z.finish(root, "package", l)
}

// packageObject stands for ('reduce_package', id, function, arguments): an
// object such as a script module that a function of the package would build.
func packageObject(id nested.Value) (nested.Value, error) {
	t, ok := id.(*nested.List)
	if !ok || len(t.Items) < 3 || asciiText(t.Items[0]) != "reduce_package" {
		return nil, badPersistent(id)
	}
	function, ok := t.Items[2].(nested.Symbol)
	if !ok {
		return nil, fault.New(fault.Malformed, "an object of a "+nested.TypeName(t.Items[2])).Needs("a function", fault.MadeToDeceive)
	}
	args := nested.NewList("tuple", t.Items[3:]...)
	return &nested.Opaque{Class: function.Text, Reason: reasonCall, Args: args, Members: args}, nil
}
