package pytorch

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
)

// Why an object is opaque: the Reason of a [nested.Opaque] that a PyTorch file
// gives. A sparse tensor's reason is its layout in torch's spelling
// ("torch.sparse_coo", "torch.sparse_csr" …), a nested one's "torch.nested" or
// "torch.jagged".
// An array of numpy without a tensor's dtype has "structured dtype", "object
// dtype" or "dtype" and its code.
const (
	reasonClass     = "class"            // an instance of a class that wick does not know
	reasonCall      = "call"             // what a function would have returned
	reasonAttribute = "attribute"        // getattr(class, name): an enum's member, a method
	reasonModule    = "module"           // a whole nn.Module; its members are its state dict
	reasonScript    = "torchscript"      // an instance of a class of a TorchScript archive
	reasonWrapper   = "wrapper subclass" // a tensor whose class keeps its data in its own way
	reasonNested    = "torch.nested"
	reasonJagged    = "torch.jagged"
	reasonRecords   = "structured dtype"
	reasonObjects   = "object dtype"
)

// callFunc returns the value of a known call. It is false for arguments that
// it cannot make sense of; the call then stays opaque.
type callFunc func(l *loader, args []nested.Value) (nested.Value, bool)

// knownCalls maps module.Name to what wick does instead of calling it. Each
// family has its own file.
var knownCalls = map[string]callFunc{}

// families are the tables that knownCalls is made of.
var families = []map[string]callFunc{
	containerCalls, byteCalls, numberCalls, textCalls, copyregCalls, torchCalls,
	rebuildCalls, quantizedCalls, sparseCalls, subclassCalls, numpyCalls, scriptCalls,
}

func init() {
	for _, family := range families {
		for name, f := range family {
			knownCalls[name] = f
		}
	}
}

func knownCall(text string) callFunc {
	if f := knownCalls[text]; f != nil {
		return f
	}
	if strings.HasPrefix(text, "torch.return_types.") {
		return returnType(text)
	}
	return nil
}

// globalValue is what a name stands for: a dtype, a layout and the like, or
// the name of a class or a function.
func globalValue(text string) nested.Value {
	if v, ok := torchConstant(text); ok {
		return v
	}
	switch text {
	case "builtins.Ellipsis":
		return nested.Symbol{Class: "ellipsis", Text: "Ellipsis"}
	case "builtins.NotImplemented":
		return nested.Symbol{Class: "NotImplementedType", Text: "NotImplemented"}
	}
	if looksLikeClass(text) {
		return nested.Symbol{Class: "type", Text: text}
	}
	return nested.Symbol{Class: "function", Text: text}
}

// isGlobal tells the names of classes and functions from other symbols.
func isGlobal(s nested.Symbol) bool { return s.Class == "type" || s.Class == "function" }

// looksLikeClass guesses from a name whether it is a class; it only decides how
// the name is called.
func looksLikeClass(text string) bool {
	if _, ok := plainClasses[text]; ok {
		return true
	}
	r, _ := utf8.DecodeRuneInString(text[strings.LastIndexByte(text, '.')+1:])
	return unicode.IsUpper(r)
}

// plainClasses are classes in small letters.
var plainClasses = map[string]struct{}{
	"builtins.int": {}, "builtins.float": {}, "builtins.bool": {}, "builtins.str": {}, "builtins.bytes": {},
	"builtins.bytearray": {}, "builtins.complex": {}, "builtins.list": {}, "builtins.tuple": {}, "builtins.dict": {},
	"builtins.set": {}, "builtins.frozenset": {}, "builtins.object": {}, "builtins.type": {}, "builtins.range": {},
	"builtins.slice": {}, "collections.defaultdict": {}, "collections.deque": {}, "datetime.datetime": {},
	"datetime.date": {}, "datetime.time": {}, "datetime.timedelta": {}, "datetime.timezone": {},
	"functools.partial": {}, "numpy.ndarray": {}, "numpy.dtype": {}, "torch.device": {}, "torch.dtype": {},
}

// opaque returns a new object that nobody built. Its members are found when
// the pickle is at its end and all state is known.
func (l *loader) opaque(class, reason string, args *nested.List) *nested.Opaque {
	o := &nested.Opaque{Class: class, Reason: reason}
	if args != nil && len(args.Items) > 0 {
		o.Args = args
	}
	l.opaques = append(l.opaques, o)
	return o
}

// unknown is the object of a call that wick knows nothing of.
func (l *loader) unknown(text string, args *nested.List, how pickle.How) nested.Value {
	reason := reasonClass
	switch {
	case strings.HasPrefix(text, "__torch__."):
		reason = reasonScript
	case (how == pickle.Reduce || how == pickle.Constant) && !looksLikeClass(text):
		reason = reasonCall
	}
	return l.opaque(text, reason, args)
}

// part is what APPEND, ADDITEMS and SETITEM gave to an opaque object: a
// subclass of list, set or dict.
type part struct {
	items *nested.List
	pairs *nested.Map
}

func (l *loader) partOf(o *nested.Opaque) *part {
	p := l.parts[o]
	if p == nil {
		p = &part{}
		l.parts[o] = p
	}
	return p
}

// Extend keeps the items that a subclass of list or set is given.
func (h *host) Extend(object nested.Value, items []nested.Value) error {
	o, ok := object.(*nested.Opaque)
	if !ok {
		return fault.New(fault.Malformed, "items for a "+nested.TypeName(object)).Needs("a list or a set", fault.MadeToDeceive)
	}
	p := (*loader)(h).partOf(o)
	if p.items == nil {
		p.items = nested.NewList("list")
	}
	p.items.Items = append(p.items.Items, items...)
	return nil
}

// Store keeps the pairs that a subclass of dict is given.
func (h *host) Store(object nested.Value, pairs []nested.Value) error {
	o, ok := object.(*nested.Opaque)
	if !ok {
		return fault.New(fault.Malformed, "keys for a "+nested.TypeName(object)).Needs("a dict", fault.MadeToDeceive)
	}
	p := (*loader)(h).partOf(o)
	if p.pairs == nil {
		p.pairs = nested.NewMap("dict")
	}
	for i := 0; i < len(pairs); i += 2 {
		if err := p.pairs.Set(pairs[i], pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// Build gives an object its state.
func (h *host) Build(object, state nested.Value) (nested.Value, error) {
	l := (*loader)(h)
	switch o := object.(type) {
	case *nested.Opaque:
		return l.buildOpaque(o, state), nil
	case *nested.Map:
		o.Attrs = state
		return o, nil
	case *nested.Tensor:
		return l.buildTensor(o, state), l.fatal
	case *nested.List:
		return o, l.buildList(o, state)
	case nested.Symbol: // a class or a value that says everything already
		return o, nil
	default:
		return nil, fault.New(fault.Malformed, "state for a "+nested.TypeName(object)).Needs("an object", fault.MadeToDeceive)
	}
}

func (l *loader) buildOpaque(o *nested.Opaque, state nested.Value) nested.Value {
	o.State = state
	switch o.Class {
	case "uuid.UUID":
		return uuidOf(o, state)
	case "functools.partial":
		o.Args = nil // the state repeats them
	}
	return o
}
