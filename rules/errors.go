package rules

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// around is how many bytes of the text an error shows on each side.
const around = 30

// errorAt returns a usage error that points at the byte offset at: its Offset
// is at, and its text shows the place with a mark before the character.
func (l *lexer) errorAt(at int, found, cure string) error {
	line := 1 + strings.Count(l.src[:at], "\n")
	start := strings.LastIndexByte(l.src[:at], '\n') + 1
	column := 1 + utf8.RuneCountInString(l.src[start:at])
	where := "character " + strconv.Itoa(column)
	if strings.Contains(l.src, "\n") {
		where = "line " + strconv.Itoa(line) + ", " + where
	}
	e := fault.New(fault.Usage, found+" at "+where+": "+excerpt(l.src, start, at)).In(l.name).At(int64(at))
	e.Cure = cure
	return e
}

// excerpt shows the line that holds at, cut, with ▸ before the character.
func excerpt(src string, start, at int) string {
	stop := len(src)
	if n := strings.IndexByte(src[at:], '\n'); n >= 0 {
		stop = at + n
	}
	head, tail := "", ""
	if at-start > around {
		start, head = runeStart(src, at-around), "…"
	}
	if stop-at > around {
		stop, tail = max(at, runeStart(src, at+around)), "…"
	}
	return head + src[start:at] + "▸" + src[at:stop] + tail
}

func runeStart(s string, at int) int {
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}

// mean is the cure for a word that is not known.
func mean(got string, known []string) string {
	if near := nested.Nearest(got, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "one of " + strings.Join(known, ", ")
}
