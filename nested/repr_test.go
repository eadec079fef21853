package nested

import "testing"

// The right sides are what Python's repr() gives.
func TestReprOfText(t *testing.T) {
	for _, c := range []struct {
		v    Value
		want string
	}{
		{String("a"), `'a'`},
		{String(`it's`), `"it's"`},
		{String(`it's "so"`), `'it\'s "so"'`},
		{String("a\nb\tc\r\\"), `'a\nb\tc\r\\'`},
		{String("\x00\x1b\x7f"), `'\x00\x1b\x7f'`},
		{String("größe 層"), `'größe 層'`},
		{String("\u202e\u2028"), `'\u202e\u2028'`},
		{String("\U000e0001"), `'\U000e0001'`},
		{String("\xed\xa0\x80"), `'\ud800'`},
		{Bytes("\x00\xff'"), `b"\x00\xff'"`},
		{Bytes("ok\n"), `b'ok\n'`},
		{ByteArray("\x01"), `bytearray(b'\x01')`},
		{NewList("tuple", Int(1), String("a")), `(1, 'a')`},
		{NewList("tuple", Bytes("\x00")), `(b'\x00',)`},
		{NewList("tuple"), `()`},
		{NewList("frozenset", Int(3)), `frozenset({3})`},
		{NewList("frozenset"), `frozenset()`},
		{NewList("set"), `set()`},
	} {
		if got := Repr(c.v); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestPathText(t *testing.T) {
	for _, c := range []struct {
		path           Path
		text, encoding string
	}{
		{nil, "", ""},
		{Path{String("größe"), Int(0)}, "größe.0", ""},
		{Path{String("größe"), String("caf\xe9")}, "größe.café", "latin1"},
		{Path{String("adj"), Component("indices")}, "adj#indices", ""},
		{Path{String("\xed\xa0\x80")}, "\xed\xa0\x80", ""},
		{Path{&Opaque{Class: "m.Color", Args: NewList("tuple", Int(1))}}, "m.Color(1)", ""},
		{Path{&Opaque{Class: "m.Point", Args: NewList("tuple", NewList("tuple", String("x")), None{})}}, "m.Point(('x',), None)", ""},
		{Path{&Opaque{Class: "m.Thing"}}, "m.Thing", ""},
	} {
		if text, enc := c.path.Text(); text != c.text || enc != c.encoding {
			t.Errorf("%q: got %q %q, want %q %q", c.path, text, enc, c.text, c.encoding)
		}
	}
}
