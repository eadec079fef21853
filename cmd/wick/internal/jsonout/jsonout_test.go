package jsonout

import (
	"encoding/json"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestAppendString(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", `""`},
		{"conv1.weight", `"conv1.weight"`},
		{`a"b\c`, `"a\"b\\c"`},
		{"\x00\n\t\r\x1b\x7f", `"\u0000\n\t\r\u001b\u007f"`},
		{"größe", `"gr\u00f6\u00dfe"`},
		{"層", `"\u5c64"`},
		{"🕯", `"\ud83d\udd6f"`},
		{"\xed\xa0\x80", `"\ud800"`},       // json.dumps("\ud800") in Python
		{"x\xed\xbf\xbfy", `"x\udfffy"`},   // json.dumps("x\udfffy")
		{"caf\xe9", `"caf\u00e9"`},         // bytes of Latin-1
		{"\xff\xfe", `"\u00ff\u00fe"`},     // no UTF-8 at all
		{"\xed\xa0", `"\u00ed\u00a0"`},     // half a surrogate
		{"\u2028\u202e", `"\u2028\u202e"`}, // line separator, right-to-left override
		{"\uffff\ufffd", `"\uffff\ufffd"`}, // a real replacement character stays one
		{"\U0010ffff", `"\udbff\udfff"`},   // the last code point
	} {
		if got := string(AppendString(nil, c.in)); got != c.want {
			t.Errorf("AppendString(%q) = %s, want %s", c.in, got, c.want)
		}
	}
}

func TestAppendStringReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		b := AppendString(nil, s)
		var back string
		if err := json.Unmarshal(b, &back); err != nil || back != s {
			t.Fatalf("%q became %s, which reads back as %q, %v", s, b, back, err)
		}
		for _, c := range b {
			if c < 0x20 || c > 0x7e {
				t.Fatalf("%q became %q, which is not printable ASCII", s, b)
			}
		}
	})
}

func TestAppendFloat(t *testing.T) {
	for _, c := range []struct {
		in   float64
		want string
	}{
		{0, "0.0"}, {math.Copysign(0, -1), "-0.0"}, {1, "1.0"}, {0.1, "0.1"}, {-2.5, "-2.5"},
		{1e16, "1e+16"}, {1e-8, "1e-08"}, {123456789, "123456789.0"}, {5e-324, "5e-324"},
		{math.MaxFloat64, "1.7976931348623157e+308"},
		{math.NaN(), `"nan"`}, {math.Inf(1), `"inf"`}, {math.Inf(-1), `"-inf"`},
	} {
		if got := string(AppendFloat(nil, c.in)); got != c.want {
			t.Errorf("AppendFloat(%v) = %s, want %s", c.in, got, c.want)
		}
	}
}

func TestObjectKeepsOrder(t *testing.T) {
	var o Object
	o.String("z", "1")
	o.Int("a", -5)
	o.Bool("m", true)
	o.Null("n")
	o.StringOrNull("e", "")
	o.StringOrNull("f", "x")
	o.Float("g", 2)
	o.Raw("l", AppendInts(nil, []int{1, 2, 3}))
	o.Raw("k", AppendInts[int64](nil, nil))
	const want = `{"z":"1","a":-5,"m":true,"n":null,"e":null,"f":"x","g":2.0,"l":[1,2,3],"k":[]}`
	if got := string(o.Bytes()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var empty Object
	if got := string(empty.Bytes()); got != "{}" {
		t.Errorf("an empty object is %s", got)
	}
}
