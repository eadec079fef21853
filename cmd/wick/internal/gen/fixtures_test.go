package gen

import (
	"bytes"
	"go/format"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/serde"
)

const fixtures = "../../../../pytorch-tests"

// checkpoints yields every file and folder of the fixtures that opens. Those
// that do not are the business of other tests.
func checkpoints(t *testing.T, yield func(t *testing.T, name string, c *wick.Checkpoint)) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(fixtures, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch filepath.Ext(path) {
		case ".py", ".go", ".md", ".json":
			return nil
		}
		c, err := wick.Open(t.Context(), path)
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		n++
		name := strings.ReplaceAll(strings.TrimPrefix(path, fixtures), `\`, "/")
		t.Run(name, func(t *testing.T) { yield(t, name, c) })
		return c.Close()
	})
	if err != nil || n < 300 {
		t.Fatalf("%d checkpoints, %v", n, err)
	}
}

// The code for every fixture is formatted, the same each time, and describes
// types that take all of the tensors.
func TestFixturesFit(t *testing.T) {
	checkpoints(t, func(t *testing.T, name string, c *wick.Checkpoint) {
		for _, plain := range []bool{false, true} {
			o := Options{Package: "p", Type: "Net", Source: filepath.Base(name), Command: "wick gen " + name, Plain: plain}
			fit(t, c.Root, o)
		}
	})
}

// tester is a test, or a check of rapid's.
type tester interface {
	Helper()
	Errorf(string, ...any)
	Fatalf(string, ...any)
	Fatal(...any)
}

// fit generates code and plans with the types that it declares.
func fit(t tester, root nested.Value, o Options) *Result {
	t.Helper()
	res, err := Generate(root, o)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Generate(root, o)
	if err != nil || !bytes.Equal(res.Code, again.Code) || !bytes.Equal(res.Test, again.Test) {
		t.Fatalf("not the same a second time: %v", err)
	}
	for _, code := range [][]byte{res.Code, res.Test} {
		if formatted, err := format.Source(code); err != nil || !bytes.Equal(formatted, code) {
			t.Errorf("not formatted: %v", err)
		}
	}
	s, err := ParseStruct("net.go", res.Code, o.Type)
	if err != nil {
		t.Fatalf("%v in\n%s", err, res.Code)
	}
	opts := []serde.Option{}
	if bytes.Contains(res.Code, []byte("serde.AllowUnexpected()")) {
		opts = append(opts, serde.AllowUnexpected())
	}
	plan, err := serde.NewPlan(root, s.New(), opts...)
	if err == nil {
		err = plan.Err()
	}
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, plan, res.Code)
	}
	return res
}
