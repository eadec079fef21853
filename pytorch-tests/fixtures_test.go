// Package pytorchtests holds every fixture against the front door: whatever
// container it is, wick must find what torch found in it, or refuse it as it must be
// refused. What lies deeper (values, containers, quantizers) is tested where
// it is read.
package pytorchtests

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

type entry struct {
	Tensors []struct {
		Name, DType, SHA256 string
		Shape               []int
		Inside              *string // of an object that names its rows as it likes
		NoData              bool    `json:"no_data"`
	}
	MoreTensors bool `json:"more_tensors"`
	Nested      []json.RawMessage
	Error       *refusal
	WithSHA256  *struct{ Error string } `json:"with_sha256"` // the kind that reading the bytes finds
}

type refusal struct {
	Kind string
	Has  []string
}

// TestEveryFixture opens every file and folder that torch wrote for the project.
func TestEveryFixture(t *testing.T) {
	lists, err := filepath.Glob("*/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	opened := 0
	for _, list := range lists {
		raw, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		var all struct{ Files map[string]entry }
		if err := json.Unmarshal(raw, &all); err != nil {
			t.Fatal(list, err)
		}
		for name, want := range all.Files {
			opened++
			file := filepath.Join(filepath.Dir(list), filepath.FromSlash(name))
			t.Run(filepath.ToSlash(file), func(t *testing.T) { check(t, file, want) })
		}
	}
	if opened < 480 {
		t.Errorf("%d fixtures, there were more", opened)
	}
}

func check(t *testing.T, file string, want entry) {
	rows, more, err := read(file)
	if want.WithSHA256 != nil {
		want.Error = &refusal{Kind: want.WithSHA256.Error}
	}
	if want.Error != nil {
		refused(t, err, want.Error)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range want.Tensors {
		row := fmt.Sprint(w.Name, " ", w.DType, " ", w.Shape, " ", w.SHA256)
		if w.Inside != nil || w.NoData {
			continue
		}
		i := slices.Index(rows, row)
		if i < 0 {
			t.Fatalf("missing %s\nin\n%s", row, strings.Join(rows, "\n"))
		}
		rows = slices.Delete(rows, i, i+1)
	}
	if free := len(want.Nested) > 0 || want.MoreTensors || more || hasInside(want); len(rows) > 0 && !free {
		t.Errorf("not in the file: %s", strings.Join(rows, "\n"))
	}
}

func hasInside(want entry) bool {
	for _, w := range want.Tensors {
		if w.Inside != nil {
			return true
		}
	}
	return false
}

// read opens a file and reads all of it. more says that opaque objects hold
// rows that torch does not name.
func read(file string) (rows []string, more bool, err error) {
	c, err := wick.Open(context.Background(), file)
	if err != nil {
		return nil, false, err
	}
	defer c.Close()
	err = c.Walk(func(p nested.Path, v nested.Value) error {
		if _, ok := v.(*nested.Opaque); ok {
			more = true
		}
		x, ok := v.(*nested.Tensor)
		if !ok || fault.KindOf(x.Err()) == fault.NoData {
			return nil
		}
		h := sha256.New()
		if _, err := x.WriteTo(h); err != nil {
			return err
		}
		name, _ := p.Text()
		name = strings.ToValidUTF8(name, "\uFFFD") // as encoding/json reads a lone surrogate
		rows = append(rows, fmt.Sprint(name, " ", x.DType(), " ", x.Shape(), " ", hex.EncodeToString(h.Sum(nil))))
		return nil
	})
	return rows, more, err
}

func refused(t *testing.T, err error, want *refusal) {
	if err == nil {
		t.Fatal("read what must be refused")
	}
	if kind := string(fault.KindOf(err)); !slices.Contains(strings.Split(want.Kind, "|"), kind) {
		t.Errorf("kind %s of %v, want %s", kind, err, want.Kind)
	}
	for _, pattern := range want.Has {
		if !regexp.MustCompile("(?i)" + pattern).MatchString(err.Error()) {
			t.Errorf("the error does not speak of %s: %v", pattern, err)
		}
	}
}
