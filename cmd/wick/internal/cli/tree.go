package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/cmd/wick/internal/outline"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

func newTree(a *app) *cobra.Command {
	var f treeFlags
	cmd := &cobra.Command{
		Use:   "tree [--depth N] [--unfold] [--key NAME] [--json] FILE [PATTERN…]",
		Short: "Show all of it as a tree, repeated blocks folded",
		Long: "tree shows everything in a checkpoint: modules, tensors, plain values and opaque objects. Numbered\n" +
			"neighbours that hold the same are shown once, and lists of values on one line, long ones cut. --unfold shows each of them.",
		Example: "  wick tree model.pt\n  wick tree --depth 2 model.pt\n  wick tree model.pt layer1\n  wick tree --key state_dict model.ckpt\n" +
			"  wick tree --json --depth 1 model.pt | jq '.tree.children[] | {name, bytes}'",
		Args: argCount(1, -1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.tree(cmd.Context(), &f, args[0], args[1:]) },
	}
	cmd.Flags().IntVarP(&f.depth, "depth", "d", 0, "show `N` levels and count what is below them; 0 is all")
	f.change.registerKey(cmd.Flags())
	cmd.Flags().BoolVar(&f.unfold, "unfold", false, "show repeated blocks, and the values of lists, one by one")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// treeFlags is what tree was asked for.
type treeFlags struct {
	depth        int
	unfold, json bool
	change       changeFlags // --key
}

func (a *app) tree(ctx context.Context, f *treeFlags, file string, patterns []string) error {
	if f.depth < 0 {
		return fault.New(fault.Usage, "a negative --depth").Needs("", "0 shows all")
	}
	c, err := a.openBelow(ctx, file, &f.change)
	if err != nil {
		return err
	}
	defer a.close(c)
	if err := checkDetail(c); err != nil {
		return err
	}
	l, err := listing.Of(c)
	if err != nil {
		return err
	}
	if err := filter(l, patterns); err != nil {
		return err
	}
	root := outline.Of(l)
	if !f.unfold {
		root.Fold()
	}
	if f.json {
		if err := l.ReadQuant(ctx); err != nil {
			return err
		}
		a.treeJSON(l, root, f.depth)
	} else {
		p := treePrinter{a, f, sharedStorages(l.Tensors)}
		p.print(a.paint(bold, fault.Clean(l.File, maxName)), root)
	}
	if err := a.out.Flush(); err != nil {
		return err
	}
	return l.Err()
}

// treeJSON prints the tree as one document. Flush reports what went wrong.
func (a *app) treeJSON(l *listing.Listing, root *outline.Node, depth int) {
	b := jsonout.AppendString([]byte(`{"file":`), l.File)
	b = jsonout.AppendString(append(b, `,"format":`...), l.Format)
	b = append(b, `,"tree":`...)
	b = a.nodeJSON(b, l, root, 0, depth)
	_, _ = a.out.Write(append(b, "}\n"...))
}

// nodeJSON appends a node, writing out what is already there when it is much.
// Where nodes are folded, times and last say what one stands for; below the
// depth there are no children, though the totals count them.
func (a *app) nodeJSON(b []byte, l *listing.Listing, n *outline.Node, level, depth int) []byte {
	o := nodeObject(l, n)
	if len(n.Kids) == 0 || level == depth && depth > 0 {
		return append(b, o.Bytes()...)
	}
	o.Raw("children", nil)
	open := o.Bytes()
	b = append(b, open[:len(open)-1]...)
	for i, kid := range n.Kids {
		sep := byte(',')
		if i == 0 {
			sep = '['
		}
		b = a.nodeJSON(append(b, sep, '\n'), l, kid, level+1, depth)
		if len(b) > 32<<10 {
			_, _ = a.out.Write(b) // as above
			b = b[:0]
		}
	}
	return append(b, "]}"...)
}

// nodeObject is a node without its children.
func nodeObject(l *listing.Listing, n *outline.Node) jsonout.Object {
	var o jsonout.Object
	o.String("name", n.Name)
	if n.Times > 1 {
		o.String("last", n.Last)
		o.Int("times", int64(n.Times))
	}
	switch {
	case n.Tensor != nil:
		o.Raw("tensor", l.TensorJSON(n.Tensor))
	case n.Opaque != nil:
		o.Raw("opaque", n.Opaque.JSON())
	case n.Empty:
		o.String("type", nested.TypeName(n.Value))
		o.Raw("value", emptyJSON(n.Value))
	case n.Value != nil:
		json, encoding := listing.AppendValue(nil, n.Value)
		o.String("type", nested.TypeName(n.Value))
		o.Raw("value", json)
		if encoding != "" {
			o.String("encoding", encoding)
		}
	}
	if n.Tensor == nil && n.Value == nil {
		o.Int("tensors", int64(n.Tensors))
		o.Int("elements", n.Elements)
		o.Int("bytes", n.Bytes)
		o.Int("values", int64(n.Values))
	}
	return o
}

// line prints a line; Flush reports what went wrong.
func (a *app) line(text string) { _, _ = a.out.WriteString(text + "\n") }

// treePrinter prints the tree of a file for people.
type treePrinter struct {
	*app
	flags  *treeFlags
	shared map[*tensor.Storage]bool
}

func (p *treePrinter) print(file string, root *outline.Node) {
	if text := p.listText(root); text != "" {
		p.line(file + text)
		return
	}
	p.line(file + p.rootText(root))
	p.branches(root, "", 1)
}

// branches prints what is below a node. The recursion is bounded by
// [outline.MaxDepth].
func (p *treePrinter) branches(n *outline.Node, indent string, level int) {
	for i, kid := range n.Kids {
		fork, below := "├── ", "│   "
		if i == len(n.Kids)-1 {
			fork, below = "└── ", "    "
		}
		name := p.paint(dim, indent+fork) + p.paint(bold, nameOrEmpty(kid.Label()))
		if text := p.listText(kid); text != "" {
			p.line(name + text)
			continue
		}
		p.line(name + p.nodeText(kid, level == p.flags.depth))
		if level != p.flags.depth {
			p.branches(kid, indent+below, level+1)
		}
	}
}

// Lists of values have one line up to listRoom columns, and those of more than fewValues
// one that is cut to it.
const (
	listRoom  = 60
	fewValues = 8
)

// listText is a list of plain values on one line, "" for anything else, for a short
// list of long values and where all is to be shown.
func (p *treePrinter) listText(n *outline.Node) string {
	if p.flags.unfold || !n.IsList() {
		return ""
	}
	var b strings.Builder
	for i, kid := range n.Kids {
		text := fault.Clean(nested.Repr(kid.Value), maxName)
		if textWidth(b.String())+textWidth(text)+len(", ") > listRoom {
			if len(n.Kids) <= fewValues {
				return ""
			}
			b.WriteString("…")
			return " = [" + b.String() + "]  " + p.paint(dim, nodeTotal(n))
		}
		b.WriteString(text)
		if i < len(n.Kids)-1 {
			b.WriteString(", ")
		}
	}
	return " = [" + b.String() + "]"
}

// nodeText says what a node is, beside its name.
func (p *treePrinter) nodeText(n *outline.Node, last bool) string {
	text := ""
	switch {
	case n.Tensor != nil:
		text = p.tensorText(n.Tensor)
	case n.Empty:
		text = " = " + fault.Clean(emptyText(n.Value), maxName)
	case n.Value != nil:
		text = " = " + fault.Clean(nested.Repr(n.Value), maxName)
	case n.Opaque != nil:
		text = "  " + p.paint(yellow, fault.Clean(n.Opaque.Class, maxName)+" ("+n.Opaque.Reason+")")
	}
	if n.Times > 1 || last && len(n.Kids) > 0 {
		text += "  " + p.paint(dim, nodeTotal(n))
	}
	return text
}

// rootText says what the whole is: how much of it there is, or what it is when
// it holds no others.
func (p *treePrinter) rootText(root *outline.Node) string {
	text := p.nodeText(root, false)
	if total := nodeTotal(root); total != "" && root.Value == nil {
		text += "  " + total
	}
	switch {
	case text != "" && !root.Empty:
		return text
	case text != "" || len(root.Kids) == 0:
		return text + "  " + p.paint(dim, "empty")
	}
	return text
}

// emptyText spells a container that holds nothing as Python does.
func emptyText(v nested.Value) string {
	class := nested.TypeName(v)
	if _, isMap := v.(*nested.Map); isMap && class == "dict" {
		return "{}"
	} else if isMap {
		return class + "()"
	}
	return nested.Repr(v)
}

// emptyJSON is a container that holds nothing.
func emptyJSON(v nested.Value) []byte {
	if _, isMap := v.(*nested.Map); isMap {
		return []byte("{}")
	}
	return []byte("[]")
}

func (p *treePrinter) tensorText(row *listing.Tensor) string {
	t := row.Tensor()
	text := "  " + p.paint(dtypeStyle(t.DType()), t.DType().String()) + " " + tensor.ShapeString(t.Shape())
	if m := marks(row, p.shared, false); m.text != "" {
		text += "  " + p.paint(m.style, m.text)
	}
	return text
}

// nodeTotal counts what is at a node and below it.
func nodeTotal(n *outline.Node) string {
	var parts []string
	if n.Times > 1 {
		parts = append(parts, human.Count(n.Times)+" ×")
	}
	if n.Tensors > 0 {
		parts = append(parts, human.Plural(n.Tensors, "tensor")+", "+human.Plural(n.Elements, "element")+", "+human.Bytes(n.Bytes))
	} else if n.Values > 0 {
		parts = append(parts, human.Plural(n.Values, "value"))
	}
	return strings.Join(parts, " ")
}
