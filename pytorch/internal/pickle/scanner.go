package pickle

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// Op is one instruction as it stands in the file.
type Op struct {
	Code   Opcode
	Offset int64   // of the opcode, bytes
	Size   int64   // of opcode and argument, bytes
	Int    int64   // an integer argument; the length of Data where one is written
	Float  float64 // BINFLOAT's argument
	Data   []byte  // a byte or text argument; valid until the next call of Next
	More   []byte  // the second line of GLOBAL and INST: the name
}

// Asks reports whether the instruction asks for something by its name.
func (op *Op) Asks() bool {
	switch op.Code {
	case GLOBAL, INST, STACK_GLOBAL, EXT1, EXT2, EXT4:
		return true
	}
	return false
}

// Scanner yields the instructions of a pickle without carrying them out. It is
// what the machine, a disassembly and a scan have in common.
type Scanner struct {
	cursor *Cursor
	limits checkpoint.Limits
	count  int64
	first  []byte // the first of two lines, which the second may move
	stop   bool
}

// NewScanner returns a scanner over c that enforces the limits on opcodes,
// pickle bytes, and the length of strings and integers.
func NewScanner(c *Cursor, limits checkpoint.Limits) *Scanner {
	return &Scanner{cursor: c, limits: limits.Default()}
}

// Next fills op with the next instruction. After STOP it returns false. Errors
// carry the offset and the opcode.
func (s *Scanner) Next(op *Op) (bool, error) {
	if s.stop {
		return false, nil
	}
	if err := s.next(op); err != nil {
		return false, locate(err, op)
	}
	s.stop = op.Code == STOP
	return true, nil
}

// Count returns how many instructions were read.
func (s *Scanner) Count() int64 { return s.count }

// locate puts the place of op on an error of the data. Where the bytes end
// there is no opcode to name.
func locate(err error, op *Op) error {
	if e, ok := err.(*fault.Error); ok { //nolint:errorlint // only an error made here lacks a place
		e.At(op.Offset)
		if e.Opcode == "" && op.Code != 0 {
			e.Opcode = op.Code.String()
		}
	}
	return err
}

func (s *Scanner) next(op *Op) error {
	c := s.cursor
	*op = Op{Offset: c.Offset()}
	p, err := c.take(1)
	if err != nil {
		return err
	}
	op.Code = Opcode(p[0])
	if s.count++; s.count > s.limits.Opcodes {
		return fault.NewLimit("opcodes", s.count, s.limits.Opcodes)
	}
	if err := s.argument(op); err != nil {
		return err
	}
	op.Size = c.Offset() - op.Offset
	return s.total(op)
}

func (s *Scanner) total(op *Op) error {
	if s.cursor.taken() > s.limits.PickleBytes {
		return fault.NewLimit("pickle bytes", s.cursor.taken(), s.limits.PickleBytes)
	}
	if op.Code.known() {
		return nil
	}
	return fault.New(fault.Malformed, "byte "+strconv.Itoa(int(op.Code))+" is no pickle opcode").
		Needs("a pickle of protocol 0 to 5", fault.GetAgain)
}

func (o Opcode) known() bool { return names[o] != "" }

// argument reads what follows the opcode.
func (s *Scanner) argument(op *Op) error {
	switch kind := instructions[op.Code].argument; kind {
	case noArgument:
		return nil
	case oneLine, twoLines:
		return s.lines(op, kind)
	case bytes1, bytes4, bytes8, bytesInt4:
		return s.counted(op, kind)
	default:
		return s.fixed(op, kind)
	}
}

// widths holds the bytes of the fixed part of each argument.
var widths = [...]int{
	uint1: 1, uint2: 2, uint4: 4, uint8Bytes: 8, int4: 4, float8: 8,
	bytes1: 1, bytes4: 4, bytes8: 8, bytesInt4: 4, twoLines: 0,
}

func (s *Scanner) fixed(op *Op, kind argument) error {
	p, err := s.cursor.take(widths[kind])
	if err != nil {
		return err
	}
	switch kind {
	case uint1, bytes1:
		op.Int = int64(p[0])
	case uint2:
		op.Int = int64(binary.LittleEndian.Uint16(p))
	case uint4, bytes4:
		op.Int = int64(binary.LittleEndian.Uint32(p))
	case int4, bytesInt4:
		op.Int = int64(int32(binary.LittleEndian.Uint32(p))) //nolint:gosec // the sign is meant
	case float8:
		op.Float = math.Float64frombits(binary.BigEndian.Uint64(p))
	default: // lengths beyond int64 stay beyond every limit
		op.Int = int64(min(binary.LittleEndian.Uint64(p), math.MaxInt64))
	}
	return nil
}

// counted reads a length and as many bytes, which must exist before anything
// is done with the length.
func (s *Scanner) counted(op *Op, kind argument) error {
	if err := s.fixed(op, kind); err != nil {
		return err
	}
	if op.Int < 0 {
		return fault.New(fault.Malformed, "a negative length "+strconv.FormatInt(op.Int, 10)).
			Needs("a length of at least 0", fault.GetAgain)
	}
	if left, ok := s.cursor.remaining(); ok && op.Int > left {
		return fault.New(fault.Malformed, "a length of "+strconv.FormatInt(op.Int, 10)+" bytes where "+
			strconv.FormatInt(left, 10)+" remain").Needs("as many bytes as the length says", fault.CutShort)
	}
	name, limit := "string bytes", s.limits.StringBytes
	if op.Code == LONG1 || op.Code == LONG4 {
		name, limit = "int bytes", s.limits.IntBytes
	}
	if op.Int > min(limit, math.MaxInt) {
		return fault.NewLimit(name, op.Int, limit)
	}
	var err error
	op.Data, err = s.cursor.take(int(op.Int))
	return err
}

func (s *Scanner) lines(op *Op, kind argument) error {
	var err error
	if op.Data, err = s.cursor.line(s.limits.StringBytes); err != nil || kind == oneLine {
		return err
	}
	s.first = append(s.first[:0], op.Data...)
	op.Data = s.first
	op.More, err = s.cursor.line(s.limits.StringBytes)
	return err
}
