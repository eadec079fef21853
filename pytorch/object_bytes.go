package pytorch

import (
	"unicode/utf8"

	"github.com/wick-ml/wick/nested"
)

// byteCalls are the forms that bytes and bytearray take below protocols 3 and 5.
var byteCalls = map[string]callFunc{
	"_codecs.encode":      encodeText,
	"builtins.bytes":      bytesCall(func(b string) nested.Value { return nested.Bytes(b) }),
	"builtins.bytearray":  bytesCall(func(b string) nested.Value { return nested.ByteArray(b) }),
	"bytearray.bytearray": bytesCall(func(b string) nested.Value { return nested.ByteArray(b) }),
}

// encodeText is how Python 3 writes bytes in protocol 2: Latin-1 text.
func encodeText(_ *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) == 0 || len(args) > 2 {
		return nil, false
	}
	text, ok := args[0].(nested.String)
	if !ok {
		return nil, false
	}
	if len(args) == 1 {
		return nested.Bytes(text), true // UTF-8 by default
	}
	switch args[1] {
	case nested.String("latin1"), nested.String("latin-1"), nested.String("iso-8859-1"):
		b, ok := latin1Bytes(string(text))
		return nested.Bytes(b), ok
	case nested.String("utf-8"), nested.String("utf8"), nested.String("ascii"):
		return nested.Bytes(text), true
	}
	return nil, false
}

// latin1Bytes turns text of code points below 256 into one byte each.
func latin1Bytes(text string) (string, bool) {
	out := make([]byte, 0, len(text))
	for _, r := range text {
		if r > 0xFF {
			return "", false
		}
		out = append(out, byte(r))
	}
	return string(out), utf8.ValidString(text)
}

// bytesCall makes bytes from nothing, bytes, a list of ints, or Latin-1 text
// with the encoding's name.
func bytesCall(wrap func(string) nested.Value) callFunc {
	return func(l *loader, args []nested.Value) (nested.Value, bool) {
		if len(args) == 0 {
			return wrap(""), true
		}
		switch a := args[0].(type) {
		case nested.Bytes:
			return wrap(string(a)), len(args) == 1
		case nested.ByteArray:
			return wrap(string(a)), len(args) == 1
		case nested.String:
			v, ok := encodeText(l, args)
			b, _ := v.(nested.Bytes)
			return wrap(string(b)), ok && len(args) == 2
		case *nested.List:
			b, ok := listBytes(a)
			return wrap(b), ok && len(args) == 1
		}
		return nil, false
	}
}

func listBytes(list *nested.List) (string, bool) {
	out := make([]byte, len(list.Items))
	for i, item := range list.Items {
		n, ok := item.(nested.Int)
		if !ok || n < 0 || n > 0xFF {
			return "", false
		}
		out[i] = byte(n)
	}
	return string(out), true
}
