package rules

import (
	"context"
	"errors"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

func TestFieldsPrintThemselvesBack(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{",optional", ", optional"},
		{"fc.weight", "fc.weight"},
		{"fc.weight|transpose", "fc.weight | transpose"},
		{"'fc.weight' | transpose -1 0", "fc.weight | transpose -1 0"},
		{"w | permute 2 0 1 | reshape -1 $n*2/3", "w | permute 2 0 1 | reshape -1 $n*2/3"},
		{"w | narrow 0 :512", "w | narrow 0 0:512"},
		{"w | narrow 0 512:", "w | narrow 0 512:"},
		{"w | narrow -1 $a:$a*2", "w | narrow -1 $a:$a*2"},
		{"w | chunk 0 1 of 3 | select 0 -1 | squeeze | squeeze 0 | unsqueeze 2", "w | chunk 0 1 of 3 | select 0 -1 | squeeze | squeeze 0 | unsqueeze 2"},
		{"w | cast half | flatten | flatten 0 1 | unflatten 0 2 -1 | expand -1 4", "w | cast float16 | flatten | flatten 0 1 | unflatten 0 2 -1 | expand -1 4"},
		{"concat 0 (a,b | transpose , stack -1 (c.*.w))", "concat 0 (a, b | transpose, stack -1 (c.*.w))"},
		{"(a | transpose) | squeeze", "a | transpose | squeeze"},
		{"concat", `"concat"`},
		{"concat | transpose", `"concat" | transpose`},
		{`"a b" , optional`, `"a b", optional`},
		{`"*"`, `"*"`},
		{`'\x80é'`, `"\x80\u00e9"`},
		{`["a.b", 0, 'c'] | transpose`, `["a.b", 0, "c"] | transpose`},
		{"layers.{i}.{rest...}", "layers.{i}.{rest...}"},
		{"**.weight", "**.weight"},
		{"w, default=0.1, bits, mutable, alias, inline, gaps=keep", "w, default=0.1, bits, mutable, alias, inline, gaps=keep"},
		{"w, prefix=lstm_", "w, prefix=lstm_"},
		{"w, shape 64 * 7 7", "w, shape 64 * 7 7"},
		{"w, shape", "w, shape"},
		{`, default="a, b"`, `, default="a, b"`},
		{"a#indices", "a#indices"},
		{"модель.вес", "модель.вес"},
	} {
		f, err := ParseField(c.in)
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		if got := f.String(); got != c.want {
			t.Errorf("%q prints as %q, want %q", c.in, got, c.want)
		}
		again, err := ParseField(c.want)
		if err != nil || again.String() != c.want {
			t.Errorf("%q reads back as %v, %v", c.want, again, err)
		}
	}
}

func TestSetsPrintThemselvesBack(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"# nothing", ""},
		{"let heads=32; key state_dict", "let heads = 32\nkey state_dict\n"},
		{`key ["a.b"]`, "key [\"a.b\"]\n"},
		{`rename /^module\./ -> ""`, "rename /^module\\./ -> \"\"\n"},
		{`rename /a\/b/ -> ${1}`, ""},
		{`rename /(a)\/b/ -> x`, "rename /(a)\\/b/ -> \"x\"\n"},
		{"rename a.{i}.w->b.{i}.v", "rename a.{i}.w -> b.{i}.v\n"},
		{"strip module.\nadd model.", "strip module.\nadd model.\n"},
		{"select encoder /x/ 'a b'", "select encoder /x/ \"a b\"\n"},
		{"drop **.num_batches_tracked # why", "drop **.num_batches_tracked\n"},
		{"key = x; let = y; drop = z", "key = x\nlet = y\ndrop = z\n"},
		{"q.{i} = qkv.{i} | chunk 0 0 of 3, optional, dims=2, floats, except=a.*, except=/b/", "q.{i} = qkv.{i} | chunk 0 0 of 3, optional, dims=2, floats, except=a.*, except=/b/\n"},
		{"alias lm_head.weight = embed.weight", "alias lm_head.weight = embed.weight\n"},
		{"rest error", "rest error\n"},
	} {
		set, err := Parse("test", c.in)
		if c.in == `rename /a\/b/ -> ${1}` {
			if err == nil {
				t.Errorf("%q: a group that is not there was accepted", c.in)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		if got := set.String(); got != c.want {
			t.Errorf("%q prints as %q, want %q", c.in, got, c.want)
		}
		if again, err := Parse("test", c.want); err != nil || again.String() != c.want {
			t.Errorf("%q does not read back: %v", c.want, err)
		}
	}
}

func TestErrorsPointAtTheCharacter(t *testing.T) {
	for _, c := range []struct {
		in     string
		offset int64
		cure   string // part of it
	}{
		{"w | transpoze", 4, "transpose"},
		{"w |", 3, ""},
		{"w | narrow 0 5", 13, ""},
		{"w | narrow x 0:5", 11, ""},
		{"w | narrow 0 0:y", 15, ""},
		{"w | transpose 1", 4, "transpose A B"},
		{"w | reshape 99999999999", 12, ""},
		{"w | cast flot32", 9, ""},
		{"w | chunk 0 1 from 3", 14, ""},
		{"concat 0 (a, )", 13, ""},
		{"concat 0 a", 9, ""},
		{"concat 0 (a", 11, ""},
		{"(a", 2, ""},
		{"a b", 2, ""},
		{"a, optionel", 3, "optional"},
		{"a, optional, optional", 13, ""},
		{"a, default", 10, ""},
		{"a, gaps=open", 8, ""},
		{"a, dims=x", 8, ""},
		{"'a", 0, "close"},
		{`"a\q"`, 2, ""},
		{"a.{i", 2, "quote"},
		{"a\x00", 1, ""},
		{"a \x01", 2, "quote"},
		{"a\xff", 1, ""},
		{"[a]", 1, ""},
		{"$x | squeeze $", 13, ""},
	} {
		_, err := ParseField(c.in)
		var e *fault.Error
		if !errors.As(err, &e) || e.Kind != fault.Usage || !e.HasOffset {
			t.Errorf("%q: %v, want a usage error with an offset", c.in, err)
			continue
		}
		if e.Offset != c.offset || !strings.Contains(e.Cure, c.cure) {
			t.Errorf("%q: offset %d, cure %q; want %d, %q", c.in, e.Offset, e.Cure, c.offset, c.cure)
		}
		if !strings.Contains(e.Found, "▸") {
			t.Errorf("%q: %q does not mark the character", c.in, e.Found)
		}
	}
}

func TestStatementErrorsPointAtTheCharacter(t *testing.T) {
	for _, c := range []struct {
		in     string
		offset int64
	}{
		{"strip a\nrenam a -> b", 8},
		{"rename a b", 9},
		{"rename /a -> b", 7},
		{"rename /(a/ -> b", 7},
		{"rename /(a)/ -> $1weight", 16},
		{"rename a.* -> b.*", 14},
		{"rename a.{i} -> b.{j}", 16},
		{"a.{i} = b", 0},
		{"a = b, bits", 0},
		{"key a.*", 4},
		{"let 1 = 2", 4},
		{"rest of", 5},
		{"alias a = concat 0 (b, c)", 0},
		{"select", 6},
		{"strip a b", 8},
	} {
		_, err := Parse("f.rules", c.in)
		var e *fault.Error
		if !errors.As(err, &e) || e.Kind != fault.Usage || e.File != "f.rules" {
			t.Errorf("%q: %v, want a usage error in f.rules", c.in, err)
			continue
		}
		if e.Offset != c.offset {
			t.Errorf("%q: offset %d, want %d: %v", c.in, e.Offset, c.offset, err)
		}
	}
}

func TestBoundsOfTheGrammar(t *testing.T) {
	deep := strings.Repeat("(", MaxDepth+2) + "a" + strings.Repeat(")", MaxDepth+2)
	if _, err := ParseExpr(deep); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("deep parentheses: %v", err)
	}
	if _, err := ParseExpr(strings.Repeat("a", MaxBytes+1)); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("a megabyte and one: %v", err)
	}
	if _, err := ParseExpr(strings.Repeat("a", MaxBytes)); err != nil {
		t.Errorf("a megabyte: %v", err)
	}
	if _, err := ParseExpr(strings.Repeat("*a", maxGlob)); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("a pattern of a megabyte: %v", err)
	}
	if _, err := Parse("f", strings.Repeat("rest keep;", maxStatements+1)); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("too many statements: %v", err)
	}
	if _, err := ParsePattern("/" + strings.Repeat("a", maxGlob+1) + "/"); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("a regular expression of a megabyte: %v", err)
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, name  string
		matches, cover bool
	}{
		{"a.b", "a.b", true, true},
		{"a.b", "a.b.c", false, true},
		{"a.b", "a.bc", false, false},
		{"a.*", "a.b", true, true},
		{"a.*", "a.b.c", false, true},
		{"a.*", "a.", false, false},
		{"conv*.weight", "conv.weight", true, true},
		{"conv*.weight", "conv1.weight", true, true},
		{"conv*.weight", "conv.1.weight", false, false},
		{"**.weight", "weight", true, true},
		{"**.weight", "a.b.weight", true, true},
		{"**.weight", "a.b.weights", false, false},
		{"a.**", "a.b.c", true, true},
		{"a.{i}.w", "a.10.w", true, true},
		{"a.{i}.w", "a.1.0.w", false, false},
		{"a.{i}.{i}", "a.1.1", true, true},
		{"a.{i}.{i}", "a.1.2", false, true},
		{"{x...}.w", "a.b.w", true, true},
		{"{x...}.w", ".w", false, false},
		{"{x...}w_{y...}", "w_", true, true},
		{"{x...}w_{y...}", "a.w_l0", true, true},
		{"'a.*'", "a.*", true, true},
		{"'a.*'", "a.b", false, false},
		{"/^a/", "abc", true, true},
		{"*", "", false, false},
	} {
		p, err := ParsePattern(c.pattern)
		if err != nil {
			t.Fatalf("%s: %v", c.pattern, err)
		}
		if _, ok := p.Match(c.name); ok != c.matches {
			t.Errorf("%s matches %q: %v, want %v", c.pattern, c.name, ok, c.matches)
		}
		// A repeated capture that differs only matches no whole name.
		if got := p.Covers(c.name); got != c.cover {
			t.Errorf("%s covers %q: %v, want %v", c.pattern, c.name, got, c.cover)
		}
	}
}

func TestNaturalOrder(t *testing.T) {
	names := []string{"l.10", "l.9", "l.2.b", "l.2.a", "l", "l.02", "k.1"}
	slices.SortFunc(names, Natural)
	if want := []string{"k.1", "l", "l.02", "l.2.a", "l.2.b", "l.9", "l.10"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

// counted returns a tensor whose elements count from 0.
func counted(shape ...int) *tensor.Tensor {
	n := 1
	for _, s := range shape {
		n *= s
	}
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(i)
	}
	return tensor.Of(data, shape...)
}

func leaf(shape ...int) nested.Value {
	return &nested.Tensor{Tensor: counted(shape...), Class: "torch.Tensor"}
}

// dict makes a map of alternating string keys and values.
func dict(kv ...any) *nested.Map {
	m := nested.NewMap("dict")
	for i := 0; i < len(kv); i += 2 {
		key, ok := kv[i].(nested.Value)
		if !ok {
			key = nested.String(kv[i].(string))
		}
		if err := m.Set(key, kv[i+1].(nested.Value)); err != nil {
			panic(err)
		}
	}
	return m
}

func values(t *testing.T, x *tensor.Tensor) []float32 {
	t.Helper()
	v, err := tensor.Values[float32](context.Background(), x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestOperationsMeanWhatTorchMeans(t *testing.T) {
	root := dict("m", leaf(2, 3), "v", leaf(4), "c", leaf(2, 1, 2), "e.0", leaf(2), "e.10", leaf(2), "e.2", leaf(2))
	x, err := NewIndex(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		expr  string
		shape []int
		want  []float32
	}{
		{"m | transpose", []int{3, 2}, []float32{0, 3, 1, 4, 2, 5}},
		{"m | transpose 0 -1", []int{3, 2}, []float32{0, 3, 1, 4, 2, 5}},
		{"c | permute -1 0 1", []int{2, 2, 1}, []float32{0, 2, 1, 3}},
		{"m | reshape 3 -1", []int{3, 2}, []float32{0, 1, 2, 3, 4, 5}},
		{"m | flatten", []int{6}, []float32{0, 1, 2, 3, 4, 5}},
		{"c | flatten 1 -1", []int{2, 2}, []float32{0, 1, 2, 3}},
		{"v | unflatten 0 $n -1 | transpose | flatten", []int{4}, []float32{0, 2, 1, 3}},
		{"c | squeeze | select 0 -1", []int{2}, []float32{2, 3}},
		{"c | squeeze 1", []int{2, 2}, []float32{0, 1, 2, 3}},
		{"v | unsqueeze -1", []int{4, 1}, []float32{0, 1, 2, 3}},
		{"v | unsqueeze 0 | expand 2 -1", []int{2, 4}, []float32{0, 1, 2, 3, 0, 1, 2, 3}},
		{"m | narrow 1 1:", []int{2, 2}, []float32{1, 2, 4, 5}},
		{"m | narrow -1 :-1", []int{2, 2}, []float32{0, 1, 3, 4}},
		{"v | narrow 0 $n/2:$n*2", []int{3}, []float32{1, 2, 3}},
		{"v | chunk 0 1 of 2", []int{2}, []float32{2, 3}},
		{"m | cast float64", []int{2, 3}, []float32{0, 1, 2, 3, 4, 5}},
		{"concat 0 (v, m | flatten)", []int{10}, []float32{0, 1, 2, 3, 0, 1, 2, 3, 4, 5}},
		{"stack 0 (e.* | narrow 0 1:)", []int{3, 1}, []float32{1, 1, 1}},
		{"stack -1 (v, v)", []int{4, 2}, []float32{0, 0, 1, 1, 2, 2, 3, 3}},
		{"concat 0 (e.*)", []int{6}, []float32{0, 1, 0, 1, 0, 1}},
	} {
		e, err := ParseExpr(c.expr)
		if err != nil {
			t.Fatalf("%s: %v", c.expr, err)
		}
		got, err := e.Tensor(lookup(x), Params{"n": 2})
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		if !slices.Equal(got.Shape(), c.shape) || !slices.Equal(values(t, got), c.want) {
			t.Errorf("%s: %v %v, want %v %v", c.expr, got.Shape(), values(t, got), c.shape, c.want)
		}
	}
}

func lookup(x *Index) Lookup {
	return func(n *Name) ([]*tensor.Tensor, error) {
		found, err := x.Tensors(n)
		if err != nil {
			return nil, err
		}
		ts := make([]*tensor.Tensor, len(found))
		for k, i := range found {
			ts[k] = x.Entries[i].Tensor()
		}
		return ts, nil
	}
}

func TestExpressionsThatDoNotFit(t *testing.T) {
	root := dict("m", leaf(2, 3), "v", leaf(4), "x.a", leaf(1), "x.b", leaf(1), "s", nested.Int(1))
	x, err := NewIndex(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		expr string
		kind fault.Kind
	}{
		{"v | transpose", fault.Mismatch},
		{"m | transpose 0 2", fault.Mismatch},
		{"m | permute 0", fault.Mismatch},
		{"m | reshape 4 -1", fault.Mismatch},
		{"m | flatten 1 0", fault.Mismatch},
		{"m | flatten 0 2", fault.Mismatch},
		{"m | flatten 2 0", fault.Mismatch},
		{"v | unflatten 0 3 -1", fault.Mismatch},
		{"v | unflatten 0 -1 -1", fault.Mismatch},
		{"v | unflatten 1 2 2", fault.Mismatch},
		{"v | unflatten 0 0 -1", fault.Mismatch},
		{"m | squeeze 0", fault.Mismatch},
		{"m | narrow 0 1:3", fault.Mismatch},
		{"m | narrow 2 0:1", fault.Mismatch},
		{"m | select 0 2", fault.Mismatch},
		{"m | select 2 0", fault.Mismatch},
		{"m | chunk 1 0 of 2", fault.Mismatch},
		{"m | chunk 1 3 of 3", fault.Mismatch},
		{"m | chunk 2 0 of 1", fault.Mismatch},
		{"concat 0 (m, v)", fault.Mismatch},
		{"stack 0 (m, v)", fault.Mismatch},
		{"stack 5 (v, v)", fault.Mismatch},
		{"v | reshape $n", fault.Usage},
		{"concat $n (v, v)", fault.Usage},
		{"v | reshape 1/2", fault.Usage},
		{"v | reshape 1/0", fault.Usage},
		{"x.* | squeeze", fault.Ambiguous},
		{"concat 0 (y.*)", fault.NotFound},
		{"w | squeeze", fault.NotFound},
		{"s | squeeze", fault.Mismatch},
		{"m | cast qint8", fault.Mismatch},
	} {
		e, err := ParseExpr(c.expr)
		if err != nil {
			t.Fatalf("%s: %v", c.expr, err)
		}
		if _, err := e.Tensor(lookup(x), nil); fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want kind %s", c.expr, err, c.kind)
		}
	}
}

// flat lists a tree as name → what it is.
func flat(t *testing.T, root nested.Value) map[string]string {
	t.Helper()
	x, err := NewIndex(root)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for i := range x.Entries {
		e := &x.Entries[i]
		if ts := e.Tensor(); ts != nil {
			out[e.Name] = ts.String()
		} else {
			out[e.Name] = nested.Repr(e.Value)
		}
	}
	return out
}

func TestApply(t *testing.T) {
	tree := func() nested.Value {
		return dict("epoch", nested.Int(3), "state_dict", dict(
			"module.l.0.gamma", leaf(2), "module.l.0.beta", leaf(2), "module.l.1.weight", leaf(6, 2), "n", nested.Int(7)))
	}
	for _, c := range []struct {
		rules string
		want  map[string]string
	}{
		{"", map[string]string{"epoch": "3", "state_dict.module.l.0.gamma": "float32 [2]", "state_dict.module.l.0.beta": "float32 [2]", "state_dict.module.l.1.weight": "float32 [6, 2]", "state_dict.n": "7"}},
		{"key state_dict; strip module.", map[string]string{"l.0.gamma": "float32 [2]", "l.0.beta": "float32 [2]", "l.1.weight": "float32 [6, 2]", "n": "7"}},
		{"select epoch", map[string]string{"epoch": "3"}},
		{"select state_dict; drop state_dict.module.l.0 /n$/", map[string]string{"state_dict.module.l.1.weight": "float32 [6, 2]"}},
		{`rename /gamma$/ -> weight; drop **.beta epoch`, map[string]string{"state_dict.module.l.0.weight": "float32 [2]", "state_dict.module.l.1.weight": "float32 [6, 2]", "state_dict.n": "7"}},
		{"rename {a...}.l.{i}.{w} -> {a...}.x.{i}.{w}; select **.x", map[string]string{"state_dict.module.x.0.gamma": "float32 [2]", "state_dict.module.x.0.beta": "float32 [2]", "state_dict.module.x.1.weight": "float32 [6, 2]"}},
		{"key state_dict; select n; add top.", map[string]string{"top.n": "7"}},
		{"key state_dict; drop n; q.{i} = module.l.{i}.weight | chunk 0 0 of 3; k.{i} = module.l.{i}.weight | chunk 0 1 of 3; select q k", map[string]string{"q.1": "float32 [2, 2]", "k.1": "float32 [2, 2]"}},
		{"key state_dict; j = concat 0 (module.l.0.gamma, module.l.0.beta); rest drop; drop n", map[string]string{"j": "float32 [4]"}},
		{"key state_dict.module.l; select '0'; alias 2.gamma = 0.gamma", map[string]string{"0.gamma": "float32 [2]", "2.gamma": "float32 [2]", "0.beta": "float32 [2]"}},
		{"select epoch; e = epoch", map[string]string{"e": "3"}},
		{"let n = 3; key state_dict; w = module.l.1.weight | unflatten 0 $n -1; select w", map[string]string{"w": "float32 [3, 2, 2]"}},
		{"key state_dict; {a...} = {a...} | transpose, dims=2; select **.weight", map[string]string{"module.l.1.weight": "float32 [2, 6]"}},
		{"key state_dict; {a...} = {a...} | cast half, floats, except=**.weight; drop n", map[string]string{"module.l.0.gamma": "float16 [2]", "module.l.0.beta": "float16 [2]", "module.l.1.weight": "float32 [6, 2]"}},
		{"zz = yy, optional; select epoch", map[string]string{"epoch": "3"}},
	} {
		set, err := Parse("test", c.rules)
		if err != nil {
			t.Fatalf("%s: %v", c.rules, err)
		}
		got, _, err := set.Apply(tree())
		if err != nil {
			t.Errorf("%s: %v", c.rules, err)
			continue
		}
		if f := flat(t, got); !reflect.DeepEqual(f, c.want) {
			t.Errorf("%s:\n got %v\nwant %v", c.rules, f, c.want)
		}
	}
}

func TestApplyLeavesTheTreeAloneAndSharesIt(t *testing.T) {
	sub := dict("a", leaf(2))
	root := dict("keep", sub, "x", leaf(1), "l", nested.NewList("tuple", nested.Int(1), dict("old", leaf(1))))
	before := flat(t, root)
	set, err := Parse("test", "rename x -> y; rename /old/ -> new")
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := set.Apply(root)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(flat(t, root), before) {
		t.Error("the tree that went in changed")
	}
	m := got.(*nested.Map)
	if v, _ := m.Lookup("keep"); v != nested.Value(sub) {
		t.Error("what did not change was copied")
	}
	if l, _ := m.Lookup("l"); l.(*nested.List).Class != "tuple" {
		t.Error("a list whose items stay became something else")
	}
	if f := flat(t, got); f["l.1.new"] == "" || f["y"] == "" {
		t.Errorf("got %v", f)
	}
	same, _, err := (&Set{}).Apply(root)
	if err != nil || same != nested.Value(root) {
		t.Error("no statement, but another tree")
	}
}

func TestApplyKeepsKeysAndOpaqueObjects(t *testing.T) {
	pair := nested.NewList("tuple", nested.Int(1), nested.Int(2))
	obj := &nested.Opaque{Class: "m.Net", Reason: "class", Members: dict("w", leaf(2), "b", leaf(2))}
	other := &nested.Opaque{Class: "m.Config", Reason: "class", Members: dict("lr", nested.Float(0.5))}
	root := dict(pair, dict("p", nested.Int(1), "q", nested.Int(2)), nested.Int(0), nested.Int(5), "net", obj, "cfg", other, "l", nested.NewList("list", nested.Int(8), nested.Int(9)))
	set, err := Parse("test", "rename net.w -> net.weight; drop l.0; drop /q$/")
	if err != nil {
		t.Fatal(err)
	}
	got, rep, err := set.Apply(root)
	if err != nil {
		t.Fatal(err)
	}
	m := got.(*nested.Map)
	if v, ok := m.Get(pair); !ok || v.(*nested.Map).Len() != 1 {
		t.Errorf("below the tuple key: %v", v)
	}
	if v, ok := m.Get(nested.Int(0)); !ok || v != nested.Value(nested.Int(5)) {
		t.Errorf("the int key: %v %v", v, ok)
	}
	if v, _ := m.Lookup("cfg"); v != nested.Value(other) {
		t.Error("an opaque object that nothing touched was rebuilt")
	}
	net, _ := m.Lookup("net")
	if _, ok := net.(*nested.Map).Lookup("weight"); !ok {
		t.Errorf("the opaque object's members: %v", flat(t, got))
	}
	l, _ := m.Lookup("l")
	if v, ok := l.(*nested.Map).Get(nested.Int(1)); !ok || v != nested.Value(nested.Int(9)) {
		t.Error("a list that lost an item lost the other's index too")
	}
	if want := []string{"l.0"}; !slices.Equal(rep.Dropped[:1], want) {
		t.Errorf("dropped %v", rep.Dropped)
	}
}

func TestApplyOnABareLeaf(t *testing.T) {
	set, err := Parse("test", "add w")
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := set.Apply(leaf(3))
	if err != nil {
		t.Fatal(err)
	}
	if f := flat(t, got); !reflect.DeepEqual(f, map[string]string{"w": "float32 [3]"}) {
		t.Errorf("got %v", f)
	}
}

func TestApplyErrors(t *testing.T) {
	for _, c := range []struct {
		rules string
		kind  fault.Kind
	}{
		{"rename a -> b", fault.Collision},
		{"x = a; x = b", fault.Collision},
		{"alias b = a", fault.Collision},
		{"key stat_dict", fault.NotFound},
		{"x = y", fault.NotFound},
		{"x = a | transpose 0 1", fault.Mismatch},
		{"x = a | reshape $n", fault.Usage},
		{"x = c.*", fault.Ambiguous},
		{"x = a; rest error", fault.Mismatch},
		{"x = a, shape 3", fault.Mismatch},
		{"x = a, shape 2 *", fault.Mismatch},
		{"x = a | unsqueeze 0, shape * 3", fault.Mismatch},
		{"x = a, shape $n", fault.Usage},
		{"let n = $m", fault.Usage},
	} {
		set, err := Parse("test", c.rules)
		if err != nil {
			t.Fatalf("%s: %v", c.rules, err)
		}
		_, _, err = set.Apply(dict("a", leaf(2), "b", leaf(2), "c.0", leaf(2), "c.1", leaf(2), "state_dict", nested.Int(0)))
		if fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want kind %s", c.rules, err, c.kind)
		}
	}
}

// A shape that fits is no error, on a plain name and on an expression.
func TestShapeOfAnAssignment(t *testing.T) {
	set, err := Parse("test", "let n = 2; x = a, shape $n; y = b | unsqueeze 0, shape 1 *")
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := set.Apply(dict("a", leaf(2), "b", leaf(2)))
	if err != nil || flat(t, got)["y"] != "float32 [1, 2]" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestReportOfASet(t *testing.T) {
	set, err := Parse("test", "rename a -> z; drop b; strip nothing.; w.{i} = v.{i}; y = c | transpose")
	if err != nil {
		t.Fatal(err)
	}
	_, rep, err := set.Apply(dict("a", leaf(2), "b", leaf(2), "c", leaf(2, 2)))
	if err != nil {
		t.Fatal(err)
	}
	want := &Report{
		Renamed:   []Change{{From: []string{"a"}, To: "z"}},
		Made:      []Change{{From: []string{"c"}, To: "y"}},
		Dropped:   []string{"b"},
		Unmatched: []string{"strip nothing.", "w.{i} = v.{i}"},
	}
	if !reflect.DeepEqual(rep, want) {
		t.Errorf("got %+v, want %+v", rep, want)
	}
}

func TestParamsOfTheCallerWin(t *testing.T) {
	set, err := Parse("test", "let n = 2; w = a | reshape $n -1")
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]string{0: "float32 [2, 6]", 3: "float32 [3, 4]"} {
		s := set
		if n > 0 {
			s = set.With(Params{"n": n})
		}
		got, _, err := s.Apply(dict("a", leaf(12)))
		if err != nil {
			t.Fatal(err)
		}
		if f := flat(t, got)["w"]; f != want {
			t.Errorf("n=%d: %s, want %s", n, f, want)
		}
	}
}

// Rotary weights go from Meta's interleaved order to the halves that
// transformers uses and back: view(heads, -1, 2, dim).transpose(1, 2), see
// transformers' convert_llama_weights_to_hf.py, permute.
func TestRotaryPermutationIsARule(t *testing.T) {
	set, err := Parse("test", "{x...} = {x...} | unflatten 0 $heads -1 2 | transpose 1 2 | flatten 0 2")
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse("test", "{x...} = {x...} | unflatten 0 $heads 2 -1 | transpose 1 2 | flatten 0 2")
	if err != nil {
		t.Fatal(err)
	}
	hf, _, err := set.With(Params{"heads": 2}).Apply(dict("q", leaf(8, 1), "bias", leaf(8)))
	if err != nil {
		t.Fatal(err)
	}
	q, _ := hf.(*nested.Map).Lookup("q")
	if got, want := values(t, q.(nested.Leaf).AsTensor()), []float32{0, 2, 1, 3, 4, 6, 5, 7}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	again, _, err := back.With(Params{"heads": 2}).Apply(hf)
	if err != nil {
		t.Fatal(err)
	}
	q, _ = again.(*nested.Map).Lookup("q")
	if got := values(t, q.(nested.Leaf).AsTensor()); !slices.IsSorted(got) {
		t.Errorf("there and back: %v", got)
	}
}

func TestNamedSets(t *testing.T) {
	cases := map[string]struct {
		in, want nested.Value
	}{
		"linear-in-out":  {dict("fc.weight", leaf(2, 3), "fc.bias", leaf(2), "tok_embeddings.weight", leaf(4, 3), "conv.weight", leaf(2, 2, 1)), dict("fc.weight", leaf(3, 2), "fc.bias", leaf(2), "tok_embeddings.weight", leaf(4, 3), "conv.weight", leaf(2, 2, 1))},
		"gamma-beta":     {dict("ln.gamma", leaf(2), "ln.beta", leaf(3), "gamma", leaf(4), "x.gamma_1", leaf(5)), dict("ln.weight", leaf(2), "ln.bias", leaf(3), "weight", leaf(4), "x.gamma_1", leaf(5))},
		"torch-prefixes": {dict("module._orig_mod.a.w", leaf(1), "module.b._orig_mod._checkpoint_wrapped_module.w", leaf(2)), dict("a.w", leaf(1), "b.w", leaf(2))},
		"model-prefix":   {dict("model.fc.w", leaf(1), "model.model.w", leaf(2), "head.w", leaf(3)), dict("fc.w", leaf(1), "model.w", leaf(2), "head.w", leaf(3))},
		"lightning":      {dict("epoch", nested.Int(1), "state_dict", dict("model.fc.w", leaf(1), "loss.w", leaf(2))), dict("fc.w", leaf(1), "loss.w", leaf(2))},
		"ema-averaged":   {dict("n_averaged", nested.Int(4), "module.fc.w", leaf(1)), dict("fc.w", leaf(1))},
		"llama-meta-to-hf": {dict("tok_embeddings.weight", leaf(4, 2), "norm.weight", leaf(2), "output.weight", leaf(5, 2), "rope.freqs", leaf(1), "layers.0.feed_forward.w2.weight", leaf(2, 3)),
			dict("model.embed_tokens.weight", leaf(4, 2), "model.norm.weight", leaf(2), "lm_head.weight", leaf(5, 2), "model.layers.0.mlp.down_proj.weight", leaf(2, 3))},
		"llama-hf-to-meta": {dict("model.embed_tokens.weight", leaf(4, 2), "model.norm.weight", leaf(2), "lm_head.weight", leaf(5, 2), "model.layers.0.mlp.down_proj.weight", leaf(2, 3)),
			dict("tok_embeddings.weight", leaf(4, 2), "norm.weight", leaf(2), "output.weight", leaf(5, 2), "layers.0.feed_forward.w2.weight", leaf(2, 3))},
		"llama-tied":  {dict("model.embed_tokens.weight", leaf(4, 2)), dict("model.embed_tokens.weight", leaf(4, 2), "lm_head.weight", leaf(4, 2))},
		"llama-untie": {dict("tok_embeddings.weight", leaf(4, 2), "output.weight", leaf(4, 2)), dict("tok_embeddings.weight", leaf(4, 2))},
		"llama-meta-to-gguf": {dict("tok_embeddings.weight", leaf(4, 2), "norm.weight", leaf(2), "output.weight", leaf(5, 2), "rope.freqs", leaf(1), "layers.0.feed_forward.w2.weight", leaf(2, 3)),
			dict("token_embd.weight", leaf(4, 2), "output_norm.weight", leaf(2), "output.weight", leaf(5, 2), "blk.0.ffn_down.weight", leaf(2, 3))},
		"lstm-split": {dict("enc.weight_ih_l0", leaf(8, 3), "enc.weight_hh_l0", leaf(8, 2), "enc.bias_ih_l0", leaf(8), "fc.weight", leaf(2, 2)),
			dict("enc.weight_ii_l0", leaf(2, 3), "enc.weight_if_l0", leaf(2, 3), "enc.weight_ig_l0", leaf(2, 3), "enc.weight_io_l0", leaf(2, 3),
				"enc.weight_hi_l0", leaf(2, 2), "enc.weight_hf_l0", leaf(2, 2), "enc.weight_hg_l0", leaf(2, 2), "enc.weight_ho_l0", leaf(2, 2),
				"enc.bias_ii_l0", leaf(2), "enc.bias_if_l0", leaf(2), "enc.bias_ig_l0", leaf(2), "enc.bias_io_l0", leaf(2), "fc.weight", leaf(2, 2))},
		"lstm-join": {dict("weight_ii", leaf(2, 3), "weight_if", leaf(2, 3), "weight_ig", leaf(2, 3), "weight_io", leaf(2, 3),
			"weight_hi", leaf(2, 2), "weight_hf", leaf(2, 2), "weight_hg", leaf(2, 2), "weight_ho", leaf(2, 2)),
			dict("weight_ih", leaf(8, 3), "weight_hh", leaf(8, 2))},
		"gru-split": {dict("weight_ih", leaf(6, 3), "weight_hh", leaf(6, 2)),
			dict("weight_ir", leaf(2, 3), "weight_iz", leaf(2, 3), "weight_in", leaf(2, 3), "weight_hr", leaf(2, 2), "weight_hz", leaf(2, 2), "weight_hn", leaf(2, 2))},
		"gru-join": {dict("a.weight_ir_l1", leaf(2, 3), "a.weight_iz_l1", leaf(2, 3), "a.weight_in_l1", leaf(2, 3), "a.weight_hr_l1", leaf(2, 2), "a.weight_hz_l1", leaf(2, 2), "a.weight_hn_l1", leaf(2, 2)),
			dict("a.weight_ih_l1", leaf(6, 3), "a.weight_hh_l1", leaf(6, 2))},
		"qkv-split": {dict("a.in_proj_weight", leaf(6, 2), "a.in_proj_bias", leaf(6), "b.qkv.weight", leaf(9, 3)),
			dict("a.q_proj.weight", leaf(2, 2), "a.k_proj.weight", leaf(2, 2), "a.v_proj.weight", leaf(2, 2), "a.q_proj.bias", leaf(2), "a.k_proj.bias", leaf(2), "a.v_proj.bias", leaf(2),
				"b.q_proj.weight", leaf(3, 3), "b.k_proj.weight", leaf(3, 3), "b.v_proj.weight", leaf(3, 3))},
		"qkv-join": {dict("a.q_proj.weight", leaf(2, 2), "a.k_proj.weight", leaf(2, 2), "a.v_proj.weight", leaf(2, 2), "a.q_proj.bias", leaf(2), "a.k_proj.bias", leaf(2), "a.v_proj.bias", leaf(2)),
			dict("a.in_proj_weight", leaf(6, 2), "a.in_proj_bias", leaf(6))},
		"ema-timm": {dict("state_dict", dict("w", leaf(1)), "state_dict_ema", dict("module.w", leaf(2))), dict("w", leaf(2))},
	}
	for _, name := range Names() {
		c, ok := cases[name]
		if !ok {
			t.Errorf("no case for the set %s", name)
			continue
		}
		set, err := Named(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, _, err := set.Apply(c.in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !reflect.DeepEqual(flat(t, got), flat(t, c.want)) {
			t.Errorf("%s: got %v, want %v", name, flat(t, got), flat(t, c.want))
		}
	}
	if _, err := Named("gama-beta"); !errors.Is(err, fault.ErrNotFound) || !strings.Contains(err.Error(), "gamma-beta") {
		t.Errorf("an unknown set: %v", err)
	}
}

// Every operation and every statement has an example on the package's page.
func TestEveryRuleHasAnExample(t *testing.T) {
	text, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, examples, _ := strings.Cut(string(text), "func Example_")
	want := []string{"concat ", "stack ", "{m...}.q = ", ", dims=", ", floats", ", except=", ", optional"}
	for _, verb := range verbNames {
		want = append(want, "| "+verb)
	}
	for _, keyword := range keywords {
		want = append(want, keyword+" ")
	}
	for _, w := range want {
		if !strings.Contains(examples, w) {
			t.Errorf("no example of %q", w)
		}
	}
	if len(verbNames) != len(verbs) {
		t.Errorf("%d operations are listed, there are %d", len(verbNames), len(verbs))
	}
}

// Every flag of a tag has one on the page of package serde, whose examples have tags.
func TestEveryTagHasAnExample(t *testing.T) {
	text, err := os.ReadFile("../serde/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	ofStatements := []string{"dims", "floats", "except"}
	for _, flag := range flagNames {
		inTag := regexp.MustCompile("torch:\"[^`]*, " + flag + "[^`]*`")
		if inTag.Match(text) == slices.Contains(ofStatements, flag) {
			t.Errorf("the flag %s has no example in a tag, or is none of a tag", flag)
		}
	}
}

// FuzzParse prints what parses, and parses that: it prints the same, and the
// errors of both are those of whoever wrote the rules. Seen to catch: a printer
// that quotes no words.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"a = b | transpose, optional", "rename /a/ -> $0", "key ['a', 0]", "strip a; add b # c", "x.{i} = concat 0 (a.{i}, b | narrow 0 :$n*2/4), dims=2, except=**.w",
		"add 'a b'; strip 'c;d'", "'a b' = \"c;d|e\" | transpose; select 'x, y'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := Parse("fuzz", text)
		if err != nil {
			if k := fault.KindOf(err); k != fault.Usage && k != fault.Limit {
				t.Fatalf("an error of kind %q: %v", k, err)
			}
			return
		}
		printed := set.String()
		again, err := Parse("fuzz", printed)
		if err != nil {
			t.Fatalf("%q prints as %q, which does not parse: %v", text, printed, err)
		}
		if again.String() != printed {
			t.Fatalf("%q prints as %q, then as %q", text, printed, again.String())
		}
	})
}

// What lies at a key that is neither text nor a number is found by its flat name.
func TestBelowOddKey(t *testing.T) {
	root := nested.NewMap("dict")
	if err := root.Set(nested.None{}, nested.Int(7)); err != nil {
		t.Fatal(err)
	}
	index, err := NewIndex(root)
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := index.Below("None"); !ok || v != nested.Int(7) {
		t.Errorf("got %v, %v", v, ok)
	}
}

// TestNamesThatGrow doubles names until there is no room, in each way in which
// rules make names.
func TestNamesThatGrow(t *testing.T) {
	root := nested.NewMap("dict")
	if err := root.Set(nested.String("abc"), &nested.Tensor{Tensor: tensor.Of([]float32{1})}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		strings.Repeat("rename {r...} -> {r...}{r...}\n", 30), strings.Repeat("rename /(.*)/ -> \"$1$1\"\n", 30),
		strings.Repeat("rename /b/ -> bb\n", 2) + strings.Repeat("rename /.*/ -> \"$0$0\"\n", 30), strings.Repeat("rename {r...} -> "+strings.Repeat("{r...}", 2000)+"\n", 3),
		strings.Repeat("x.{r...}{r...} = {r...}\nrest keep\n", 40), strings.Repeat("add "+strings.Repeat("y", 1<<12)+"\n", 200) + strings.Repeat("rename {r...} -> {r...}{r...}\n", 8),
	} {
		set, err := Parse("test", text)
		if err != nil {
			t.Errorf("%.40q: %v", text, err)
			continue
		}
		if _, _, err := set.Apply(root); !errors.Is(err, fault.ErrLimit) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	set, err := Parse("test", strings.Repeat("rename {r...} -> {r...}{r...}\n", 16))
	if err != nil {
		t.Fatal(err)
	}
	if out, _, err := set.Apply(root); err != nil || len(nested.KeyName(out.(*nested.Map).Entry(0).Key)) != 3<<16 {
		t.Errorf("within the room: %v", err)
	}
}

// TestReplaceAsTheStandardLibraryDoes compares the bounded replacement with the
// one that it stands for.
func TestReplaceAsTheStandardLibraryDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		re := rapid.SampledFrom([]string{"a", "a*", "(a)(b)?", "^", "$", "b|", "(a|b)+", "\\.", "(x*)", "(?:)", "ü?"}).Draw(t, "expression")
		name := rapid.StringOf(rapid.SampledFrom([]rune("abx.ü"))).Draw(t, "name")
		with := rapid.SampledFrom([]string{"", "-", "$1", "${1}$2", "$$", "$0$0", "$x"}).Draw(t, "replacement")
		st, err := NewRename(re, with)
		if err != nil {
			t.Skip(err)
		}
		room := newNameRoom(0)
		got, matched, err := room.replace(st, name)
		want := regexp.MustCompile(re).ReplaceAllString(name, with)
		if err != nil || got != want || matched != regexp.MustCompile(re).MatchString(name) {
			t.Errorf("%q, %v, %v; want %q", got, matched, err, want)
		}
	})
}
