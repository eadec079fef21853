package pickle

import (
	"encoding/binary"
	"slices"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// The opcodes of tuples, lists, dicts and sets.

func (m *machine) emptyTuple(*Op) error { return m.push(m.pool.tuple(nil)) }

func (m *machine) tuple(*Op) error {
	items, err := m.popMark()
	return m.pushTuple(items, err)
}

func (m *machine) tuple1(*Op) error { return m.tupleOf(1) }
func (m *machine) tuple2(*Op) error { return m.tupleOf(2) }
func (m *machine) tuple3(*Op) error { return m.tupleOf(3) }

func (m *machine) tupleOf(n int) error {
	items, err := m.pop(n)
	return m.pushTuple(items, err)
}

func (m *machine) pushTuple(items []nested.Value, err error) error {
	if err != nil {
		return err
	}
	if err := m.spend(listCost + wordCost*len(items)); err != nil {
		return err
	}
	if m.borrowed() {
		m.items = append(m.items[:0], items...)
		m.lent = nested.List{Class: "tuple", Items: m.items}
		return m.push(&m.lent)
	}
	return m.push(m.pool.tuple(items))
}

// borrowed reports whether a call follows that is the only one to see the tuple
// that was just taken off the stack, and does not keep it. Then one tuple serves
// all of these calls.
func (m *machine) borrowed() bool {
	if m.slots == nil {
		return false
	}
	rest := m.scanner.cursor.rest()
	rest = rest[m.unread(rest):]
	switch {
	case len(rest) == 0:
		return false
	case Opcode(rest[0]) == BINPERSID:
		return true
	case Opcode(rest[0]) == REDUCE:
		return len(m.stack) > m.floor() && m.host.Borrows(m.stack[len(m.stack)-1])
	}
	return false
}

// unread returns the length of the instruction that puts the top of the stack
// where nobody reads it, 0 if another one follows.
func (m *machine) unread(rest []byte) int {
	switch {
	case len(rest) < 5:
		return 0
	case Opcode(rest[0]) == LONG_BINPUT && !m.slots.reads(int64(binary.LittleEndian.Uint32(rest[1:]))):
		return 5
	case Opcode(rest[0]) == BINPUT && !m.slots.reads(int64(rest[1])):
		return 2
	case Opcode(rest[0]) == MEMOIZE && !m.slots.reads(m.memo.count):
		return 1
	}
	return 0
}

func (m *machine) emptyList(*Op) error { return m.pushList("list", nil) }

func (m *machine) list(*Op) error {
	items, err := m.popMark()
	if err != nil {
		return err
	}
	return m.pushList("list", items)
}

func (m *machine) pushList(class string, items []nested.Value) error {
	if err := m.spend(listCost + wordCost*len(items)); err != nil {
		return err
	}
	return m.push(nested.NewList(class, slices.Clone(items)...))
}

func (m *machine) emptySet(*Op) error { return m.pushList("set", nil) }

func (m *machine) frozenSet(*Op) error {
	items, err := m.popMark()
	if err != nil {
		return err
	}
	if err := m.spend(pairCost * len(items)); err != nil {
		return err
	}
	for i, item := range items {
		if err := m.spend(keyCost(item, i)); err != nil {
			return err
		}
	}
	if items, err = nested.Distinct(items); err != nil {
		return err
	}
	return m.pushList("frozenset", items)
}

func (m *machine) emptyDict(*Op) error {
	if err := m.spend(mapCost); err != nil {
		return err
	}
	return m.push(nested.NewMap("dict"))
}

func (m *machine) dict(op *Op) error {
	pairs, err := m.popMark()
	if err != nil {
		return err
	}
	d := nested.NewMap("dict")
	if err := m.store(d, pairs); err != nil {
		return err
	}
	if err := m.spend(mapCost); err != nil {
		return err
	}
	return m.push(d)
}

func (m *machine) appendOne(*Op) error {
	item, err := m.pop(1)
	if err != nil {
		return err
	}
	return m.extend(item)
}

func (m *machine) appends(*Op) error {
	items, err := m.popMark()
	if err != nil {
		return err
	}
	return m.extend(items)
}

// extend adds items to the list on top of the stack.
func (m *machine) extend(items []nested.Value) error {
	target, err := m.top(1)
	if err != nil {
		return err
	}
	if err := m.spend(wordCost * len(items)); err != nil {
		return err
	}
	l, ok := target[0].(*nested.List)
	if !ok {
		return m.host.Extend(target[0], items)
	}
	if l.Class == "tuple" || l.Class == "set" || l.Class == "frozenset" {
		return wrongType(l, "a list to append to")
	}
	l.Items = append(l.Items, items...)
	return nil
}

func (m *machine) addItems(*Op) error {
	items, err := m.popMark()
	if err != nil {
		return err
	}
	target, err := m.top(1)
	if err != nil {
		return err
	}
	if err := m.spend(wordCost * len(items)); err != nil {
		return err
	}
	l, ok := target[0].(*nested.List)
	if !ok {
		return m.host.Extend(target[0], items)
	}
	if l.Class != "set" {
		return wrongType(l, "a set to add to")
	}
	return m.add(l, items)
}

// add adds to a set what it does not have yet.
func (m *machine) add(set *nested.List, items []nested.Value) error {
	if err := m.spend(pairCost * len(items)); err != nil {
		return err
	}
	seen := m.sets[set]
	if seen == nil {
		seen = nested.NewMap("set")
		if m.sets == nil {
			m.sets = map[*nested.List]*nested.Map{}
		}
		m.sets[set] = seen
		items = append(set.Items, items...) // it may have been made of a list
		set.Items = nil
	}
	for _, item := range items {
		n := seen.Len()
		if err := m.spend(keyCost(item, n)); err != nil {
			return err
		}
		if err := seen.Set(item, nested.None{}); err != nil {
			return err
		}
		if seen.Len() > n {
			set.Items = append(set.Items, item)
		}
	}
	return nil
}

func (m *machine) setItem(*Op) error {
	pair, err := m.pop(2)
	if err != nil {
		return err
	}
	return m.setPairs(pair)
}

func (m *machine) setItems(*Op) error {
	pairs, err := m.popMark()
	if err != nil {
		return err
	}
	return m.setPairs(pairs)
}

// setPairs stores into the map on top of the stack.
func (m *machine) setPairs(pairs []nested.Value) error {
	target, err := m.top(1)
	if err != nil {
		return err
	}
	return m.store(target[0], pairs)
}

func (m *machine) store(target nested.Value, pairs []nested.Value) error {
	if len(pairs)%2 != 0 {
		return fault.New(fault.Malformed, "a key without a value").Needs("keys and values in pairs", fault.MadeToDeceive)
	}
	if err := m.spend(pairCost * len(pairs) / 2); err != nil {
		return err
	}
	d, ok := target.(*nested.Map)
	if !ok {
		return m.host.Store(target, pairs)
	}
	for i := 0; i < len(pairs); i += 2 {
		if err := m.spend(keyCost(pairs[i], d.Len())); err != nil {
			return err
		}
		if err := d.Set(pairs[i], pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}
