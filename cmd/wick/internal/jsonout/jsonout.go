// Package jsonout appends JSON whose every byte is ASCII, so that no terminal,
// log or locale can change it, and that keeps what encoding/json would lose:
// lone surrogates, the order of keys, integers of any size.
package jsonout

import (
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Object builds one JSON object in the order of the calls. The zero Object is
// ready for use.
type Object struct{ b []byte }

// Bytes returns the finished object. The Object must not be used afterwards.
func (o *Object) Bytes() []byte {
	if len(o.b) == 0 {
		o.b = append(o.b, '{')
	}
	o.b = append(o.b, '}')
	return o.b
}

// Reset makes an empty object of it that takes the memory of the last one,
// whose bytes end to be valid.
func (o *Object) Reset() { o.b = o.b[:0] }

// Append adds a value that f appends as JSON.
func (o *Object) Append(name string, f func(b []byte) []byte) {
	o.key(name)
	o.b = f(o.b)
}

func (o *Object) key(name string) {
	if len(o.b) == 0 {
		o.b = append(o.b, '{')
	} else {
		o.b = append(o.b, ',')
	}
	o.b = append(AppendString(o.b, name), ':')
}

// Raw adds a value that is JSON already.
func (o *Object) Raw(name string, json []byte) {
	o.key(name)
	o.b = append(o.b, json...)
}

// String adds a text.
func (o *Object) String(name, s string) {
	o.key(name)
	o.b = AppendString(o.b, s)
}

// StringOrNull adds a text, null for the empty one.
func (o *Object) StringOrNull(name, s string) {
	if s == "" {
		o.Null(name)
		return
	}
	o.String(name, s)
}

// Null adds null.
func (o *Object) Null(name string) { o.Raw(name, []byte("null")) }

// Int adds an integer.
func (o *Object) Int(name string, n int64) {
	o.key(name)
	o.b = strconv.AppendInt(o.b, n, 10)
}

// Bool adds a truth value.
func (o *Object) Bool(name string, v bool) {
	o.key(name)
	o.b = strconv.AppendBool(o.b, v)
}

// Float adds a number as [AppendFloat] spells it.
func (o *Object) Float(name string, f float64) {
	o.key(name)
	o.b = AppendFloat(o.b, f)
}

// AppendList appends a list of what each appends of every item.
func AppendList[T any](b []byte, list []T, each func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for i, item := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = each(b, item)
	}
	return append(b, ']')
}

// AppendInts appends a list of integers.
func AppendInts[T int | int64](b []byte, list []T) []byte {
	return AppendList(b, list, func(b []byte, n T) []byte { return strconv.AppendInt(b, int64(n), 10) })
}

// AppendFloat appends the shortest number that reads back as f, always with a
// point or an exponent so that it stays a float in every language, or the
// texts "nan", "inf" and "-inf", which JSON has no numbers for.
func AppendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, `"nan"`...)
	case math.IsInf(f, 1):
		return append(b, `"inf"`...)
	case math.IsInf(f, -1):
		return append(b, `"-inf"`...)
	}
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a >= 1e16 || a < 1e-4) {
		format = 'e'
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, format, -1, 64)
	for _, c := range b[start:] {
		if c == '.' || c == 'e' {
			return b
		}
	}
	return append(b, ".0"...)
}

// AppendString appends a JSON string. s is UTF-8 that may hold the three bytes
// of a lone surrogate, which becomes its \u escape; a byte that is neither is
// taken as Latin-1.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		if n := plainPrefix(s[i:]); n > 0 {
			b = append(b, s[i:i+n]...)
			i += n
			continue
		}
		if c := s[i]; c < utf8.RuneSelf {
			b = appendASCII(b, c)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			r, n = surrogateOrLatin1(s[i:])
		}
		b = appendRune(b, r)
		i += n
	}
	return append(b, '"')
}

// plainPrefix counts the bytes at the head of s that stand for themselves.
func plainPrefix(s string) int {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			return i
		}
	}
	return len(s)
}

func appendASCII(b []byte, c byte) []byte {
	switch {
	case c == '"' || c == '\\':
		return append(b, '\\', c)
	case c == '\n':
		return append(b, `\n`...)
	case c == '\t':
		return append(b, `\t`...)
	case c == '\r':
		return append(b, `\r`...)
	case c < 0x20 || c == 0x7f:
		return appendUnit(b, rune(c))
	default:
		return append(b, c)
	}
}

func surrogateOrLatin1(s string) (r rune, size int) {
	if len(s) >= 3 && s[0] == 0xED && s[1] >= 0xA0 && s[1] <= 0xBF && s[2]&0xC0 == 0x80 {
		return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), 3
	}
	return rune(s[0]), 1
}

func appendRune(b []byte, r rune) []byte {
	if r > 0xFFFF {
		high, low := utf16.EncodeRune(r)
		return appendUnit(appendUnit(b, high), low)
	}
	return appendUnit(b, r)
}

// appendUnit appends one UTF-16 code unit as \u and four hex digits.
func appendUnit(b []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	return append(b, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
