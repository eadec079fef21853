package gen

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/tensor"
)

func weights(shape ...int) nested.Value {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return &nested.Tensor{Tensor: tensor.Of(make([]float32, n), shape...), Class: "torch.Tensor"}
}

// tree is a flat state dict of names with shapes, such as "fc.weight 3 4", and
// of plain values, such as "epoch = 3".
func tree(t *testing.T, rows ...string) nested.Value {
	t.Helper()
	m := nested.NewMap("dict")
	for _, row := range rows {
		name, value, isValue := strings.Cut(row, " = ")
		v := nested.Value(nested.String(value))
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			v = nested.Int(n)
		} else if f, err := strconv.ParseFloat(value, 64); err == nil {
			v = nested.Float(f)
		} else if value == "None" {
			v = nested.None{}
		}
		if !isValue {
			words := strings.Fields(row)
			var shape []int
			for _, w := range words[1:] {
				n, err := strconv.Atoi(w)
				if err != nil {
					t.Fatal(err)
				}
				shape = append(shape, n)
			}
			name, v = words[0], weights(shape...)
		}
		if err := m.Set(nested.String(name), v); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// Each row is a tree and what the Go types for it must say, blanks aside.
func TestTypes(t *testing.T) {
	for _, c := range []struct {
		name string
		rows []string
		want []string
	}{
		{"modules by shape", []string{"a.weight 3 4", "a.bias 3", "b.weight 6 3 2 2", "b.bias 6", "c.weight 5 5", "up.weight 3 6 2 2", "up.bias 6", "n.weight 4", "n.bias 4"},
			[]string{"A nn.Linear[float32] `torch:\"a\"` // weight [3, 4], bias [3]", "B nn.Conv2d[float32]", "C nn.Linear[float32]", "Up nn.ConvTranspose2d[float32]", "N nn.LayerNorm[float32]"}},
		{"modules by name", []string{"tok_embeddings.weight 9 4", "gn.weight 4", "gn.bias 4", "input_norm.weight 4", "prelu.weight 1"},
			[]string{"TokEmbeddings nn.Embedding[float32]", "GN nn.GroupNorm[float32]", "InputNorm nn.RMSNorm[float32]", "Prelu nn.PReLU[float32]"}},
		{"not quite modules", []string{"a.weight 3 4", "a.bias 5", "b.weight 3 4", "b.bias 3", "b.scale 1"},
			[]string{"A NetA `torch:\"a\"`", "Weight tensor.Array[float32] `torch:\"weight\"` // [3, 4]", "B NetB", "Scale tensor.Array[float32]"}},
		{"a list with gaps", []string{"features.0.weight 2 2 3 3", "features.3.weight 4 2 3 3", "features.6.weight 4 4 1 1"},
			[]string{"Features []nn.Conv2d[float32] `torch:\"features, gaps=keep\"` // 3 × at 0, 3, 6 weight [2…4, 2…4, 1…3, 1…3]"}},
		{"a list from 1", []string{"h.1.weight 2 2", "h.2.weight 2 2"}, []string{"H []nn.Linear[float32] `torch:\"h, gaps=keep\"` // 2 × at 1, 2"}},
		{"a list under a value's name", []string{"m.0 = a", "m.0.0 2", "m.0.1 2"},
			[]string{"Item0 string `torch:\"0\"`", "Item0_2 NetM2 `torch:\"0\"`", "Item1 tensor.Array[float32] `torch:\"1\"` // [2]"}},
		{"a list too sparse", []string{"h.0.weight 2 2", "h.900.weight 2 2"}, []string{"Linear0 nn.Linear[float32] `torch:\"0\"`", "Linear900 nn.Linear[float32] `torch:\"900\"`"}},
		{"a sequence of unlike modules", []string{"s.0.weight 2 3 3 3", "s.0.bias 2", "s.1.weight 2", "s.1.bias 2", "s.1.running_mean 2", "s.1.running_var 2"},
			[]string{"Conv0 nn.Conv2d[float32] `torch:\"0\"`", "BN1 nn.BatchNorm2d[float32] `torch:\"1\"` // [2]"}},
		{"what some blocks lack", []string{"layer1.0.conv1.weight 2 2 3 3", "layer1.0.conv2.weight 2 2 3 3", "layer2.0.conv1.weight 4 2 3 3", "layer2.0.conv2.weight 4 4 3 3", "layer2.0.down.weight 4 2 1 1"},
			[]string{"Layer1 []NetLayer", "Layer2 []NetLayer", "// NetLayer is each of layer1.0 to layer2.0, 2 in all.", "Down *nn.Conv2d[float32]"}},
		{"optional tensors and numbers", []string{"l.0.w 2", "l.0.v 2", "l.1.w 2", "l.1.v 2", "l.1.g 3", "l.1.n = 3"},
			[]string{"G tensor.Array[float32] `torch:\"g, optional\"` // [3]", "N *int64 `torch:\"n\"`"}},
		{"numbers", []string{"epoch = 3", "lr = 0.5", "name = a b", "best = None", "betas.0 = 1", "betas.1 = 0.9", "m.0 = None", "m.1 = 2"},
			[]string{"Epoch int64 `torch:\"epoch\"` // 3", "LR float64 `torch:\"lr\"` // 0.5", "Name string `torch:\"name\"` // 'a b'", "Best nested.Value `torch:\"best\"` // None", "Betas []float64", "M []*int64"}},
		{"an integer that no float is", []string{"n.0 = 9007199254740993", "n.1 = 0.5"}, []string{"Item0 int64", "Item1 float64"}},
		{"identifiers", []string{"a-b 1", "a_b 1", "a.b 1", "type 1", "1x1 1", "層 1", "q_proj 1", "weight_ih_l0 1", "Conv2D_1a_3x3 1", "x.1.2 1"},
			[]string{"AB tensor.Array[float32] `torch:\"a-b\"`", "AB2 tensor.Array[float32] `torch:\"a_b\"`", "Type tensor", "X1x1 tensor", "X tensor.Array[float32] `torch:\"層\"`", "QProj tensor", "WeightIHL0 tensor", "Conv2D1a3x3 tensor", "X2 NetX", "Item1 []tensor.Array[float32] `torch:\"1, gaps=keep\"` // 1 × at 2 [1]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := fit(t, tree(t, c.rows...), Options{Package: "p", Type: "Net", Source: "net.pt", Command: "wick gen net.pt"})
			got := strings.Join(strings.Fields(string(res.Code)), " ")
			for _, want := range c.want {
				if !strings.Contains(got, strings.Join(strings.Fields(want), " ")) {
					t.Errorf("no %s in\n%s", want, res.Code)
				}
			}
		})
	}
}

// In plain mode every tensor is a packed slice whose tag has its shape.
func TestPlain(t *testing.T) {
	res := fit(t, tree(t, "fc.weight 3 4", "fc.bias 3", "l.0.w 2 2", "l.1.w 5 2"), Options{Package: "p", Type: "Net", Source: "net.pt", Plain: true})
	for _, want := range []string{`[]float32 ` + "`" + `torch:"weight, shape 3 4"` + "`", `[]float32 ` + "`" + `torch:"w, shape * 2"` + "`"} {
		if !strings.Contains(string(res.Code), want) {
			t.Errorf("no %s in\n%s", want, res.Code)
		}
	}
	if strings.Contains(string(res.Code), "nn.") || strings.Contains(string(res.Code), "tensor.Array") {
		t.Errorf("more than slices in\n%s", res.Code)
	}
}

// The rules that made the tree are in the code, which applies them again.
func TestRulesInCode(t *testing.T) {
	set, err := rules.Parse("test", "key state_dict; strip module.")
	if err != nil {
		t.Fatal(err)
	}
	res, err := Generate(tree(t, "fc.weight 3 4"), Options{Package: "p", Type: "Net", Rules: set.String()})
	if err != nil || !strings.Contains(string(res.Code), "const rulesOfNet = `key state_dict\nstrip module.\n`") || !strings.Contains(string(res.Code), "serde.Rules(set)") {
		t.Errorf("%v\n%s", err, res.Code)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{Package: "func", Type: "Net"}, {Package: "a-b", Type: "Net"}, {Package: "", Type: "Net"}, {Package: "_", Type: "Net"},
		{Package: "p", Type: "net"}, {Package: "p", Type: ""}, {Package: "p", Type: "A B"}, {Package: "p", Type: "Net struct{}; func init()"},
	} {
		if _, err := Generate(tree(t, "w 1"), o); fault.KindOf(err) != fault.Usage {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// Whatever the names and texts of a file, the code declares types, one function
// and nothing else, imports the standard library and wick alone, and its types
// take every tensor.
func TestHostileNames(t *testing.T) {
	name := rapid.StringOfN(rapid.RuneFrom([]rune("ab01._-'\"`\\/*\n\r\t #{}()[]|,;=$é重🐍\u202e\u2028\x00")), 0, 12, -1)
	bytes := rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 6), func(b []byte) string { return string(b) })
	word := rapid.SampledFrom([]string{
		"weight", "bias", "0", "1", "2", "optional", "-", "shape", "a`b", "*/ func init() {}", "\nfunc init() { panic(1) }\n", "//go:linkname a b", "import \"C\"",
		"string", "nn", "LoadNet", "Net", strings.Repeat("long", 500), strings.Repeat("a.", 70), "\xed\xa0\x80", "\xff",
	})
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.Custom(func(t *rapid.T) nested.Value {
			switch rapid.IntRange(0, 5).Draw(t, "key") {
			case 0:
				return nested.Int(rapid.Int64Range(-2, 20).Draw(t, "int"))
			case 1:
				return nested.String(name.Draw(t, "name"))
			case 2:
				return nested.String(bytes.Draw(t, "bytes"))
			case 3:
				return nested.None{}
			default:
				return nested.String(word.Draw(t, "word"))
			}
		})
		root := hostile(t, key, rapid.OneOf(name, bytes, word), 4)
		res := fit(t, root, Options{
			Package: "p", Type: "Net", Source: name.Draw(t, "source"), Command: "wick gen " + word.Draw(t, "command"),
			Load: name.Draw(t, "load"), Plain: rapid.Bool().Draw(t, "plain"),
		})
		innocent(t, res.Code, "LoadNet", "OpenNet")
		innocent(t, res.Test, "TestNetFields", "TestLoadNet")
	})
}

func hostile(t *rapid.T, key *rapid.Generator[nested.Value], text *rapid.Generator[string], depth int) nested.Value {
	kind := rapid.IntRange(0, 8).Draw(t, "kind")
	switch {
	case kind <= 1:
		return nested.String(text.Draw(t, "text"))
	case kind == 2:
		return &nested.Opaque{Class: text.Draw(t, "class"), Reason: "class"}
	case kind == 3 || depth == 0:
		return weights(rapid.SliceOfN(rapid.IntRange(0, 3), 0, 3).Draw(t, "shape")...)
	case kind == 4:
		list := nested.NewList("list")
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			list.Items = append(list.Items, hostile(t, key, text, depth-1))
		}
		return list
	}
	m := nested.NewMap("dict")
	for range rapid.IntRange(0, 4).Draw(t, "size") {
		if err := m.Set(key.Draw(t, "key"), hostile(t, key, text, depth-1)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// innocent checks what Go source declares.
func innocent(t *rapid.T, code []byte, functions ...string) {
	file, err := parser.ParseFile(token.NewFileSet(), "net.go", code, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range file.Imports {
		if path, err := strconv.Unquote(i.Path.Value); err != nil || path == "C" || path == "unsafe" || strings.Contains(path, ".") && !strings.HasPrefix(path, module) {
			t.Errorf("imports %s", i.Path.Value)
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if !slices.Contains(functions, d.Name.Name) {
				t.Errorf("declares func %s", d.Name.Name)
			}
		case *ast.GenDecl:
			if d.Tok != token.IMPORT && d.Tok != token.TYPE {
				t.Errorf("declares a %s", d.Tok)
			}
		}
	}
	for _, g := range file.Comments {
		for _, c := range g.List {
			if !strings.HasPrefix(c.Text, "// ") && c.Text != "//" {
				t.Errorf("a comment that may be a directive: %s", c.Text)
			}
		}
	}
}

func TestNames(t *testing.T) {
	for file, want := range map[string]string{
		"a/resnet18.pt": "Resnet18", "pytorch_model.bin": "PytorchModel", "-": "Model", `c:\m\vit-b.safetensors`: "VitB", "1.pt": "X1", "": "Model",
	} {
		if got := TypeName(file); got != want {
			t.Errorf("type for %q: %s, want %s", file, got, want)
		}
	}
	for dir, want := range map[string]string{"resnet": "resnet", "My-Net 2": "mynet2", "1": "model", "func": "model", "..": "model", "2net": "net"} {
		if got := PackageName(dir); got != want {
			t.Errorf("package for %q: %s, want %s", dir, got, want)
		}
	}
}

// A checkpoint with more names than Go code is good for is over a limit.
func TestMaxFields(t *testing.T) {
	m := nested.NewMap("dict")
	for i := range MaxFields + 1 {
		if err := m.Set(nested.String("w"+strconv.Itoa(i)), nested.Int(1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Generate(m, Options{Package: "p", Type: "Net"}); fault.KindOf(err) != fault.Limit {
		t.Errorf("got %v", err)
	}
}
