package pytorch

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
)

// show spells a tree as testdata/generate_pickles.py does.
func show(v nested.Value) string {
	switch v := v.(type) {
	case nested.String:
		return showText(string(v))
	case nested.Bytes:
		return "bytes:" + hex.EncodeToString([]byte(v))
	case nested.ByteArray:
		return "bytearray:" + hex.EncodeToString([]byte(v))
	case nested.BigInt:
		return v.Int.String()
	case nested.Symbol:
		return "<" + v.Class + " " + v.Text + ">"
	case *nested.Map:
		return v.Class + "{" + join2(v.All()) + "}"
	case *nested.List:
		parts := make([]string, len(v.Items))
		for i, item := range v.Items {
			parts[i] = show(item)
		}
		if strings.HasSuffix(v.Class, "set") {
			slices.Sort(parts)
			return v.Class + "{" + strings.Join(parts, ", ") + "}"
		}
		return v.Class + "[" + strings.Join(parts, ", ") + "]"
	case *nested.Opaque:
		return "<" + v.Reason + " " + v.Class + ">"
	default:
		return nested.Repr(v)
	}
}

func join2(pairs iter.Seq2[nested.Value, nested.Value]) string {
	var parts []string
	for k, v := range pairs {
		parts = append(parts, show(k)+": "+show(v))
	}
	return strings.Join(parts, ", ")
}

// showText is json.dumps of a str, lone surrogates included.
func showText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 && len(s) >= i+3 {
			r, n = rune(s[i]&0xF)<<12|rune(s[i+1]&0x3F)<<6|rune(s[i+2]&0x3F), 3
		}
		i += n
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r >= 0x20 && r < 0x7F:
			b.WriteRune(r)
		case r > 0xFFFF:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

type pythonPickle struct {
	Name, Text string
	Pickles    [6]string // by protocol
}

func pythonPickles(t testing.TB) []pythonPickle {
	t.Helper()
	data, err := os.ReadFile("testdata/pickles.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []pythonPickle
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPythonPickles loads what Python's pickle wrote in each protocol, from
// memory and from a reader that gives one byte at a time.
func TestPythonPickles(t *testing.T) {
	for _, p := range pythonPickles(t) {
		for protocol, text := range p.Pickles {
			t.Run(fmt.Sprintf("%s, protocol %d", p.Name, protocol), func(t *testing.T) {
				data, err := base64.StdEncoding.DecodeString(text)
				if err != nil {
					t.Fatal(err)
				}
				l := &loader{record: "data.pkl", present: int64(len(data))}
				checkShown(t, l, pickle.NewCursor(data), p.Text)
				stream := pickle.NewStream(iotest.OneByteReader(strings.NewReader(string(data) + "rest")))
				checkShown(t, l, stream, p.Text)
				if rest, err := io.ReadAll(stream.Rest()); err != nil || string(rest) != "rest" {
					t.Errorf("behind the pickle stands %q, %v", rest, err)
				}
			})
		}
	}
}

func checkShown(t *testing.T, l *loader, c *pickle.Cursor, want string) {
	t.Helper()
	v, err := l.load(c)
	if err != nil {
		t.Fatal(err)
	}
	if got := show(v); got != want {
		t.Errorf("got %.300s\nwant %.300s", got, want)
	}
}
