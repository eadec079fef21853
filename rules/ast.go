package rules

import (
	"math"
	"slices"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// Field is what a struct tag says: where the value comes from, nil if the tag
// leaves it to the field's own name, and how it is treated.
type Field struct {
	Expr  *Expr
	Flags Flags
}

// Expr is a source and the operations applied to it, in order. Exactly one of
// Name and Join is set. It is immutable and safe for concurrent use.
type Expr struct {
	Name *Name // one tensor, by its name
	Join *Join // several tensors, joined
	Ops  []Op
}

// Name is a source's name: bare, quoted or an exact path.
type Name struct {
	Text string      // as written, unquoted; the flat name for a path
	Path nested.Path // nil unless the source was given by its exact path

	pattern *Pattern
}

// NameOf returns the source with exactly this flat name, in which no character
// means anything else.
func NameOf(name string) *Name { return &Name{Text: name, pattern: literalPattern(name)} }

// Pattern returns what the name matches.
func (n *Name) Pattern() *Pattern { return n.pattern }

// Join is several sources joined along a dimension: an existing one (concat)
// or a new one (stack).
type Join struct {
	Stack bool
	Axis  Number
	Parts []*Expr
}

// Op is one view operation with its arguments; the package documentation lists
// them.
type Op struct {
	Verb  string
	Args  []Number
	DType tensor.DType // of a cast
}

// Flags is what follows the expression of a tag or an assignment, each after a
// comma.
type Flags struct {
	Optional bool     // optional: absent is no error
	Default  *Literal // default=VALUE: the value of a scalar, string or bool that is absent
	Bits     bool     // bits: the raw bits of the elements, as integers of their size
	Mutable  bool     // mutable: the memory will be written, so it is never an alias
	Alias    bool     // alias: use lent memory in place where that is possible
	Inline   bool     // inline: the names of a struct's fields stand beside this one's, not below it
	Prefix   string   // prefix=TEXT: inline, with this text before the names
	Gaps     string   // gaps=keep or gaps=close: indexes that a module list leaves out
	Shape    []Number // shape N …: the shape the value must have; * is any size

	HasDims bool       // dims=N: an assignment for tensors with N dimensions only
	Dims    int        // the N
	Floats  bool       // floats: an assignment for tensors of floats only
	Except  []*Pattern // except=PATTERN: an assignment for names that match none of these
}

// Literal is a value written in a tag.
type Literal struct {
	Text   string
	Quoted bool
}

// Params gives values to the parameters ($heads) of rules.
type Params map[string]int

// Number is a size, a dimension or a bound: an integer, a parameter, or a
// product or quotient of them.
type Number struct {
	text  string
	terms []term
}

// term is one factor of a Number.
type term struct {
	value  int
	param  string // if it is a parameter
	divide bool
}

// openBound is the value of a bound that was left out, any of a size that is.
const openBound = math.MaxInt

var (
	openNumber = Number{text: "", terms: []term{{value: openBound}}}
	anySize    = Number{text: "*", terms: []term{{value: openBound}}}
)

// IsAny reports whether n is the * of a shape.
func (n Number) IsAny() bool { return n.text == "*" }

// Value returns the number with its parameters filled in. It fails with
// [fault.ErrUsage] on a parameter without a value, a division that leaves a
// rest, or an overflow.
func (n Number) Value(params Params) (int, error) {
	product := 1
	for _, t := range n.terms {
		v := t.value
		if t.param != "" {
			known, ok := params[t.param]
			if !ok {
				return 0, fault.New(fault.Usage, "no value for the parameter $"+t.param).
					Needs("one", "write let "+t.param+" = … or give it with the rules")
			}
			v = known
		}
		var ok bool
		if product, ok = combine(product, v, t.divide); !ok {
			return 0, fault.New(fault.Usage, n.text+" has no value: it overflows or does not divide")
		}
	}
	return product, nil
}

// combine multiplies or divides exactly.
func combine(a, b int, divide bool) (int, bool) {
	if divide {
		if b == 0 || a%b != 0 {
			return 0, false
		}
		return a / b, true
	}
	if a == 0 || b == 0 {
		return 0, true
	}
	p := a * b
	return p, p/b == a && (p < 0) == ((a < 0) != (b < 0))
}

// Names calls yield for every name in the expression, from left to right.
func (e *Expr) Names(yield func(*Name)) {
	if e.Name != nil {
		yield(e.Name)
		return
	}
	for _, part := range e.Join.Parts {
		part.Names(yield)
	}
}

// Plain reports whether the expression is a name and nothing else, so that it
// may stand for what is no tensor.
func (e *Expr) Plain() bool { return e.Name != nil && len(e.Ops) == 0 }

// substitute returns the expression with the captures of its names replaced by
// the texts they stand for. It fails with [fault.ErrLimit] when that makes a
// pattern too long.
func (e *Expr) substitute(captures map[string]string) (*Expr, error) {
	if len(captures) == 0 {
		return e, nil
	}
	out := &Expr{Ops: e.Ops}
	var err error
	if e.Name != nil {
		out.Name, err = e.Name.substitute(captures)
		return out, err
	}
	join := *e.Join
	join.Parts = make([]*Expr, len(e.Join.Parts))
	for i, part := range e.Join.Parts {
		if join.Parts[i], err = part.substitute(captures); err != nil {
			return nil, err
		}
	}
	out.Join = &join
	return out, nil
}

func (n *Name) substitute(captures map[string]string) (*Name, error) {
	if n.Path != nil || n.pattern.IsLiteral() {
		return n, nil
	}
	for _, p := range n.pattern.pieces {
		_, known := captures[p.name]
		if p.kind != pieceText && (p.kind != pieceCapture || !known) {
			pattern, err := n.pattern.substitute(captures)
			return &Name{Text: n.Text, pattern: pattern}, err
		}
	}
	return NameOf(n.pattern.Expand(captures)), nil
}

// Under returns the expression with prefix before every name but the exact
// paths. It fails with [fault.ErrLimit] when that makes a pattern too long.
func (e *Expr) Under(prefix string) (*Expr, error) {
	if prefix == "" {
		return e, nil
	}
	out := &Expr{Ops: e.Ops}
	var err error
	if e.Name != nil {
		out.Name, err = e.Name.under(prefix)
		return out, err
	}
	join := *e.Join
	join.Parts = make([]*Expr, len(e.Join.Parts))
	for i, part := range e.Join.Parts {
		if join.Parts[i], err = part.Under(prefix); err != nil {
			return nil, err
		}
	}
	out.Join = &join
	return out, nil
}

func (n *Name) under(prefix string) (*Name, error) {
	switch {
	case n.Path != nil:
		return n, nil
	case n.pattern.IsLiteral():
		return NameOf(prefix + n.Text), nil
	}
	pattern, err := patternOf(prefix+n.Text, slices.Concat([]piece{{kind: pieceText, text: prefix}}, n.pattern.pieces))
	return &Name{Text: prefix + n.Text, pattern: pattern}, err
}
