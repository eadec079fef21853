package pytorch

import (
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// finish completes a tree when its pickle is at the end: storages that stand in
// it themselves become tensors, and opaque objects get their members, which
// all state had to be known for.
func (l *loader) finish(root nested.Value) (nested.Value, error) {
	if _, ok := storageOf(root); ok && l.within {
		l.bare = true // and stays: a legacy file has another pickle behind it
		return root, l.fatal
	}
	if l.waiting {
		l.layOutAll(root)
	}
	for _, o := range l.opaques {
		if o.Members == nil && l.fatal == nil {
			o.Members = l.members(o)
		}
	}
	return root, l.fatal
}

// layOutAll completes the tensors that can be reached, also through what is not
// a member of anything yet.
func (l *loader) layOutAll(root nested.Value) {
	g := graph{seen: map[nested.Value]struct{}{}}
	g.add(root)
	for _, o := range l.opaques {
		g.add(o)
	}
	for _, p := range l.parts {
		if p.items != nil {
			g.add(p.items)
		}
		if p.pairs != nil {
			g.add(p.pairs)
		}
	}
	g.run()
}

// graph visits every node that can be reached, each once, without recursion.
type graph struct {
	seen map[nested.Value]struct{}
	todo []nested.Value
}

// add notes a node that has others inside, and lays out a tensor that waited.
func (g *graph) add(v nested.Value) {
	switch v := v.(type) {
	case *nested.Tensor:
		if v.Tensor == nil {
			layOut(v)
		}
		if v.Attrs != nil || v.Quant != nil {
			g.note(v)
		}
	case *nested.Map, *nested.List, *nested.Opaque:
		g.note(v)
	}
}

func (g *graph) note(v nested.Value) {
	if l, ok := v.(*nested.List); ok && len(l.Items) == 0 {
		return
	}
	if _, ok := g.seen[v]; !ok {
		g.seen[v] = struct{}{}
		g.todo = append(g.todo, v)
	}
}

func (g *graph) run() {
	for len(g.todo) > 0 {
		v := g.todo[len(g.todo)-1]
		g.todo = g.todo[:len(g.todo)-1]
		switch v := v.(type) {
		case *nested.Map:
			for key, value := range v.All() {
				g.add(key)
				g.add(value)
			}
			g.add(v.Attrs)
		case *nested.List:
			for _, item := range v.Items {
				g.add(item)
			}
		case *nested.Opaque:
			g.opaque(v)
		case *nested.Tensor:
			g.add(v.Attrs)
			if v.Quant != nil && v.Quant.Scales != nil {
				g.add(v.Quant.Scales)
				g.add(v.Quant.ZeroPoints)
			}
		}
	}
}

func (g *graph) opaque(o *nested.Opaque) {
	if o.Args != nil {
		g.add(o.Args)
	}
	g.add(o.State)
	g.add(o.Members)
}

// layOut completes a tensor that stood for a storage, or an array that was
// never given its data.
func layOut(t *nested.Tensor) {
	if e, ok := t.Attrs.(*storageEntry); ok {
		t.Tensor, t.Attrs = e.whole(), nil
		return
	}
	err := fault.New(fault.Malformed, "an array without data").Needs("its state", fault.MadeToDeceive)
	t.Tensor, t.Attrs = tensor.Unavailable(tensor.U8, nil, err), nil
}

// members is what a walk finds inside an opaque object: for a module what its
// state dict has, else its items, attributes and arguments.
func (l *loader) members(o *nested.Opaque) nested.Value {
	if o.Class == classDType || o.Reason == reasonAttribute {
		return nil
	}
	if packed, ok := scriptState(o); ok {
		return packed
	}
	if m, ok := moduleState(o.State); ok {
		o.Reason = reasonModule
		return l.moduleMembers(m)
	}
	inside := objectMembers{state: o.State}
	if p := l.parts[o]; p != nil {
		inside.items, inside.pairs = p.items, p.pairs
	}
	if o.Args != nil {
		inside.args = o.Args
	}
	return l.inside(inside)
}

// objectMembers are the four ways in which things are inside an object.
type objectMembers struct {
	pairs *nested.Map  // of a subclass of dict
	items *nested.List // of a subclass of list or set
	args  *nested.List // of the call that made it
	state nested.Value // its attributes, as a rule
}

// inside returns the one that is there, or all under names of their own.
func (l *loader) inside(in objectMembers) nested.Value {
	if !l.unwrapSlots(&in) {
		return nil
	}
	var there []nested.Value
	if in.pairs != nil {
		there = append(there, in.pairs)
	}
	if in.items != nil {
		there = append(there, in.items)
	}
	if hasInside(in.state) {
		there = append(there, in.state)
	}
	if in.args != nil {
		there = append(there, in.args)
	}
	switch len(there) {
	case 0:
		return nil
	case 1:
		return there[0]
	}
	if !l.pays(there...) {
		return nil
	}
	return in.merged()
}

// hasInside is false for the states that say there is none.
func hasInside(v nested.Value) bool {
	switch v := v.(type) {
	case nil, nested.None:
		return false
	case *nested.Map:
		return v.Len() > 0
	case *nested.List:
		return len(v.Items) > 0
	}
	return true
}

// unwrapSlots turns (dict, slots) into one dict. It is false where that cannot be
// paid for.
func (l *loader) unwrapSlots(in *objectMembers) bool {
	list, ok := in.state.(*nested.List)
	if !ok {
		return true
	}
	dict, slots, ok := slotState(list)
	if !ok {
		return true
	}
	if !l.pays(dict, slots) {
		return false
	}
	all := nested.NewMap("dict")
	_ = fillMap(all, dict) // keys of a map are hashable
	_ = fillMap(all, slots)
	in.state = all
	return true
}

// merged puts everything in one map: pairs and items under their own keys, then
// attributes, then arguments. Where two would share a key the later goes into a
// map of its own, "__dict__" or "__args__", which no class uses as a key.
func (in *objectMembers) merged() nested.Value {
	all := nested.NewMap("dict")
	if in.pairs != nil {
		_ = fillMap(all, in.pairs) // keys of a map are hashable
	}
	if in.items != nil {
		join(all, numbered(in.items), "__items__")
	}
	if hasInside(in.state) {
		attributes, ok := in.state.(*nested.Map)
		if !ok {
			attributes = nested.NewMap("dict")
			_ = attributes.Set(nested.String("__state__"), in.state) // text is hashable
		}
		join(all, attributes, "__dict__")
	}
	if in.args != nil {
		join(all, numbered(in.args), "__args__")
	}
	return all
}

func numbered(list *nested.List) *nested.Map {
	m := nested.NewMap("dict")
	for i, v := range list.Items {
		_ = m.Set(nested.Int(i), v) // an int is hashable
	}
	return m
}

// join adds the pairs of more to all, or more itself under name when a key is
// taken.
func join(all, more *nested.Map, name string) {
	for k := range more.All() {
		if _, taken := all.Get(k); taken {
			_ = all.Set(nested.String(name), more) // text is hashable
			return
		}
	}
	_ = fillMap(all, more) // keys of a map are hashable
}

// moduleState finds the state of an nn.Module, which may be the dict of a state
// that has room for slots too.
func moduleState(state nested.Value) (*nested.Map, bool) {
	if list, ok := state.(*nested.List); ok {
		dict, _, _ := slotState(list)
		return dict, dict != nil && isModule(dict)
	}
	m, ok := state.(*nested.Map)
	return m, ok && isModule(m)
}

// isModule reports whether a state is that of an nn.Module
// (torch/nn/modules/module.py).
func isModule(state *nested.Map) bool {
	for _, name := range moduleParts {
		v, _ := state.Lookup(name)
		if _, ok := v.(*nested.Map); !ok {
			return false
		}
	}
	return true
}

// moduleMembers lists a module as its state_dict() does: parameters, persistent
// buffers, then submodules; then plain attributes that hold no tensors. The
// rest of its attributes stay in the object's State.
func (l *loader) moduleMembers(state *nested.Map) nested.Value {
	all := nested.NewMap("dict")
	hidden := map[nested.String]bool{}
	if !l.paysModule(state) {
		return all
	}
	if v, ok := state.Lookup("_non_persistent_buffers_set"); ok {
		if set, ok := v.(*nested.List); ok {
			for _, name := range set.Items {
				if s, ok := name.(nested.String); ok {
					hidden[s] = true
				}
			}
		}
	}
	for _, part := range moduleParts {
		v, _ := state.Lookup(part)
		m, _ := v.(*nested.Map) // isModule has seen to it
		for k, v := range m.All() {
			_, none := v.(nested.None)
			if s, isText := k.(nested.String); none || (part == "_buffers" && isText && hidden[s]) {
				continue
			}
			_ = all.Set(k, v) // the key of a map is hashable
		}
	}
	packedWeights(all, state)
	plainAttributes(all, state)
	return all
}

// moduleParts are the dicts that a module's state has.
var moduleParts = []string{"_parameters", "_buffers", "_modules"}

func (l *loader) paysModule(state *nested.Map) bool {
	parts := []nested.Value{state}
	for _, name := range append(moduleParts, "_non_persistent_buffers_set") {
		part, _ := state.Lookup(name)
		parts = append(parts, part)
	}
	for _, v := range state.All() {
		if list, ok := v.(*nested.List); ok { // whose items are looked at
			parts = append(parts, list)
		}
	}
	return l.pays(parts...)
}

// packedWeights adds what quantized modules keep in objects of C++, weight and
// bias in a tuple: the state dict has them under the attribute's name
// (torch/ao/nn/quantized/modules/linear.py, LinearPackedParams).
func packedWeights(all, state *nested.Map) {
	for k, v := range state.All() {
		o, ok := v.(*nested.Opaque)
		if _, taken := all.Get(k); ok && !taken && o.Class == classScriptObject {
			_ = all.Set(k, o) // the key of a map is hashable
		}
	}
}

const classScriptObject = "torch.ScriptObject"

// scriptState returns what an object of C++ holds, whose state is that and the
// name of its class (torch/csrc/jit/python/script_init.cpp, ScriptObject).
func scriptState(o *nested.Opaque) (nested.Value, bool) {
	s, ok := o.State.(*nested.List)
	if !ok || o.Class != classScriptObject || len(s.Items) != 2 {
		return nil, false
	}
	_, named := s.Items[1].(nested.String)
	return s.Items[0], named
}

// plainAttributes adds what describes a module: numbers, texts and short lists
// of them, unless the name is private or taken.
func plainAttributes(all, state *nested.Map) {
	for k, v := range state.All() {
		name, ok := k.(nested.String)
		if !ok || strings.HasPrefix(string(name), "_") || !isPlain(v, 1) {
			continue
		}
		if _, taken := all.Get(name); !taken {
			_ = all.Set(name, v) // text is hashable
		}
	}
}

// isPlain reports a value with no tensor and no object inside.
func isPlain(v nested.Value, depth int) bool {
	switch v := v.(type) {
	case *nested.List:
		for _, item := range v.Items {
			if depth == 0 || !isPlain(item, depth-1) {
				return false
			}
		}
		return true
	case *nested.Map, *nested.Opaque, *nested.Tensor:
		return false
	}
	return true
}
