package strictjson

import "unicode/utf8"

// AppendText appends s as a JSON string, spelled as serde_json in Rust spells
// it, so that files can be compared byte for byte: only quotes, backslashes and
// control characters are escaped. ok is false for text that is no UTF-8.
func AppendText(dst []byte, s string) (_ []byte, ok bool) {
	if !utf8.ValidString(s) {
		return dst, false
	}
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= 0x20:
			dst = append(dst, c)
		case short[c] != 0:
			dst = append(dst, '\\', short[c])
		default:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	return append(dst, '"'), true
}

var short = [0x20]byte{'\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}
