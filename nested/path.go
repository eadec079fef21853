package nested

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wick-ml/wick/fault"
)

// Path is the exact way to a node: one key for each step, of the key's own
// type. List, tuple and set positions are Int.
type Path []Value

// String returns the flat name: the keys joined with dots, a [Component] with
// nothing. Two paths can have the same flat name; the path itself tells them
// apart.
func (p Path) String() string { return p.join(KeyName) }

// Text returns the flat name as [String.Text] does, key by key: "latin1" is the
// encoding when one of the keys was no UTF-8.
func (p Path) Text() (text, encoding string) {
	text = p.join(func(key Value) string {
		part, enc := String(KeyName(key)).Text()
		if enc != "" {
			encoding = enc
		}
		return part
	})
	return text, encoding
}

func (p Path) join(name func(Value) string) string {
	if len(p) == 1 {
		return name(p[0])
	}
	var b strings.Builder
	for i, k := range p {
		if _, isPart := k.(Component); i > 0 && !isPart {
			b.WriteByte('.')
		}
		b.WriteString(name(k))
	}
	return b.String()
}

// Append returns a path one step longer that shares nothing with p.
func (p Path) Append(key Value) Path { return append(p[:len(p):len(p)], key) }

// KeyName returns how a key reads in a flat name: strings as they are, ints as
// decimals, classes as module.Name, other keys in Python's spelling.
func KeyName(key Value) string {
	switch k := key.(type) {
	case String:
		return string(k)
	case Int:
		return strconv.FormatInt(int64(k), 10)
	case Symbol:
		return k.Text
	case Component:
		return "#" + string(k)
	case *Opaque:
		return objectName(k)
	case *Tensor:
		return tensorName(k)
	default:
		return Repr(key)
	}
}

// tensorName tells the parameters that are keys of a whole pickled optimizer's
// state from each other, by their storages.
func tensorName(t *Tensor) string {
	if t.Tensor != nil {
		if s, _, _, ok := t.Tensor.Strided(); ok {
			return "<" + TypeName(t) + " in " + s.Name() + ">"
		}
	}
	return Repr(t)
}

// objectName is the class of an object and what it was called with, which
// tells the members of an enum from each other.
func objectName(o *Opaque) string {
	if o.Args == nil || len(o.Args.Items) == 0 || o.Args.Class != "tuple" {
		return o.Class
	}
	text := reprAt(o.Args, 1)
	if one, ok := strings.CutSuffix(text, ",)"); ok {
		text = one + ")"
	}
	return o.Class + text
}

// Repr returns a value in Python's spelling, at most a few hundred bytes.
func Repr(v Value) string { return reprAt(v, 0) }

func reprAt(v Value, depth int) string {
	left := 2 * maxRepr
	return repr(v, depth, &left)
}

const maxRepr = 200

// repr takes what it spells from left, after which nothing is spelled any more:
// tuples that share their items can be exponentially long.
func repr(v Value, depth int, left *int) string {
	if l, ok := v.(*List); ok {
		return reprList(l, depth, left)
	}
	text := reprScalar(v)
	*left -= len(text)
	return text
}

func reprScalar(v Value) string {
	switch v := v.(type) {
	case None:
		return "None"
	case Bool:
		if v {
			return "True"
		}
		return "False"
	case Int:
		return strconv.FormatInt(int64(v), 10)
	case BigInt:
		return reprBig(v.Int)
	case Float:
		return reprFloat(float64(v))
	case Complex:
		return reprComplex(complex128(v))
	case String:
		return reprString(string(v))
	case Bytes:
		return "b" + reprBytes(string(v))
	case ByteArray:
		return "bytearray(b" + reprBytes(string(v)) + ")"
	case Symbol:
		return v.Text
	default:
		return "<" + TypeName(v) + ">"
	}
}

// reprBig spells the digits of a number that are not too many to be computed.
func reprBig(n *big.Int) string {
	const most = 1 << 14
	if bits := n.BitLen(); bits > most {
		return "<int of " + strconv.Itoa(bits) + " bits>"
	}
	return fault.Clean(n.String(), maxRepr)
}

func reprList(l *List, depth int, left *int) string {
	if *left -= 2; depth > 4 || len(l.Items) > 16 {
		return "<" + l.Class + " of " + strconv.Itoa(len(l.Items)) + ">"
	}
	parts := make([]string, 0, len(l.Items))
	for _, item := range l.Items {
		if *left <= 0 {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, repr(item, depth+1, left))
	}
	body := strings.Join(parts, ", ")
	switch {
	case l.Class == "list":
		return "[" + body + "]"
	case l.Class == "tuple" && len(parts) == 1:
		return "(" + body + ",)"
	case l.Class == "tuple":
		return "(" + body + ")"
	case len(parts) == 0 && (l.Class == "set" || l.Class == "frozenset"):
		return l.Class + "()"
	case l.Class == "set":
		return "{" + body + "}"
	case l.Class == "frozenset":
		return "frozenset({" + body + "})"
	default:
		return l.Class + "([" + body + "])"
	}
}

// reprFloat spells a float as Python's repr does: shortest digits, ".0" on
// whole numbers, exponents from 1e16 and below 1e-4.
func reprFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a >= 1e16 || a < 1e-4) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// reprComplex spells (1.5-2j) as Python does.
func reprComplex(c complex128) string {
	imag := strings.TrimSuffix(reprFloat(imag(c)), ".0")
	re := strings.TrimSuffix(reprFloat(real(c)), ".0")
	if real(c) == 0 && !math.Signbit(real(c)) {
		return imag + "j"
	}
	if imag[0] != '-' {
		imag = "+" + imag
	}
	return "(" + re + imag + "j)"
}

func reprString(s string) string {
	text, _ := String(s).Text()
	text, dots := head(text)
	return quote(text, unicode.IsPrint) + dots
}

func reprBytes(s string) string {
	text, dots := head(s)
	return quote(latin1(text), func(r rune) bool { return r >= ' ' && r <= '~' }) + dots
}

// head cuts a long text, at a rune's boundary.
func head(s string) (text, dots string) {
	if len(s) <= maxRepr {
		return s, ""
	}
	n := maxRepr
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n], "…"
}

// quote writes text between quotes with Python's escapes (unicode_repr in
// Objects/unicodeobject.c): double quotes only around a text that holds a single
// one and no double one.
func quote(text string, printable func(rune) bool) string {
	q := byte('\'')
	if strings.Contains(text, "'") && !strings.Contains(text, `"`) {
		q = '"'
	}
	b := []byte{q}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && n == 1 && isSurrogate(text[i:]) {
			r, n = 0xD000|rune(text[i+1]&0x3F)<<6|rune(text[i+2]&0x3F), 3
		}
		switch {
		case r == rune(q) || r == '\\':
			b = append(b, '\\', byte(r))
		case printable(r):
			b = utf8.AppendRune(b, r)
		default:
			b = appendEscape(b, r)
		}
		i += n
	}
	return string(append(b, q))
}

func appendEscape(b []byte, r rune) []byte {
	switch {
	case r == '\n':
		return append(b, `\n`...)
	case r == '\r':
		return append(b, `\r`...)
	case r == '\t':
		return append(b, `\t`...)
	case r <= 0xFF:
		return append(b, fmt.Sprintf(`\x%02x`, r)...)
	case r <= 0xFFFF:
		return append(b, fmt.Sprintf(`\u%04x`, r)...)
	default:
		return append(b, fmt.Sprintf(`\U%08x`, r)...)
	}
}

// Text returns the string as valid UTF-8 as far as there is one, and the name
// of the encoding that the bytes were read in: "" for UTF-8 (lone surrogates,
// which Python allows, stay as their three bytes), "latin1" for bytes that are
// no UTF-8, as Python 2 wrote them.
func (s String) Text() (text, encoding string) {
	if utf8.ValidString(string(s)) || validWTF8(string(s)) {
		return string(s), ""
	}
	return latin1(string(s)), "latin1"
}

// validWTF8 accepts UTF-8 with encoded surrogates, which is what pickle's
// "surrogatepass" writes (Python's pickle.py, save_str).
func validWTF8(s string) bool {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			if !isSurrogate(s[i:]) {
				return false
			}
			n = 3
		}
		i += n
	}
	return true
}

func isSurrogate(s string) bool {
	return len(s) >= 3 && s[0] == 0xED && s[1] >= 0xA0 && s[1] <= 0xBF && s[2]&0xC0 == 0x80
}

func latin1(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

// TypeName returns the Python name of a value's type.
func TypeName(v Value) string {
	switch v := v.(type) {
	case None:
		return "NoneType"
	case Bool:
		return "bool"
	case Int, BigInt:
		return "int"
	case Float:
		return "float"
	case Complex:
		return "complex"
	case String:
		return "str"
	case Bytes:
		return "bytes"
	case ByteArray:
		return "bytearray"
	case Symbol:
		return v.Class
	case Component:
		return "component"
	case *Map:
		return v.Class
	case *List:
		return v.Class
	case *Opaque:
		return v.Class
	case *Tensor:
		return v.Class
	default:
		return "torch.Tensor"
	}
}
