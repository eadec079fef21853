package pytorch

import (
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

const classOrderedDict = "collections.OrderedDict"

// containerCalls are Python's containers and their subclasses that add nothing.
var containerCalls = map[string]callFunc{
	classOrderedDict:          mapCall(classOrderedDict),
	"collections.Counter":     newCounter,
	"collections.defaultdict": newDefaultDict,
	"builtins.dict":           mapCall("dict"),
	"builtins.list":           listCall("list"),
	"builtins.tuple":          listCall("tuple"),
	"builtins.set":            listCall("set"),
	"builtins.frozenset":      listCall("frozenset"),
	"sets.Set":                listCall("set"),
	"sets.ImmutableSet":       listCall("frozenset"),
	"collections.deque":       newDeque,
	"torch.Size":              listCall("torch.Size"),
}

// mapCall makes a map from nothing, from a map, or from a list of pairs, as
// Python 2 writes an OrderedDict.
func mapCall(class string) callFunc {
	return func(_ *loader, args []nested.Value) (nested.Value, bool) {
		m := nested.NewMap(class)
		if len(args) == 0 {
			return m, true
		}
		if len(args) > 1 {
			return nil, false
		}
		return m, fillMap(m, args[0])
	}
}

// newCounter makes a Counter from what it was pickled with, a dict: of anything
// else Python counts the items.
func newCounter(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) == 1 {
		if _, ok := args[0].(*nested.Map); !ok {
			return nil, false
		}
	}
	return mapCall("collections.Counter")(l, args)
}

// fillMap copies pairs into m; it is false when there are none.
func fillMap(m *nested.Map, from nested.Value) bool {
	switch from := from.(type) {
	case *nested.Map:
		for k, v := range from.All() {
			if m.Set(k, v) != nil {
				return false
			}
		}
		return true
	case *nested.List:
		for _, item := range from.Items {
			pair, ok := item.(*nested.List)
			if !ok || len(pair.Items) != 2 || m.Set(pair.Items[0], pair.Items[1]) != nil {
				return false
			}
		}
		return true
	}
	return false
}

// newDefaultDict drops the factory: it says how keys come that are not there.
func newDefaultDict(_ *loader, args []nested.Value) (nested.Value, bool) {
	m := nested.NewMap("collections.defaultdict")
	if len(args) < 2 {
		return m, true
	}
	return m, len(args) == 2 && fillMap(m, args[1])
}

// listCall makes a sequence from nothing or from another sequence.
func listCall(class string) callFunc {
	return func(_ *loader, args []nested.Value) (nested.Value, bool) {
		if len(args) == 0 {
			return nested.NewList(class), true
		}
		l, ok := args[0].(*nested.List)
		if !ok || len(args) > 1 {
			return nil, false
		}
		if strings.HasSuffix(class, "set") {
			items, err := nested.Distinct(l.Items)
			return nested.NewList(class, items...), err == nil
		}
		l = l.Clone()
		l.Class = class
		return l, true
	}
}

// newDeque is called with items and a greatest length; items also come later,
// by APPENDS. It is an object, so that its class is listed.
func newDeque(l *loader, args []nested.Value) (nested.Value, bool) {
	o := l.opaque("collections.deque", reasonClass, nil)
	if len(args) == 0 {
		return o, true
	}
	items, ok := args[0].(*nested.List)
	if ok && len(items.Items) > 0 {
		l.partOf(o).items = items.Clone()
	}
	return o, ok
}

// buildList gives state to a list. Only sets.Set of Python 2 has any: a tuple
// of one dict whose keys are the elements.
func (l *loader) buildList(list *nested.List, state nested.Value) error {
	wrapped, ok := state.(*nested.List)
	if ok && len(wrapped.Items) == 1 && strings.HasSuffix(list.Class, "set") {
		if m, ok := wrapped.Items[0].(*nested.Map); ok {
			for k := range m.All() {
				list.Items = append(list.Items, k)
			}
			return nil
		}
	}
	return fault.New(fault.Malformed, "state for a "+list.Class).Needs("an object that has attributes", fault.MadeToDeceive)
}

// returnType is a result of several values, such as torch.return_types.max: a
// named tuple of the first argument.
func returnType(class string) callFunc {
	return func(_ *loader, args []nested.Value) (nested.Value, bool) {
		if len(args) == 0 {
			return nil, false
		}
		return listCall(class)(nil, args[:1])
	}
}
