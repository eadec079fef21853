// Package expect reads the expected.json of a case and compares checkpoints
// with it.
package expect

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// File is what torch says of one file.
type File struct {
	Tensors []Row          `json:"tensors"`
	Values  map[string]any `json:"values"`
	Error   *Error         `json:"error"`
}

// Row is one tensor.
type Row struct {
	Name   string `json:"name"`
	DType  string `json:"dtype"`
	Shape  []int  `json:"shape"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Error is how a file must be refused.
type Error struct {
	Kind string   `json:"kind"`
	Has  []string `json:"has"`
}

// Load reads the expected.json of the folder that the test is in.
func Load(t *testing.T) map[string]File {
	t.Helper()
	text, err := os.ReadFile("expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Files map[string]File `json:"files"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Files) == 0 {
		t.Fatal("expected.json names no file")
	}
	return all.Files
}

// Refused checks that err is the refusal that want asks for.
func Refused(t *testing.T, err error, want *Error) {
	t.Helper()
	if err == nil || string(fault.KindOf(err)) != want.Kind {
		t.Fatalf("error %v, want one of kind %s", err, want.Kind)
	}
	for _, pattern := range want.Has {
		if !regexp.MustCompile(pattern).MatchString(err.Error()) {
			t.Errorf("error %q lacks %q", err, pattern)
		}
	}
}

// Compare checks that c holds the tensors and the plain values of want, and no
// others. Values are compared as JSON spells them.
func Compare(t *testing.T, c *checkpoint.Checkpoint, want File) {
	t.Helper()
	got := Rows(t, c)
	slices.SortFunc(got, byName)
	slices.SortFunc(want.Tensors, byName)
	if !slices.EqualFunc(got, want.Tensors, Row.Equal) {
		t.Errorf("got %v\nwant %v", got, want.Tensors)
	}
	for name, value := range values(t, c) {
		w, ok := want.Values[name]
		if !ok || asJSON(t, value) != asJSON(t, w) {
			t.Errorf("%s is %v, want %v", name, value, w)
		}
		delete(want.Values, name)
	}
	for name := range want.Values {
		t.Errorf("no value %s", name)
	}
}

// Rows returns the tensors of c in its order.
func Rows(t *testing.T, c *checkpoint.Checkpoint) []Row {
	t.Helper()
	var out []Row
	for name, leaf := range c.Tensors() {
		h := sha256.New()
		if _, err := leaf.WriteTo(h); err != nil {
			t.Fatal(name, err)
		}
		out = append(out, Row{name, leaf.DType().String(), leaf.Shape(), leaf.Bytes(), hex.EncodeToString(h.Sum(nil))})
	}
	return out
}

func byName(a, b Row) int { return cmp.Compare(a.Name, b.Name) }

// Equal reports whether two rows say the same.
func (r Row) Equal(o Row) bool {
	return r.Name == o.Name && r.DType == o.DType && slices.Equal(r.Shape, o.Shape) && r.Bytes == o.Bytes && r.SHA256 == o.SHA256
}

func values(t *testing.T, c *checkpoint.Checkpoint) map[string]any {
	t.Helper()
	out := map[string]any{}
	err := c.Walk(func(path nested.Path, v nested.Value) error {
		switch v := v.(type) {
		case *nested.Tensor, *nested.Map, *nested.List: // containers that hold nothing
		case nested.None:
			out[path.String()] = nil
		case nested.BigInt:
			out[path.String()] = v.Int.String()
		case nested.Bytes:
			out[path.String()] = "hex:" + hex.EncodeToString([]byte(v))
		default:
			out[path.String()] = v
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
