package fault

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns s fit for a terminal and for one line: control characters,
// line separators, bidirectional overrides and bytes that are no UTF-8 become
// backslash escapes, and a text longer than most bytes is cut in its middle.
func Clean(s string, most int) string {
	s = cut(s, most)
	if isClean(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x` + hex2(s[i]))
		case unicode.IsGraphic(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
		i += n
	}
	return b.String()
}

func isClean(s string) bool {
	for _, r := range s {
		isPrintable := ' ' <= r && r <= '~' // most texts: no table need be looked up
		if !isPrintable && (r == utf8.RuneError || !unicode.IsGraphic(r)) {
			return false
		}
	}
	return true
}

// cut keeps the head and the tail of a long text, at rune boundaries.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	head, tail := most*2/3, len(s)-most/3
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + "…[" + strconv.Itoa(tail-head) + " bytes]…" + s[tail:]
}

func hex2(c byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[c>>4], digits[c&15]})
}
