package pytorch

import (
	"math/big"
	"strings"

	"github.com/wick-ml/wick/nested"
)

// numberCalls are Python's numbers beyond ints and floats.
var numberCalls = map[string]callFunc{
	"builtins.complex":   newComplex,
	"builtins.int":       plainNumber,
	"builtins.float":     plainNumber,
	"builtins.bool":      plainNumber,
	"builtins.range":     newRange("range"),
	"builtins.slice":     newRange("slice"),
	"decimal.Decimal":    textOf("decimal.Decimal"),
	"_decimal.Decimal":   textOf("decimal.Decimal"),
	"fractions.Fraction": newFraction,
}

func newComplex(_ *loader, args []nested.Value) (nested.Value, bool) {
	var part [2]float64
	if len(args) > 2 {
		return nil, false
	}
	for i, a := range args {
		f, ok := floatOf(a)
		if !ok {
			return nil, false
		}
		part[i] = f
	}
	return nested.Complex(complex(part[0], part[1])), true
}

// floatOf returns a number as a float.
func floatOf(v nested.Value) (float64, bool) {
	switch v := v.(type) {
	case nested.Float:
		return float64(v), true
	case nested.Int:
		return float64(v), true
	case nested.BigInt:
		f, _ := new(big.Float).SetInt(v.Int).Float64()
		return f, true
	case nested.Bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// plainNumber is a number made from one, as subclasses of int and float are.
func plainNumber(_ *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 1 {
		return nil, false
	}
	_, ok := floatOf(args[0])
	return args[0], ok
}

// newRange keeps range and slice objects as their text.
func newRange(class string) callFunc {
	return func(_ *loader, args []nested.Value) (nested.Value, bool) {
		if len(args) == 0 || len(args) > 3 {
			return nil, false
		}
		parts := make([]string, len(args))
		for i, a := range args {
			switch a.(type) {
			case nested.Int, nested.BigInt, nested.None:
				parts[i] = nested.Repr(a)
			default:
				return nil, false
			}
		}
		if class == "range" && len(parts) == 3 && parts[2] == "1" {
			parts = parts[:2]
		}
		return nested.Symbol{Class: class, Text: class + "(" + strings.Join(parts, ", ") + ")"}, true
	}
}

// textOf is an object that its one text says completely.
func textOf(class string) callFunc {
	return func(_ *loader, args []nested.Value) (nested.Value, bool) {
		if len(args) != 1 {
			return nil, false
		}
		text, ok := args[0].(nested.String)
		return nested.Symbol{Class: class, Text: string(text)}, ok
	}
}

// newFraction is called with text ("1/3"), or with both numbers since Python 3.12.
func newFraction(l *loader, args []nested.Value) (nested.Value, bool) {
	if len(args) != 2 {
		return textOf("fractions.Fraction")(l, args)
	}
	for _, a := range args {
		switch a.(type) {
		case nested.Int, nested.BigInt:
		default:
			return nil, false
		}
	}
	return nested.Symbol{Class: "fractions.Fraction", Text: nested.Repr(args[0]) + "/" + nested.Repr(args[1])}, true
}
