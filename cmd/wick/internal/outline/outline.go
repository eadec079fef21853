// Package outline arranges the rows of a listing as a tree of modules: the dots
// in a state dict's keys are steps too, and neighbours that hold the same fold
// into one.
package outline

import (
	"hash/maphash"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// MaxDepth bounds the steps from the root: a name can be a megabyte of dots.
// What is deeper keeps the rest of its name as one step.
const MaxDepth = 64

// Node is a place in the tree. At most one of Tensor, Value and Opaque is set;
// a node that only holds others has none.
type Node struct {
	Name   string
	Kids   []*Node
	Tensor *listing.Tensor
	Value  nested.Value
	Opaque *listing.Opaque
	Empty  bool // Value is a container that holds nothing

	Tensors  int // at and below the node, before folding
	Elements int64
	Bytes    int64
	Values   int

	Times int    // how many neighbours this node stands for, 1 for itself
	Last  string // the name of the last of them

	index map[string]*Node
	shape uint64 // hash of what it is and holds, without its name
}

// Of arranges a listing, in the order of the file.
func Of(l *listing.Listing) *Node {
	root := &Node{Times: 1}
	for row := range l.InOrder() {
		n := root.at(row.Path)
		n.Tensor, n.Opaque, n.Value, n.Empty = row.Tensor, row.Opaque, row.Value, row.Empty
	}
	root.count()
	return root
}

// Label is the node's name, or the range of names that it stands for.
func (n *Node) Label() string {
	if n.Times > 1 {
		return n.Name + "…" + n.Last
	}
	return n.Name
}

// at returns a node for what lies at a path: a new one where the place is
// taken, since two things can have one flat name.
func (n *Node) at(p nested.Path) *Node {
	parts := steps(p)
	if len(parts) == 0 {
		return n
	}
	for _, part := range parts[:len(parts)-1] {
		n = n.kid(part)
	}
	last := parts[len(parts)-1]
	if k := n.kid(last); k.Tensor == nil && k.Value == nil && k.Opaque == nil {
		return k
	}
	k := &Node{Name: last, Times: 1}
	n.Kids = append(n.Kids, k)
	return k
}

func (n *Node) kid(name string) *Node {
	if k := n.find(name); k != nil {
		return k
	}
	k := &Node{Name: name, Times: 1}
	n.Kids = append(n.Kids, k)
	switch {
	case n.index != nil:
		n.index[name] = k
	case len(n.Kids) > fewKids:
		n.index = make(map[string]*Node, 2*len(n.Kids))
		for i := len(n.Kids) - 1; i >= 0; i-- { // the first of a name is the one that is found
			n.index[n.Kids[i].Name] = n.Kids[i]
		}
	}
	return k
}

// fewKids are looked through one by one.
const fewKids = 8

// find returns the first kid of a name. Mostly it is the last kid: rows of one
// module are neighbours.
func (n *Node) find(name string) *Node {
	if n.index != nil {
		return n.index[name]
	}
	for _, k := range n.Kids {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// steps cuts a path into the names of its steps.
func steps(p nested.Path) []string {
	var parts []string
	for _, key := range p {
		text, _ := listing.KeyText(key)
		parts = append(parts, cut(key, text)...)
	}
	if len(parts) > MaxDepth {
		parts = append(parts[:MaxDepth-1:MaxDepth-1], strings.Join(parts[MaxDepth-1:], "."))
	}
	return parts
}

// cut splits a text key at its dots, when they look like those of module names.
func cut(key nested.Value, text string) []string {
	if _, isText := key.(nested.String); !isText || text == "" || strings.Contains(text, "..") ||
		strings.HasPrefix(text, ".") || strings.HasSuffix(text, ".") {
		return []string{text}
	}
	return strings.SplitN(text, ".", MaxDepth)
}

// count fills in the totals and shapes, from the leaves up.
func (n *Node) count() {
	var h maphash.Hash
	h.SetSeed(seed)
	n.describe(&h)
	for _, k := range n.Kids {
		k.count()
		n.Tensors += k.Tensors
		n.Elements, n.Bytes = add(n.Elements, k.Elements), add(n.Bytes, k.Bytes)
		n.Values += k.Values
		_, _ = h.WriteString(k.Name + "\x00" + strconv.FormatUint(k.shape, 16) + "\x00") // cannot fail
	}
	n.shape = h.Sum64()
}

var seed = maphash.MakeSeed()

// describe adds what the node itself is.
func (n *Node) describe(h *maphash.Hash) {
	switch {
	case n.Tensor != nil:
		t := n.Tensor.Tensor()
		n.Tensors, n.Elements, n.Bytes = 1, t.Len(), t.Bytes()
		_, _ = h.WriteString("t" + t.DType().String() + tensor.ShapeString(t.Shape())) // cannot fail
	case n.Empty:
		_, _ = h.WriteString("e" + nested.TypeName(n.Value)) // as below
	case n.Value != nil:
		n.Values = 1
		_, _ = h.WriteString("v" + nested.TypeName(n.Value) + nested.Repr(n.Value)) // as above
	case n.Opaque != nil:
		_, _ = h.WriteString("o" + n.Opaque.Class) // as above
	}
}

func add(a, b int64) int64 {
	if a > 1<<62-b {
		return 1 << 62
	}
	return a + b
}

// Fold joins numbered neighbours that hold the same, and a module with its only
// member, all the way down.
func (n *Node) Fold() {
	var kept []*Node
	for _, k := range n.Kids {
		if len(kept) > 0 && kept[len(kept)-1].continues(k) {
			first := kept[len(kept)-1]
			first.Times, first.Last = first.Times+1, k.Name
			continue
		}
		kept = append(kept, k)
	}
	n.Kids = kept
	for _, k := range n.Kids {
		k.Fold()
		k.joinOnly()
	}
}

// joinOnly takes the place of an only kid: conv1 with nothing but a weight
// becomes conv1.weight. A list of one value stays a list.
func (n *Node) joinOnly() {
	if n.IsList() {
		return
	}
	if len(n.Kids) != 1 || n.Times > 1 || n.Kids[0].Times > 1 || n.Tensor != nil || n.Value != nil || n.Opaque != nil {
		return
	}
	name := n.Name + "." + n.Kids[0].Name
	*n = *n.Kids[0]
	n.Name = name
}

// continues reports whether k is the next of the numbered nodes that n stands
// for, and holds the same. Plain values never fold: each may matter.
func (n *Node) continues(k *Node) bool {
	last := n.Name
	if n.Times > 1 {
		last = n.Last
	}
	i, err := strconv.ParseUint(last, 10, 32)
	return err == nil && k.Name == strconv.FormatUint(i+1, 10) && n.shape == k.shape && n.Tensors > 0
}

// IsList reports whether n holds plain values by their numbers and nothing else.
func (n *Node) IsList() bool {
	if len(n.Kids) == 0 || n.Times > 1 || n.Tensor != nil || n.Value != nil || n.Opaque != nil {
		return false
	}
	for i, k := range n.Kids {
		if k.Value == nil || k.Empty || len(k.Kids) > 0 || k.Name != strconv.Itoa(i) {
			return false
		}
	}
	return true
}
