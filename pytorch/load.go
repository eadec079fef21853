package pytorch

import (
	"io"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
	"github.com/wick-ml/wick/tensor"
)

// storageRef is what a persistent id says of a storage
// (torch/serialization.py, persistent_id in _save and _legacy_save).
type storageRef struct {
	Key      string
	DType    tensor.DType // of a typed storage; U8 with Untyped
	Untyped  bool
	Elements int64 // as the pickle states it: elements, or bytes if untyped
	Device   string
	View     *storageView // legacy files only, nil elsewhere
}

// Bytes returns the storage's size in bytes as the pickle states it, and
// whether it is one. For the packed quantized dtypes torch counts bytes.
func (r storageRef) Bytes() (int64, bool) { return storageBytes(r.DType, r.Elements) }

func storageBytes(d tensor.DType, elements int64) (int64, bool) {
	if d.Size() == 0 {
		return elements, elements >= 0
	}
	return d.Bytes(elements)
}

// storageView is a window of a legacy storage, in elements of its dtype.
type storageView struct {
	Key              string
	Offset, Elements int64
}

// loader turns one container's pickles into a tree. The container fills the
// first fields; load fills the others. One loader serves all pickles of one
// file, one after the other: storages are shared between them.
type loader struct {
	limits  checkpoint.Limits
	record  string // name of the pickle that is read, for errors
	present int64  // bytes of the file; 0 if unknown, then those of the pickle: bounds the tree's size

	// again starts another pass over the pickle that is read next. With it, what
	// the pickle remembers and never asks for is not kept. Nil where bytes come
	// once, or only at a price.
	again func() io.Reader

	// storage resolves a storage, once for each key. It returns the whole
	// storage, whatever View says. The loader checks that it holds at least
	// what the pickle states (more is allowed, as torch allows it), so the
	// container only proves that the bytes exist. An error costs the tensors
	// over this storage, not the tree; one of Kind IO ends the loading. It is
	// not called for storages of the meta device. Nil: there are no storages.
	storage func(storageRef) (*tensor.Storage, error)

	// object resolves a persistent id that is neither a storage nor a module,
	// as tar files have them (text or an Int); nil where there are none.
	object func(id nested.Value) (nested.Value, error)

	// tensorByID resolves torch.jit._pickle.build_tensor_from_id of TorchScript
	// archives before torch 1.3; nil elsewhere.
	tensorByID func(id int64) (nested.Value, error)

	globals  []checkpoint.Global // every global met, each once for each pickle, in order
	storages []*tensor.Storage   // every storage resolved, in the order of the pickles

	within  bool                     // whether the pickle lies in another one, which may use a storage that is all of it
	bare    bool                     // whether it was one
	inner   int64                    // bytes inside of the pickle that may still be opened; 0 before the first
	names   map[string]*global       // by module.Name in Python 3's spelling
	slots   storageSlots             // by storage key
	views   map[string]storageRef    // by view key; legacy files only, nil elsewhere
	opaques []*nested.Opaque         // of this pickle, in order
	parts   map[*nested.Opaque]*part // what APPEND and SETITEM gave to some of them
	recent  [2]*global               // what was called last: a rebuild function and OrderedDict take turns
	class   storageClass             // what was asked for last
	empty   *nested.Map              // see noHooks
	tensors []nested.Tensor          // a block to cut from
	maker   tensor.Maker
	pay     func(...nested.Value) error // for copies; see [pickle.Payer]
	waiting bool                        // whether some tensor was made that has no bytes yet
	fatal   error                       // an error of the system, which ends the loading
	shape   []int64                     // scratch for shapes and strides
	strides []int64
}

// load reads one pickle up to its STOP opcode and returns its value. Its
// errors carry the record, the offset and the opcode.
func (l *loader) load(c *pickle.Cursor) (nested.Value, error) {
	l.limits = l.limits.Default()
	l.names, l.recent = map[string]*global{}, [2]*global{}
	l.waiting = false
	l.opaques, l.parts = nil, map[*nested.Opaque]*part{}
	var slots *pickle.Slots
	if l.again != nil {
		slots = pickle.Skim(pickle.NewStream(l.again()), l.limits)
		l.again = nil
	}
	root, err := pickle.Load(c, (*host)(l), l.limits, l.present, slots)
	if err == nil {
		root, err = l.finish(root)
	}
	if err != nil {
		return nil, l.inRecord(err)
	}
	return root, nil
}

// again returns what starts another pass over a pickle at an offset of a source, nil
// where reading it twice costs another transfer.
func again(src checkpoint.Source, at int64) func() io.Reader {
	if src == nil || checkpoint.IsDistant(src) {
		return nil
	}
	return func() io.Reader { return io.NewSectionReader(src, at, src.Size()-at) }
}

func (l *loader) inRecord(err error) error {
	return fault.InRecord(err, l.record)
}

// host is the loader as the machine sees it.
type host loader

// Pay takes what copies are paid with.
func (h *host) Pay(pay func(...nested.Value) error) { h.pay = pay }

// pays pays for a copy of all these values; false ends the loading.
func (l *loader) pays(values ...nested.Value) bool {
	if err := l.pay(values...); err != nil && l.fatal == nil {
		l.fatal = err
	}
	return l.fatal == nil
}

// global is a name that the pickle asked for.
type global struct {
	text    string // module.Name in Python 3's spelling
	call    callFunc
	borrows bool // whether call keeps nothing of its list of arguments
	at      int  // index in loader.globals
}

// Global returns the value of a name: a known one, or a Symbol for a class or a
// function that nobody imports.
func (h *host) Global(module, name string, offset int64) (nested.Value, error) {
	l := (*loader)(h)
	l.globals = append(l.globals, checkpoint.Global{Module: module, Name: name, Record: l.record, Offset: offset})
	text := python3Name(module, name)
	if strings.HasPrefix(name, "torch.") { // a memory format, under whatever module has torch in it (pickle.whichmodule)
		text = name
	}
	if l.names[text] == nil {
		l.names[text] = &global{text: text, call: knownCall(text), borrows: borrowers[text], at: len(l.globals) - 1}
	}
	return globalValue(text), nil
}

// Call returns what a callee makes of its arguments: a known value, or an
// opaque object that says what would have been called.
func (h *host) Call(how pickle.How, callee nested.Value, args *nested.List) (nested.Value, error) {
	l := (*loader)(h)
	s, isSymbol := callee.(nested.Symbol)
	o, isOpaque := callee.(*nested.Opaque)
	switch {
	case isOpaque:
		return l.opaque(o.Class, reasonCall, args), nil
	case !isSymbol || !isGlobal(s):
		return nil, fault.New(fault.Malformed, "a call of a "+nested.TypeName(callee)).
			Needs("a class or a function", fault.MadeToDeceive)
	}
	if how == pickle.Constant && s.Text == classOrderedDict {
		l.lookup(s.Text)
		return l.noHooks(), l.fatal
	}
	v := l.call(s.Text, args, how)
	return v, l.fatal
}

// noHooks is the empty dict of hooks of all tensors.
func (l *loader) noHooks() nested.Value {
	if l.empty == nil {
		l.empty = nested.NewMap(classOrderedDict)
	}
	return l.empty
}

// Borrows reports whether a callee is one that makes tensors, of which there are
// many, and that keeps no arguments.
func (h *host) Borrows(callee nested.Value) bool {
	s, ok := callee.(nested.Symbol)
	if !ok || !isGlobal(s) {
		return false
	}
	g := (*loader)(h).lookup(s.Text)
	return g != nil && g.borrows
}

// call is Call for a global by its name.
func (l *loader) call(text string, args *nested.List, how pickle.How) nested.Value {
	g := l.lookup(text)
	if g != nil && g.call != nil {
		if v, ok := g.call(l, args.Items); ok {
			return v
		}
		if g.borrows {
			args = args.Clone() // an object keeps what it was called with
		}
	}
	return l.unknown(text, args, how)
}

// lookup finds a global that is called; nil for one that only an object names.
func (l *loader) lookup(text string) *global {
	for _, g := range l.recent {
		if g != nil && g.text == text {
			return g
		}
	}
	g := l.names[text]
	if g != nil {
		l.recent[1], l.recent[0] = l.recent[0], g
		l.globals[g.at].Called = true
	}
	return g
}

// Persistent resolves a persistent id: a storage, the class of a module with
// its source text, or what the container knows.
func (h *host) Persistent(id nested.Value) (nested.Value, error) {
	l := (*loader)(h)
	v, err := l.persistent(id)
	if err == nil {
		err = l.fatal
	}
	return v, err
}

// PersistentText resolves the text form of protocol 0, which torch writes as
// the text of the tuple.
func (h *host) PersistentText(text string) (nested.Value, error) {
	l := (*loader)(h)
	id, ok := l.parseTuple(text)
	if !ok {
		if l.object == nil {
			return nil, badPersistent(nested.String(text))
		}
		return l.object(nested.String(text))
	}
	return h.Persistent(id)
}
