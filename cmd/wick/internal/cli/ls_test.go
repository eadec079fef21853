package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// The sums are those of Python's hashlib over struct.pack("<12f", *range(12)) and its transpose, and "<2f", 0, 1.
const modelJSON = `{"file":"m.pt","format":"zip","tensors":[
{"name":"state.fc.weight","path":["state","fc.weight"],"dtype":"float32","shape":[3,4],"bytes":48,"storage":"data/0","offset":0,"strides":[4,1],"contiguous":true,"sha256":"SUM1"},
{"name":"state.fc.tied","path":["state","fc.tied"],"dtype":"float32","shape":[4,3],"bytes":48,"storage":"data/0","offset":0,"strides":[1,4],"contiguous":false,"sha256":"SUM2"},
{"name":"state.bias","path":["state","bias"],"dtype":"float32","shape":[2],"bytes":8,"storage":"data/1","offset":0,"strides":[1],"contiguous":true,"sha256":"SUM3"},
{"name":"state.meta","path":["state","meta"],"dtype":"float16","shape":[2,2],"bytes":8,"no_data":true}
],"values":[
{"path":"epoch","type":"int","value":3},
{"path":"seed","type":"int","value":"1180591620717411303424"},
{"path":"loss","type":"float","value":"nan"},
{"path":"lr","type":"float","value":0.1},
{"path":"best","type":"NoneType","value":null},
{"path":"on","type":"bool","value":true},
{"path":"z","type":"complex","value":"(1.5-2j)"},
{"path":"rng","type":"bytes","value":"hex:00ff"},
{"path":"caf\u00e9","type":"str","value":"gr\u00fc\u00dfe","encoding":"latin1"},
{"path":"\ud800","type":"str","value":"\u5c64"},
{"path":"(1, 'a')","type":"torch.dtype","value":"torch.float16"},
{"path":"0.0","type":"int","value":7},
{"path":"args.depth","type":"int","value":18}
],"opaque":[
{"path":"args","class":"argparse.Namespace","reason":"class"}
]}
`

func TestLsJSON(t *testing.T) {
	want := strings.NewReplacer(
		"SUM1", "29e1889124dc651e7bb488251123910767d042ae6dc47c280ec364655e24ab49",
		"SUM2", "5ad8a91ce86568a3d934ee2a80909d4292384e7ca8f5b721ce930a7d377cd709",
		"SUM3", "22b6f43bd8d27738d3213f29e96b62d01d9d6c0ab4f9732aaae803186f51eab7").Replace(modelJSON)
	got := runTrees(t.Context(), map[string]nested.Value{"m.pt": model(t)}, "ls", "--json", "--sha256", "m.pt")
	if got.code != 0 || got.err != "" || got.out != want {
		t.Errorf("exit %d, stderr %q, got\n%s\nwant\n%s", got.code, got.err, got.out, want)
	}
}

func TestLsJSONWithoutSums(t *testing.T) {
	got := runTrees(t.Context(), map[string]nested.Value{"m.pt": model(t)}, "ls", "--json", "m.pt")
	if got.code != 0 || strings.Contains(got.out, "sha256") {
		t.Errorf("exit %d, %s", got.code, got.out)
	}
}

func TestLsLines(t *testing.T) {
	got := runTrees(t.Context(), map[string]nested.Value{"m.pt": model(t)}, "ls", "--jsonl", "m.pt", "state.fc", "epoch")
	want := `{"file":{"file":"m.pt","format":"zip"}}
{"tensor":{"name":"state.fc.weight","path":["state","fc.weight"],"dtype":"float32","shape":[3,4],"bytes":48,"storage":"data/0","offset":0,"strides":[4,1],"contiguous":true}}
{"tensor":{"name":"state.fc.tied","path":["state","fc.tied"],"dtype":"float32","shape":[4,3],"bytes":48,"storage":"data/0","offset":0,"strides":[1,4],"contiguous":false}}
{"value":{"path":"epoch","type":"int","value":3}}
`
	if got.code != 0 || got.out != want {
		t.Errorf("exit %d, got\n%s\nwant\n%s", got.code, got.out, want)
	}
}

func TestLsTypedPaths(t *testing.T) {
	x := lazy(tensor.Of([]float32{1}))
	root := mapOf(t,
		nested.Int(0), x, str("0"), x, nested.Bool(true), x, nested.None{}, x, nested.Float(1.5), x,
		nested.Bytes("\x00"), x, nested.NewList("tuple", nested.Int(1), str("a")), x,
		nested.Symbol{Class: "type", Text: "torch.nn.Linear"}, x)
	got := runTrees(t.Context(), map[string]nested.Value{"m.pt": root}, "ls", "--json", "m.pt")
	var doc struct {
		Tensors []struct {
			Name string
			Path json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(got.out), &doc); err != nil {
		t.Fatal(err)
	}
	want := []struct{ name, path string }{
		{"0", `[0]`}, {"0", `["0"]`},
		{"True", `[{"type":"bool","text":"True"}]`},
		{"None", `[{"type":"NoneType","text":"None"}]`},
		{"1.5", `[{"type":"float","text":"1.5"}]`},
		{`b'\x00'`, `[{"type":"bytes","text":"b'\\x00'"}]`},
		{"(1, 'a')", `[{"type":"tuple","text":"(1, 'a')"}]`},
		{"torch.nn.Linear", `[{"type":"type","text":"torch.nn.Linear"}]`},
	}
	if len(doc.Tensors) != len(want) {
		t.Fatalf("%d rows, want %d", len(doc.Tensors), len(want))
	}
	for i, w := range want {
		if got := doc.Tensors[i]; got.Name != w.name || string(got.Path) != w.path {
			t.Errorf("row %d is %s %s, want %s %s", i, got.Name, got.Path, w.name, w.path)
		}
	}
}

// A fault of one row is told in the row, on stderr and by the exit code; the
// document is whole.
func TestLsFaultyRows(t *testing.T) {
	good := lazy(tensor.Of([]float32{1}))
	bad := func(kind fault.Kind) *nested.Tensor {
		return lazy(tensor.Unavailable(tensor.F32, []int{1}, fault.New(kind, "trouble").InRecord("data/9")))
	}
	for _, c := range []struct {
		name  string
		kinds []fault.Kind
		row   string
		code  int
		err   string // the kind of the error on stderr, "" for none
	}{
		{"none", nil, "", 0, ""},
		{"meta", []fault.Kind{fault.NoData}, "", 0, ""},
		{"limit", []fault.Kind{fault.Limit}, "limit", 4, "limit"},
		{"unsupported", []fault.Kind{fault.Unsupported}, "unsupported", 4, "unsupported"},
		{"malformed", []fault.Kind{fault.Malformed}, "malformed", 3, "malformed"},
		{"checksum", []fault.Kind{fault.Checksum}, "checksum", 3, "checksum"},
		{"missing record", []fault.Kind{fault.NotFound}, "malformed", 3, "notfound"},
		{"worst wins", []fault.Kind{fault.Limit, fault.Malformed}, "limit", 3, "malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := mapOf(t, str("good"), good)
			for i, k := range c.kinds {
				if err := root.Set(nested.Int(i), bad(k)); err != nil {
					t.Fatal(err)
				}
			}
			got := runTrees(t.Context(), map[string]nested.Value{"m.pt": root}, "ls", "--json", "--sha256", "m.pt")
			if got.code != c.code || errorKind(t, got.err) != c.err {
				t.Errorf("exit %d, stderr %q", got.code, got.err)
			}
			rows := tensorRows(t, got.out)
			if len(rows) != 1+len(c.kinds) || rows[0].SHA256 == "" {
				t.Fatalf("the document is not whole: %s", got.out)
			}
			if len(rows) > 1 && (rows[1].Error.Kind != c.row || rows[1].SHA256 != "") {
				t.Errorf("row is %+v, want an error of kind %q", rows[1], c.row)
			}
		})
	}
}

type jsonRow struct {
	Name   string
	SHA256 string
	NoData bool `json:"no_data"`
	Error  struct{ Kind, Text string }
	Quant  json.RawMessage
}

func tensorRows(t *testing.T, doc string) []jsonRow {
	t.Helper()
	var d struct{ Tensors []jsonRow }
	if err := json.Unmarshal([]byte(doc), &d); err != nil {
		t.Fatalf("%v in %s", err, doc)
	}
	return d.Tensors
}

// errorKind reads the kind of the one JSON error on stderr, "" when there is none.
func errorKind(t *testing.T, stderr string) string {
	t.Helper()
	if stderr == "" {
		return ""
	}
	if strings.Count(stderr, "\n") != 1 || !strings.HasSuffix(stderr, "\n") {
		t.Fatalf("stderr is not one line: %q", stderr)
	}
	var e struct {
		Error map[string]any
	}
	if err := json.Unmarshal([]byte(stderr), &e); err != nil {
		t.Fatalf("%v in %s", err, stderr)
	}
	for _, key := range []string{"kind", "file", "record", "offset", "path", "found", "need", "cure"} {
		if _, ok := e.Error[key]; !ok {
			t.Errorf("the error has no %q: %s", key, stderr)
		}
	}
	kind, _ := e.Error["kind"].(string)
	return kind
}

// A few bytes that zero strides make into terabytes are listed, and refused
// when their bytes are asked for.
func TestLsExpansion(t *testing.T) {
	huge := strided(t, storage("data/0", 8), []int64{1 << 21, 1 << 21}, []int64{0, 0}, 0)
	trees := map[string]nested.Value{"m.pt": mapOf(t, str("w"), huge, str("ok"), lazy(tensor.Of([]float32{1})))}
	if got := runTrees(t.Context(), trees, "ls", "--json", "m.pt"); got.code != 0 || got.err != "" {
		t.Errorf("without sums: exit %d, %s", got.code, got.err)
	}
	got := runTrees(t.Context(), trees, "ls", "--json", "--sha256", "m.pt")
	rows := tensorRows(t, got.out)
	if got.code != 4 || rows[0].Error.Kind != "limit" || rows[0].SHA256 != "" || rows[1].SHA256 == "" {
		t.Errorf("exit %d, %+v", got.code, rows)
	}
}

func TestLsQuant(t *testing.T) {
	scales, zeros := lazy(tensor.Of([]float64{0.5, 0.25})), lazy(tensor.Of([]int64{0, -3}))
	perTensor := &nested.Tensor{Tensor: tensor.Of([]tensor.QUint8{1, 2}), Class: "torch.Tensor",
		Quant: &nested.Quant{Scheme: "per_tensor_affine", Scale: 0.1, ZeroPoint: 10}}
	perChannel := &nested.Tensor{Tensor: tensor.Of([]tensor.QInt8{1, 2}), Class: "torch.Tensor",
		Quant: &nested.Quant{Scheme: "per_channel_affine", Scales: scales, ZeroPoints: zeros, Axis: 0}}
	root := mapOf(t, str("a"), perTensor, str("b"), perChannel)
	got := runTrees(t.Context(), map[string]nested.Value{"m.pt": root}, "ls", "--json", "m.pt")
	rows := tensorRows(t, got.out)
	if got.code != 0 || string(rows[0].Quant) != `{"scheme":"per_tensor_affine","scale":0.1,"zero_point":10,"axis":null}` ||
		string(rows[1].Quant) != `{"scheme":"per_channel_affine","scale":[0.5,0.25],"zero_point":[0,-3],"axis":0}` {
		t.Errorf("exit %d, %s", got.code, got.out)
	}
}

func TestLsTable(t *testing.T) {
	got := runTrees(t.Context(), map[string]nested.Value{"m.pt": model(t)}, "ls", "m.pt")
	const want = `NAME             DTYPE    SHAPE   SIZE  STORAGE
state.fc.weight  float32  [3, 4]  48 B  data/0   shared
state.fc.tied    float32  [4, 3]  48 B  data/0   shared, strided
state.bias       float32  [2]      8 B  data/1
state.meta       float16  [2, 2]   8 B           no data
4 tensors, 30 elements, 112 B; 13 plain values and 1 opaque object (--all shows them)
`
	if got.code != 0 || got.out != want {
		t.Errorf("exit %d, got\n%s\nwant\n%s", got.code, got.out, want)
	}
}

func TestLsTerminalSafe(t *testing.T) {
	evil := "\x1b]0;owned\x07\n\u202ex"
	root := mapOf(t, str(evil), lazy(tensor.Of([]float32{1})), str("v"), nested.String(evil))
	got := runTrees(t.Context(), map[string]nested.Value{"m.pt": root}, "ls", "--all", "m.pt")
	if strings.ContainsAny(got.out, "\x1b\x07\u202e") || strings.Count(got.out, "\n") != 6 {
		t.Errorf("a name reached the terminal as it is: %q", got.out)
	}
}

func TestLsSort(t *testing.T) {
	s := storage("data/0", 20)
	root := mapOf(t,
		str("layer.10.w"), strided(t, s, []int64{2}, nil, 4),
		str("layer.2.w"), strided(t, s, []int64{3}, nil, 0),
		str("layer.1.w"), strided(t, s, []int64{1}, nil, 8))
	for key, want := range map[string]string{
		"file":   "layer.10.w layer.2.w layer.1.w",
		"name":   "layer.1.w layer.2.w layer.10.w",
		"size":   "layer.2.w layer.10.w layer.1.w",
		"offset": "layer.2.w layer.10.w layer.1.w",
	} {
		got := runTrees(t.Context(), map[string]nested.Value{"m.pt": root}, "ls", "--json", "--sort", key, "m.pt")
		var names []string
		for _, row := range tensorRows(t, got.out) {
			names = append(names, row.Name)
		}
		if strings.Join(names, " ") != want {
			t.Errorf("--sort %s gives %v, want %s", key, names, want)
		}
	}
}

func TestLsPatterns(t *testing.T) {
	x := lazy(tensor.Of([]float32{1}))
	root := mapOf(t, str("conv1.weight"), x, str("conv1.bias"), x, str("conv10.weight"), x, str("fc.weight"), x, str("odd (name)"), x)
	for _, c := range []struct {
		pattern string
		want    string
		code    int
	}{
		{"conv1", "conv1.weight conv1.bias", 0},
		{"conv1.weight", "conv1.weight", 0},
		{"*.weight", "conv1.weight conv10.weight fc.weight", 0},
		{"conv1*.weight", "conv1.weight conv10.weight", 0},
		{"/bias$/", "conv1.bias", 0},
		{"**", "conv1.weight conv1.bias conv10.weight fc.weight odd (name)", 0},
		{"conv", "", 2},
		{"/(/", "", 2},
		{"odd (name)", "odd (name)", 0},
		{"conv1.wieght", "", 2},
	} {
		got := runTrees(t.Context(), map[string]nested.Value{"m.pt": root}, "ls", "--json", "m.pt", c.pattern)
		if c.code != 0 { // no document beside an error
			if got.code != c.code || got.out != "" || got.err == "" {
				t.Errorf("%s: exit %d, want %d, %s%s", c.pattern, got.code, c.code, got.out, got.err)
			}
			continue
		}
		var names []string
		for _, row := range tensorRows(t, got.out) {
			names = append(names, row.Name)
		}
		if strings.Join(names, " ") != c.want || got.code != c.code {
			t.Errorf("%s: exit %d, %v, want exit %d, %s", c.pattern, got.code, names, c.code, c.want)
		}
	}
	got := runTrees(t.Context(), map[string]nested.Value{"m.pt": root}, "ls", "m.pt", "conv1.wieght")
	if !strings.Contains(got.err, "did you mean conv1.weight?") {
		t.Errorf("no near miss in %q", got.err)
	}
}

// The elements of a set have no names that Python knows; tensors in one do.
func TestLsSets(t *testing.T) {
	root := mapOf(t,
		str("s"), nested.NewList("set", nested.Int(1), nested.NewList("tuple", str("a"), nested.Float(2)), lazy(tensor.Of([]float32{1}))),
		str("f"), nested.NewList("frozenset", nested.NewList("frozenset", nested.Int(5))),
		str("l"), nested.NewList("list", nested.Int(1)),
		str("o"), &nested.Opaque{Class: "m.C", Reason: "class", Members: mapOf(t, str("k"), nested.NewList("set", str("x")))})
	got := runTrees(t.Context(), map[string]nested.Value{"m.pt": root}, "ls", "--json", "m.pt")
	const want = `{"file":"m.pt","format":"zip","tensors":[
{"name":"s.2","path":["s",2],"dtype":"float32","shape":[1],"bytes":4,"storage":"memory","offset":0,"strides":[1],"contiguous":true}
],"values":[
{"path":"l.0","type":"int","value":1}
],"opaque":[
{"path":"o","class":"m.C","reason":"class"}
],"sets":[
{"path":"s","type":"set","items":[1,"('a', 2.0)","<torch.Tensor>"]},
{"path":"f","type":"frozenset","items":["frozenset({5})"]},
{"path":"o.k","type":"set","items":["x"]}
]}
`
	if got.code != 0 || got.out != want {
		t.Errorf("exit %d, %s got\n%s\nwant\n%s", got.code, got.err, got.out, want)
	}
}

// A storage has one name in a document, and no two have the same.
func TestLsStorageNames(t *testing.T) {
	one, two := storage("data.pkl", 2), storage("data.pkl", 2)
	root := mapOf(t, str("a"), strided(t, one, []int64{2}, nil, 0), str("b"), strided(t, two, []int64{2}, nil, 0), str("c"), strided(t, one, []int64{1}, nil, 1))
	got := runTrees(t.Context(), map[string]nested.Value{"m.pt": root}, "ls", "--json", "m.pt")
	var doc struct {
		Tensors []struct{ Name, Storage string }
	}
	if err := json.Unmarshal([]byte(got.out), &doc); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"data.pkl", "data.pkl#2", "data.pkl"} {
		if doc.Tensors[i].Storage != want {
			t.Errorf("%s lies in %s, want %s", doc.Tensors[i].Name, doc.Tensors[i].Storage, want)
		}
	}
}

func TestOneFormOfJSON(t *testing.T) {
	for _, name := range []string{"ls", "disasm"} {
		got := runFiles(t, name, "--json", "--jsonl", "m.pt")
		if got.code != 2 || got.out != "" || !strings.Contains(got.err, `"found":"--json and --jsonl"`) || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%s: exit %d, %s%s", name, got.code, got.out, got.err)
		}
	}
}

// ls says in which shard a tensor lies, of one file nothing.
func TestLsNamesShards(t *testing.T) {
	const first, second = "pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"
	for _, c := range []struct {
		folder string
		files  map[string]string // by name, "" where the table has none
		cells  map[string]string // where the table has another text
	}{
		{"folders/index_bin-torch2.15", map[string]string{"model.embed.weight": first, "model.l1.weight": second}, nil},
		{"folders/no_index_bin-torch1.13", map[string]string{"model.embed.weight": first, "model.l1.weight": second}, nil},
		{"folders/index_safetensors-torch2.15", map[string]string{"model.embed.weight": "model-00001-of-00002.safetensors"}, nil},
		{"folders/consolidated-torch2.15", map[string]string{"consolidated.01.pth.norm.weight": "consolidated.01.pth"},
			map[string]string{"consolidated.01.pth.norm.weight": "data/2"}}, // its name says it
		{"distributed/ranks2-torch2.15", map[string]string{"list.1.a": "__0_0.distcp", "list.0": "__1_0.distcp", "model.rows": ""},
			map[string]string{"model.rows": "__0_0.distcp +1 more"}},
		{"folders/pytorch_model_bin-torch2.15", map[string]string{"model.embed.weight": ""}, map[string]string{"model.embed.weight": "24"}},
	} {
		rows := shardsOf(t, fixture(c.folder))
		table := runFiles(t, "ls", fixture(c.folder)).out
		long := runFiles(t, "ls", "--long", fixture(c.folder)).out
		for name, want := range c.files {
			if got, ok := rows[name]; !ok || got != want {
				t.Errorf("%s: %s lies in %q, want %q", c.folder, name, got, want)
			}
			cell, ok := c.cells[name]
			if !ok {
				cell = want
			}
			for _, out := range []string{table, long} {
				if line := lineOf(out, name); !strings.Contains(line, "  "+cell) {
					t.Errorf("%s: no %q in %q", c.folder, cell, line)
				}
			}
		}
	}
}

// shardsOf are the files of the tensors in ls --json.
func shardsOf(t *testing.T, name string) map[string]string {
	t.Helper()
	var doc struct {
		Tensors []struct{ Name, File string }
	}
	if err := json.Unmarshal([]byte(runFiles(t, "ls", "--json", name).out), &doc); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, row := range doc.Tensors {
		files[row.Name] = row.File
	}
	return files
}

// lineOf is the line of a table that begins with a name.
func lineOf(table, name string) string {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, name+" ") {
			return line
		}
	}
	return ""
}
