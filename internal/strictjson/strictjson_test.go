package strictjson

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/wick-ml/wick/fault"
)

func skipAll(text string) error {
	r := NewReader([]byte(text))
	if err := r.Skip(); err != nil {
		return err
	}
	return r.End()
}

func TestValid(t *testing.T) {
	for _, text := range []string{
		"null", " true ", "false", "0", "-0", "-12.5e+3", "1E-2", `""`, `"\ud83d\ude00\n\/"`, "[]", "{}", `[1,"a",[{"b":{}}]]`, "\t{\r\n\"a\" : 1 , \"b\":2}",
	} {
		if err := skipAll(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestInvalid(t *testing.T) {
	for text, at := range map[string]int64{
		"": 0, "nul": 0, "True": 0, "01": 0, "-": 0, "-01": 0, "1.": 0, ".5": 0, "1e": 0, "+1": 0, "0x1": 1, "1 2": 2, `"a`: 0, `"\x"`: 1, `"\u12"`: 1,
		"\"\x01\"": 1, "\"\\n\x01\"": 3, "\"\xff\"": 1, "\"\\n\xff\"": 3, "[1,]": 3, "[1 2]": 3, "[": 1, "{,}": 1, `{"a"}`: 4, `{"a":1,}`: 7, `{"a":1,"a":2}`: 7,
		`{1:2}`: 1, "]": 0, "NaN": 0, "'a'": 0,
	} {
		err := skipAll(text)
		var e *fault.Error
		if !errors.As(err, &e) || e.Kind != fault.Malformed || e.Offset != at {
			t.Errorf("%q: %v, want a malformed error at %d", text, err, at)
		}
	}
	if err := skipAll(strings.Repeat("[", maxDepth+1)); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("nesting: %v", err)
	}
}

// Duplicates are found among few keys and among many.
func TestDuplicateKeys(t *testing.T) {
	var keys []string
	for i := range 200 {
		keys = append(keys, `"`+strings.Repeat("k", i)+`":1`)
	}
	if err := skipAll("{" + strings.Join(keys, ",") + "}"); err != nil {
		t.Error(err)
	}
	for _, n := range []int{2, 8, 9, 40, 72, 73, 74, 200} {
		text := "{" + strings.Join(keys[:n], ",") + "," + keys[n/2] + "}"
		if err := skipAll(text); !errors.Is(err, fault.ErrMalformed) {
			t.Errorf("of %d keys one twice: %v", n, err)
		}
	}
}

// Of many short keys, for which no room was made, none is lost while room is made.
func TestDuplicateAmongManyKeys(t *testing.T) {
	var text strings.Builder
	text.WriteString("{")
	for i := range 20_000 {
		text.WriteString(`"` + strconv.Itoa(i) + `":1,`)
	}
	if err := skipAll(text.String() + `"x":1}`); err != nil {
		t.Error(err)
	}
	for _, again := range []int{0, 7, 8, 71, 72, 1023, 9999, 19_999} {
		if err := skipAll(text.String() + `"` + strconv.Itoa(again) + `":1}`); !errors.Is(err, fault.ErrMalformed) {
			t.Errorf("%d twice: %v", again, err)
		}
	}
}

// A key that was met before is no way around the rules: what was an escape in the
// first object must be one in the second.
func TestKeysThatComeAgain(t *testing.T) {
	for escaped, raw := range map[string]string{`\n`: "\n", `\ud800`: "\xed\xa0\x80", `\u0001`: "\x01"} {
		text := `[{"` + escaped + `":1},{"` + raw + `":2}]`
		if err := skipAll(text); !errors.Is(err, fault.ErrMalformed) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := skipAll(`[{"a":1},{"a":2},{"\u0061":3}]`); err != nil {
		t.Error(err)
	}
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		`"a\"\\\/\b\f\n\r\t"`: "a\"\\/\b\f\n\r\t", `"\u00e9é\u20ac"`: "éé€", `"\ud83d\ude00"`: "😀",
		`"\ud800"`: "\xed\xa0\x80", `"\udfff\ud83d"`: "\xed\xbf\xbf\xed\xa0\xbd", `"\ud800\u0041"`: "\xed\xa0\x80A",
	} {
		if got, err := NewReader([]byte(text)).Text(); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestUint(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "7]": 7, "9223372036854775807": 1<<63 - 1} {
		if got, err := NewReader([]byte(text)).Uint(); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"-1", "1.0", "1e3", "01", "9223372036854775808", "18446744073709551616", "true", ""} {
		if got, err := NewReader([]byte(text)).Uint(); !errors.Is(err, fault.ErrMalformed) {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
}

// What we write, we and encoding/json read as the same text.
func TestAppendText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		out, ok := AppendText(nil, s)
		if !ok {
			t.Fatalf("%q is UTF-8", s)
		}
		got, err := NewReader(out).Text()
		var theirs string
		if err != nil || got != s || json.Unmarshal(out, &theirs) != nil || theirs != s {
			t.Fatalf("%q became %s: %q (%v), %q", s, out, got, err, theirs)
		}
	})
	if _, ok := AppendText(nil, "\xff"); ok {
		t.Error("bytes that are no UTF-8 were written")
	}
}

// FuzzReader has encoding/json judge what passes, but for duplicate keys and
// invalid UTF-8, which it lets pass, and for its own bound on nesting. Seen to
// catch: Number without its word on leading zeros.
func FuzzReader(f *testing.F) {
	for _, text := range []string{`{"a":[1,2.5e3,"\ud800",null,true]}`, `[[],{}]`, `"\\"`, "-0"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := skipAll(string(text))
		if err == nil && !json.Valid(text) {
			t.Fatalf("%q passed", text)
		}
		if err != nil && json.Valid(text) && utf8.Valid(text) && !strings.Contains(err.Error(), "twice") && !errors.Is(err, fault.ErrLimit) {
			t.Fatalf("%q was refused: %v", text, err)
		}
	})
}
