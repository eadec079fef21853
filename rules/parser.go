package rules

import (
	"strconv"
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// The bounds of the grammar.
const (
	MaxBytes = 1 << 20 // of one text that is parsed
	MaxDepth = 64      // parentheses in parentheses
)

// ParseField parses what a struct tag says. It fails with [fault.ErrUsage] and
// the offset of the character at fault.
func ParseField(text string) (*Field, error) {
	p, err := newParser("", text)
	if err != nil {
		return nil, err
	}
	f := &Field{}
	if p.tok.kind != end && !p.tok.is(",") {
		if f.Expr, err = p.expr(0); err != nil {
			return nil, err
		}
	}
	if err := p.flags(&f.Flags); err != nil {
		return nil, err
	}
	return f, p.wantEnd()
}

// ParseExpr parses an expression. It fails with [fault.ErrUsage] and the
// offset of the character at fault.
func ParseExpr(text string) (*Expr, error) {
	p, err := newParser("", text)
	if err != nil {
		return nil, err
	}
	e, err := p.expr(0)
	if err != nil {
		return nil, err
	}
	return e, p.wantEnd()
}

// ParsePattern parses one pattern: a bare name with wildcards, a quoted
// literal, a /regular expression/, or an exact path such as ["a.b", 0]. It fails with [fault.ErrUsage] and the
// offset of the character at fault.
func ParsePattern(text string) (*Pattern, error) {
	p, err := newParser("", "")
	if err != nil {
		return nil, err
	}
	p.src = text
	if err := p.advanceRegex(); err != nil {
		return nil, err
	}
	pat, err := p.pattern()
	if err != nil {
		return nil, err
	}
	return pat, p.wantEnd()
}

// parser is a recursive descent over the tokens with one token of look-ahead.
type parser struct {
	lexer

	tok token // the next token
}

func newParser(name, text string) (*parser, error) {
	if len(text) > MaxBytes {
		return nil, fault.NewBound("rule bytes", int64(len(text)), MaxBytes).In(name)
	}
	p := &parser{lexer: lexer{src: text, name: name}}
	return p, p.advance()
}

func (p *parser) advance() (err error) {
	p.tok, err = p.next(false)
	return err
}

// advanceRegex is advance where a slash begins a regular expression.
func (p *parser) advanceRegex() (err error) {
	p.tok, err = p.next(true)
	return err
}

// fail points at the next token.
func (p *parser) fail(found, cure string) error { return p.errorAt(p.tok.pos, found, cure) }

// expected says what should have come instead of the next token.
func (p *parser) expected(what string) error {
	switch p.tok.kind {
	case end:
		return p.fail("the end where "+what+" should be", "")
	case newline:
		return p.fail("the end of the statement where "+what+" should be", "")
	default:
		return p.fail(strconv.Quote(fault.Clean(p.tok.text, around))+" where "+what+" should be", "")
	}
}

func (p *parser) wantEnd() error {
	if p.tok.kind != end {
		return p.expected("the end")
	}
	return nil
}

// want passes over the punctuation c.
func (p *parser) want(c string) error {
	if !p.tok.is(c) {
		return p.expected(strconv.Quote(c))
	}
	return p.advance()
}

// expr = source { "|" op } .
func (p *parser) expr(depth int) (*Expr, error) {
	if depth > MaxDepth {
		return nil, p.fail("parentheses "+strconv.Itoa(MaxDepth)+" deep", "")
	}
	e, err := p.source(depth)
	if err != nil {
		return nil, err
	}
	for p.tok.is("|") {
		if err := p.advance(); err != nil {
			return nil, err
		}
		op, err := p.op()
		if err != nil {
			return nil, err
		}
		e.Ops = append(e.Ops, op)
	}
	return e, nil
}

// source = name | quoted | "[" path "]" | "(" expr ")" | join .
func (p *parser) source(depth int) (*Expr, error) {
	switch {
	case p.tok.is("("):
		return p.parenthesised(depth)
	case p.tok.is("["):
		name, err := p.exactPath()
		return &Expr{Name: name}, err
	case p.tok.kind == quoted:
		name := NameOf(p.tok.text)
		return &Expr{Name: name}, p.advance()
	case p.tok.kind != word:
		return nil, p.expected("a name")
	}
	first := p.tok
	if err := p.advance(); err != nil {
		return nil, err
	}
	if (first.text == "concat" || first.text == "stack") && p.tok.kind == word {
		join, err := p.join(first.text == "stack", depth)
		return &Expr{Join: join}, err
	}
	pattern, err := p.glob(first)
	if err != nil {
		return nil, err
	}
	return &Expr{Name: &Name{Text: first.text, pattern: pattern}}, nil
}

func (p *parser) glob(t token) (*Pattern, error) {
	pattern, wrong, at := compileGlob(t.text)
	if wrong != "" {
		return nil, p.errorAt(t.pos+at, wrong, "quote the name if it is meant literally")
	}
	return pattern, nil
}

func (p *parser) parenthesised(depth int) (*Expr, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	e, err := p.expr(depth + 1)
	if err != nil {
		return nil, err
	}
	return e, p.want(")")
}

// exactPath = "[" key { "," key } "]", a key being quoted or an integer.
func (p *parser) exactPath() (*Name, error) {
	name, err := p.exactKeys()
	if err != nil {
		return nil, err
	}
	return name, p.advance()
}

// exactKeys reads an exact path up to its last token, which is the next.
func (p *parser) exactKeys() (*Name, error) {
	name := &Name{Path: nested.Path{}}
	for {
		if err := p.advance(); err != nil {
			return nil, err
		}
		switch n, err := strconv.ParseInt(p.tok.text, 10, 64); {
		case p.tok.kind == quoted:
			name.Path = append(name.Path, nested.String(p.tok.text))
		case p.tok.kind == word && err == nil:
			name.Path = append(name.Path, nested.Int(n))
		default:
			return nil, p.expected("a quoted key or an integer")
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
		if !p.tok.is(",") {
			break
		}
	}
	name.Text = name.Path.String()
	name.pattern = literalPattern(name.Text)
	if !p.tok.is("]") {
		return nil, p.expected(`"]"`)
	}
	return name, nil
}

// join = ( "concat" | "stack" ) axis "(" expr { "," expr } ")" .
func (p *parser) join(stack bool, depth int) (*Join, error) {
	j := &Join{Stack: stack}
	var err error
	if j.Axis, err = p.number("the dimension to join along"); err != nil {
		return nil, err
	}
	if !p.tok.is("(") {
		return nil, p.expected(`"("`)
	}
	for {
		if err := p.advance(); err != nil {
			return nil, err
		}
		part, err := p.expr(depth + 1)
		if err != nil {
			return nil, err
		}
		j.Parts = append(j.Parts, part)
		if !p.tok.is(",") {
			return j, p.want(")")
		}
	}
}

func (p *parser) op() (Op, error) {
	if p.tok.kind != word {
		return Op{}, p.expected("an operation")
	}
	v, ok := verbs[p.tok.text]
	if !ok {
		return Op{}, p.fail("the unknown operation "+strconv.Quote(p.tok.text), mean(p.tok.text, verbNames))
	}
	op, at := Op{Verb: p.tok.text}, p.tok.pos
	if err := p.advance(); err != nil {
		return Op{}, err
	}
	var err error
	switch v.form {
	case formDType:
		op.DType, err = p.dtype()
	case formNarrow:
		op.Args, err = p.narrowArgs()
	case formChunk:
		op.Args, err = p.chunkArgs()
	default:
		op.Args, err = p.numbers(v.max)
	}
	if err != nil {
		return Op{}, err
	}
	if n := len(op.Args); n < v.min || n > v.max || v.allowed != nil && !v.allowed(n) {
		return Op{}, p.errorAt(at, op.Verb+" with "+strconv.Itoa(n)+" numbers", usages[op.Verb])
	}
	return op, nil
}

// usages are the cures for operations with the wrong number of arguments.
var usages = map[string]string{
	"transpose": "write transpose, or transpose A B", "permute": "write permute A B …", "reshape": "write reshape N …",
	"flatten": "write flatten, or flatten A B", "unflatten": "write unflatten A N …", "expand": "write expand N …",
	"squeeze": "write squeeze, or squeeze A", "unsqueeze": "write unsqueeze A", "select": "write select A I",
}

func (p *parser) dtype() (tensor.DType, error) {
	d, ok := tensor.ParseDType(p.tok.text)
	if p.tok.kind != word || !ok {
		return 0, p.expected("a dtype such as float32")
	}
	return d, p.advance()
}

// narrowArgs = number [number] ":" [number], the last three in one word.
func (p *parser) narrowArgs() ([]Number, error) {
	axis, err := p.number("a dimension")
	if err != nil {
		return nil, err
	}
	lo, hi, ok := strings.Cut(p.tok.text, ":")
	if p.tok.kind != word || !ok {
		return nil, p.expected("a range LO:HI")
	}
	from, to := Size(0), openNumber
	if lo != "" {
		if from, err = p.numberIn(lo, p.tok.pos); err != nil {
			return nil, err
		}
	}
	if hi != "" {
		if to, err = p.numberIn(hi, p.tok.pos+len(lo)+1); err != nil {
			return nil, err
		}
	}
	return []Number{axis, from, to}, p.advance()
}

// chunkArgs = number number "of" number .
func (p *parser) chunkArgs() ([]Number, error) {
	axis, err := p.number("a dimension")
	if err != nil {
		return nil, err
	}
	i, err := p.number("the part's number")
	if err != nil {
		return nil, err
	}
	if p.tok.kind != word || p.tok.text != "of" {
		return nil, p.expected(`"of"`)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.number("the number of parts")
	return []Number{axis, i, n}, err
}

func (p *parser) numbers(most int) ([]Number, error) {
	var out []Number
	for p.tok.kind == word {
		n, err := p.number("a number")
		if err != nil {
			return nil, err
		}
		if out = append(out, n); len(out) > most {
			break
		}
	}
	return out, nil
}

func (p *parser) number(what string) (Number, error) {
	if p.tok.kind != word {
		return Number{}, p.expected(what)
	}
	n, err := p.numberIn(p.tok.text, p.tok.pos)
	if err != nil {
		return Number{}, err
	}
	return n, p.advance()
}

// Size returns the number n.
func Size(n int) Number { return Number{text: strconv.Itoa(n), terms: []term{{value: n}}} }

// numberIn parses 12, -1, $heads or $heads*64/2 that begins at byte offset at.
func (p *parser) numberIn(text string, at int) (Number, error) {
	n := Number{text: text}
	rest, divide := text, false
	for {
		stop := strings.IndexAny(rest, "*/")
		if stop < 0 {
			stop = len(rest)
		}
		t, ok := parseTerm(rest[:stop])
		if !ok {
			return Number{}, p.errorAt(at+len(text)-len(rest), strconv.Quote(fault.Clean(rest[:stop], around))+" where a number should be",
				"write an integer or a parameter such as $heads")
		}
		t.divide = divide
		if n.terms = append(n.terms, t); stop == len(rest) {
			return n, nil
		}
		divide, rest = rest[stop] == '/', rest[stop+1:]
	}
}

func parseTerm(text string) (term, bool) {
	if name, ok := strings.CutPrefix(text, "$"); ok {
		return term{param: name}, isIdent(name)
	}
	// 32 bits, so that a rule means the same on every machine.
	v, err := strconv.ParseInt(text, 10, 32)
	return term{value: int(v)}, err == nil && text[0] != '+'
}

// pattern reads a bare, quoted or regular pattern or an exact path, which the caller has
// advanced to with advanceRegex.
func (p *parser) pattern() (*Pattern, error) {
	t := p.tok
	var pat *Pattern
	var err error
	switch t.kind {
	case quoted:
		pat = literalPattern(t.text)
	case word:
		pat, err = p.glob(t)
	case regex:
		pat, err = p.compileRegex(t)
	default:
		if !t.is("[") {
			return nil, p.expected("a pattern")
		}
		var name *Name
		if name, err = p.exactKeys(); err == nil {
			pat = exactPattern(name)
		}
	}
	if err != nil {
		return nil, err
	}
	return pat, p.advanceRegex()
}
