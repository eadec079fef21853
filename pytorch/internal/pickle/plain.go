package pickle

import (
	"math"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// The opcodes of plain values, the stack and the memo.

const maxProtocol = 5

func (m *machine) proto(op *Op) error {
	if op.Int > maxProtocol {
		return fault.New(fault.Unsupported, "pickle protocol "+strconv.FormatInt(op.Int, 10)).
			Needs("protocol 0 to 5", "save the file again with pickle_protocol=2")
	}
	return nil
}

// frame announces bytes that must exist. The machine needs no frames; it holds
// the pickle to them, so that a reader, which cannot know what comes, refuses
// what memory refuses.
func (m *machine) frame(op *Op) error {
	c := m.scanner.cursor
	if left, ok := c.remaining(); ok && op.Int > left {
		return fault.New(fault.Malformed, "a frame of "+strconv.FormatInt(op.Int, 10)+" bytes where "+
			strconv.FormatInt(left, 10)+" remain").Needs("a whole frame", fault.CutShort)
	}
	m.framed = max(m.framed, c.Offset()+min(op.Int, math.MaxInt64-c.Offset()))
	return nil
}

func (m *machine) stop(*Op) error {
	v, err := m.pop(1)
	if err != nil {
		return err
	}
	if at := m.scanner.cursor.Offset(); at < m.framed {
		return fault.New(fault.Malformed, "a frame that goes on for "+strconv.FormatInt(m.framed-at, 10)+" bytes behind the end").
			Needs("a frame that ends with the pickle", fault.MadeToDeceive)
	}
	m.result, m.done = v[0], true
	return nil
}

func (m *machine) mark(*Op) error {
	m.marks = append(m.marks, len(m.stack))
	if n := int64(len(m.marks)); n > m.limits.Depth {
		return fault.NewLimit("depth", n, m.limits.Depth)
	}
	return nil
}

// drop is POP, which takes a mark where no value lies above it.
func (m *machine) drop(*Op) error {
	if n := len(m.marks); n > 0 && m.marks[n-1] == len(m.stack) {
		m.marks = m.marks[:n-1]
		return nil
	}
	_, err := m.pop(1)
	return err
}

func (m *machine) dropMark(*Op) error {
	_, err := m.popMark()
	return err
}

func (m *machine) dup(*Op) error {
	v, err := m.top(1)
	if err != nil {
		return err
	}
	return m.push(v[0])
}

func (m *machine) put(op *Op) error {
	v, err := m.top(1)
	if err != nil {
		return err
	}
	m.remember(op.Int, v[0])
	return m.spend(wordCost)
}

// remember puts v in the memo, if anybody reads it there.
func (m *machine) remember(i int64, v nested.Value) {
	if m.slots.reads(i) {
		m.memo.put(i, v)
	} else {
		m.memo.count++
	}
}

func (m *machine) memoize(op *Op) error {
	op.Int = m.memo.count
	return m.put(op)
}

func (m *machine) get(op *Op) error {
	v, ok := m.memo.get(op.Int)
	if !ok {
		return fault.New(fault.Malformed, "memo slot "+strconv.FormatInt(op.Int, 10)+" is empty").
			Needs("a slot that was filled before", fault.MadeToDeceive)
	}
	if m.forward != nil {
		if instead, ok := m.forward[v]; ok {
			v = instead
		}
	}
	return m.push(v)
}

// index reads the text form of a memo index.
func (m *machine) index(op *Op) error {
	n, err := strconv.ParseInt(string(op.Data), 10, 64)
	if err != nil || n < 0 {
		return notANumber("an index of the memo", string(op.Data))
	}
	op.Int = n
	return nil
}

func (m *machine) textPut(op *Op) error {
	if err := m.index(op); err != nil {
		return err
	}
	return m.put(op)
}

func (m *machine) textGet(op *Op) error {
	if err := m.index(op); err != nil {
		return err
	}
	return m.get(op)
}

func (m *machine) none(*Op) error     { return m.push(nested.None{}) }
func (m *machine) newTrue(*Op) error  { return m.push(nested.Bool(true)) }
func (m *machine) newFalse(*Op) error { return m.push(nested.Bool(false)) }

func (m *machine) binInt(op *Op) error { return m.push(m.pool.int(op.Int)) }

// textInt is INT, whose texts 00 and 01 are False and True. So is any other zero or
// one of two letters for CPython, but not for its own pickle.py.
func (m *machine) textInt(op *Op) error {
	switch string(op.Data) {
	case "00":
		return m.push(nested.Bool(false))
	case "01":
		return m.push(nested.Bool(true))
	case "-0", "+0", "+1", " 0", " 1", "\t0", "\t1":
		return notANumber("an integer", string(op.Data))
	}
	v, err := parseInt(string(op.Data), m.limits.IntBytes)
	return m.pushNew(v, err)
}

func (m *machine) textLong(op *Op) error {
	v, err := parseInt(strings.TrimSuffix(string(op.Data), "L"), m.limits.IntBytes)
	return m.pushNew(v, err)
}

func (m *machine) pushNew(v nested.Value, err error) error {
	if err != nil {
		return err
	}
	return m.push(v)
}

func (m *machine) long(op *Op) error {
	if len(op.Data) <= 8 {
		return m.push(m.pool.int(smallLong(op.Data)))
	}
	if err := m.spend(len(op.Data)); err != nil {
		return err
	}
	return m.push(longValue(op.Data))
}

func (m *machine) textFloat(op *Op) error {
	v, err := parseFloat(string(op.Data))
	return m.pushNew(v, err)
}

func (m *machine) binFloat(op *Op) error { return m.push(nested.Float(op.Float)) }

// str is every binary string: UTF-8, or the bytes of a str of Python 2.
func (m *machine) str(op *Op) error {
	if err := m.spend(len(op.Data)); err != nil {
		return err
	}
	return m.push(m.pool.str(op.Data))
}

func (m *machine) textString(op *Op) error {
	s, err := parseString(op.Data)
	if err != nil {
		return err
	}
	return m.push(m.pool.str([]byte(s)))
}

func (m *machine) textUnicode(op *Op) error {
	s, err := parseUnicode(op.Data)
	if err != nil {
		return err
	}
	return m.push(m.pool.str([]byte(s)))
}

func (m *machine) bytes(op *Op) error {
	if err := m.spend(len(op.Data)); err != nil {
		return err
	}
	return m.push(nested.Bytes(op.Data))
}

func (m *machine) byteArray(op *Op) error {
	if err := m.spend(len(op.Data)); err != nil {
		return err
	}
	return m.push(nested.ByteArray(op.Data))
}
