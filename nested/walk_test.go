package nested

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// names returns the flat names that a walk visits, with the reason of opaque
// objects.
func names(t *testing.T, root Value, limits WalkLimits) (string, error) {
	t.Helper()
	var out []string
	err := Walk(root, limits, func(p Path, v Value) error {
		name := p.String()
		if o, ok := v.(*Opaque); ok {
			name += "!" + o.Reason
		}
		out = append(out, name)
		return nil
	})
	return strings.Join(out, " "), err
}

func mapOf(pairs ...any) *Map {
	m := NewMap("dict")
	for i := 0; i < len(pairs); i += 2 {
		if err := m.Set(String(pairs[i].(string)), pairs[i+1].(Value)); err != nil {
			panic(err)
		}
	}
	return m
}

func chain(n int, end Value) Value {
	for range n {
		end = NewList("list", end)
	}
	return end
}

// ways is a value that 2^n ways lead to, in n lists.
func ways(n int, v Value) Value {
	for range n {
		v = NewList("list", v, v)
	}
	return v
}

// TestWalkSteps stops a walk to a tensor when its paths are too long together, at
// the same place whoever set the limit, and says that it can be raised only
// where it can.
func TestWalkSteps(t *testing.T) {
	root := chain(240, ways(16, &Tensor{Tensor: tensor.Of([]float32{1})}))
	for _, limits := range []WalkLimits{{}, {Paths: 1 << 18}} {
		visited := 0
		err := Walk(root, limits, func(Path, Value) error { visited++; return nil })
		var e *fault.Error
		if !errors.As(err, &e) || e.Limit != "paths" || (e.Cure != "") != (limits.Paths > 0) {
			t.Errorf("%+v: %v", limits, err)
		}
		if most := 1 << 18 * 8 / 256; visited < most || visited > most+20 {
			t.Errorf("%+v: %d visited, want %d", limits, visited, most)
		}
	}
}

// TestWalkDefault walks as many paths as there are values, and some more that
// are shared.
func TestWalkDefault(t *testing.T) {
	flat := NewList("list")
	for range 600_000 {
		flat.Items = append(flat.Items, Int(1))
	}
	visited := 0
	if err := Walk(flat, WalkLimits{}, func(Path, Value) error { visited++; return nil }); err != nil || visited != 600_000 {
		t.Errorf("%d visited, %v", visited, err)
	}
	flat.Items = flat.Items[:200_000]
	for n, want := range map[int]string{2: "", 3: "!limit"} { // times 200,000
		twice := NewList("list")
		for range n {
			twice.Items = append(twice.Items, flat)
		}
		got, err := names(t, twice, WalkLimits{})
		if err != nil || want != "" && got != want || want == "" && len(strings.Fields(got)) != n*200_000 {
			t.Errorf("%d times: %.100s, %v", n, got, err)
		}
	}
}

// TestWalk visits every path of a tree in order, shared nodes once for each path.
func TestWalk(t *testing.T) {
	leaf := &Tensor{Tensor: tensor.Of([]float32{1}), Class: "torch.Tensor"}
	shared := mapOf("a", Int(1), "l", NewList("list", leaf, NewList("list")))
	sparse := &Opaque{Class: "torch.Tensor", Reason: "torch.sparse_coo", Members: NewMap("dict")}
	if err := sparse.Members.(*Map).Set(Component("indices"), leaf); err != nil {
		t.Fatal(err)
	}
	cycle := NewList("list", Int(1))
	cycle.Items = append(cycle.Items, cycle)
	long := NewList("list")
	for range 20 {
		long.Items = append(long.Items, None{})
	}
	root := mapOf("x", shared, "y", shared, "s", sparse, "c", cycle, "o", &Opaque{Reason: "class", Members: shared}, "e", NewMap("dict"))
	got, err := names(t, root, WalkLimits{})
	const want = "x.a x.l.0 x.l.1 y.a y.l.0 y.l.1 s!torch.sparse_coo s#indices c.0 c.1!cycle o!class o.a o.l.0 o.l.1 e"
	if err != nil || got != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	if got, err := names(t, long, WalkLimits{}); err != nil || len(strings.Fields(got)) != 20 {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestWalkLimits stops where a walk would not end.
func TestWalkLimits(t *testing.T) {
	leaf := &Tensor{Tensor: tensor.Of([]float32{1})}
	bomb := Value(NewList("tuple"))
	for range 60 {
		bomb = NewList("tuple", bomb, bomb)
	}
	for name, c := range map[string]struct {
		root   Value
		limits WalkLimits
		want   string
		err    error
	}{
		"a bomb":                   {mapOf("b", bomb, "t", leaf), WalkLimits{}, "b!limit t", nil},
		"a bomb with a tensor":     {mapOf("b", NewList("tuple", bomb, leaf)), WalkLimits{}, "b.0!limit b.1", nil},
		"deep":                     {mapOf("d", chain(20_000, Int(1)), "t", leaf), WalkLimits{}, "d!limit t", nil},
		"deep with a tensor":       {mapOf("d", chain(20, leaf)), WalkLimits{Depth: 10}, "", fault.ErrLimit},
		"deeper than is measured":  {chain(1_000_000, Int(1)), WalkLimits{}, "", fault.ErrLimit},
		"a shallow one too deep":   {mapOf("d", chain(3, NewList("list")), "t", leaf), WalkLimits{Depth: 2}, "d!limit t", nil},
		"many paths":               {NewList("list", Int(1), Int(2), Int(3), leaf), WalkLimits{Paths: 2}, "0 1", fault.ErrLimit},
		"a hundred thousand lists": {chain(100_000, Int(1)), WalkLimits{}, "!limit", nil},
		"ways of many steps":       {mapOf("b", chain(240, ways(16, Int(1))), "t", leaf), WalkLimits{}, "b!limit t", nil},
		"ways of many steps below": {mapOf("b", chain(30, ways(16, Int(1)))), WalkLimits{Paths: 1 << 17}, "!limit", nil},
		"a limit beyond numbers":   {mapOf("b", chain(600, Int(1))), WalkLimits{Paths: math.MaxInt64}, "b" + strings.Repeat(".0", 600), nil},
	} {
		got, err := names(t, c.root, c.limits)
		if !errors.Is(err, c.err) || (c.err == nil) != (err == nil) || got != c.want {
			t.Errorf("%s: got %.200s, %v; want %s, %v", name, got, err, c.want, c.err)
		}
	}
}
