package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
)

// namePattern is one PATTERN argument: the rules' patterns, and every name as
// it is printed, whatever characters it has.
type namePattern struct {
	text  string
	rules *rules.Pattern // nil where the text is only a name
}

// match reports whether the pattern means a name or something above it.
func (p *namePattern) match(name string, path nested.Path) bool {
	return name == p.text || p.rules != nil && p.rules.CoversAt(name, path)
}

// any reports whether the pattern means one of so many names.
func (p *namePattern) any(names []string, paths []nested.Path) bool {
	for i, name := range names {
		if p.match(name, paths[i]) {
			return true
		}
	}
	return false
}

// filter keeps the rows that patterns mean. It fails when one of them means
// none.
func filter(l *listing.Listing, patterns []string) error {
	if len(patterns) == 0 {
		return nil
	}
	names, paths := l.Names()
	var parsed []*namePattern
	var wrong error
	for _, text := range patterns {
		p := &namePattern{text: text}
		var err error
		p.rules, err = rules.ParsePattern(text)
		if parsed = append(parsed, p); wrong == nil && !p.any(names, paths) {
			wrong = noMatch(l.File, text, names, err)
		}
	}
	l.Filter(func(name string, path nested.Path) bool {
		return slices.ContainsFunc(parsed, func(p *namePattern) bool { return p.match(name, path) })
	})
	return wrong
}

// noMatch says that a pattern means nothing: it is no pattern, or there is no
// such name.
func noMatch(file, pattern string, names []string, syntax error) error {
	isFile := !isMissing(pattern)
	if syntax != nil && !isFile {
		return syntax
	}
	e := fault.New(fault.NotFound, "nothing is called "+pattern).In(file)
	if near := nested.Nearest(pattern, names); near != "" {
		e.Cure = "did you mean " + near + "?"
	} else if isFile {
		e.Cure = "that is a file: give one file, and behind it what names tensors"
	} else if isInside(pattern, names) {
		e.Cure = "did you mean **." + pattern + "?"
	} else if near := nearBeginning(pattern, names); near != "" {
		e.Cure = "did you mean " + near + "?"
	}
	return e
}

// nearBeginning returns the beginning of names that was most likely meant, or
// behind "**." the part of names, "" when none is near.
func nearBeginning(pattern string, names []string) string {
	begin, parts := map[string]bool{}, map[string]bool{}
	for _, name := range names {
		for i := range min(len(name), maxName) {
			if name[i] == '.' {
				begin[name[:i]] = true
				parts[name[strings.LastIndexByte(name[:i], '.')+1:i]] = true
			}
		}
	}
	if near := nested.Nearest(pattern, sortedKeys(begin)); near != "" {
		return near
	}
	if near := nested.Nearest(pattern, sortedKeys(parts)); near != "" {
		return "**." + near
	}
	return ""
}

// isInside reports whether a name holds what was given as the beginning of one.
func isInside(part string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name+".", "."+part+".") })
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
