package strictjson

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Number takes a number and returns its text, which JSON's grammar allows. It
// aliases the reader's text.
func (r *Reader) Number() ([]byte, error) {
	if r.Kind() != Number {
		return nil, r.Wrong("a number")
	}
	start := r.i
	r.skip('-')
	whole := r.i
	ok := r.digits() && (r.b[whole] != '0' || r.i == whole+1)
	if r.skip('.') {
		ok = r.digits() && ok
	}
	if r.skip('e') || r.skip('E') {
		_ = r.skip('+') || r.skip('-')
		ok = r.digits() && ok
	}
	if !ok {
		return nil, r.errorAt(start, "a number that JSON does not know")
	}
	return r.b[start:r.i], nil
}

// Uint takes a number that is an integer from 0 to 2^63-1.
func (r *Reader) Uint() (int64, error) {
	if r.Kind() != Number {
		return 0, r.Wrong("a whole number")
	}
	at := r.i
	n, digits := int64(0), 0
	for ; r.i < len(r.b) && r.b[r.i] >= '0' && r.b[r.i] <= '9'; r.i++ {
		d := int64(r.b[r.i] - '0')
		if n > (1<<63-1-d)/10 {
			return 0, r.errorAt(at, "a number beyond 63 bits")
		}
		n, digits = n*10+d, digits+1
	}
	if digits == 0 || digits > 1 && r.b[at] == '0' || r.i < len(r.b) && (r.b[r.i] == '.' || r.b[r.i]|0x20 == 'e') {
		return 0, r.errorAt(at, "a number that is negative or has a fraction")
	}
	return n, nil
}

func (r *Reader) skip(c byte) bool {
	if r.i < len(r.b) && r.b[r.i] == c {
		r.i++
		return true
	}
	return false
}

func (r *Reader) digits() bool {
	start := r.i
	for r.i < len(r.b) && r.b[r.i] >= '0' && r.b[r.i] <= '9' {
		r.i++
	}
	return r.i > start
}

// Text takes a string. Surrogates that have no partner stay as the three bytes
// that UTF-8 would give them, as Python keeps them.
func (r *Reader) Text() (string, error) {
	if r.Kind() != String {
		return "", r.Wrong("a string")
	}
	start := r.i + 1
	for i := start; i < len(r.b); i++ {
		switch c := r.b[i]; {
		case c == '"':
			r.i = i + 1
			return r.checked(start, r.b[start:i])
		case c == '\\':
			return r.escaped(start, i)
		case c < 0x20:
			return "", r.errorAt(i, "a control character in a string")
		}
	}
	return "", r.errorAt(start-1, "a string without end")
}

func (r *Reader) checked(at int, b []byte) (string, error) {
	if !utf8.Valid(b) {
		return "", r.errorAt(at, "a string that is no UTF-8")
	}
	return string(b), nil
}

// escaped goes on from the first backslash of a string. The text that comes out
// is made once: a record's tree is one long string in a header.
func (r *Reader) escaped(start, i int) (string, error) {
	if !utf8.Valid(r.b[start:i]) {
		return "", r.errorAt(start, "a string that is no UTF-8")
	}
	var out strings.Builder
	out.Grow(r.quote(i) - start)
	out.Write(r.b[start:i])
	var few [2 * utf8.UTFMax]byte
	for i < len(r.b) {
		c := r.b[i]
		switch {
		case c == '"':
			r.i = i + 1
			return out.String(), nil
		case c < 0x20:
			return "", r.errorAt(i, "a control character in a string")
		case c == '\\':
			text, n := unescape(few[:0], r.b[i:])
			if n == 0 {
				return "", r.errorAt(i, "an escape that JSON does not know")
			}
			out.Write(text)
			i += n
		default:
			_, n := utf8.DecodeRune(r.b[i:])
			if n == 1 && c >= utf8.RuneSelf {
				return "", r.errorAt(i, "a string that is no UTF-8")
			}
			out.Write(r.b[i : i+n])
			i += n
		}
	}
	return "", r.errorAt(start-1, "a string without end")
}

// quote returns where the string ends that goes on at i, or the text does.
func (r *Reader) quote(i int) int {
	for i < len(r.b) && r.b[i] != '"' {
		if r.b[i] == '\\' {
			i++
		}
		i++
	}
	return min(i, len(r.b))
}

// unescape appends what the escape at the start of b stands for; n is its
// length, 0 when there is no such escape.
func unescape(out, b []byte) (_ []byte, n int) {
	if len(b) < 2 {
		return out, 0
	}
	switch c := b[1]; c {
	case '"', '\\', '/':
		return append(out, c), 2
	case 'b':
		return append(out, '\b'), 2
	case 'f':
		return append(out, '\f'), 2
	case 'n':
		return append(out, '\n'), 2
	case 'r':
		return append(out, '\r'), 2
	case 't':
		return append(out, '\t'), 2
	case 'u':
		return unescapeUnicode(out, b)
	default:
		return out, 0
	}
}

func unescapeUnicode(out, b []byte) (_ []byte, n int) {
	first, ok := hex4(b)
	if !ok {
		return out, 0
	}
	if first < 0xD800 || first > 0xDFFF {
		return utf8.AppendRune(out, first), 6
	}
	if second, ok := hex4(b[6:]); ok && first < 0xDC00 && second >= 0xDC00 && second <= 0xDFFF {
		return utf8.AppendRune(out, (first-0xD800)<<10+(second-0xDC00)+0x10000), 12
	}
	return append(out, 0xE0|byte(first>>12), 0x80|byte(first>>6)&0x3F, 0x80|byte(first)&0x3F), 6
}

// hex4 reads \u and four hex digits at the start of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}
