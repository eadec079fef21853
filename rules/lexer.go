package rules

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind uint8

const (
	end     kind = iota // of the text
	newline             // or a semicolon
	word                // bare
	quoted              // text holds it unquoted
	regex               // text holds it without its slashes
	arrow               // ->
	punct               // one of | , ( ) [ ] =
)

type token struct {
	kind kind
	text string
	pos  int // byte offset in the input
}

// is reports whether t is the punctuation c.
func (t token) is(c string) bool { return t.kind == punct && t.text == c }

// lexer cuts a text into tokens. It holds no more than the position.
type lexer struct {
	src  string
	name string // of the rule file, for errors
	pos  int
}

// separators end a bare word.
const separators = "|,()[]=;\"'"

// next returns the next token. Slashes mean a regular expression only where
// the parser says so, with wantRegex.
func (l *lexer) next(wantRegex bool) (token, error) {
	l.skipBlanks()
	at := l.pos
	if at >= len(l.src) {
		return token{end, "", at}, nil
	}
	c := l.src[at]
	switch {
	case c == '\n' || c == ';':
		l.pos++
		return token{newline, string(c), at}, nil
	case strings.IndexByte("|,()[]=", c) >= 0:
		l.pos++
		return token{punct, string(c), at}, nil
	case strings.HasPrefix(l.src[at:], "->"):
		l.pos += 2
		return token{arrow, "->", at}, nil
	case c == '"' || c == '\'':
		return l.quoted(c)
	case c == '/' && wantRegex:
		return l.regex()
	default:
		return l.word()
	}
}

// skipBlanks passes over blanks and comments, which end before the newline.
func (l *lexer) skipBlanks() {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; c {
		case ' ', '\t', '\r':
			l.pos++
		case '#':
			n := strings.IndexByte(l.src[l.pos:], '\n')
			if n < 0 {
				n = len(l.src) - l.pos
			}
			l.pos += n
		default:
			return
		}
	}
}

func (l *lexer) word() (token, error) {
	at := l.pos
	for l.pos < len(l.src) {
		r, n := utf8.DecodeRuneInString(l.src[l.pos:])
		if !isWordRune(r) || strings.HasPrefix(l.src[l.pos:], "->") {
			break
		}
		if r == utf8.RuneError && n == 1 {
			return token{}, l.errorAt(l.pos, "a byte that is no UTF-8", "quote the name and write the byte as \\x"+strconv.FormatUint(uint64(l.src[l.pos]), 16))
		}
		l.pos += n
	}
	if l.pos == at {
		r, _ := utf8.DecodeRuneInString(l.src[at:])
		return token{}, l.errorAt(at, "the character "+strconv.QuoteRuneToASCII(r), "quote a name that holds it")
	}
	return token{word, l.src[at:l.pos], at}, nil
}

func isWordRune(r rune) bool {
	return r > ' ' && !strings.ContainsRune(separators, r) && !unicode.IsSpace(r) && !unicode.IsControl(r)
}

// quoted reads 'a' or "a". Both know Go's escapes and must end on their line.
func (l *lexer) quoted(quote byte) (token, error) {
	at := l.pos
	var b strings.Builder
	rest := l.src[at+1:]
	for {
		if rest == "" || rest[0] == '\n' {
			return token{}, l.errorAt(at, "a quote that does not end", "close it on the same line")
		}
		if rest[0] == quote {
			l.pos = len(l.src) - len(rest) + 1
			return token{quoted, b.String(), at}, nil
		}
		if rest[0] != '\\' {
			n := strings.IndexAny(rest, "\\\n"+string(quote))
			if n < 0 {
				n = len(rest)
			}
			b.WriteString(rest[:n])
			rest = rest[n:]
			continue
		}
		r, multibyte, tail, err := strconv.UnquoteChar(rest, quote)
		if err != nil {
			return token{}, l.errorAt(len(l.src)-len(rest), "an unknown escape", `use \n, \t, \\, \", \x41 or \u0041`)
		}
		if multibyte || r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			b.WriteByte(byte(r))
		}
		rest = tail
	}
}

// regex reads /…/, in which \/ is a slash.
func (l *lexer) regex() (token, error) {
	at := l.pos
	for i := at + 1; i < len(l.src) && l.src[i] != '\n'; i++ {
		switch l.src[i] {
		case '\\':
			i++
		case '/':
			l.pos = i + 1
			return token{regex, strings.ReplaceAll(l.src[at+1:i], `\/`, "/"), at}, nil
		}
	}
	return token{}, l.errorAt(at, "a regular expression that does not end", "close it with a slash on the same line")
}
