package pickle

import (
	"encoding/binary"
)

// longest is the most bytes of the instructions that quick knows.
const longest = 5

// quick carries out the instructions at the cursor for as long as they are short
// and lie in memory whole. Of a checkpoint nine in ten do: marks, small numbers,
// and what goes to the memo and comes from it. It leaves to the scanner, untouched,
// whatever it does not know, and whatever could fail before its call.
func (m *machine) quick(op *Op) error {
	c := m.scanner.cursor
	for !m.done && m.easy() {
		b := c.buf[c.pos : c.pos+longest]
		op.Code, op.Offset = Opcode(b[0]), c.base+int64(c.pos)
		var done bool
		var err error
		switch n := quickLen[b[0]]; n {
		case 0:
			return nil
		case 1:
			c.pos++
			done, err = true, instructions[b[0]].run(m, op)
		default:
			op.Int = quickInt(b, n)
			if done, err = m.short(op); done {
				c.pos += int(n)
			}
		}
		if err != nil || !done {
			return err
		}
		m.scanner.count++
	}
	return nil
}

// easy reports whether the next instruction lies in memory and cannot be over any
// of the limits that the scanner watches.
func (m *machine) easy() bool {
	s := m.scanner
	c := s.cursor
	return len(c.buf)-c.pos >= longest && s.count < s.limits.Opcodes && c.taken() <= s.limits.PickleBytes-longest
}

// short carries out an instruction with a number. It is false, and nothing has
// happened, for what the plain way shall do or refuse.
func (m *machine) short(op *Op) (done bool, err error) {
	switch op.Code {
	case BINPUT, LONG_BINPUT:
		if len(m.stack) <= m.floor() || m.room < wordCost {
			return false, nil
		}
		return true, m.put(op)
	case BINGET, LONG_BINGET:
		if _, ok := m.memo.get(op.Int); !ok {
			return false, nil
		}
		return true, m.get(op)
	default:
		return true, m.binInt(op)
	}
}

// quickLen is the length of the instructions that quick knows, 0 for others.
var quickLen = quickLengths()

func quickLengths() (lengths [256]uint8) {
	for i, row := range instructions {
		if row.argument == noArgument && row.name != "" {
			lengths[i] = 1
		}
	}
	for _, code := range []Opcode{BINPUT, BINGET, BININT1} {
		lengths[code] = 2
	}
	lengths[BININT2] = 3
	for _, code := range []Opcode{LONG_BINPUT, LONG_BINGET, BININT} {
		lengths[code] = longest
	}
	return lengths
}

// quickInt reads the number of an instruction of n bytes.
func quickInt(b []byte, n uint8) int64 {
	switch {
	case n == 2:
		return int64(b[1])
	case n == 3:
		return int64(binary.LittleEndian.Uint16(b[1:]))
	case Opcode(b[0]) == BININT:
		return int64(int32(binary.LittleEndian.Uint32(b[1:]))) //nolint:gosec // the sign is meant
	default:
		return int64(binary.LittleEndian.Uint32(b[1:]))
	}
}
