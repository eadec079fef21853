package pickle

import (
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// The opcodes that name, call or build. Each ends in the [Host].

func (m *machine) global(op *Op) error {
	v, err := m.resolve(op.Data, op.More, op.Offset)
	return m.pushNew(v, err)
}

// resolve asks the host for a name, once.
func (m *machine) resolve(module, name []byte, offset int64) (nested.Value, error) {
	if err := m.spend(longKey(len(module) + len(name))); err != nil {
		return nil, err
	}
	m.name = append(append(append(m.name[:0], module...), '\n'), name...)
	if v, ok := m.globals[string(m.name)]; ok {
		return v, nil
	}
	if err := m.spend(len(m.name) + callCost); err != nil {
		return nil, err
	}
	v, err := m.host.Global(string(module), string(name), offset)
	if err == nil {
		m.globals[string(m.name)] = v
	}
	return v, err
}

func (m *machine) stackGlobal(op *Op) error {
	v, err := m.pop(2)
	if err != nil {
		return err
	}
	module, ok := v[0].(nested.String)
	if !ok {
		return wrongType(v[0], "a module's name")
	}
	name, ok := v[1].(nested.String)
	if !ok {
		return wrongType(v[1], "a name in the module "+strings.Clone(string(module)))
	}
	g, err := m.resolve([]byte(module), []byte(name), op.Offset)
	return m.pushNew(g, err)
}

func (m *machine) persistent(*Op) error {
	id, err := m.pop(1)
	if err != nil {
		return err
	}
	if err := m.spend(callCost); err != nil {
		return err
	}
	if err := m.pay(id[0]); err != nil {
		return err
	}
	v, err := m.host.Persistent(id[0])
	return m.pushNew(v, err)
}

func (m *machine) textPersistent(op *Op) error {
	if err := m.spend(callCost); err != nil {
		return err
	}
	v, err := m.host.PersistentText(string(op.Data))
	return m.pushNew(v, err)
}

// call pushes what the host makes of a callee and its arguments.
func (m *machine) call(how How, callee nested.Value, args *nested.List) error {
	if err := m.spend(callCost); err != nil {
		return err
	}
	if err := m.pay(callee, args); err != nil {
		return err
	}
	v, err := m.host.Call(how, callee, args)
	return m.pushNew(v, err)
}

func (m *machine) reduce(*Op) error {
	if m.constant() {
		return m.callTop(Constant)
	}
	return m.callTop(Reduce)
}

// constant reports whether a call without arguments becomes the last item of a
// tuple and is not in the memo: nothing can change what it returns. Every tensor
// has such an item, the empty dict of its hooks.
func (m *machine) constant() bool {
	if m.slots == nil || len(m.stack) == 0 {
		return false
	}
	if args, ok := m.stack[len(m.stack)-1].(*nested.List); !ok || len(args.Items) > 0 {
		return false
	}
	rest := m.scanner.cursor.rest()
	rest = rest[m.unread(rest):]
	return len(rest) > 0 && Opcode(rest[0]) == TUPLE
}

func (m *machine) newObj(*Op) error { return m.callTop(New) }

func (m *machine) callTop(how How) error {
	v, err := m.pop(2)
	if err != nil {
		return err
	}
	args, err := tupleArgument(v[1])
	if err != nil {
		return err
	}
	return m.call(how, v[0], args)
}

func tupleArgument(v nested.Value) (*nested.List, error) {
	args, ok := v.(*nested.List)
	if !ok || args.Class == "list" || args.Class == "set" || args.Class == "frozenset" {
		return nil, wrongType(v, "a tuple of arguments")
	}
	return args, nil
}

// newObjEx is NEWOBJ with keyword arguments, which become a last argument.
func (m *machine) newObjEx(*Op) error {
	v, err := m.pop(3)
	if err != nil {
		return err
	}
	args, err := tupleArgument(v[1])
	if err != nil {
		return err
	}
	named, ok := v[2].(*nested.Map)
	if !ok {
		return wrongType(v[2], "a dict of keyword arguments")
	}
	if named.Len() > 0 {
		args = nested.NewList("tuple", append(args.Clone().Items, named)...)
	}
	return m.call(New, v[0], args)
}

func (m *machine) inst(op *Op) error {
	items, err := m.popMark()
	if err != nil {
		return err
	}
	args := m.pool.tuple(items)
	class, err := m.resolve(op.Data, op.More, op.Offset)
	if err != nil {
		return err
	}
	return m.call(Instance, class, args)
}

func (m *machine) obj(*Op) error {
	items, err := m.popMark()
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return fault.New(fault.Malformed, "no class above the mark").Needs("a class and its arguments", fault.MadeToDeceive)
	}
	return m.call(Instance, items[0], m.pool.tuple(items[1:]))
}

func (m *machine) build(*Op) error {
	v, err := m.top(2)
	if err != nil {
		return err
	}
	object, state := v[0], v[1]
	if err := m.pay(state); err != nil {
		return err
	}
	m.stack = m.stack[:len(m.stack)-1]
	built, err := m.host.Build(object, state)
	if err != nil {
		return err
	}
	if built != object {
		m.replace(object, built)
	}
	return nil
}

// replace puts built where object was, on the stack and in the memo.
func (m *machine) replace(object, built nested.Value) {
	m.stack[len(m.stack)-1] = built
	if m.forward == nil {
		m.forward = map[nested.Value]nested.Value{}
	}
	m.forward[object] = built
}

// extension refuses what only copyreg's registry of the writer could tell.
func (m *machine) extension(op *Op) error {
	return fault.New(fault.Unsupported, "the opcode "+op.Code.String()+" (a copyreg extension code)").
		Needs("a class by its name", "save the file without copyreg.add_extension")
}

// buffer refuses buffers that lie outside the pickle.
func (m *machine) buffer(op *Op) error {
	return fault.New(fault.Unsupported, "the opcode "+op.Code.String()+" (a buffer outside the pickle)").
		Needs("a pickle that holds its data", "save the file without buffer_callback")
}
