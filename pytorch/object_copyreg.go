package pytorch

import (
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
)

// copyregCalls make an object of the class in their first argument.
var copyregCalls = map[string]callFunc{
	"copyreg._reconstructor": reconstruct,
	"copyreg.__newobj__":     newObject,
	"copyreg.__newobj_ex__":  newObjectEx,
}

// classOf returns the name of the class in an argument.
func classOf(args []nested.Value) (string, bool) {
	if len(args) == 0 {
		return "", false
	}
	s, ok := args[0].(nested.Symbol)
	return s.Text, ok && isGlobal(s)
}

func newObject(l *loader, args []nested.Value) (nested.Value, bool) {
	class, ok := classOf(args)
	if !ok {
		return nil, false
	}
	return l.call(class, nested.NewList("tuple", args[1:]...), pickle.New), true
}

func newObjectEx(l *loader, args []nested.Value) (nested.Value, bool) {
	class, ok := classOf(args)
	if !ok || len(args) != 3 {
		return nil, false
	}
	positional, ok := args[1].(*nested.List)
	if !ok {
		return nil, false
	}
	if named, ok := args[2].(*nested.Map); ok && named.Len() > 0 {
		positional = nested.NewList("tuple", append(positional.Clone().Items, named)...)
	}
	return l.call(class, positional, pickle.New), true
}

// reconstruct is how protocols 0 and 1 write an object: its class, the built-in
// class that this is a kind of, and what that one holds.
func reconstruct(l *loader, args []nested.Value) (nested.Value, bool) {
	class, ok := classOf(args)
	if !ok || len(args) != 3 {
		return nil, false
	}
	if _, empty := args[2].(nested.None); empty {
		return l.call(class, nested.NewList("tuple"), pickle.New), true
	}
	if knownCalls[class] != nil {
		return l.call(class, nested.NewList("tuple", args[2]), pickle.New), true
	}
	o := l.opaque(class, reasonClass, nil)
	switch base := args[2].(type) {
	case *nested.Map:
		l.partOf(o).pairs = base
	case *nested.List:
		l.partOf(o).items = base
	default:
		o.Args = nested.NewList("tuple", base)
	}
	return o, true
}
