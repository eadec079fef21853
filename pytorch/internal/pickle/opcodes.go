package pickle

import "strconv"

// Opcode is the first byte of an instruction of a pickle.
type Opcode byte

// The opcodes of protocols 0 to 5, by their names in Python's pickletools.
const (
	MARK             Opcode = '('
	STOP             Opcode = '.'
	POP              Opcode = '0'
	POP_MARK         Opcode = '1'
	DUP              Opcode = '2'
	FLOAT            Opcode = 'F'
	INT              Opcode = 'I'
	BININT           Opcode = 'J'
	BININT1          Opcode = 'K'
	LONG             Opcode = 'L'
	BININT2          Opcode = 'M'
	NONE             Opcode = 'N'
	PERSID           Opcode = 'P'
	BINPERSID        Opcode = 'Q'
	REDUCE           Opcode = 'R'
	STRING           Opcode = 'S'
	BINSTRING        Opcode = 'T'
	SHORT_BINSTRING  Opcode = 'U'
	UNICODE          Opcode = 'V'
	BINUNICODE       Opcode = 'X'
	APPEND           Opcode = 'a'
	BUILD            Opcode = 'b'
	GLOBAL           Opcode = 'c'
	DICT             Opcode = 'd'
	EMPTY_DICT       Opcode = '}'
	APPENDS          Opcode = 'e'
	GET              Opcode = 'g'
	BINGET           Opcode = 'h'
	INST             Opcode = 'i'
	LONG_BINGET      Opcode = 'j'
	LIST             Opcode = 'l'
	EMPTY_LIST       Opcode = ']'
	OBJ              Opcode = 'o'
	PUT              Opcode = 'p'
	BINPUT           Opcode = 'q'
	LONG_BINPUT      Opcode = 'r'
	SETITEM          Opcode = 's'
	TUPLE            Opcode = 't'
	EMPTY_TUPLE      Opcode = ')'
	SETITEMS         Opcode = 'u'
	BINFLOAT         Opcode = 'G'
	PROTO            Opcode = 0x80
	NEWOBJ           Opcode = 0x81
	EXT1             Opcode = 0x82
	EXT2             Opcode = 0x83
	EXT4             Opcode = 0x84
	TUPLE1           Opcode = 0x85
	TUPLE2           Opcode = 0x86
	TUPLE3           Opcode = 0x87
	NEWTRUE          Opcode = 0x88
	NEWFALSE         Opcode = 0x89
	LONG1            Opcode = 0x8a
	LONG4            Opcode = 0x8b
	BINBYTES         Opcode = 'B'
	SHORT_BINBYTES   Opcode = 'C'
	SHORT_BINUNICODE Opcode = 0x8c
	BINUNICODE8      Opcode = 0x8d
	BINBYTES8        Opcode = 0x8e
	EMPTY_SET        Opcode = 0x8f
	ADDITEMS         Opcode = 0x90
	FROZENSET        Opcode = 0x91
	NEWOBJ_EX        Opcode = 0x92
	STACK_GLOBAL     Opcode = 0x93
	MEMOIZE          Opcode = 0x94
	FRAME            Opcode = 0x95
	BYTEARRAY8       Opcode = 0x96
	NEXT_BUFFER      Opcode = 0x97
	READONLY_BUFFER  Opcode = 0x98
)

// argument says what follows an opcode in the file.
type argument uint8

const (
	noArgument argument = iota
	uint1               // one byte
	uint2               // little-endian, as all that follow
	uint4
	uint8Bytes
	int4
	float8    // big-endian
	bytes1    // a length of one byte, then as many bytes
	bytes4    // a length of four bytes
	bytes8    // a length of eight bytes
	bytesInt4 // a length of four bytes with a sign
	oneLine   // text up to a newline
	twoLines
)

// instruction is a row of the table that the scanner and the machine share.
type instruction struct {
	name     string
	argument argument
	protocol uint8 // that brought it
	run      func(*machine, *Op) error
}

// instructions describes every opcode; a row without a name is none.
var instructions = [256]instruction{
	MARK:             {"MARK", noArgument, 0, (*machine).mark},
	STOP:             {"STOP", noArgument, 0, (*machine).stop},
	POP:              {"POP", noArgument, 0, (*machine).drop},
	POP_MARK:         {"POP_MARK", noArgument, 1, (*machine).dropMark},
	DUP:              {"DUP", noArgument, 0, (*machine).dup},
	FLOAT:            {"FLOAT", oneLine, 0, (*machine).textFloat},
	INT:              {"INT", oneLine, 0, (*machine).textInt},
	BININT:           {"BININT", int4, 1, (*machine).binInt},
	BININT1:          {"BININT1", uint1, 1, (*machine).binInt},
	LONG:             {"LONG", oneLine, 0, (*machine).textLong},
	BININT2:          {"BININT2", uint2, 1, (*machine).binInt},
	NONE:             {"NONE", noArgument, 0, (*machine).none},
	PERSID:           {"PERSID", oneLine, 0, (*machine).textPersistent},
	BINPERSID:        {"BINPERSID", noArgument, 1, (*machine).persistent},
	REDUCE:           {"REDUCE", noArgument, 0, (*machine).reduce},
	STRING:           {"STRING", oneLine, 0, (*machine).textString},
	BINSTRING:        {"BINSTRING", bytesInt4, 1, (*machine).str},
	SHORT_BINSTRING:  {"SHORT_BINSTRING", bytes1, 1, (*machine).str},
	UNICODE:          {"UNICODE", oneLine, 0, (*machine).textUnicode},
	BINUNICODE:       {"BINUNICODE", bytes4, 1, (*machine).str},
	APPEND:           {"APPEND", noArgument, 0, (*machine).appendOne},
	BUILD:            {"BUILD", noArgument, 0, (*machine).build},
	GLOBAL:           {"GLOBAL", twoLines, 0, (*machine).global},
	DICT:             {"DICT", noArgument, 0, (*machine).dict},
	EMPTY_DICT:       {"EMPTY_DICT", noArgument, 1, (*machine).emptyDict},
	APPENDS:          {"APPENDS", noArgument, 1, (*machine).appends},
	GET:              {"GET", oneLine, 0, (*machine).textGet},
	BINGET:           {"BINGET", uint1, 1, (*machine).get},
	INST:             {"INST", twoLines, 0, (*machine).inst},
	LONG_BINGET:      {"LONG_BINGET", uint4, 1, (*machine).get},
	LIST:             {"LIST", noArgument, 0, (*machine).list},
	EMPTY_LIST:       {"EMPTY_LIST", noArgument, 1, (*machine).emptyList},
	OBJ:              {"OBJ", noArgument, 1, (*machine).obj},
	PUT:              {"PUT", oneLine, 0, (*machine).textPut},
	BINPUT:           {"BINPUT", uint1, 1, (*machine).put},
	LONG_BINPUT:      {"LONG_BINPUT", uint4, 1, (*machine).put},
	SETITEM:          {"SETITEM", noArgument, 0, (*machine).setItem},
	TUPLE:            {"TUPLE", noArgument, 0, (*machine).tuple},
	EMPTY_TUPLE:      {"EMPTY_TUPLE", noArgument, 1, (*machine).emptyTuple},
	SETITEMS:         {"SETITEMS", noArgument, 1, (*machine).setItems},
	BINFLOAT:         {"BINFLOAT", float8, 1, (*machine).binFloat},
	PROTO:            {"PROTO", uint1, 2, (*machine).proto},
	NEWOBJ:           {"NEWOBJ", noArgument, 2, (*machine).newObj},
	EXT1:             {"EXT1", uint1, 2, (*machine).extension},
	EXT2:             {"EXT2", uint2, 2, (*machine).extension},
	EXT4:             {"EXT4", int4, 2, (*machine).extension},
	TUPLE1:           {"TUPLE1", noArgument, 2, (*machine).tuple1},
	TUPLE2:           {"TUPLE2", noArgument, 2, (*machine).tuple2},
	TUPLE3:           {"TUPLE3", noArgument, 2, (*machine).tuple3},
	NEWTRUE:          {"NEWTRUE", noArgument, 2, (*machine).newTrue},
	NEWFALSE:         {"NEWFALSE", noArgument, 2, (*machine).newFalse},
	LONG1:            {"LONG1", bytes1, 2, (*machine).long},
	LONG4:            {"LONG4", bytesInt4, 2, (*machine).long},
	BINBYTES:         {"BINBYTES", bytes4, 3, (*machine).bytes},
	SHORT_BINBYTES:   {"SHORT_BINBYTES", bytes1, 3, (*machine).bytes},
	SHORT_BINUNICODE: {"SHORT_BINUNICODE", bytes1, 4, (*machine).str},
	BINUNICODE8:      {"BINUNICODE8", bytes8, 4, (*machine).str},
	BINBYTES8:        {"BINBYTES8", bytes8, 4, (*machine).bytes},
	EMPTY_SET:        {"EMPTY_SET", noArgument, 4, (*machine).emptySet},
	ADDITEMS:         {"ADDITEMS", noArgument, 4, (*machine).addItems},
	FROZENSET:        {"FROZENSET", noArgument, 4, (*machine).frozenSet},
	NEWOBJ_EX:        {"NEWOBJ_EX", noArgument, 4, (*machine).newObjEx},
	STACK_GLOBAL:     {"STACK_GLOBAL", noArgument, 4, (*machine).stackGlobal},
	MEMOIZE:          {"MEMOIZE", noArgument, 4, (*machine).memoize},
	FRAME:            {"FRAME", uint8Bytes, 4, (*machine).frame},
	BYTEARRAY8:       {"BYTEARRAY8", bytes8, 5, (*machine).byteArray},
	NEXT_BUFFER:      {"NEXT_BUFFER", noArgument, 5, (*machine).buffer},
	READONLY_BUFFER:  {"READONLY_BUFFER", noArgument, 5, (*machine).buffer},
}

// names is apart from instructions, which the machine's own methods could not
// mention without a cycle of initialisation.
var names [256]string

func init() {
	for i := range instructions {
		names[i] = instructions[i].name
	}
}

// String returns the opcode's name in Python's pickletools, or its byte.
func (o Opcode) String() string {
	if names[o] != "" {
		return names[o]
	}
	return "0x" + strconv.FormatUint(uint64(o), 16)
}

// Protocol returns the pickle protocol that brought the opcode.
func (o Opcode) Protocol() int { return int(instructions[o].protocol) }

// plural spells a count with its unit.
func plural(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return strconv.Itoa(n) + " " + unit + "s"
}
