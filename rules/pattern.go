package rules

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// Pattern matches flat names: a literal, a glob with captures, or a regular
// expression; or what lies at an exact path. It is immutable and safe for concurrent use.
type Pattern struct {
	text   string
	pieces []piece        // of a literal or a glob
	glob   *regexp.Regexp // matches whole names, nil for a literal
	below  *regexp.Regexp // matches names and what is below them
	regex  *regexp.Regexp // of a /regular expression/
	path   nested.Path    // of an exact path, whose name text is
}

type pieceKind uint8

const (
	pieceText    pieceKind = iota
	pieceStar              // *
	pieceDeep              // **
	pieceCapture           // {name} or {name...}
)

// piece is a part of a glob.
type piece struct {
	kind pieceKind
	text string // of pieceText
	name string // of pieceCapture
	deep bool   // whether a capture may hold dots
	dot  bool   // whether ** ate the dot behind it
}

func literalPattern(text string) *Pattern {
	return &Pattern{text: text, pieces: []piece{{kind: pieceText, text: text}}}
}

// IsLiteral reports whether p matches exactly one name.
func (p *Pattern) IsLiteral() bool { return p.glob == nil && p.regex == nil }

// Captures returns the names that p captures, each once.
func (p *Pattern) Captures() []string {
	var names []string
	seen := map[string]bool{}
	for _, q := range p.pieces {
		if q.kind == pieceCapture && !seen[q.name] {
			seen[q.name] = true
			names = append(names, q.name)
		}
	}
	return names
}

// Match reports whether p matches the whole name, and what its captures hold.
func (p *Pattern) Match(name string) (captures map[string]string, ok bool) {
	switch {
	case p.regex != nil:
		return nil, p.regex.MatchString(name)
	case p.glob == nil:
		return nil, name == p.text
	case !p.mayMatch(name):
		return nil, false
	}
	m := p.glob.FindStringSubmatch(name)
	if m == nil {
		return nil, false
	}
	return p.bind(m[1:])
}

// bind gives the captures their texts; one that occurs twice must hold the
// same text twice.
func (p *Pattern) bind(groups []string) (map[string]string, bool) {
	captures, i := map[string]string{}, 0
	for _, q := range p.pieces {
		if q.kind != pieceCapture {
			continue
		}
		if have, ok := captures[q.name]; ok && have != groups[i] {
			return nil, false
		}
		captures[q.name] = groups[i]
		i++
	}
	return captures, true
}

// Covers reports whether p matches name or a name that name lies below:
// "encoder" covers "encoder.weight".
func (p *Pattern) Covers(name string) bool {
	switch {
	case p.regex != nil:
		return p.regex.MatchString(name)
	case p.glob == nil:
		rest, ok := strings.CutPrefix(name, p.text)
		return ok && (rest == "" || rest[0] == '.')
	default:
		return p.mayMatch(name) && p.below.MatchString(name)
	}
}

// mayMatch reports whether a name has the texts that every match of a glob has, which
// most names of a model have not: an expression takes fifty times as long to say so.
func (p *Pattern) mayMatch(name string) bool {
	for i, q := range p.pieces {
		switch {
		case q.kind != pieceText:
		case i == 0 && !strings.HasPrefix(name, q.text), !strings.Contains(name, q.text):
			return false
		}
	}
	return true
}

// compileGlob makes a pattern of a bare word. The second result says what is
// wrong with it, and at says where.
func compileGlob(text string) (p *Pattern, wrong string, at int) {
	pieces, wrong, at := cutGlob(text)
	if wrong != "" {
		return nil, wrong, at
	}
	if p, err := patternOf(text, pieces); err == nil {
		return p, "", 0
	}
	return nil, "a pattern of more than " + strconv.Itoa(maxGlob) + " bytes", 0
}

// maxGlob bounds the text of a pattern that is not a literal, in bytes: a
// compiled one takes a hundred times as much memory.
const maxGlob = 1 << 14

func patternOf(text string, pieces []piece) (*Pattern, error) {
	p := &Pattern{text: text, pieces: pieces}
	if len(pieces) == 0 || len(pieces) == 1 && pieces[0].kind == pieceText {
		return p, nil
	}
	size := 0
	for _, q := range pieces {
		size += len(q.text) + len(q.name)
	}
	if size = max(size, len(text)); size > maxGlob {
		return nil, fault.NewBound("pattern bytes", int64(size), maxGlob)
	}
	var b strings.Builder
	for i, q := range pieces {
		b.WriteString(q.regex(wholeSegment(pieces, i)))
	}
	p.glob = regexp.MustCompile(`(?s)^` + b.String() + `$`)
	p.below = regexp.MustCompile(`(?s)^` + b.String() + `(?:\..*)?$`)
	return p, nil
}

// wholeSegment reports whether the piece stands alone between dots, where it
// must not be empty.
func wholeSegment(pieces []piece, i int) bool {
	before := i == 0 || pieces[i-1].dot || pieces[i-1].kind == pieceText && strings.HasSuffix(pieces[i-1].text, ".")
	after := i == len(pieces)-1 || pieces[i+1].kind == pieceText && strings.HasPrefix(pieces[i+1].text, ".")
	return before && after
}

func (q piece) regex(whole bool) string {
	switch {
	case q.kind == pieceText:
		return regexp.QuoteMeta(q.text)
	case q.kind == pieceDeep && q.dot:
		return `(?:.*\.)?`
	case q.kind == pieceDeep:
		return `.*`
	case q.kind == pieceCapture && q.deep && whole:
		return `(.+)`
	case q.kind == pieceCapture && q.deep:
		return `(.*)`
	case q.kind == pieceCapture:
		return `([^.]+)`
	case whole:
		return `[^.]+`
	default:
		return `[^.]*`
	}
}

// cutGlob cuts a bare word into pieces.
func cutGlob(text string) (pieces []piece, wrong string, at int) {
	for i := 0; i < len(text); {
		rest := text[i:]
		switch {
		case strings.HasPrefix(rest, "**."):
			pieces = append(pieces, piece{kind: pieceDeep, dot: true})
			i += 3
		case strings.HasPrefix(rest, "**"):
			pieces = append(pieces, piece{kind: pieceDeep})
			i += 2
		case rest[0] == '*':
			pieces = append(pieces, piece{kind: pieceStar})
			i++
		case rest[0] == '{':
			q, n := cutCapture(rest)
			if n == 0 {
				return nil, "a brace that does not hold a name", i
			}
			pieces = append(pieces, q)
			i += n
		default:
			n := strings.IndexAny(rest, "*{")
			if n < 0 {
				n = len(rest)
			}
			pieces = append(pieces, piece{kind: pieceText, text: rest[:n]})
			i += n
		}
	}
	return pieces, "", 0
}

// cutCapture reads {name} or {name...} and returns its length, 0 if it is
// neither.
func cutCapture(s string) (piece, int) {
	stop := strings.IndexByte(s, '}')
	if stop < 0 {
		return piece{}, 0
	}
	name, deep := strings.CutSuffix(s[1:stop], "...")
	if !isIdent(name) {
		return piece{}, 0
	}
	return piece{kind: pieceCapture, name: name, deep: deep}, stop + 1
}

// isIdent reports whether s is an ASCII identifier.
func isIdent(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// substitute returns the pattern with the known captures replaced.
func (p *Pattern) substitute(captures map[string]string) (*Pattern, error) {
	pieces := make([]piece, len(p.pieces))
	for i, q := range p.pieces {
		if text, ok := captures[q.name]; ok && q.kind == pieceCapture {
			q = piece{kind: pieceText, text: text}
		}
		pieces[i] = q
	}
	return patternOf(p.text, pieces)
}

// Expand returns the name that a target makes of captures: the text that each
// stands for in its place. A capture without a text leaves nothing.
func (p *Pattern) Expand(captures map[string]string) string {
	var b strings.Builder
	for _, q := range p.pieces {
		if q.kind == pieceCapture {
			b.WriteString(captures[q.name])
		} else {
			b.WriteString(q.text)
		}
	}
	return b.String()
}
