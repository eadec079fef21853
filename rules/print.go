package rules

import (
	"strconv"
	"strings"

	"github.com/wick-ml/wick/nested"
)

// String returns the tag, in the form that [ParseField] reads back.
func (f *Field) String() string {
	if f.Expr == nil {
		return f.Flags.String()
	}
	return f.Expr.String() + f.Flags.String()
}

// String returns the expression, in the form that [ParseExpr] reads back.
func (e *Expr) String() string {
	var b strings.Builder
	if e.Name != nil {
		b.WriteString(e.Name.String())
	} else {
		b.WriteString(e.Join.String())
	}
	for _, op := range e.Ops {
		b.WriteString(" | " + op.String())
	}
	return b.String()
}

// String returns the join as the grammar writes it.
func (j *Join) String() string {
	var b strings.Builder
	b.WriteString("concat ")
	if j.Stack {
		b.Reset()
		b.WriteString("stack ")
	}
	b.WriteString(j.Axis.text + " (")
	for i, part := range j.Parts {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(part.String())
	}
	return b.String() + ")"
}

// String returns the name as the grammar writes it, quoted where it must be.
func (n *Name) String() string {
	if n.Path != nil {
		return pathString(n.Path)
	}
	return n.pattern.String()
}

func pathString(path nested.Path) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, key := range path {
		if i > 0 {
			b.WriteString(", ")
		}
		switch k := key.(type) {
		case nested.Int:
			b.WriteString(strconv.FormatInt(int64(k), 10))
		default:
			b.WriteString(quoteName(nested.KeyName(key)))
		}
	}
	return b.String() + "]"
}

// String returns the pattern as the grammar writes it.
func (p *Pattern) String() string {
	switch {
	case p.path != nil:
		return pathString(p.path)
	case p.regex != nil:
		return "/" + escapeSlashes(p.regex.String()) + "/"
	case p.glob != nil:
		return p.globString()
	case bare(p.text):
		return p.text
	default:
		return quoteName(p.text)
	}
}

func (p *Pattern) globString() string {
	var b strings.Builder
	for _, q := range p.pieces {
		switch {
		case q.kind == pieceStar:
			b.WriteByte('*')
		case q.kind == pieceDeep && q.dot:
			b.WriteString("**.")
		case q.kind == pieceDeep:
			b.WriteString("**")
		case q.kind == pieceCapture && q.deep:
			b.WriteString("{" + q.name + "...}")
		case q.kind == pieceCapture:
			b.WriteString("{" + q.name + "}")
		default:
			b.WriteString(q.text)
		}
	}
	return b.String()
}

// bare reports whether a literal needs no quotes anywhere in the grammar.
func bare(s string) bool {
	if s == "" || s[0] == '/' || s[0] == '#' || s == "concat" || s == "stack" || strings.ContainsAny(s, "*{$") || strings.Contains(s, "->") {
		return false
	}
	for _, r := range s {
		if !isWordRune(r) || r == '\uFFFD' {
			return false
		}
	}
	return true
}

// quoteName quotes so that one line of ASCII holds any name, bytes that are no
// UTF-8 included.
func quoteName(s string) string { return strconv.QuoteToASCII(s) }

// quoteWord quotes a text that is not a pattern only where it must be.
func quoteWord(s string) string {
	if bare(s) {
		return s
	}
	return quoteName(s)
}

// escapeSlashes writes \/ for the slashes of a regular expression that have no
// backslash before them yet.
func escapeSlashes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			b.WriteString(s[i : i+2])
			i++
		case s[i] == '/':
			b.WriteString(`\/`)
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// String returns the operation as the grammar writes it.
func (o Op) String() string {
	switch verbs[o.Verb].form {
	case formDType:
		return o.Verb + " " + o.DType.String()
	case formNarrow:
		return o.Verb + " " + o.Args[0].text + " " + o.Args[1].text + ":" + o.Args[2].text
	case formChunk:
		return o.Verb + " " + o.Args[0].text + " " + o.Args[1].text + " of " + o.Args[2].text
	}
	return o.Verb + numbersString(o.Args)
}

func numbersString(numbers []Number) string {
	var b strings.Builder
	for _, n := range numbers {
		b.WriteString(" " + n.text)
	}
	return b.String()
}

// String returns the number as it was written.
func (n Number) String() string { return n.text }

// String returns the flags, each with the comma before it.
func (f Flags) String() string {
	var b strings.Builder
	add := func(set bool, text string) {
		if set {
			b.WriteString(", " + text)
		}
	}
	add(f.Optional, "optional")
	if f.Default != nil {
		add(true, "default="+f.Default.String())
	}
	add(f.Bits, "bits")
	add(f.Mutable, "mutable")
	add(f.Alias, "alias")
	add(f.Inline && f.Prefix == "", "inline")
	add(f.Prefix != "", "prefix="+quoteWord(f.Prefix))
	add(f.Gaps != "", "gaps="+f.Gaps)
	add(f.Shape != nil, "shape"+numbersString(f.Shape))
	add(f.HasDims, "dims="+strconv.Itoa(f.Dims))
	add(f.Floats, "floats")
	for _, p := range f.Except {
		add(true, "except="+p.String())
	}
	return b.String()
}

// String returns the literal as it was written.
func (l *Literal) String() string {
	if l.Quoted || !bare(l.Text) {
		return quoteName(l.Text)
	}
	return l.Text
}
