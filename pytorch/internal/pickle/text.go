package pickle

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// The text forms of protocol 0, as CPython's pickle.py reads them.

// parseInt reads an integer as Python writes it: a sign, digits, spaces around.
// Both INT and LONG come here; LONG's L is gone. A zero in front is refused:
// Python takes INT's for octal digits, and LONG's for none.
func parseInt(text string, limit int64) (nested.Value, error) {
	text = strings.TrimSpace(text)
	if isOctal(text) {
		return nil, notANumber("an integer", text)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return nested.Int(n), nil
	}
	digits := strings.TrimLeft(text, "+-")
	if len(text)-len(digits) > 1 || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return nil, notANumber("an integer", text)
	}
	if n := int64(len(digits)); n/digitsPerByte > limit {
		return nil, fault.NewLimit("int bytes", n/digitsPerByte, limit)
	}
	n := decimal(digits)
	if text[0] == '-' {
		n.Neg(n)
	}
	return bigValue(n), nil
}

// isOctal reports whether digits other than zeros follow a zero.
func isOctal(text string) bool {
	digits := strings.TrimLeft(text, "+-")
	return strings.HasPrefix(digits, "0") && strings.Trim(digits, "0") != ""
}

// digitsPerByte is how many decimal digits a byte holds, rounded down: a
// number under the limit passes.
const digitsPerByte = 2

// decimal converts digits by halves, which costs what multiplying costs: the
// plain way is quadratic, and a hostile number has a million digits.
func decimal(digits string) *big.Int {
	const plain = 2000
	if len(digits) <= plain {
		n, _ := new(big.Int).SetString(digits, 10)
		return n
	}
	half := len(digits) / 2
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(half)), nil)
	n := decimal(digits[:len(digits)-half])
	return n.Mul(n, scale).Add(n, decimal(digits[len(digits)-half:]))
}

// longValue reads a two's complement little-endian integer; none at all is 0.
func longValue(p []byte) nested.Value {
	if len(p) <= 8 {
		return nested.Int(smallLong(p))
	}
	be := make([]byte, len(p))
	for i, b := range p {
		be[len(p)-1-i] = b
	}
	n := new(big.Int).SetBytes(be)
	if be[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(p))))
	}
	return bigValue(n)
}

func smallLong(p []byte) int64 {
	var u uint64
	for i, b := range p {
		u |= uint64(b) << (8 * i)
	}
	if n := len(p); n > 0 && n < 8 && p[n-1] >= 0x80 {
		u |= ^uint64(0) << (8 * n)
	}
	return int64(u) //nolint:gosec // two's complement
}

func bigValue(n *big.Int) nested.Value {
	if n.IsInt64() {
		return nested.Int(n.Int64())
	}
	return nested.BigInt{Int: n}
}

// parseFloat reads what Python's repr of a float writes.
func parseFloat(text string) (nested.Value, error) {
	text = strings.TrimSpace(text)
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.ContainsAny(text, "xXpP_") {
		return nil, notANumber("a float", text)
	}
	return nested.Float(f), nil
}

func notANumber(need, found string) error {
	return fault.New(fault.Malformed, strconv.Quote(fault.Clean(found, maxQuote))+" is not "+need).
		Needs(need, fault.GetAgain)
}

const maxQuote = 60

// parseString reads the repr of a Python 2 str: quotes and escapes.
func parseString(line []byte) (string, error) {
	text := strings.TrimRight(string(line), " \t\r")
	if len(text) < 2 || text[0] != text[len(text)-1] || (text[0] != '\'' && text[0] != '"') {
		return "", fault.New(fault.Malformed, "a string without quotes").Needs("a quoted string", fault.GetAgain)
	}
	return unescape(text[1:len(text)-1], false)
}

// parseUnicode reads Python's raw-unicode-escape: Latin-1, and \u with four hex
// digits or \U with eight. Surrogates stay, as three bytes each.
func parseUnicode(line []byte) (string, error) { return unescape(string(line), true) }

// unescape resolves backslash escapes as Python does (unicodeobject.c,
// _PyUnicode_DecodeRawUnicodeEscapeStateful; bytesobject.c, _PyBytes_DecodeEscape).
// Raw text knows \u and \U alone and its other bytes are Latin-1; a str's bytes
// stay as they are.
func unescape(s string, raw bool) (string, error) {
	if !strings.Contains(s, `\`) && (!raw || isASCII(s)) {
		return s, nil
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		var n int
		var err error
		switch {
		case s[i] == '\\' && raw:
			out, n, err = unicodeEscape(out, s[i:])
		case s[i] == '\\':
			out, n, err = stringEscape(out, s[i:])
		case raw:
			out, n = utf8.AppendRune(out, rune(s[i])), 1
		default:
			out, n = append(out, s[i]), 1
		}
		if err != nil {
			return "", err
		}
		i += n
	}
	return string(out), nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// unicodeEscape appends what the escape at the head of s stands for, and
// returns how many bytes of s that took. A backslash before another letter stands
// for itself, and so does that letter: the second of two backslashes begins nothing.
func unicodeEscape(out []byte, s string) ([]byte, int, error) {
	if len(s) < 2 {
		return append(out, '\\'), 1, nil
	}
	digits := 4
	switch s[1] {
	case 'u':
	case 'U':
		digits = 8
	default:
		return utf8.AppendRune(append(out, '\\'), rune(s[1])), 2, nil
	}
	if len(s) >= 2+digits {
		if r, err := strconv.ParseUint(s[2:2+digits], 16, 32); err == nil && r <= utf8.MaxRune {
			return appendCodePoint(out, rune(r)), 2 + digits, nil
		}
	}
	return out, 0, badEscape(s[:min(len(s), 2+digits)], "\\u with four hexadecimal digits or \\U with eight, up to 10ffff")
}

func badEscape(found, need string) error {
	return fault.New(fault.Malformed, "the escape "+fault.Clean(found, maxQuote)).Needs(need, fault.GetAgain)
}

// appendCodePoint writes UTF-8, and surrogates too, as "surrogatepass" does.
func appendCodePoint(out []byte, r rune) []byte {
	if r >= 0xD800 && r <= 0xDFFF {
		return append(out, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return utf8.AppendRune(out, r)
}

// simpleEscapes are those of one letter in Python's string literals.
var simpleEscapes = map[byte]byte{
	'\\': '\\', '\'': '\'', '"': '"', 'a': 7, 'b': 8, 'f': 12, 'n': 10, 'r': 13, 't': 9, 'v': 11,
}

func stringEscape(out []byte, s string) ([]byte, int, error) {
	if len(s) < 2 {
		return out, 0, badEscape(s, "a letter behind the backslash")
	}
	if b, ok := simpleEscapes[s[1]]; ok {
		return append(out, b), 2, nil
	}
	if s[1] == 'x' {
		if len(s) >= 4 {
			if b, err := strconv.ParseUint(s[2:4], 16, 8); err == nil {
				return append(out, byte(b)), 4, nil
			}
		}
		return out, 0, badEscape(s[:min(len(s), 4)], "\\x with two hexadecimal digits")
	}
	if n := octal(s[1:]); n > 0 {
		b, _ := strconv.ParseUint(s[1:1+n], 8, 16)
		return append(out, byte(b)), 1 + n, nil //nolint:gosec // Python keeps the low byte too
	}
	return append(out, '\\'), 1, nil
}

// octal counts the octal digits at the head of s, at most three.
func octal(s string) int {
	n := 0
	for n < len(s) && n < 3 && s[n] >= '0' && s[n] <= '7' {
		n++
	}
	return n
}
