package pickle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// plainHost answers every name with a Symbol and every call with an Opaque.
type plainHost struct{ extended, stored int }

func (h *plainHost) Global(module, name string, _ int64) (nested.Value, error) {
	return nested.Symbol{Class: "type", Text: module + "." + name}, nil
}

func (h *plainHost) Persistent(id nested.Value) (nested.Value, error) {
	return nested.Symbol{Class: "id", Text: nested.Repr(id)}, nil
}

func (h *plainHost) PersistentText(id string) (nested.Value, error) {
	return nested.Symbol{Class: "id", Text: id}, nil
}

func (h *plainHost) Borrows(nested.Value) bool { return false }

func (h *plainHost) Call(how How, callee nested.Value, args *nested.List) (nested.Value, error) {
	return &nested.Opaque{Class: nested.Repr(callee), Reason: [...]string{"reduce", "new", "instance", "reduce"}[how], Args: args}, nil
}

func (h *plainHost) Build(object, state nested.Value) (nested.Value, error) {
	o, ok := object.(*nested.Opaque)
	if !ok {
		return nil, fault.New(fault.Malformed, "no object")
	}
	if o.State = state; state == nested.Value(nested.String("replace")) {
		return nested.String("replaced"), nil
	}
	return o, nil
}

func (h *plainHost) Extend(object nested.Value, items []nested.Value) error {
	h.extended += len(items)
	return h.opaque(object)
}

func (h *plainHost) Store(object nested.Value, pairs []nested.Value) error {
	h.stored += len(pairs) / 2
	return h.opaque(object)
}

func (h *plainHost) opaque(object nested.Value) error {
	if _, ok := object.(*nested.Opaque); !ok {
		return fault.New(fault.Malformed, "no container")
	}
	return nil
}

func run(data string) (nested.Value, error) {
	return Load(NewCursor([]byte(data)), &plainHost{}, checkpoint.Limits{}, int64(len(data)), nil)
}

// line strings of opcodes read better with these.
func u4(n uint32) string { return string(binary.LittleEndian.AppendUint32(nil, n)) }
func u8(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }

// TestValues carries out each opcode once.
func TestValues(t *testing.T) {
	for _, c := range []struct{ name, pickle, want string }{
		{"NONE", "N.", "None"},
		{"NEWTRUE NEWFALSE TUPLE2", "\x80\x02\x88\x89\x86.", "(True, False)"},
		{"INT", "I42\n.", "42"},
		{"INT of booleans", "(I01\nI00\nt.", "(True, False)"},
		{"INT beyond 64 bits", "I9223372036854775808\n.", "9223372036854775808"},
		{"LONG", "L-7L\n.", "-7"},
		{"LONG without L", "L12345678901234567890\n.", "12345678901234567890"},
		{"BININT", "J\xff\xff\xff\xff.", "-1"},
		{"BININT1", "K\xff.", "255"},
		{"BININT2", "M\x00\x01.", "256"},
		{"LONG1 of no bytes", "\x8a\x00.", "0"},
		{"LONG1", "\x8a\x01\x80.", "-128"},
		{"LONG1 of nine bytes", "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00.", "9223372036854775808"},
		{"LONG1 padded", "\x8a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff.", "-1"},
		{"LONG4", "\x8b\x02\x00\x00\x00\xff\x7f.", "32767"},
		{"FLOAT", "F0.1\n.", "0.1"},
		{"FLOAT of infinity", "F-inf\n.", "-inf"},
		{"BINFLOAT", "G\x3f\xf8\x00\x00\x00\x00\x00\x00.", "1.5"},
		{"STRING", "S'a\\n\\x41\\'\\101'\n.", `"a\nA'A"`},
		{"STRING in double quotes", "S\"it's\"\n.", `"it's"`},
		{"BINSTRING", "T\x02\x00\x00\x00ab.", "'ab'"},
		{"SHORT_BINSTRING", "U\x02ab.", "'ab'"},
		{"UNICODE", "Va\\u0062\xe9\n.", "'abé'"},
		{"UNICODE of two backslashes", "V\\\\u0041\n.", `'\\\\u0041'`},
		{"UNICODE of three backslashes", "V\\\\\\u0041\n.", `'\\\\A'`},
		{"UNICODE of other escapes", "V\\x41\\\xe9\n.", `'\\x41\\é'`},
		{"BINUNICODE", "X\x02\x00\x00\x00ab.", "'ab'"},
		{"SHORT_BINUNICODE", "\x8c\x02ab.", "'ab'"},
		{"BINUNICODE8", "\x8d" + u8(2) + "ab.", "'ab'"},
		{"BINBYTES", "B\x02\x00\x00\x00ab.", "b'ab'"},
		{"SHORT_BINBYTES", "C\x02ab.", "b'ab'"},
		{"BINBYTES8", "\x8e" + u8(2) + "ab.", "b'ab'"},
		{"BYTEARRAY8", "\x96" + u8(2) + "ab.", "bytearray(b'ab')"},
		{"EMPTY_LIST APPEND", "]K\x01a.", "[1]"},
		{"EMPTY_LIST APPENDS", "](K\x01K\x02e.", "[1, 2]"},
		{"LIST", "(K\x01K\x02l.", "[1, 2]"},
		{"EMPTY_TUPLE", ").", "()"},
		{"TUPLE", "(K\x01t.", "(1,)"},
		{"TUPLE1", "K\x01\x85.", "(1,)"},
		{"TUPLE3", "K\x01K\x02K\x03\x87.", "(1, 2, 3)"},
		{"EMPTY_SET ADDITEMS", "\x8f(K\x01K\x02\x90.", "{1, 2}"},
		{"FROZENSET", "(K\x01\x91.", "frozenset({1})"},
		{"a set of equals", "\x8f(K\x01K\x02K\x02\x90(\x88K\x03G\x3f\xf0\x00\x00\x00\x00\x00\x00\x90.", "{1, 2, 3}"},
		{"a frozenset of equals", "(\x88K\x01G\x3f\xf0\x00\x00\x00\x00\x00\x00\x91.", "frozenset({True})"},
		{"INT of zeros", "I000\n.", "0"},
		{"EMPTY_DICT SETITEM", "}K\x01K\x02s\x85.", "(<dict>,)"},
		{"POP", "K\x01K\x020.", "1"},
		{"POP of a mark", "K\x01(0.", "1"},
		{"POP_MARK", "K\x01(K\x02K\x031.", "1"},
		{"DUP", "K\x012\x86.", "(1, 1)"},
		{"PUT GET", "K\x01p7\n0g7\n.", "1"},
		{"BINPUT BINGET", "K\x01q\x070h\x07.", "1"},
		{"LONG_BINPUT LONG_BINGET", "K\x01r\xff\xff\xff\xff0j\xff\xff\xff\xff.", "1"},
		{"LONG_BINGET of a near slot", "K\x01r\x07\x00\x00\x000j\x07\x00\x00\x00.", "1"},
		{"MEMOIZE", "K\x01\x940h\x00.", "1"},
		{"MEMOIZE counts entries", "K\x01q\x05K\x02\x9400h\x01.", "2"},
		{"GLOBAL", "cos\nsystem\n.", "os.system"},
		{"STACK_GLOBAL", "\x8c\x02os\x8c\x06system\x93.", "os.system"},
		{"REDUCE", "cos\nsystem\n(K\x01tR.", "<os.system>"},
		{"NEWOBJ", "ca\nB\n)\x81.", "<a.B>"},
		{"NEWOBJ_EX", "ca\nB\n)}\x92.", "<a.B>"},
		{"OBJ", "(ca\nB\nK\x01o.", "<a.B>"},
		{"INST", "(K\x01ia\nB\n.", "<a.B>"},
		{"BUILD", "ca\nB\n)\x81}b.", "<a.B>"},
		{"BUILD that replaces", "ca\nB\n)\x81q\x00U\x07replacebh\x00\x86.", "('replaced', 'replaced')"},
		{"PERSID", "Pid 1\n.", "id 1"},
		{"BINPERSID", "K\x01Q.", "1"},
		{"FRAME", "\x80\x04\x95" + u8(3) + "K\x01.", "1"},
		{"values under the result", "K\x01K\x02.", "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := run(c.pickle)
			if err != nil {
				t.Fatal(err)
			}
			if got := nested.Repr(v); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			slow, err := Load(NewStream(iotest.OneByteReader(strings.NewReader(c.pickle))), &plainHost{}, checkpoint.Limits{}, 0, nil)
			if err != nil || nested.Repr(slow) != c.want {
				t.Errorf("from a reader: %v, %v", slow, err)
			}
			skimmed, err := Load(NewCursor([]byte(c.pickle)), &plainHost{}, checkpoint.Limits{}, 0, Skim(NewCursor([]byte(c.pickle)), checkpoint.Limits{}))
			if err != nil || nested.Repr(skimmed) != c.want {
				t.Errorf("with a skimmed memo: %v, %v", skimmed, err)
			}
		})
	}
}

// TestRefused gives each opcode what it cannot take; the error names the
// opcode and its offset.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name, pickle string
		kind         fault.Kind
		opcode       string
		offset       int64
	}{
		{"nothing at all", "", fault.Malformed, "", 0},
		{"no opcode", "\x80\x02\xff", fault.Malformed, "0xff", 2},
		{"protocol 6", "\x80\x06N.", fault.Unsupported, "PROTO", 0},
		{"no STOP", "N", fault.Malformed, "", 1},
		{"STOP on nothing", ".", fault.Malformed, "STOP", 0},
		{"STOP under a mark", "N(.", fault.Malformed, "STOP", 2},
		{"POP on nothing", "0", fault.Malformed, "POP", 0},
		{"POP_MARK without a mark", "N1", fault.Malformed, "POP_MARK", 1},
		{"DUP on nothing", "2", fault.Malformed, "DUP", 0},
		{"TUPLE without a mark", "Nt", fault.Malformed, "TUPLE", 1},
		{"TUPLE1 on nothing", "\x85", fault.Malformed, "TUPLE1", 0},
		{"TUPLE2 on one", "N\x86", fault.Malformed, "TUPLE2", 1},
		{"TUPLE3 across a mark", "NN(N\x87", fault.Malformed, "TUPLE3", 4},
		{"LIST without a mark", "l", fault.Malformed, "LIST", 0},
		{"DICT without a mark", "d", fault.Malformed, "DICT", 0},
		{"DICT of a key alone", "(Nd", fault.Malformed, "DICT", 2},
		{"DICT with a list as key", "(]Nd", fault.Malformed, "DICT", 3},
		{"FROZENSET without a mark", "\x91", fault.Malformed, "FROZENSET", 0},
		{"FROZENSET of a dict", "(}\x91", fault.Malformed, "FROZENSET", 2},
		{"APPEND on nothing", "Na", fault.Malformed, "APPEND", 1},
		{"APPEND to a number", "K\x01Na", fault.Malformed, "APPEND", 3},
		{"APPEND to a tuple", ")Na", fault.Malformed, "APPEND", 2},
		{"APPEND to a dict", "}Na", fault.Malformed, "APPEND", 2},
		{"APPENDS without a mark", "]Ne", fault.Malformed, "APPENDS", 2},
		{"APPENDS to a set", "\x8f(Ne", fault.Malformed, "APPENDS", 3},
		{"ADDITEMS to a list", "](N\x90", fault.Malformed, "ADDITEMS", 3},
		{"ADDITEMS of a list", "\x8f(]\x90", fault.Malformed, "ADDITEMS", 3},
		{"ADDITEMS without a mark", "\x8fN\x90", fault.Malformed, "ADDITEMS", 2},
		{"ADDITEMS on nothing", "(N\x90", fault.Malformed, "ADDITEMS", 2},
		{"SETITEM on a list", "]NNs", fault.Malformed, "SETITEM", 3},
		{"SETITEM on nothing", "NNs", fault.Malformed, "SETITEM", 2},
		{"SETITEM with a list as key", "}]Ns", fault.Malformed, "SETITEM", 3},
		{"SETITEM with a list in a tuple as key", "}]\x85Ns", fault.Malformed, "SETITEM", 4},
		{"SETITEMS without a mark", "}NNu", fault.Malformed, "SETITEMS", 3},
		{"SETITEMS of a key alone", "}(Nu", fault.Malformed, "SETITEMS", 3},
		{"SETITEMS on a number", "K\x01(NNu", fault.Malformed, "SETITEMS", 5},
		{"GET of an empty slot", "g0\n.", fault.Malformed, "GET", 0},
		{"GET of no number", "gx\n.", fault.Malformed, "GET", 0},
		{"GET of a negative slot", "g-1\n.", fault.Malformed, "GET", 0},
		{"BINGET of an empty slot", "h\x00.", fault.Malformed, "BINGET", 0},
		{"LONG_BINGET of an empty slot", "j\xff\xff\xff\xff.", fault.Malformed, "LONG_BINGET", 0},
		{"PUT of nothing", "p0\n", fault.Malformed, "PUT", 0},
		{"PUT to a negative slot", "Np-1\n", fault.Malformed, "PUT", 1},
		{"BINPUT of nothing", "q\x00", fault.Malformed, "BINPUT", 0},
		{"BINPUT of a mark", "N(q\x00", fault.Malformed, "BINPUT", 2},
		{"LONG_BINPUT of nothing", "r\x00\x00\x00\x00", fault.Malformed, "LONG_BINPUT", 0},
		{"MEMOIZE of nothing", "\x94", fault.Malformed, "MEMOIZE", 0},
		{"INT of a word", "Ix\n.", fault.Malformed, "INT", 0},
		{"INT of nothing", "I\n.", fault.Malformed, "INT", 0},
		{"INT in octal", "I010\n.", fault.Malformed, "INT", 0},
		{"INT of one letter and a sign", "I-0\n.", fault.Malformed, "INT", 0},
		{"LONG with a zero in front", "L-010L\n.", fault.Malformed, "LONG", 0},
		{"INT with two signs", "I--1\n.", fault.Malformed, "INT", 0},
		{"LONG of a word", "LxL\n.", fault.Malformed, "LONG", 0},
		{"FLOAT of a word", "Fx\n.", fault.Malformed, "FLOAT", 0},
		{"FLOAT beyond the greatest", "F1e999\n.", fault.Malformed, "FLOAT", 0},
		{"UNICODE with an escape that is cut", "V\\u12\n.", fault.Malformed, "UNICODE", 0},
		{"UNICODE beyond the last character", "V\\U00110000\n.", fault.Malformed, "UNICODE", 0},
		{"STRING with an escape that is cut", "S'\\x4'\n.", fault.Malformed, "STRING", 0},
		{"STRING with an escape of no digits", "S'\\xg1'\n.", fault.Malformed, "STRING", 0},
		{"STRING that ends in a backslash", "S'a\\'\n.", fault.Malformed, "STRING", 0},
		{"FLOAT in hexadecimal", "F0x1p3\n.", fault.Malformed, "FLOAT", 0},
		{"STRING without quotes", "Sabc\n.", fault.Malformed, "STRING", 0},
		{"STRING with one quote", "S'\n.", fault.Malformed, "STRING", 0},
		{"a line without an end", "I1", fault.Malformed, "INT", 0},
		{"GLOBAL without a name", "cos\n", fault.Malformed, "GLOBAL", 0},
		{"STACK_GLOBAL on one", "\x8c\x02os\x93", fault.Malformed, "STACK_GLOBAL", 4},
		{"STACK_GLOBAL of a number as module", "K\x01\x8c\x01a\x93", fault.Malformed, "STACK_GLOBAL", 5},
		{"STACK_GLOBAL of a number as name", "\x8c\x01aK\x01\x93", fault.Malformed, "STACK_GLOBAL", 5},
		{"REDUCE on one", ")R", fault.Malformed, "REDUCE", 1},
		{"REDUCE with a list", "ca\nb\n]R", fault.Malformed, "REDUCE", 6},
		{"NEWOBJ with a number", "ca\nB\nK\x01\x81", fault.Malformed, "NEWOBJ", 7},
		{"NEWOBJ_EX on two", ")}\x92", fault.Malformed, "NEWOBJ_EX", 2},
		{"NEWOBJ_EX with a list of names", "ca\nB\n)]\x92", fault.Malformed, "NEWOBJ_EX", 7},
		{"OBJ without a class", "(o", fault.Malformed, "OBJ", 1},
		{"OBJ without a mark", "o", fault.Malformed, "OBJ", 0},
		{"INST without a mark", "ia\nB\n", fault.Malformed, "INST", 0},
		{"BUILD on one", "}b", fault.Malformed, "BUILD", 1},
		{"BUILD of a number", "K\x01}b", fault.Malformed, "BUILD", 3},
		{"BINPERSID on nothing", "Q", fault.Malformed, "BINPERSID", 0},
		{"EXT1", "\x82\x01.", fault.Unsupported, "EXT1", 0},
		{"EXT2", "\x83\x01\x00.", fault.Unsupported, "EXT2", 0},
		{"EXT4", "\x84\x01\x00\x00\x00.", fault.Unsupported, "EXT4", 0},
		{"NEXT_BUFFER", "\x97.", fault.Unsupported, "NEXT_BUFFER", 0},
		{"READONLY_BUFFER", "N\x98.", fault.Unsupported, "READONLY_BUFFER", 1},
		{"FRAME beyond the end", "\x95" + u8(1<<62) + "N.", fault.Malformed, "FRAME", 0},
		{"FRAME beyond STOP", "\x95" + u8(4) + "N.NN", fault.Malformed, "STOP", 10},
		{"LONG4 of a negative length", "\x8b\xff\xff\xff\xff.", fault.Malformed, "LONG4", 0},
		{"BINSTRING of a negative length", "T\x00\x00\x00\x80.", fault.Malformed, "BINSTRING", 0},
		{"marks without end", strings.Repeat("(", 10_001), fault.Limit, "MARK", 10_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := run(c.pickle)
			var e *fault.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want a fault", err)
			}
			if e.Kind != c.kind || e.Offset != c.offset || !e.HasOffset || e.Opcode != c.opcode {
				t.Errorf("got %s at %d in %s (%v), want %s at %d in %s", e.Kind, e.Offset, e.Opcode, err, c.kind, c.offset, c.opcode)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

// TestLengths claims lengths that are not there, in every opcode that has one:
// from memory that is malformed, and from a reader it is that or over a limit.
// Nothing is allocated for them.
func TestLengths(t *testing.T) {
	for code := range instructions {
		var lengths []string
		switch instructions[code].argument {
		case bytes4, bytesInt4:
			lengths = []string{u4(1 << 30), u4(math.MaxInt32), u4(1 << 31), u4(math.MaxUint32), u4(2)}
		case bytes8:
			lengths = []string{u8(1 << 31), u8(math.MaxUint32), u8(1 << 32), u8(1 << 62), u8(1 << 63), u8(math.MaxUint64), u8(2)}
		case bytes1:
			lengths = []string{"\x02", "\xff"}
		default:
			continue
		}
		for _, length := range lengths {
			data := string([]byte{byte(code)}) + length + "x"
			t.Run(fmt.Sprintf("%s %x", Opcode(code), length), func(t *testing.T) {
				if _, err := run(data); fault.KindOf(err) != fault.Malformed {
					t.Errorf("from memory: %v", err)
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := Load(NewStream(strings.NewReader(data)), &plainHost{}, checkpoint.Limits{}, 0, nil)
				runtime.ReadMemStats(&after)
				if k := fault.KindOf(err); k != fault.Malformed && k != fault.Limit {
					t.Errorf("from a reader: %v", err)
				}
				if n := after.TotalAlloc - before.TotalAlloc; n > 8*chunk {
					t.Errorf("%d bytes were allocated", n)
				}
			})
		}
	}
}

// TestSharing keeps what is one object in Python one object here.
func TestSharing(t *testing.T) {
	v, err := run("(]q\x00h\x00h\x00K\x01at.") // t = (l, l, l) and l = [1]
	if err != nil {
		t.Fatal(err)
	}
	items := v.(*nested.List).Items
	if items[0] != items[1] || items[1] != items[2] || len(items[0].(*nested.List).Items) != 1 {
		t.Errorf("got %v", items)
	}
}

// TestCycles builds containers that hold themselves.
func TestCycles(t *testing.T) {
	for name, data := range map[string]string{
		"list":               "]q\x00h\x00a.",
		"dict":               "}q\x00U\x01ah\x00s.",
		"tuple in a list":    "]q\x00h\x00\x85a.",
		"state":              "ca\nB\n)\x81q\x00h\x00b.",
		"arguments":          "]q\x00ca\nB\nh\x00\x85Ra.",
		"object as own key":  "}q\x00ca\nB\n)\x81q\x01h\x00bh\x01Ns.",
		"list through state": "]q\x00ca\nB\n)\x81h\x00ba.",
	} {
		v, err := run(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := nested.Walk(v, nested.WalkLimits{}, func(nested.Path, nested.Value) error { return nil }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDeep nests each container a hundred thousand deep, which the machine
// carries out without recursion.
func TestDeep(t *testing.T) {
	const n = 100_000
	for name, data := range map[string]string{
		"lists":      strings.Repeat("]", n) + strings.Repeat("a", n-1) + ".",
		"tuples":     ")" + strings.Repeat("\x85", n) + ".",
		"dicts":      strings.Repeat("}N", n) + "}" + strings.Repeat("s", n) + ".",
		"frozensets": "N" + strings.Repeat("\x85", n) + ".",
		"states":     strings.Repeat("ca\nB\n)\x81", n) + strings.Repeat("b", n-1) + ".",
		"arguments":  ")" + strings.Repeat("q\x00ca\nB\nh\x00R\x85", n) + ".",
	} {
		if _, err := run(data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBombs runs pickles that would be enormous if sharing were copying.
func TestBombs(t *testing.T) {
	for name, data := range map[string]string{
		"memo": ")" + strings.Repeat("q\x00h\x00\x86", 1000) + ".",
		"dup":  ")" + strings.Repeat("2\x86", 1000) + ".",
		"list": "]q\x00" + strings.Repeat("(h\x00h\x00lq\x00", 1000) + ".",
	} {
		if _, err := run(data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMemoIndex puts to indexes that no writer reaches; memory follows the
// entries, not the index.
func TestMemoIndex(t *testing.T) {
	var m memo
	for _, i := range []int64{math.MaxUint32, 1 << 40, 5_000_000, 0, 1, 1023, 1024, 5000} {
		m.put(i, nested.Int(i))
	}
	if len(m.pages) > 8 || m.count != 8 {
		t.Errorf("%d pages for %d entries", len(m.pages), m.count)
	}
	for _, i := range []int64{math.MaxUint32, 1 << 40, 5_000_000, 0, 1, 1023, 1024, 5000} {
		if v, ok := m.get(i); !ok || v != nested.Value(nested.Int(i)) {
			t.Errorf("slot %d holds %v", i, v)
		}
	}
	m.put(0, nested.None{})
	if v, _ := m.get(0); v != nested.Value(nested.None{}) || m.count != 8 {
		t.Errorf("slot 0 holds %v, %d entries", v, m.count)
	}
}

// TestLimits meets each limit.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name, limit, pickle string
		limits              checkpoint.Limits
	}{
		{"opcodes", "opcodes", "N0N0N.", checkpoint.Limits{Opcodes: 5}},
		{"stack", "stack", "NNN.", checkpoint.Limits{Stack: 2}},
		{"depth", "depth", "(((N.", checkpoint.Limits{Depth: 2}},
		{"pickle bytes", "pickle bytes", "NNNN.", checkpoint.Limits{PickleBytes: 3}},
		{"a string", "string bytes", "X\x03\x00\x00\x00abc.", checkpoint.Limits{StringBytes: 2}},
		{"a line", "string bytes", "S'abc'\n.", checkpoint.Limits{StringBytes: 2}},
		{"bytes", "string bytes", "C\x03abc.", checkpoint.Limits{StringBytes: 2}},
		{"a binary integer", "int bytes", "\x8a\x03abc.", checkpoint.Limits{IntBytes: 2}},
		{"a decimal integer", "int bytes", "L" + strings.Repeat("9", 30) + "L\n.", checkpoint.Limits{IntBytes: 8}},
		{"a tree", "expand", strings.Repeat("}", 100) + ".", checkpoint.Limits{ExpandFloor: 400, Expand: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(NewCursor([]byte(c.pickle)), &plainHost{}, c.limits, 0, nil)
			var e *fault.Error
			if !errors.As(err, &e) || e.Kind != fault.Limit || e.Limit != c.limit || e.Value <= e.Max {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestBigIntegers reads an integer of a million digits, which is put together
// from halves; BenchmarkBigInteger shows that the time is not quadratic.
func TestBigIntegers(t *testing.T) {
	digits := strings.Repeat("123456789", 120_000)
	v, err := run("L-" + digits + "L\n.")
	if err != nil {
		t.Fatal(err)
	}
	if got := v.(nested.BigInt).Int; got.Sign() >= 0 || got.BitLen() < 3_580_000 {
		t.Errorf("got %d bits", got.BitLen())
	}
	if got := decimal("12345678901234567890" + strings.Repeat("0", 5000)).String(); got != "12345678901234567890"+strings.Repeat("0", 5000) {
		t.Error("halves are put together wrongly")
	}
}

// TestReadError passes on what the system says.
func TestReadError(t *testing.T) {
	cause := errors.New("disk on fire")
	_, err := Load(NewStream(io.MultiReader(strings.NewReader("K"), iotest.ErrReader(cause))), &plainHost{}, checkpoint.Limits{}, 0, nil)
	if !errors.Is(err, cause) || fault.KindOf(err) != fault.IO {
		t.Errorf("got %v", err)
	}
}

// TestScanner lists instructions, and what follows the STOP is left.
func TestScanner(t *testing.T) {
	const data = "\x80\x02(K\x01cos\nsystem\nX\x02\x00\x00\x00abG\x3f\xf0\x00\x00\x00\x00\x00\x00t.rest"
	c := NewCursor([]byte(data))
	c.Skip(100)
	s := NewScanner(c, checkpoint.Limits{})
	var got []string
	var op Op
	for {
		ok, err := s.Next(&op)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		got = append(got, fmt.Sprintf("%d %s/%d %d %q %q %g %d", op.Offset, op.Code, op.Code.Protocol(), op.Int, op.Data, op.More, op.Float, op.Size))
	}
	want := []string{
		`100 PROTO/2 2 "" "" 0 2`,
		`102 MARK/0 0 "" "" 0 1`,
		`103 BININT1/1 1 "" "" 0 2`,
		`105 GLOBAL/0 0 "os" "system" 0 11`,
		`116 BINUNICODE/1 2 "ab" "" 0 7`,
		`123 BINFLOAT/1 0 "" "" 1 9`,
		`132 TUPLE/0 0 "" "" 0 1`,
		`133 STOP/0 0 "" "" 0 1`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if rest, _ := io.ReadAll(c.Rest()); string(rest) != "rest" {
		t.Errorf("the rest is %q", rest)
	}
}

// TestNames holds the table to the protocols' opcodes.
func TestNames(t *testing.T) {
	known := 0
	for code := range instructions {
		if in := instructions[code]; in.name != "" {
			known++
			if in.run == nil || in.protocol > maxProtocol {
				t.Errorf("%s is not complete", in.name)
			}
		}
	}
	if known != 68 {
		t.Errorf("%d opcodes, pickletools has 68", known)
	}
}

// TestCostlyKeys sets the same keys again and again, of which each is long or
// shares itself. Spelled out, the shared tuple has 2^100 items: a machine that
// does so never comes to the end of this test.
func TestCostlyKeys(t *testing.T) {
	const sets = 5_000
	text := "X" + u4(1<<19) + strings.Repeat("k", 1<<19) + "q\x000"
	shared := ")" + strings.Repeat("q\x00h\x00\x86", 100) + "q\x000"
	long := "(" + strings.Repeat("N", 1<<16) + "tq\x000"
	for name, key := range map[string]string{"text": text, "shared tuple": shared, "long tuple": long} {
		data := key + "}(" // more keys than are looked through without an index
		for i := range 20 {
			data += "K" + string(rune(i)) + "N"
		}
		data += "u" + strings.Repeat("h\x00Ns", sets) + "."
		if _, err := run(data); err != nil && fault.KindOf(err) != fault.Limit {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// BenchmarkBigInteger reads decimal integers of 10,000 digits and of ten and a
// hundred times as many.
func BenchmarkBigInteger(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		data := "L" + strings.Repeat("7", n) + "L\n."
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				if _, err := run(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
