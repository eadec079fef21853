package pytorch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wick-ml/wick/nested"
)

// expectation is what torch itself said of a file; pytorch-tests/README.md
// describes it.
type expectation struct {
	Format      string            `json:"format"`
	Tensors     []expectedTensor  `json:"tensors"`
	Values      map[string]any    `json:"values"`
	Types       map[string]string `json:"types"`
	Collisions  map[string][]any  `json:"collisions"`
	Containers  map[string]string `json:"containers"`
	Sets        map[string][]any  `json:"sets"`
	Opaque      []expectedOpaque  `json:"opaque"`
	Odd         map[string]odd    `json:"odd"`
	MaybeValues map[string]any    `json:"maybe_values"`
	MoreTensors bool              `json:"more_tensors"`
	MoreValues  bool              `json:"more_values"`
	MoreOpaque  bool              `json:"more_opaque"`
	Nested      []any             `json:"nested"`
	Error       any               `json:"error"`
}

type expectedTensor struct {
	Name    string  `json:"name"`
	Path    []any   `json:"path"`
	DType   string  `json:"dtype"`
	Shape   []int   `json:"shape"`
	Bytes   int64   `json:"bytes"`
	SHA256  string  `json:"sha256"`
	Strides []int64 `json:"strides"`
	Offset  *int64  `json:"offset"`
	Storage *int    `json:"storage"`
	Inside  string  `json:"inside"`
	NoData  bool    `json:"no_data"`
	Quant   *quant  `json:"quant"`
}

type quant struct {
	Scheme    string `json:"scheme"`
	Scale     any    `json:"scale"`
	ZeroPoint any    `json:"zero_point"`
	Axis      int    `json:"axis"`
}

type expectedOpaque struct{ Path, Class string }

type odd struct{ Class, Str string }

// found is what a walk of the tree gives.
type found struct {
	tensors []foundTensor
	values  map[string][]nested.Value
	opaque  map[string]*nested.Opaque
}

type foundTensor struct {
	name string
	*nested.Tensor
}

func walkTree(t *testing.T, root nested.Value) *found {
	t.Helper()
	f := &found{values: map[string][]nested.Value{}, opaque: map[string]*nested.Opaque{}}
	err := nested.Walk(root, nested.WalkLimits{}, func(p nested.Path, v nested.Value) error {
		switch v := v.(type) {
		case *nested.Tensor:
			f.tensors = append(f.tensors, foundTensor{p.String(), v})
		case *nested.Opaque:
			f.opaque[p.String()] = v
		case *nested.Map, *nested.List: // empty containers
		default:
			f.values[p.String()] = append(f.values[p.String()], v)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func packedSHA256(t *testing.T, tn *nested.Tensor) string {
	t.Helper()
	h := sha256.New()
	if _, err := tn.WriteTo(h); err != nil {
		t.Error(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// spell writes a value as the expectations do.
func spell(v nested.Value) any {
	switch v := v.(type) {
	case nested.None:
		return nil
	case nested.Bool:
		return bool(v)
	case nested.Int:
		return json.Number(nested.Repr(v))
	case nested.BigInt:
		return v.Int.String()
	case nested.Float:
		if s := nested.Repr(v); s == "nan" || s == "inf" || s == "-inf" {
			return s
		}
		return float64(v)
	case nested.String:
		s, _ := v.Text()
		return s
	case nested.Bytes:
		return "hex:" + hex.EncodeToString([]byte(v))
	case nested.ByteArray:
		return "hex:" + hex.EncodeToString([]byte(v))
	default:
		return nested.Repr(v)
	}
}

func sameValue(got nested.Value, want any) bool {
	s := spell(got)
	if n, ok := want.(json.Number); ok {
		if _, isInt := s.(json.Number); isInt {
			return s == n
		}
		f, err := n.Float64()
		return err == nil && s == f
	}
	if w, ok := want.(string); ok && strings.ContainsRune(w, '\uFFFD') { // encoding/json cannot keep a lone surrogate
		_, isText := got.(nested.String)
		return isText
	}
	return s == want
}

// TestFixtures compares the tree of every zip file that torch wrote for the
// project with what torch says is in it.
func TestFixtures(t *testing.T) {
	lists, err := filepath.Glob("../pytorch-tests/*/expected.json")
	if err != nil || len(lists) == 0 {
		t.Fatal("no fixtures", err)
	}
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(filepath.Dir(list)) == "broken" { // a container's matter
			continue
		}
		var all struct{ Files map[string]expectation }
		dec := json.NewDecoder(strings.NewReader(string(data)))
		dec.UseNumber()
		if err := dec.Decode(&all); err != nil {
			t.Fatal(list, err)
		}
		for name, want := range all.Files {
			file := filepath.Join(filepath.Dir(list), name)
			if want.Error != nil || !slices.Contains([]string{"zip", "torchscript", "legacy", "tar"}, want.Format) {
				continue
			}
			t.Run(file, func(t *testing.T) { checkFixture(t, file, want) })
		}
	}
}

func checkFixture(t *testing.T, file string, want expectation) {
	c, err := Open(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f := walkTree(t, c.Root)
	checkTensors(t, f, want)
	for path, v := range want.Values {
		if got := f.values[path]; len(got) != 1 || !sameValue(got[0], v) {
			t.Errorf("value %q is %v, want %v", path, got, v)
		}
	}
	for path, list := range want.Collisions {
		if len(f.values[path]) != len(list) {
			t.Errorf("%q has %v, want %v", path, f.values[path], list)
		}
	}
	for path, o := range want.Odd {
		_, isOpaque := f.opaque[path]
		if len(f.values[path]) == 0 && !isOpaque && !slices.ContainsFunc(f.tensors, func(t foundTensor) bool { return t.name == path }) {
			t.Errorf("%q, a %s, is not listed", path, o.Class)
		}
	}
	for _, o := range want.Opaque {
		if f.opaque[o.Path] == nil {
			t.Errorf("%q, a %s, is not listed as opaque", o.Path, o.Class)
		}
	}
	for path, v := range f.values {
		_, known := want.Values[path]
		_, isMaybe := want.MaybeValues[path]
		_, isOdd := want.Odd[path]
		if !known && !isMaybe && !isOdd && !want.MoreValues && len(want.Collisions[path]) == 0 && !inSet(path, want) && !insideOpaque(path, f) {
			t.Errorf("value %q = %v is not in the file", path, v)
		}
	}
	for path, v := range want.MaybeValues {
		if got := f.values[path]; len(got) == 1 && !sameValue(got[0], v) {
			t.Errorf("value %q is %v, want %v", path, got, v)
		}
	}
}

func inSet(path string, want expectation) bool {
	for set, kind := range want.Containers {
		if (kind == "set" || kind == "frozenset") && strings.HasPrefix(path, set+".") {
			return true
		}
	}
	return false
}

func insideOpaque(path string, f *found) bool {
	for o := range f.opaque {
		if path == o || o == "" || strings.HasPrefix(path, o+".") {
			return true
		}
	}
	return false
}

func checkTensors(t *testing.T, f *found, want expectation) {
	t.Helper()
	used := make([]bool, len(f.tensors))
	var order []int
	for _, w := range want.Tensors {
		at := slices.IndexFunc(f.tensors, func(g foundTensor) bool {
			i := slices.IndexFunc(f.tensors, func(o foundTensor) bool { return o.name == g.name && o.Tensor == g.Tensor })
			return !used[i] && sameName(g.name, w.Name) && slices.Equal(g.Shape(), w.Shape)
		})
		if at < 0 && w.Inside != "" {
			at = slices.IndexFunc(f.tensors, func(g foundTensor) bool {
				return strings.HasPrefix(g.name, w.Inside) && packedSHA256(t, g.Tensor) == w.SHA256
			})
		}
		if at < 0 {
			t.Errorf("tensor %q %s %v is missing", w.Name, w.DType, w.Shape)
			continue
		}
		used[at] = true
		order = append(order, at)
		checkTensor(t, f.tensors[at], w)
	}
	if !slices.IsSorted(order) && !want.MoreTensors && len(want.Opaque) == 0 {
		t.Errorf("tensors are in another order than torch's: %v", order)
	}
	for i, g := range f.tensors {
		if _, isOdd := want.Odd[g.name]; !used[i] && !want.MoreTensors && !isOdd {
			t.Errorf("tensor %q %v is not in the file", g.name, g.Shape())
		}
	}
}

// sameName compares names, of which encoding/json loses lone surrogates.
func sameName(got, want string) bool {
	return strings.ToValidUTF8(strings.ReplaceAll(got, "\xed\xa0\x80", "\uFFFD"), "\uFFFD") == want
}

func checkTensor(t *testing.T, g foundTensor, w expectedTensor) {
	t.Helper()
	if g.DType().String() != w.DType {
		t.Errorf("%s is %s, want %s", w.Name, g.DType(), w.DType)
	}
	if w.NoData {
		if g.Err() == nil {
			t.Errorf("%s has data", w.Name)
		}
		return
	}
	if err := g.Err(); err != nil {
		t.Errorf("%s: %v", w.Name, err)
		return
	}
	if g.DType().Size() == 0 && g.Bytes() != w.Bytes {
		return // torch counts bytes behind the last element that nobody wrote
	}
	if got := packedSHA256(t, g.Tensor); got != w.SHA256 {
		t.Errorf("%s %s %v has other bytes than torch's", w.Name, w.DType, w.Shape)
	}
	if _, strides, offset, ok := g.Strided(); ok && w.Offset != nil {
		if offset != *w.Offset || (g.Len() > 1 && !sameStrides(g.Shape(), strides, w.Strides)) {
			t.Errorf("%s has strides %v from %d, want %v from %d", w.Name, strides, offset, w.Strides, *w.Offset)
		}
	}
	if w.Quant != nil {
		checkQuant(t, g, w)
	}
}

func sameStrides(shape []int, a, b []int64) bool {
	for i, n := range shape {
		if n != 1 && a[i] != b[i] {
			return false
		}
	}
	return true
}

func checkQuant(t *testing.T, g foundTensor, w expectedTensor) {
	t.Helper()
	q := g.Quant
	if q == nil || q.Scheme != w.Quant.Scheme {
		t.Errorf("%s is quantized as %+v, want %+v", w.Name, q, w.Quant)
		return
	}
	if _, perChannel := w.Quant.Scale.([]any); perChannel != (q.Scales != nil) || q.Axis != w.Quant.Axis {
		t.Errorf("%s is quantized as %+v, want %+v", w.Name, q, w.Quant)
	}
	if q.Scales == nil && (!sameValue(nested.Float(q.Scale), w.Quant.Scale) || !sameValue(nested.Int(q.ZeroPoint), w.Quant.ZeroPoint)) {
		t.Errorf("%s is quantized as %+v, want %+v", w.Name, q, w.Quant)
	}
}
