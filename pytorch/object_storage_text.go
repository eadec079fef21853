package pytorch

import (
	"strconv"
	"strings"

	"github.com/wick-ml/wick/nested"
)

// Protocol 0 writes a persistent id as a line of text, and torch's ids are
// tuples: what stands in the file is str() of the tuple, such as
//
//	('storage', <class 'torch.FloatStorage'>, '0', 'cpu', 2)

// parseTuple reads such a text; ok is false when it is none.
func (l *loader) parseTuple(text string) (id *nested.List, ok bool) {
	p := tupleParser{rest: text}
	v, ok := p.value(0)
	if !ok || p.rest != "" {
		return nil, false
	}
	id, ok = v.(*nested.List)
	return id, ok
}

type tupleParser struct{ rest string }

// maxTupleDepth is more than any id has.
const maxTupleDepth = 4

// value reads one item and takes it off the rest.
func (p *tupleParser) value(depth int) (nested.Value, bool) {
	p.rest = strings.TrimLeft(p.rest, " ")
	switch {
	case p.rest == "" || depth > maxTupleDepth:
		return nil, false
	case p.rest[0] == '(':
		return p.tuple(depth)
	case p.rest[0] == '<':
		return p.class()
	case p.rest[0] == '\'' || p.rest[0] == '"':
		return p.text()
	case strings.HasPrefix(p.rest, "u'") || strings.HasPrefix(p.rest, "b'"):
		p.rest = p.rest[1:]
		return p.text()
	default:
		return p.word()
	}
}

func (p *tupleParser) tuple(depth int) (nested.Value, bool) {
	p.rest = p.rest[1:]
	t := nested.NewList("tuple")
	for {
		p.rest = strings.TrimLeft(p.rest, " ")
		if rest, ok := strings.CutPrefix(p.rest, ")"); ok {
			p.rest = rest
			return t, true
		}
		v, ok := p.value(depth + 1)
		if !ok {
			return nil, false
		}
		t.Items = append(t.Items, v)
		p.rest = strings.TrimLeft(p.rest, " ")
		if rest, ok := strings.CutPrefix(p.rest, ","); ok {
			p.rest = rest
		} else if !strings.HasPrefix(p.rest, ")") {
			return nil, false
		}
	}
}

// class reads <class 'torch.FloatStorage'>.
func (p *tupleParser) class() (nested.Value, bool) {
	body, rest, ok := strings.Cut(p.rest[1:], ">")
	if !ok {
		return nil, false
	}
	_, name, ok := strings.Cut(body, "'")
	name, _, closed := strings.Cut(name, "'")
	p.rest = rest
	return nested.Symbol{Class: "type", Text: name}, ok && closed
}

// text reads a quoted string; keys and devices have no escapes but these.
func (p *tupleParser) text() (nested.Value, bool) {
	quote := p.rest[0]
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == quote:
			p.rest = p.rest[i+1:]
			return nested.String(b.String()), true
		case c == '\\' && i+1 < len(p.rest):
			i++
			b.WriteByte(p.rest[i])
		default:
			b.WriteByte(c)
		}
	}
	return nil, false
}

// word reads a number or None.
func (p *tupleParser) word() (nested.Value, bool) {
	end := strings.IndexAny(p.rest, ",) ")
	if end < 0 {
		return nil, false
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	if word == "None" {
		return nested.None{}, true
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(word, "L"), 10, 64)
	return nested.Int(n), err == nil
}
