package rules

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// twins is a tree in which three places are called a.0.
func twins(t *testing.T) nested.Value {
	t.Helper()
	leaf := func(n int) nested.Value {
		return &nested.Tensor{Tensor: tensor.Of(make([]float32, n), n), Class: "torch.Tensor"}
	}
	inner, root := nested.NewMap("dict"), nested.NewMap("dict")
	for _, err := range []error{
		inner.Set(nested.Int(0), leaf(2)), inner.Set(nested.String("0"), leaf(3)),
		root.Set(nested.String("a.0"), leaf(1)), root.Set(nested.String("a"), inner),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestExactPatterns addresses one of several places that have one name.
func TestExactPatterns(t *testing.T) {
	for text, want := range map[string]string{
		`rename ["a.0"] -> x`:                         "a.0:2 a.0:3 x:1",
		`rename ["a", 0] -> x`:                        "a.0:1 a.0:3 x:2",
		`rename ["a", "0"] -> x`:                      "a.0:1 a.0:2 x:3",
		`drop ["a.0"] ["a", 0]`:                       "a.0:3",
		`drop ["a"]`:                                  "a.0:1",
		`select ["a", "0"]`:                           "a.0:3",
		`rename ["a.0"] -> x; rename ["a.0"] -> y`:    "a.0:2 a.0:3 y:1", // the path is that of the tree as it came
		`rename ["a.0"] -> x; key a; rename [0] -> y`: "0:3 y:2",
	} {
		set, err := Parse("test", text)
		if err != nil {
			t.Fatal(text, err)
		}
		if again, err := Parse("test", set.String()); err != nil || again.String() != set.String() {
			t.Errorf("%s prints as %s, %v", text, set, err)
		}
		root, report, err := set.Apply(twins(t))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		index, err := NewIndex(root)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range index.Entries {
			if x := index.Entries[i].Tensor(); x != nil {
				got = append(got, index.Entries[i].Name+":"+strings.Trim(tensor.ShapeString(x.Shape()), "[]"))
			}
		}
		slices.Sort(got)
		if sorted := strings.Join(got, " "); sorted != want || len(report.Unmatched) > 0 {
			t.Errorf("%s: %s, want %s; unmatched %v", text, sorted, want, report.Unmatched)
		}
	}
}

// TestExactPatternsRefuse: what has no place, and a collision that says which places.
func TestExactPatternsRefuse(t *testing.T) {
	set, err := Parse("test", `rename ["a", 1] -> x`)
	if err != nil {
		t.Fatal(err)
	}
	if _, report, err := set.Apply(twins(t)); err != nil || len(report.Unmatched) != 1 {
		t.Error(report, err)
	}
	if set, err = Parse("test", "rename a.0 -> x"); err != nil {
		t.Fatal(err)
	}
	var e *fault.Error
	if _, _, err = set.Apply(twins(t)); !errors.As(err, &e) || e.Kind != fault.Collision || !strings.Contains(e.Found, `["a.0"]`) {
		t.Error(err)
	}
	for _, text := range []string{`drop [`, `drop ["a"`, `drop []`, `drop [a]`, `drop ["a" 0]`} {
		if _, err := Parse("test", text); !errors.Is(err, fault.ErrUsage) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Of several patterns in one statement each says that it matches nothing.
func TestUnmatchedPatterns(t *testing.T) {
	set, err := Parse("test", "select a.0 b.* c")
	if err != nil {
		t.Fatal(err)
	}
	_, report, err := set.Apply(twins(t))
	if want := []string{"select b.*", "select c"}; err != nil || !slices.Equal(report.Unmatched, want) {
		t.Errorf("%v, %v", report.Unmatched, err)
	}
}

// The components of a sparse tensor lie below its name, those of a key with a # in it
// do not.
func TestFiltersTakeSparseTensorsWhole(t *testing.T) {
	for text, want := range map[string]string{
		"drop adj":          "adj#1 w",
		`drop ["adj"]`:      "adj#1 w",
		"drop **.adj":       "adj#1 w",
		"select adj":        "adj#indices adj#values",
		"select adj#values": "adj#values",
		"drop adj#values":   "adj#1 adj#indices w",
		"drop adj*":         "w",
	} {
		set, err := Parse("test", text)
		if err != nil {
			t.Fatal(text, err)
		}
		parts := nested.NewMap("dict")
		for _, name := range []nested.Component{"indices", "values"} {
			if err := parts.Set(name, leaf(2)); err != nil {
				t.Fatal(err)
			}
		}
		sparse := &nested.Opaque{Class: "torch.Tensor", Reason: "torch.sparse_coo", Members: parts}
		root, report, err := set.Apply(dict("adj", sparse, "adj#1", leaf(1), "w", leaf(1)))
		if err != nil {
			t.Fatal(text, err)
		}
		index, err := NewIndex(root)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range index.Entries {
			if index.Entries[i].Tensor() != nil {
				got = append(got, index.Entries[i].Name)
			}
		}
		slices.Sort(got)
		if sorted := strings.Join(got, " "); sorted != want || len(report.Unmatched) > 0 {
			t.Errorf("%s: %s, want %s; unmatched %v", text, sorted, want, report.Unmatched)
		}
	}
}
