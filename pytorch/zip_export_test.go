package pytorch

import (
	"errors"
	"strings"
	"testing"

	"github.com/wick-ml/wick/fault"
)

const weightJSON = `{"config": {"w": {"path_name": "weight_0", "is_param": true, "use_pickle": false, "tensor_meta": {"dtype": 7, ` +
	`"sizes": [{"as_int": 2}], "requires_grad": true, "device": {"type": "cuda", "index": 1}, "strides": [{"as_int": 1}], "storage_offset": {"as_int": 1}, "layout": 7}}}}`

func exportArchive(config string, more ...zipRecord) []byte {
	records := []zipRecord{
		{name: "m/archive_format", data: "pt2"},
		{name: "m/data/weights/model_weights_config.json", data: config},
		{name: "m/data/weights/weight_0", data: floats(1, 2, 3)},
	}
	return zipLayout{records: append(records, more...)}.bytes()
}

func TestExport(t *testing.T) {
	c, err := OpenBytes(t.Context(), "test", exportArchive(weightJSON))
	if err != nil {
		t.Fatal(err)
	}
	tn, err := c.Lookup("w")
	if err != nil {
		t.Fatal(err)
	}
	if !tn.RequiresGrad || tn.Device != "cuda:1" || tn.Class != "torch.nn.parameter.Parameter" {
		t.Errorf("%+v", tn)
	}
	if w := vector(t, c, "w"); !equalFloats(w, 2, 3) {
		t.Errorf("w is %v", w)
	}
	if c.Info.Format != "pt2" || len(c.Info.Storages) != 1 {
		t.Errorf("%+v", c.Info)
	}
}

func TestExportOfTwoModels(t *testing.T) {
	second := zipRecord{name: "m/data/weights/other_weights_config.json", data: weightJSON}
	c, err := OpenBytes(t.Context(), "test", exportArchive(weightJSON, second))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := vector(t, c, "model.w"), vector(t, c, "other.w"); !equalFloats(a, 2, 3) || !equalFloats(b, 2, 3) {
		t.Errorf("%v, %v", a, b)
	}
	if len(c.Info.Storages) != 1 {
		t.Errorf("one record became %d storages", len(c.Info.Storages))
	}
}

// What is wrong with one weight costs that weight.
func TestExportWeightFaults(t *testing.T) {
	cases := map[string]struct {
		old, new string
		want     error
	}{
		"missing record":   {"weight_0", "weight_7", fault.ErrMalformed},
		"too long":         {`"sizes": [{"as_int": 2}]`, `"sizes": [{"as_int": 3}]`, fault.ErrMalformed},
		"negative size":    {`"sizes": [{"as_int": 2}]`, `"sizes": [{"as_int": -2}]`, fault.ErrMalformed},
		"negative offset":  {`"storage_offset": {"as_int": 1}`, `"storage_offset": {"as_int": -1}`, fault.ErrMalformed},
		"fewer strides":    {`"strides": [{"as_int": 1}]`, `"strides": []`, fault.ErrMalformed},
		"symbolic size":    {`"sizes": [{"as_int": 2}]`, `"sizes": [{"as_expr": {"expr_str": "s0"}}]`, fault.ErrUnsupported},
		"unknown dtype":    {`"dtype": 7`, `"dtype": 99`, fault.ErrUnsupported},
		"sparse layout":    {`"layout": 7`, `"layout": 1`, fault.ErrUnsupported},
		"path that leaves": {"weight_0", "../../archive_format", fault.ErrMalformed},
	}
	for name, c := range cases {
		config := strings.Replace(weightJSON, c.old, c.new, 1)
		if config == weightJSON {
			t.Fatalf("%s changes nothing", name)
		}
		got, err := OpenBytes(t.Context(), "test", exportArchive(config))
		if err != nil {
			t.Errorf("%s: it cost the archive: %v", name, err)
			continue
		}
		if tn, err := got.Lookup("w"); err != nil || !errors.Is(tn.Err(), c.want) {
			t.Errorf("%s: %v, %v; want %v", name, tn, err, c.want)
		}
	}
}

func TestExportFaults(t *testing.T) {
	cases := map[string][]byte{
		"no JSON":        exportArchive("{"),
		"other JSON":     exportArchive(`[1]`),
		"config of text": exportArchive(`{"config": "x"}`),
		"no form":        exportArchive(`{"config": {"w": {"path_name": 3}}}`),
		"no meta":        exportArchive(`{"config": {"w": {"path_name": "weight_0"}}}`),
		"no file":        exportArchive(`{"config": {"w": {"path_name": "weight_7", "use_pickle": true}}}`),
		"no state dict":  exportArchive(weightJSON, zipRecord{name: "m/data/constants/model.pt", data: string(legacyFile{"\x80\x02" + magicLong, pickleOf("M\xe9\x03"), pickleOf("}"), pickleOf("K\x01"), pickleOf("]"), ""}.bytes())}),
		"no tuple":       exportArchive(weightJSON, zipRecord{name: "m/data/aotinductor/model/weights_config.json", data: `{"w": ["weight_0", [2]]}`}),
	}
	for name, data := range cases {
		if _, err := OpenBytes(t.Context(), "test", data); !errors.Is(err, fault.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJSONKeepsOrderAndDuplicates(t *testing.T) {
	list, err := members([]byte(`{"b": 1, "a": [2], "b": {"c": 3}}`))
	if err != nil || len(list) != 3 || list[0].key != "b" || list[1].key != "a" || string(list[2].value) != `{"c": 3}` {
		t.Errorf("%v, %v", list, err)
	}
	for _, bad := range []string{"", "[]", "null", `{"a"`, `{"a": }`, `{"a": 1,}`, `{1: 2}`} {
		if _, err := members([]byte(bad)); !errors.Is(err, fault.ErrMalformed) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func scriptArchive(model string) []byte {
	return zipLayout{records: []zipRecord{
		{name: "m/model.json", data: model}, {name: "m/code/m.py", data: ""}, {name: "m/tensors/0", data: floats(1, 2)},
		{name: "m/attributes.pkl", data: pickleOf(pickleTuple("K\x05"))},
	}}.bytes()
}

func TestScriptModelFaults(t *testing.T) {
	const tensors = `"tensors": [{"dims": ["2"], "strides": ["1"], "offset": "0", "dataType": "FLOAT", "data": {"key": "tensors/0"}, "device": "cpu"}]`
	cases := map[string]struct {
		model string
		want  error
	}{
		"sound":                 {`{"mainModule": {"parameters": [{"tensorId": "0", "name": "w"}]}, ` + tensors + `}`, nil},
		"no JSON":               {`{`, fault.ErrMalformed},
		"tensor past the table": {`{"mainModule": {"parameters": [{"tensorId": "1", "name": "w"}]}, ` + tensors + `}`, fault.ErrMalformed},
		"tensor before it":      {`{"mainModule": {"parameters": [{"tensorId": "-1", "name": "w"}]}, ` + tensors + `}`, fault.ErrMalformed},
		"id that is no number":  {`{"mainModule": {"parameters": [{"tensorId": "x", "name": "w"}]}}`, fault.ErrMalformed},
		"value past the table":  {`{"mainModule": {"attributes": [{"id": "1", "name": "w"}]}}`, fault.ErrMalformed},
		"deep":                  {`{"mainModule": ` + strings.Repeat(`{"submodules": [`, 20000) + strings.Repeat("]}", 20000) + `}`, fault.ErrMalformed},
	}
	for name, c := range cases {
		if _, err := OpenBytes(t.Context(), "test", scriptArchive(c.model)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestPackageFaults(t *testing.T) {
	archive := func(object string) []byte {
		return zipLayout{records: []zipRecord{
			{name: "p/.data/extern_modules", data: ""}, {name: "p/.data/0.storage", data: floats(1, 2)}, {name: "p/m/m.pkl", data: object},
		}}.bytes()
	}
	sound := pickleOf("}(" + pickleText("w") + legacyVector(legacyStorageID("0", 2, "N"), 0, 2) + "u")
	c, err := OpenBytes(t.Context(), "test", archive(sound))
	if err != nil {
		t.Fatal(err)
	}
	if w := vector(t, c, "m/m.pkl.w"); !equalFloats(w, 1, 2) {
		t.Errorf("w is %v", w)
	}
	reduced := pickleOf(pickleTuple(pickleText("reduce_package"), "K\x00", "ctorch.jit._script\nunpackage_script_module\n", pickleText("0")) + "Q")
	if _, err := OpenBytes(t.Context(), "test", archive(reduced)); err != nil {
		t.Errorf("a script module: %v", err)
	}
	for name, object := range map[string]string{"cut": sound[:30], "other id": pickleOf("K\x01Q"), "no function": pickleOf(pickleTuple(pickleText("reduce_package"), "K\x00", "K\x01") + "Q")} {
		if _, err := OpenBytes(t.Context(), "test", archive(object)); !errors.Is(err, fault.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
