package gen

import (
	"strconv"
	"strings"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
)

// maxDepth bounds the structs in structs: a name can be a megabyte of dots. What
// is deeper keeps the rest of its name as one step.
const maxDepth = 48

// node is a place in the tree of names: the dots in a state dict's keys are
// steps, as they are for package serde.
type node struct {
	key  string
	kids []*node
	leaf *rules.Entry // what has exactly this name, nil if nothing that a field can hold

	byKey map[string]*node
}

// tree arranges the entries of the index, in the order of the file, and puts
// aside those that no name tells from another.
func (p *plan) tree() *node {
	top := &node{}
	for i := range p.index.Entries {
		e := &p.index.Entries[i]
		if e.Inside() {
			continue
		}
		n := top.at(steps(e.Name)) // also for what is left out: a list with it is none
		if p.several(e.Name) {
			p.byPath(e)
		} else if p.usable(e) {
			n.leaf = e
		}
	}
	return top
}

// several reports whether a name stands for more than one value.
func (p *plan) several(name string) bool {
	n := 0
	for _, i := range p.index.Lookup(name) {
		if !p.index.Entries[i].Inside() {
			n++
		}
	}
	return n > 1
}

// usable reports whether a Go field can hold the entry, and notes it otherwise.
func (p *plan) usable(e *rules.Entry) bool {
	switch v := e.Value.(type) {
	case *nested.Opaque:
		p.leave(e.Name, "an object of "+v.Class)
	case *nested.Map:
		p.leave(e.Name, "an empty dict")
	case *nested.List:
		if v.Class != "list" && v.Class != "tuple" {
			p.leave(e.Name, "an empty "+v.Class)
			return false
		}
		return true
	default:
		if !fitsTag(e.Name) {
			p.leave(e.Name, "a name that no tag can hold")
			p.unnamed = p.unnamed || e.Tensor() != nil
			return false
		}
		return true
	}
	return false
}

// maxTag bounds a name in a tag, bytes.
const maxTag = 1 << 16

// fitsTag reports whether a tag can hold a name.
func fitsTag(name string) bool {
	tag := tagName(name)
	_, err := rules.ParseField(tag)
	return err == nil && len(tag) <= maxTag
}

// byPath makes a field of the outermost struct for a tensor that shares its name
// with another value. Plain values of such names are left out.
func (p *plan) byPath(e *rules.Entry) {
	if e.Tensor() == nil {
		p.leave(e.Name, "a value of a name that another has too")
		return
	}
	name := &rules.Name{Path: e.Path}
	expr, err := rules.ParseExpr(name.String())
	if err == nil {
		var found []int
		found, err = p.index.Tensors(expr.Name)
		if err == nil && (len(found) != 1 || p.index.Entries[found[0]].Tensor() != e.Tensor()) {
			err = strconv.ErrSyntax
		}
	}
	if err != nil {
		p.leave(e.Name, "a name that another value has too")
		p.unnamed = true
		return
	}
	p.exact = append(p.exact, &field{key: e.Name, expr: expr.String(), typ: p.leafType(e)})
	p.tensors++
}

func steps(name string) []string { return strings.SplitN(name, ".", maxDepth) }

// at returns the node that the steps lead to.
func (n *node) at(steps []string) *node {
	for _, key := range steps {
		kid := n.byKey[key]
		if kid == nil {
			if n.byKey == nil {
				n.byKey = map[string]*node{}
			}
			kid = &node{key: key}
			n.byKey[key] = kid
			n.kids = append(n.kids, kid)
		}
		n = kid
	}
	return n
}

// indexes returns the keys of n's members as decimals, in the order of the
// members, if they are a list's.
func (n *node) indexes() (at []int, ok bool) {
	for _, k := range n.kids {
		i, err := strconv.ParseUint(k.key, 10, 31)
		if err != nil || strconv.FormatUint(i, 10) != k.key {
			return nil, false
		}
		at = append(at, int(i))
	}
	return at, len(at) > 0
}

// scalarOf returns the Go type of a plain value, "" if there is none.
func scalarOf(v nested.Value) string {
	switch v.(type) {
	case nested.Bool:
		return "bool"
	case nested.Int:
		return "int64"
	case nested.BigInt:
		return "*big.Int"
	case nested.Float:
		return "float64"
	case nested.Complex:
		return "complex128"
	case nested.String, nested.Bytes, nested.Symbol:
		return "string"
	default:
		return ""
	}
}
