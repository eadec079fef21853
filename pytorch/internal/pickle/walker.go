package pickle

import (
	"strconv"
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// Walker says of one instruction after the other what its argument is and what
// it would do. It keeps a stack of descriptions where the machine keeps values,
// so it also walks pickles that could not be carried out; where the stack would
// be short of a value it says "?". The zero Walker is ready. Its memory is
// bounded by its own constants, whatever the pickle.
type Walker struct {
	stack []string
	over  int // values on top of the stack that are not remembered
	marks []int
	memo  map[int64]string
	next  int64 // index of the next MEMOIZE
	limit int64 // bytes of an integer
}

// Bounds of a Walker's memory: values, marks and memo entries, and the
// characters of each description.
const (
	maxWalked = 1 << 16
	maxWords  = 64
)

// NewWalker returns a Walker that reads integers of at most limit bytes.
func NewWalker(limit int64) *Walker { return &Walker{limit: limit} }

// Walk returns the argument of op, nil if it has none, and what op would do. op
// has come from a [Scanner]; an argument that breaks its own form is an error.
func (w *Walker) Walk(op *Op) (arg nested.Value, meaning string, err error) {
	arg, err = Argument(op, w.limit)
	if err != nil {
		return nil, "", locate(err, op)
	}
	return arg, w.meaning(op, arg), nil
}

// Argument returns what follows an opcode as a value: integers, floats and texts
// decoded, GLOBAL's and INST's two lines with a blank between them, as Python's
// pickletools has it.
func Argument(op *Op, limit int64) (nested.Value, error) {
	switch op.Code {
	case INT:
		switch string(op.Data) {
		case "00":
			return nested.Bool(false), nil
		case "01":
			return nested.Bool(true), nil
		}
		return parseInt(string(op.Data), limit)
	case LONG:
		return parseInt(strings.TrimSuffix(string(op.Data), "L"), limit)
	case GET, PUT:
		return parseInt(string(op.Data), limit)
	case FLOAT:
		return parseFloat(string(op.Data))
	case STRING:
		s, err := parseString(op.Data)
		return nested.String(s), err
	case UNICODE:
		s, err := parseUnicode(op.Data)
		return nested.String(s), err
	case GLOBAL, INST:
		return nested.String(string(op.Data) + " " + string(op.More)), nil
	case BINFLOAT:
		return nested.Float(op.Float), nil
	case LONG1, LONG4:
		return longValue(op.Data), nil
	case BINBYTES, SHORT_BINBYTES, BINBYTES8:
		return nested.Bytes(op.Data), nil
	case BYTEARRAY8:
		return nested.ByteArray(op.Data), nil
	}
	switch instructions[op.Code].argument {
	case noArgument:
		return nil, nil //nolint:nilnil // most instructions have none
	case oneLine, bytes1, bytes4, bytes8, bytesInt4:
		return nested.String(op.Data), nil
	default:
		return nested.Int(op.Int), nil
	}
}

func words(v nested.Value) string { return fault.Clean(nested.Repr(v), maxWords) }

func (w *Walker) push(text string) {
	if len(w.stack) >= maxWalked {
		w.over++
		return
	}
	w.stack = append(w.stack, text)
}

func (w *Walker) pop() string {
	switch n := len(w.stack); {
	case w.over > 0:
		w.over--
		return "…"
	case n == 0:
		return "?"
	default:
		text := w.stack[n-1]
		w.stack = w.stack[:n-1]
		return text
	}
}

func (w *Walker) top() string {
	switch {
	case w.over > 0:
		return "…"
	case len(w.stack) == 0:
		return "?"
	default:
		return w.stack[len(w.stack)-1]
	}
}

func (w *Walker) height() int { return len(w.stack) + w.over }

func (w *Walker) mark() {
	if len(w.marks) < maxWalked {
		w.marks = append(w.marks, w.height())
	}
}

// popMark drops all down to the last mark and returns how much that was and the
// lowest of it.
func (w *Walker) popMark() (n int, first string) {
	to := 0
	if len(w.marks) > 0 {
		to = w.marks[len(w.marks)-1]
		w.marks = w.marks[:len(w.marks)-1]
	}
	n = max(0, w.height()-to)
	first = "?"
	if n > 0 && to < len(w.stack) {
		first = w.stack[to]
	}
	drop := min(n, w.over)
	w.over -= drop
	w.stack = w.stack[:len(w.stack)-(n-drop)]
	return n, first
}

func (w *Walker) remember(index int64) {
	if w.memo == nil {
		w.memo = map[int64]string{}
	}
	if _, known := w.memo[index]; known || len(w.memo) < maxWalked {
		w.memo[index] = w.top()
	}
	w.next++
}

// remembered describes a memo entry.
func (w *Walker) remembered(index int64) string {
	if text, ok := w.memo[index]; ok {
		return text
	}
	if len(w.memo) >= maxWalked {
		return "…"
	}
	return "?"
}

// put pushes what was made and says so.
func (w *Walker) put(text, meaning string) string {
	w.push(text)
	return meaning
}

// meaning says what op does, and does it to the descriptions.
func (w *Walker) meaning(op *Op, arg nested.Value) string {
	if text, ok := w.control(op, arg); ok {
		return text
	}
	if text, ok := w.container(op); ok {
		return text
	}
	if text, ok := w.object(op, arg); ok {
		return text
	}
	switch op.Code {
	case NONE:
		return w.put("None", "push None")
	case NEWTRUE:
		return w.put("True", "push True")
	case NEWFALSE:
		return w.put("False", "push False")
	case NEXT_BUFFER:
		return w.put("buffer", "push a buffer from outside of the pickle")
	case READONLY_BUFFER:
		return "make the buffer read-only"
	default:
		return w.put(words(arg), "push "+article(nested.TypeName(arg)))
	}
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// control is about the stack and the memo.
func (w *Walker) control(op *Op, arg nested.Value) (string, bool) {
	index, _ := arg.(nested.Int)
	switch op.Code {
	case PROTO:
		return "protocol " + strconv.FormatInt(op.Int, 10), true
	case FRAME:
		return "the next " + strconv.FormatInt(op.Int, 10) + " bytes belong together", true
	case STOP:
		return "end: the value is " + w.pop(), true
	case MARK:
		w.mark()
		return "mark the stack", true
	case POP:
		return "drop " + w.pop(), true
	case POP_MARK:
		n, _ := w.popMark()
		return "drop " + plural(n, "value") + " and the mark", true
	case DUP:
		return w.put(w.top(), "push "+w.top()+" again"), true
	case PUT, BINPUT, LONG_BINPUT:
		w.remember(int64(index))
		return "remember " + w.top() + " as " + strconv.FormatInt(int64(index), 10), true
	case MEMOIZE:
		at := w.next
		w.remember(at)
		return "remember " + w.top() + " as " + strconv.FormatInt(at, 10), true
	case GET, BINGET, LONG_BINGET:
		text := w.remembered(int64(index))
		return w.put(text, "push "+text+", remembered as "+strconv.FormatInt(int64(index), 10)), true
	}
	return "", false
}

// madeBy is the container that an opcode makes, and the meaning of one that makes
// it empty.
func madeBy(code Opcode) (kind, meaning string) {
	switch code {
	case EMPTY_LIST, LIST:
		return "list", "push an empty list"
	case EMPTY_DICT:
		return "dict", "push an empty dict"
	case EMPTY_TUPLE:
		return "()", "push an empty tuple"
	case EMPTY_SET:
		return "set", "push an empty set"
	default:
		return "frozenset", ""
	}
}

// container makes and fills lists, tuples, dicts and sets.
func (w *Walker) container(op *Op) (string, bool) {
	switch op.Code {
	case EMPTY_LIST, EMPTY_DICT, EMPTY_SET, EMPTY_TUPLE:
		return w.put(madeBy(op.Code)), true
	case TUPLE1, TUPLE2, TUPLE3:
		n := int(op.Code-TUPLE1) + 1
		first := ""
		for range n {
			first = w.pop()
		}
		return w.tuple(n, first), true
	case TUPLE:
		return w.tuple(w.popMark()), true
	case LIST, FROZENSET:
		n, _ := w.popMark()
		kind, _ := madeBy(op.Code)
		return w.put(kind, "make a "+kind+" of "+strconv.Itoa(n)), true
	case DICT:
		n, _ := w.popMark()
		return w.put("dict", "make a dict of "+plural(n/2, "key")), true
	case APPEND:
		item := w.pop()
		return "append " + item + " to " + w.top(), true
	case APPENDS, ADDITEMS:
		n, _ := w.popMark()
		return "add " + plural(n, "item") + " to " + w.top(), true
	case SETITEM:
		value, key := w.pop(), w.pop()
		return "set " + key + " of " + w.top() + " to " + value, true
	case SETITEMS:
		n, _ := w.popMark()
		return "set " + plural(n/2, "key") + " of " + w.top(), true
	}
	return "", false
}

// tuple pushes a tuple, described by its length and the first of its items.
func (w *Walker) tuple(n int, first string) string {
	text := "(" + fault.Clean(first, maxWords/2)
	switch n {
	case 0:
		text = "()"
	case 1:
		text += ",)"
	default:
		text += ", …) of " + strconv.Itoa(n)
	}
	return w.put(text, "make a tuple of "+strconv.Itoa(n))
}

// object names and makes what has a class.
func (w *Walker) object(op *Op, arg nested.Value) (string, bool) {
	switch op.Code {
	case GLOBAL:
		name := dotted(string(op.Data), string(op.More))
		return w.put(name, "import "+name), true
	case STACK_GLOBAL:
		name, mod := w.pop(), w.pop()
		text := dotted(unquoted(mod), unquoted(name))
		return w.put(text, "import "+text), true
	case EXT1, EXT2, EXT4:
		text := "extension " + strconv.FormatInt(op.Int, 10)
		return w.put(text, "import what is registered as "+text), true
	case REDUCE:
		args, f := w.pop(), w.pop()
		return w.put(result(f), "call "+f+" with "+args), true
	case NEWOBJ:
		args, class := w.pop(), w.pop()
		return w.put(result(class), "make an object of "+class+" with "+args), true
	case NEWOBJ_EX:
		_, args, class := w.pop(), w.pop(), w.pop()
		return w.put(result(class), "make an object of "+class+" with "+args+" and keywords"), true
	case OBJ:
		n, class := w.popMark()
		return w.put(result(class), "call "+class+" with "+plural(max(0, n-1), "argument")), true
	case INST:
		name := dotted(string(op.Data), string(op.More))
		n, _ := w.popMark()
		return w.put(result(name), "import "+name+" and call it with "+plural(n, "argument")), true
	case BUILD:
		state := w.pop()
		return "give " + w.top() + " the state " + state, true
	case PERSID:
		return w.put("storage", "ask the loader for "+words(arg)), true
	case BINPERSID:
		return w.put("storage", "ask the loader for "+w.pop()), true
	}
	return "", false
}

func result(class string) string { return fault.Clean("<"+class+">", maxWords) }

func dotted(mod, name string) string { return fault.Clean(mod+"."+name, maxWords) }

// unquoted is what stands between the quotes of a described text.
func unquoted(text string) string {
	if n := len(text); n >= 2 && (text[0] == '\'' || text[0] == '"') && text[n-1] == text[0] {
		return text[1 : n-1]
	}
	return text
}
