package rules

import (
	"strings"
)

// NewRename returns the statement that replaces what a regular expression of
// Go's package regexp matches, with $1 or ${name} for its groups. It fails with
// [fault.ErrUsage] on an expression or a group that does not exist.
func NewRename(re, replacement string) (*Rename, error) {
	p, err := newParser("", quoteName(replacement))
	if err != nil {
		return nil, err
	}
	pattern, err := (&parser{lexer: lexer{src: re}}).compileRegex(token{kind: regex, text: re})
	if err != nil {
		return nil, err
	}
	return &Rename{From: pattern, Replacement: replacement}, p.checkTemplate(pattern.regex)
}

// Statement is one line of a rule file: [*Let], [*Key], [*Rename], [*Affix],
// [*Filter], [*Assign] or [*Rest]. It is immutable.
type Statement interface {
	// String returns the statement as the grammar writes it.
	String() string
	// apply changes the names in s.
	apply(s *state) error
}

// Let gives a parameter its value unless the caller gave it another.
type Let struct {
	Param string
	Value Number
}

// Key goes on with what lies below a name.
type Key struct{ Name *Name }

// Rename gives names that match another name: the match of a regular
// expression is replaced, as [regexp.Regexp.ReplaceAllString] does it, and
// what a pattern matches is written anew with its captures.
type Rename struct {
	From        *Pattern
	To          *Pattern // for a pattern
	Replacement string   // for a regular expression
}

// Affix cuts a text off the beginning of the names that begin with it (strip),
// or puts it before every name (add).
type Affix struct {
	Add  bool
	Text string
}

// Filter keeps (select) or leaves out (drop) the names that one of the patterns
// matches, and what lies below them.
type Filter struct {
	Drop     bool
	Patterns []*Pattern
}

// Assign makes a tensor called Target. Where the names of the expression hold
// captures, it makes one for each match of the first of them. The sources are
// used up: they leave the tree when the neighbouring assignments, which all see
// the same tree, are done. An alias leaves its source where it is.
//
// Flags: optional says that nothing needs to match; dims, floats and except
// choose among the matches of the first name; shape says what shape the tensor
// must have.
type Assign struct {
	Alias  bool
	Target *Pattern
	Expr   *Expr
	Flags  Flags
}

// Rest says what happens to the tensors that the assignments before it have not
// made: they are kept, dropped, or an error.
type Rest struct{ Action string }

// String returns the statement as the grammar writes it.
func (l *Let) String() string { return "let " + l.Param + " = " + l.Value.String() }

// String returns the statement as the grammar writes it.
func (k *Key) String() string { return "key " + k.Name.String() }

// String returns the statement as the grammar writes it.
func (r *Rename) String() string {
	if r.To != nil {
		return "rename " + r.From.String() + " -> " + r.To.String()
	}
	return "rename " + r.From.String() + " -> " + quoteName(r.Replacement)
}

// String returns the statement as the grammar writes it.
func (a *Affix) String() string {
	if a.Add {
		return "add " + quoteWord(a.Text)
	}
	return "strip " + quoteWord(a.Text)
}

// String returns the statement as the grammar writes it.
func (f *Filter) String() string {
	var b strings.Builder
	b.WriteString("select")
	if f.Drop {
		b.Reset()
		b.WriteString("drop")
	}
	for _, p := range f.Patterns {
		b.WriteString(" " + p.String())
	}
	return b.String()
}

// String returns the statement as the grammar writes it.
func (a *Assign) String() string {
	s := a.Target.String() + " = " + a.Expr.String() + a.Flags.String()
	if a.Alias {
		return "alias " + s
	}
	return s
}

// String returns the statement as the grammar writes it.
func (r *Rest) String() string { return "rest " + r.Action }
