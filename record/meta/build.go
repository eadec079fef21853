package meta

import (
	"unicode/utf8"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// The names of objects that are no Python class.
const (
	nameString    = "wick.str"       // text that is no UTF-8, as bytes
	nameOpaque    = "wick.opaque"    // an object that nobody built: class, reason, members
	nameComponent = "wick.component" // the key of a part of a tensor
)

// Unbuild says a value that is no plain one as an object: a name and arguments,
// which are plain or can be unbuilt in turn. ok is false for the plain values:
// None, Bool, Int, BigInt, Float, String in UTF-8, Bytes, a dict, a list, and
// leaves. Of an opaque object it says the class, the reason and the members.
func Unbuild(v nested.Value) (name string, args []nested.Value, ok bool) {
	switch v := v.(type) {
	case nested.Complex:
		return "complex", []nested.Value{nested.Float(real(v)), nested.Float(imag(v))}, true
	case nested.String:
		return nameString, []nested.Value{nested.Bytes(v)}, !utf8.ValidString(string(v))
	case nested.ByteArray:
		return "bytearray", []nested.Value{nested.Bytes(v)}, true
	case nested.Symbol:
		return v.Class, []nested.Value{nested.String(v.Text)}, true
	case *nested.List:
		return v.Class, []nested.Value{&nested.List{Class: "list", Items: v.Items}}, v.Class != "list"
	case *nested.Map:
		return unbuildMap(v)
	case *nested.Opaque:
		members := v.Members
		if members == nil {
			members = nested.None{}
		}
		return nameOpaque, []nested.Value{nested.String(v.Class), nested.String(v.Reason), members}, true
	case nested.Component:
		return nameComponent, []nested.Value{nested.String(v)}, true
	default:
		return "", nil, false
	}
}

func unbuildMap(m *nested.Map) (name string, args []nested.Value, ok bool) {
	if m.Class == "dict" && m.Attrs == nil {
		return "", nil, false
	}
	plain := *m // shares the entries: neither is changed any more
	plain.Class, plain.Attrs = "dict", nil
	args = []nested.Value{&plain}
	if m.Attrs != nil {
		args = append(args, m.Attrs)
	}
	return m.Class, args, true
}

// Build is the way back from [Unbuild]. The name decides for the values that
// wick knows, else the first argument: a dict or a list of the named class, or
// a symbol. Everything else is malformed.
func Build(name string, args []nested.Value) (nested.Value, error) {
	if v := buildKnown(name, args); v != nil {
		return v, nil
	}
	if len(args) == 0 || len(args) > 2 {
		return nil, badObject(name)
	}
	switch first := args[0].(type) {
	case *nested.Map:
		m := *first
		m.Class = name
		if len(args) == 2 {
			m.Attrs = args[1]
		}
		return &m, nil
	case *nested.List:
		if len(args) == 1 {
			return &nested.List{Class: name, Items: first.Items}, nil
		}
	case nested.String:
		if len(args) == 1 {
			return nested.Symbol{Class: name, Text: string(first)}, nil
		}
	}
	return nil, badObject(name)
}

func buildKnown(name string, args []nested.Value) nested.Value {
	switch {
	case name == "complex" && len(args) == 2:
		re, okRe := args[0].(nested.Float)
		im, okIm := args[1].(nested.Float)
		if okRe && okIm {
			return nested.Complex(complex(float64(re), float64(im)))
		}
	case (name == nameString || name == "bytearray") && len(args) == 1:
		b, ok := args[0].(nested.Bytes)
		if ok && name == nameString {
			return nested.String(b)
		}
		if ok {
			return nested.ByteArray(b)
		}
	case name == nameOpaque && len(args) == 3:
		return buildOpaque(args)
	case name == nameComponent && len(args) == 1:
		if part, ok := args[0].(nested.String); ok {
			return nested.Component(part)
		}
	}
	return nil
}

func buildOpaque(args []nested.Value) nested.Value {
	class, okClass := args[0].(nested.String)
	reason, okReason := args[1].(nested.String)
	if !okClass || !okReason {
		return nil
	}
	o := &nested.Opaque{Class: string(class), Reason: string(reason)}
	if _, none := args[2].(nested.None); !none {
		o.Members = args[2]
	}
	return o
}

func badObject(name string) error {
	return fault.New(fault.Malformed, "an object "+name+" with arguments that it does not have").
		Needs("a record as wick writes it", fault.GetAgain)
}
