package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// drawTree draws maps, lists and objects in each other, with keys that look like
// paths and indexes.
func drawTree(t *rapid.T, depth int) nested.Value {
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	switch {
	case kind < 3 || depth == 0:
		return &nested.Tensor{Class: "torch.Tensor", Tensor: tensor.Of([]float32{1})}
	case kind == 3:
		return nested.Int(rapid.IntRange(0, 9).Draw(t, "int"))
	case kind == 4:
		l := nested.NewList("list")
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			l.Items = append(l.Items, drawTree(t, depth-1))
		}
		return l
	case kind == 5:
		return &nested.Opaque{Class: "x.Y", Reason: "class", Members: drawTree(t, depth-1)}
	}
	m := nested.NewMap("dict")
	for range rapid.IntRange(0, 4).Draw(t, "entries") {
		key := rapid.SampledFrom([]nested.Value{nested.String("a"), nested.String("b"), nested.String("a.b"), nested.String("0"),
			nested.String(""), nested.String("b."), nested.String("w"), nested.Int(0), nested.Int(1), nested.None{}}).Draw(t, "key")
		if err := m.Set(key, drawTree(t, depth-1)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// flatItem is a value under its flat name.
type flatItem struct {
	name  string
	value nested.Value
}

func (f flatItem) String() string { return fmt.Sprintf("%q is %T %p %[2]v", f.name, f.value, f.value) }

func flatItems(t *rapid.T, root nested.Value) (items []flatItem) {
	index, err := NewIndex(root)
	if err != nil {
		t.Fatal(err)
	}
	for i := range index.Entries {
		if e := &index.Entries[i]; !e.Inside() {
			items = append(items, flatItem{e.Name, e.Value})
		}
	}
	return items
}

// drawStatement draws a statement and does to the items what it says.
func drawStatement(t *rapid.T, items []flatItem) (string, []flatItem) {
	pattern := rapid.SampledFrom([]string{"a", "b", "a.0", "0", "a.{x}", "{x}.{y}", "{r...}", "{r...}.w", "**.w", "*", "b.*", "**"}).Draw(t, "pattern")
	word := rapid.SampledFrom([]string{"rename", "strip", "add", "select", "drop"}).Draw(t, "statement")
	text := word + " " + pattern
	switch word {
	case "rename":
		text += " -> " + rapid.SampledFrom([]string{"a", "a.q", "q.{x}", "{x}", "{r...}", "p.{r...}", "{y}.{x}", "0.{r...}"}).Draw(t, "target")
	case "strip", "add":
		text = word + " a."
	}
	set, err := Parse("", text)
	if err != nil { // a capture that the pattern does not have
		return "", items
	}
	switch st := set.Statements[0].(type) {
	case *Filter:
		items = slices.DeleteFunc(items, func(x flatItem) bool { return st.Patterns[0].Covers(x.name) == st.Drop })
	case *Rename:
		for i := range items {
			if captures, ok := st.From.Match(items[i].name); ok {
				items[i].name = st.To.Expand(captures)
			}
		}
	case *Affix:
		for i := range items {
			if name := items[i].name; st.Add {
				items[i].name = st.Text + name
			} else {
				items[i].name = strings.TrimPrefix(name, st.Text)
			}
		}
	}
	return text + "\n", items
}

// TestApplyLosesNothing compares trees that statements change with a list of names
// and values that they change: every value is there, under its name, or names
// collide.
func TestApplyLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root := drawTree(t, 4)
		before := flatItems(t, root)
		want, text := slices.Clone(before), ""
		for range rapid.IntRange(1, 4).Draw(t, "statements") {
			var line string
			line, want = drawStatement(t, want)
			text += line
		}
		set, err := Parse("", text)
		if err != nil {
			t.Fatal(err)
		}
		out, _, err := set.Apply(root)
		if err != nil {
			if fault.KindOf(err) != fault.Collision {
				t.Fatal(err)
			}
			return
		}
		if len(want) == 0 {
			return // an empty container is left
		}
		got := flatItems(t, out)
		byText := func(a, b flatItem) int { return strings.Compare(a.String(), b.String()) }
		slices.SortFunc(got, byText)
		slices.SortFunc(want, byText)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%sfrom %v\ngot  %v\nwant %v", text, before, got, want)
		}
	})
}
