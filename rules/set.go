package rules

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/fault"
)

// Set is a list of statements, as a rule file holds them. It is immutable and
// safe for concurrent use.
type Set struct {
	Name       string // of the file or the named set, for errors
	Statements []Statement
	Params     Params // the caller's values; they win over let
}

// maxStatements bounds one set: each may look at every name of a checkpoint.
const maxStatements = 1 << 14

// Parse parses a rule file; name stands in errors. It fails with
// [fault.ErrUsage] and the offset of the character at fault, and with
// [fault.ErrLimit] on more than [MaxBytes].
func Parse(name, text string) (*Set, error) {
	p, err := newParser(name, text)
	if err != nil {
		return nil, err
	}
	set := &Set{Name: name}
	for {
		for p.tok.kind == newline {
			if err := p.advance(); err != nil {
				return nil, err
			}
		}
		if p.tok.kind == end {
			return set, nil
		}
		if len(set.Statements) == maxStatements {
			return nil, fault.NewBound("statements", maxStatements+1, maxStatements).In(name)
		}
		st, err := p.statement()
		if err != nil {
			return nil, err
		}
		set.Statements = append(set.Statements, st)
	}
}

// String returns the set as a rule file, one statement on a line.
func (s *Set) String() string {
	var b strings.Builder
	for _, st := range s.Statements {
		b.WriteString(st.String() + "\n")
	}
	return b.String()
}

// With returns the set with values for its parameters; they win over let.
func (s *Set) With(params Params) *Set {
	out := *s
	out.Params = Params{}
	for _, p := range []Params{s.Params, params} {
		for name, v := range p {
			out.Params[name] = v
		}
	}
	return &out
}

// Merge returns one set with the statements of all, in order.
func Merge(sets ...*Set) *Set {
	out := &Set{}
	var names []string
	for _, s := range sets {
		out.Statements = append(out.Statements, s.Statements...)
		if out = out.With(s.Params); s.Name != "" {
			names = append(names, s.Name)
		}
	}
	out.Name = strings.Join(names, "+")
	return out
}

// keywords begin a statement, unless = follows.
var keywords = []string{"let", "key", "rename", "strip", "add", "select", "drop", "alias", "rest"}

func (p *parser) statement() (Statement, error) {
	first, after := p.tok, p.pos
	if first.kind != word || !slices.Contains(keywords, first.text) {
		return p.ended(p.assign())
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.is("=") {
		p.tok, p.pos = first, after
		return p.ended(p.assign())
	}
	p.pos = p.tok.pos
	if err := p.advanceRegex(); err != nil {
		return nil, err
	}
	switch first.text {
	case "let":
		return p.ended(p.let())
	case "key":
		return p.ended(p.key())
	case "rename":
		return p.ended(p.rename())
	case "strip", "add":
		return p.ended(p.affix(first.text == "add"))
	case "select", "drop":
		return p.ended(p.filter(first.text == "drop"))
	case "alias":
		st, err := p.assign()
		st.Alias = true
		if err == nil && st.Expr.Name == nil {
			err = p.errorAt(first.pos, "an alias of several tensors", "write an assignment")
		}
		return p.ended(st, err)
	default:
		return p.ended(p.rest())
	}
}

// ended checks that nothing follows a statement on its line.
func (p *parser) ended(st Statement, err error) (Statement, error) {
	if err != nil {
		return nil, err
	}
	if p.tok.kind != end && p.tok.kind != newline {
		return nil, p.expected("the end of the statement")
	}
	return st, nil
}

func (p *parser) let() (*Let, error) {
	if p.tok.kind != word || !isIdent(p.tok.text) {
		return nil, p.expected("a parameter's name")
	}
	st := &Let{Param: p.tok.text}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if err := p.want("="); err != nil {
		return nil, err
	}
	var err error
	st.Value, err = p.number("a number")
	return st, err
}

func (p *parser) key() (*Key, error) {
	at := p.tok.pos
	e, err := p.source(0)
	if err != nil {
		return nil, err
	}
	if !e.Plain() || !e.Name.pattern.IsLiteral() {
		return nil, p.errorAt(at, "a key that is no plain name", "")
	}
	return &Key{Name: e.Name}, nil
}

func (p *parser) rename() (*Rename, error) {
	from, err := p.pattern()
	if err != nil {
		return nil, err
	}
	if p.tok.kind != arrow {
		return nil, p.expected(`"->"`)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.tok.kind != word && p.tok.kind != quoted {
		return nil, p.expected("the new name")
	}
	st := &Rename{From: from}
	if from.regex != nil {
		st.Replacement = p.tok.text
		if err := p.checkTemplate(from.regex); err != nil {
			return nil, err
		}
		return st, p.advance()
	}
	st.To, err = p.target(from.Captures())
	return st, err
}

// target reads a name that captures may stand in, those that are known.
func (p *parser) target(known []string) (*Pattern, error) {
	t := p.tok
	if t.kind == quoted {
		return literalPattern(t.text), p.advance()
	}
	if t.kind != word {
		return nil, p.expected("a name")
	}
	pat, err := p.glob(t)
	if err != nil {
		return nil, err
	}
	for _, q := range pat.pieces {
		switch {
		case q.kind == pieceStar || q.kind == pieceDeep:
			return nil, p.fail("a wildcard in a new name", "capture the text on the other side: {x} or {x...}")
		case q.kind == pieceCapture && !slices.Contains(known, q.name):
			return nil, p.fail("the unknown capture {"+q.name+"}", "capture it on the other side")
		}
	}
	return pat, p.advance()
}

// checkTemplate refuses references to groups that re does not have: the
// package regexp would silently write nothing for $1weight.
func (p *parser) checkTemplate(re *regexp.Regexp) error {
	rest := p.tok.text
	for {
		_, after, found := strings.Cut(rest, "$")
		if !found {
			return nil
		}
		if strings.HasPrefix(after, "$") {
			rest = after[1:]
			continue
		}
		name, braced := groupName(after)
		if name == "" || !hasGroup(re, name) {
			cure := "write $$ for a dollar"
			if !braced && len(name) > 1 && name[0] >= '0' && name[0] <= '9' {
				cure = "write ${" + name[:1] + "}" + name[1:]
			}
			return p.fail("no group "+strconv.Quote(name)+" in the regular expression", cure)
		}
		rest = after[len(name):]
	}
}

// groupName is the group that a template names behind a dollar.
func groupName(s string) (name string, braced bool) {
	if inside, ok := strings.CutPrefix(s, "{"); ok {
		name, _, _ = strings.Cut(inside, "}")
		return name, true
	}
	n := 0
	for n < len(s) && isIdent("_"+s[n:n+1]) {
		n++
	}
	return s[:n], false
}

func hasGroup(re *regexp.Regexp, name string) bool {
	if i, err := strconv.Atoi(name); err == nil {
		return i >= 0 && i <= re.NumSubexp()
	}
	return re.SubexpIndex(name) >= 0
}

func (p *parser) compileRegex(t token) (*Pattern, error) {
	if len(t.text) > maxGlob {
		return nil, p.errorAt(t.pos, "a regular expression of more than "+strconv.Itoa(maxGlob)+" bytes", "")
	}
	re, err := regexp.Compile(t.text)
	if err != nil {
		return nil, p.errorAt(t.pos, "a regular expression that Go does not know ("+fault.Clean(err.Error(), 2*around)+")", "")
	}
	return &Pattern{text: t.text, regex: re}, nil
}

func (p *parser) affix(add bool) (*Affix, error) {
	if p.tok.kind != word && p.tok.kind != quoted || p.tok.text == "" {
		return nil, p.expected("a text")
	}
	st := &Affix{Add: add, Text: p.tok.text}
	return st, p.advance()
}

func (p *parser) filter(drop bool) (*Filter, error) {
	st := &Filter{Drop: drop}
	for {
		pat, err := p.pattern()
		if err != nil {
			return nil, err
		}
		st.Patterns = append(st.Patterns, pat)
		if p.tok.kind == end || p.tok.kind == newline {
			return st, nil
		}
	}
}

// assign = target "=" expr flags. The captures of the target must be those of
// the expression's first name, which the matches are counted by.
func (p *parser) assign() (*Assign, error) {
	st := &Assign{}
	target, after := p.tok, p.pos
	if target.kind != word && target.kind != quoted {
		return st, p.expected("a statement")
	}
	if err := p.advance(); err != nil {
		return st, err
	}
	if !p.tok.is("=") {
		if near := mean(target.text, keywords); target.kind == word {
			return st, p.errorAt(target.pos, "the unknown statement "+strconv.Quote(target.text), near+"; or write TARGET = EXPRESSION")
		}
		return st, p.expected(`"="`)
	}
	if err := p.advance(); err != nil {
		return st, err
	}
	var err error
	if st.Expr, err = p.expr(0); err != nil {
		return st, err
	}
	if err := p.flags(&st.Flags); err != nil {
		return st, err
	}
	return st, p.finishAssign(st, target, after)
}

func (p *parser) finishAssign(st *Assign, target token, after int) error {
	for _, wrong := range []struct {
		set  bool
		flag string
	}{{st.Flags.Default != nil, "default"}, {st.Flags.Bits, "bits"}, {st.Flags.Mutable, "mutable"}, {st.Flags.Alias, "alias"},
		{st.Flags.Inline, "inline"}, {st.Flags.Gaps != "", "gaps"}} {
		if wrong.set {
			return p.errorAt(target.pos, "the flag "+wrong.flag+" on an assignment", "it belongs into a struct tag")
		}
	}
	tok, pos := p.tok, p.pos
	p.tok, p.pos = target, after
	var err error
	st.Target, err = p.target(firstName(st.Expr).pattern.Captures())
	p.tok, p.pos = tok, pos
	return err
}

// firstName is the name whose matches an assignment is repeated for.
func firstName(e *Expr) *Name {
	for e.Name == nil {
		e = e.Join.Parts[0]
	}
	return e.Name
}

func (p *parser) rest() (*Rest, error) {
	if p.tok.kind != word || !slices.Contains([]string{"keep", "drop", "error"}, p.tok.text) {
		return nil, p.expected("keep, drop or error")
	}
	st := &Rest{Action: p.tok.text}
	return st, p.advance()
}
