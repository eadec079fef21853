package rules

import (
	"strings"

	"github.com/wick-ml/wick/nested"
)

// exactPattern matches what lies at an exact path, whatever other name spells the
// same.
func exactPattern(n *Name) *Pattern {
	p := literalPattern(n.Text)
	p.path = n.Path
	return p
}

// Path returns the exact path that p means, nil for a pattern of names.
func (p *Pattern) Path() nested.Path { return p.path }

// CoversAt is [Pattern.Covers] of what is called name and lies at path: an exact
// path covers itself and what is below it, and nothing else that is called so. The
// components of a sparse or nested tensor, a#indices, lie below its name.
func (p *Pattern) CoversAt(name string, path nested.Path) bool {
	if p.path != nil {
		return len(path) >= len(p.path) && samePath(path[:len(p.path)], p.path)
	}
	if p.Covers(name) {
		return true
	}
	whole, isPart := wholeName(name, path)
	return isPart && p.Covers(whole)
}

// wholeName returns what the tensor is called that a component belongs to.
func wholeName(name string, path nested.Path) (whole string, isPart bool) {
	if len(path) == 0 {
		return "", false
	}
	part, isPart := path[len(path)-1].(nested.Component)
	if !isPart {
		return "", false
	}
	return strings.CutSuffix(name, nested.KeyName(part))
}

// path is where an item was in the tree, nil for what was made.
func (s *state) path(it *item) nested.Path {
	if it.made {
		return nil
	}
	return s.index.Entries[it.src].Path
}

// match is [Pattern.Match] for an item.
func (s *state) match(p *Pattern, it *item) (captures map[string]string, ok bool) {
	if p.path != nil {
		return nil, samePath(s.path(it), p.path)
	}
	return p.Match(it.name)
}
