package rules

import (
	"strconv"
)

// flagNames are the flags in the order in which they are printed.
var flagNames = []string{"optional", "default", "bits", "mutable", "alias", "inline", "prefix", "gaps", "shape",
	"dims", "floats", "except"}

// flags = { "," flag } .
func (p *parser) flags(f *Flags) error {
	seen := map[string]bool{}
	for p.tok.is(",") {
		if err := p.advance(); err != nil {
			return err
		}
		if p.tok.kind != word {
			return p.expected("a flag")
		}
		flag := p.tok
		if seen[flag.text] && flag.text != "except" {
			return p.fail("the flag "+flag.text+" a second time", "")
		}
		seen[flag.text] = true
		if err := p.flag(f); err != nil {
			return err
		}
	}
	return nil
}

// flag parses the one flag that is the next token.
func (p *parser) flag(f *Flags) error {
	set, plain := map[string]*bool{
		"optional": &f.Optional, "bits": &f.Bits, "mutable": &f.Mutable, "alias": &f.Alias, "inline": &f.Inline, "floats": &f.Floats,
	}[p.tok.text]
	switch name := p.tok.text; {
	case plain:
		*set = true
		return p.advance()
	case name == "shape":
		return p.shape(f)
	case name == "default" || name == "prefix" || name == "gaps" || name == "dims" || name == "except":
		return p.valued(f, name)
	default:
		return p.fail("the unknown flag "+strconv.Quote(name), mean(name, flagNames))
	}
}

// valued = name "=" value .
func (p *parser) valued(f *Flags, name string) error {
	if err := p.advance(); err != nil {
		return err
	}
	if !p.tok.is("=") {
		return p.expected(`"=" after ` + name)
	}
	if err := p.advanceRegex(); err != nil {
		return err
	}
	if name == "except" {
		pat, err := p.pattern()
		f.Except = append(f.Except, pat)
		return err
	}
	t := p.tok
	if t.kind != word && t.kind != quoted {
		return p.expected("the value of " + name)
	}
	switch name {
	case "default":
		f.Default = &Literal{Text: t.text, Quoted: t.kind == quoted}
	case "prefix":
		f.Prefix, f.Inline = t.text, true
	case "gaps":
		if t.text != "keep" && t.text != "close" {
			return p.expected("keep or close")
		}
		f.Gaps = t.text
	case "dims":
		n, err := strconv.ParseUint(t.text, 10, 8)
		if err != nil {
			return p.expected("a number of dimensions")
		}
		f.Dims, f.HasDims = int(n), true
	}
	return p.advance()
}

// shape = "shape" { number | "*" } .
func (p *parser) shape(f *Flags) error {
	if err := p.advance(); err != nil {
		return err
	}
	f.Shape = []Number{}
	for p.tok.kind == word {
		if p.tok.text == "*" {
			f.Shape = append(f.Shape, anySize)
			if err := p.advance(); err != nil {
				return err
			}
			continue
		}
		n, err := p.number("a size")
		if err != nil {
			return err
		}
		f.Shape = append(f.Shape, n)
	}
	return nil
}

// WantShape returns the shape that the flag asks for, as text with the parameters
// filled in, where shape is another one; it returns "" where it is right, as every
// shape is without the flag. It fails with [fault.ErrUsage] when a parameter has no
// value.
func (f *Flags) WantShape(shape []int, params Params) (want string, err error) {
	if f.Shape == nil {
		return "", nil
	}
	fits, text := len(shape) == len(f.Shape), []byte{'['}
	for i, n := range f.Shape {
		if i > 0 {
			text = append(text, ", "...)
		}
		if n.IsAny() {
			text = append(text, '*')
			continue
		}
		size, err := n.Value(params)
		if err != nil {
			return "", err
		}
		text = strconv.AppendInt(text, int64(size), 10)
		fits = fits && shape[i] == size
	}
	if fits {
		return "", nil
	}
	return string(append(text, ']')), nil
}
