package cli

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// layered is a tree of repeated blocks, one of which is odd.
func layered(t *testing.T) nested.Value {
	t.Helper()
	state := nested.NewMap("collections.OrderedDict")
	set := func(name string, shape ...int) {
		n := 1
		for _, s := range shape {
			n *= s
		}
		if err := state.Set(str(name), lazy(tensor.Of(make([]float32, n), shape...))); err != nil {
			t.Fatal(err)
		}
	}
	set("embed.weight", 4, 2)
	for i := range 5 {
		width := 2
		if i == 3 {
			width = 3
		}
		set("layers."+strconv.Itoa(i)+".w", width, 2)
		set("layers."+strconv.Itoa(i)+".b", 2)
	}
	return mapOf(t, str("epoch"), nested.Int(1), str("sd"), state, str("args"), nested.NewList("list", str("x"), nested.Int(2)))
}

func TestTree(t *testing.T) {
	trees := map[string]nested.Value{"m.pt": layered(t)}
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"folded", nil, `m.pt  11 tensors, 40 elements, 160 B
├── epoch = 1
├── sd
│   ├── embed.weight  float32 [4, 2]
│   └── layers
│       ├── 0…2  3 × 2 tensors, 6 elements, 24 B
│       │   ├── w  float32 [2, 2]
│       │   └── b  float32 [2]
│       ├── 3
│       │   ├── w  float32 [3, 2]
│       │   └── b  float32 [2]
│       └── 4
│           ├── w  float32 [2, 2]
│           └── b  float32 [2]
└── args = ['x', 2]
`},
		{"depth", []string{"--depth", "2"}, `m.pt  11 tensors, 40 elements, 160 B
├── epoch = 1
├── sd
│   ├── embed.weight  float32 [4, 2]
│   └── layers  10 tensors, 32 elements, 128 B
└── args = ['x', 2]
`},
		{"pattern", []string{"sd.layers.4", "--unfold"}, `m.pt  2 tensors, 6 elements, 24 B
└── sd
    └── layers
        └── 4
            ├── w  float32 [2, 2]
            └── b  float32 [2]
`},
	} {
		got := runTrees(t.Context(), trees, append([]string{"tree", "m.pt"}, c.args...)...)
		if got.code != 0 || got.out != c.want {
			t.Errorf("%s: exit %d, %s got\n%s\nwant\n%s", c.name, got.code, got.err, got.out, c.want)
		}
	}
}

// Two tensors of one flat name are two leaves, and a name of a million dots is
// no tree of a million levels.
func TestTreeOddNames(t *testing.T) {
	x := lazy(tensor.Of([]float32{1}))
	root := mapOf(t, str("a.b"), x, str("a"), mapOf(t, str("b"), x), str(""), x, str(strings.Repeat("d.", 1<<18)+"d"), x)
	got := runTrees(t.Context(), map[string]nested.Value{"m.pt": root}, "tree", "--unfold", "m.pt")
	if got.code != 0 || strings.Count(got.out, "float32 [1]") != 4 || strings.Count(got.out, "── b  float32") != 2 || !strings.Contains(got.out, `── ""  float32`) || strings.Count(got.out, "\n") > 80 {
		t.Errorf("exit %d, %d lines: %.2000s", got.code, strings.Count(got.out, "\n"), got.out)
	}
}

// The tree as JSON has the rows of ls, folded as the tree for people is.
func TestTreeJSON(t *testing.T) {
	for name, args := range map[string][]string{
		"tree-json.golden":       {"--json", "--depth", "3", fixture("demo-resnet/demo-resnet-torch2.15.pt"), "epoch", "state_dict.layer1", "config"},
		"tree-json-odd.golden":   {"--json", fixture("odd-objects/containers-torch2.15.pt")},
		"tree-json-quant.golden": {"--json", fixture("quantized/per_channel-torch2.15.pt")},
	} {
		got := runFiles(t, append([]string{"tree"}, args...)...)
		if got.code != 0 || !json.Valid([]byte(got.out)) {
			t.Errorf("exit %d: %s", got.code, got.err)
		}
		golden(t, name, got.out)
	}
	got := runFiles(t, "tree", "--json", fixture("broken/html-torch2.15.pt"))
	if got.code != 4 || got.out != "" || !strings.HasPrefix(got.err, `{"error":`) {
		t.Errorf("exit %d: %s%s", got.code, got.out, got.err)
	}
}

// What holds nothing is there all the same, and a file of one thing shows it.
func TestTreeOfLittle(t *testing.T) {
	empty := nested.NewMap("collections.OrderedDict")
	for name, c := range map[string]struct {
		root       nested.Value
		text, json string
	}{
		"tensor": {lazy(tensor.Of(make([]float32, 6), 2, 3)), "m.pt  float32 [2, 3]  1 tensor, 6 elements, 24 B\n", `"shape":[2,3]`},
		"number": {nested.Int(3), "m.pt = 3\n", `"type":"int","value":3`},
		"dict":   {nested.NewMap("dict"), "m.pt = {}  empty\n", `"type":"dict","value":{}`},
		"list":   {nested.NewList("list"), "m.pt = []  empty\n", `"type":"list","value":[]`},
		"inside": {
			mapOf(t, str("a"), empty, str("b"), nested.NewList("tuple"), str("c"), nested.NewList("set")),
			"m.pt\n├── a = collections.OrderedDict()\n├── b = ()\n└── c = set()\n", `{"name":"b","type":"tuple","value":[]}`,
		},
		"of an object": {
			mapOf(t, str("a"), &nested.Opaque{Class: "m.C", Reason: "class", Members: nested.NewMap("dict")}),
			"m.pt\n└── a  m.C (class)\n", `"class":"m.C"`,
		},
		"in a set": {
			mapOf(t, str("a"), nested.NewList("set", nested.NewList("frozenset"))),
			"m.pt  1 value\n└── a = {frozenset()}\n", `"value":"{frozenset()}"`,
		},
	} {
		trees := map[string]nested.Value{"m.pt": c.root}
		if got := runTrees(t.Context(), trees, "tree", "m.pt"); got.code != 0 || got.out != c.text {
			t.Errorf("%s: exit %d, %s got\n%s\nwant\n%s", name, got.code, got.err, got.out, c.text)
		}
		got := runTrees(t.Context(), trees, "tree", "--json", "m.pt")
		if got.code != 0 || !json.Valid([]byte(got.out)) || !strings.Contains(got.out, c.json) {
			t.Errorf("%s: exit %d, %s%s; want %s", name, got.code, got.err, got.out, c.json)
		}
	}
	got := runTrees(t.Context(), map[string]nested.Value{"m.pt": mapOf(t, str("a"), empty, str("b"), nested.Int(1))}, "tree", "m.pt", "a")
	if want := "m.pt\n└── a = collections.OrderedDict()\n"; got.code != 0 || got.out != want {
		t.Errorf("exit %d, %s got\n%s\nwant\n%s", got.code, got.err, got.out, want)
	}
}

// A list of plain values is on one line, a long one cut; short lists of long values and
// lists with anything else in them are not.
func TestTreeOfLists(t *testing.T) {
	numbers := func(n int) *nested.List {
		l := nested.NewList("list")
		for i := range n {
			l.Items = append(l.Items, nested.Int(i))
		}
		return l
	}
	long := str(strings.Repeat("x", 40))
	root := mapOf(t, str("params"), numbers(1000), str("one"), nested.NewList("tuple", nested.Float(0.5)),
		str("long"), nested.NewList("list", long, long), str("mixed"), nested.NewList("list", nested.Int(1), lazy(tensor.Of([]float32{1}))),
		str("keys"), mapOf(t, nested.Int(1), nested.Int(2)))
	trees := map[string]nested.Value{"m.pt": root, "list.pt": numbers(3)}
	for _, c := range []struct {
		args, want string
	}{
		{"m.pt", `m.pt  1 tensor, 1 element, 4 B
├── params = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, …]  1,000 values
├── one = [0.5]
├── long
│   ├── 0 = 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'
│   └── 1 = 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'
├── mixed
│   ├── 0 = 1
│   └── 1  float32 [1]
└── keys.1 = 2
`},
		{"--depth 1 m.pt one", "m.pt  1 value\n└── one = [0.5]\n"},
		{"--unfold m.pt one", "m.pt  1 value\n└── one\n    └── 0 = 0.5\n"},
		{"list.pt", "list.pt = [0, 1, 2]\n"},
	} {
		got := runTrees(t.Context(), trees, append([]string{"tree"}, strings.Fields(c.args)...)...)
		if got.code != 0 || got.out != c.want {
			t.Errorf("%s: exit %d, %s got\n%s\nwant\n%s", c.args, got.code, got.err, got.out, c.want)
		}
	}
}
