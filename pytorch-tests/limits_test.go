package pytorchtests

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// limitCase is a file of torch's that is over a limit once it is low.
type limitCase struct {
	file string
	low  wick.Limits
	name string // in the error, where it is not the field's
}

// limitCases have one for every field of Limits, by its name.
var limitCases = map[string]limitCase{
	"pickle bytes":  {file: "state-dict/state_dict-torch2.15.pt", low: wick.Limits{PickleBytes: 20}},
	"opcodes":       {file: "state-dict/state_dict-torch2.15.pt", low: wick.Limits{Opcodes: 10}},
	"stack":         {file: "nested-tree/list-torch2.15.pt", low: wick.Limits{Stack: 2}},
	"depth":         {file: "nested-tree/deep-torch2.15.pt", low: wick.Limits{Depth: 2}},
	"ndim":          {file: "views/views-torch2.15.pt", low: wick.Limits{NDim: 1}},
	"paths":         {file: "state-dict/state_dict-torch2.15.pt", low: wick.Limits{Paths: 1}},
	"string bytes":  {file: "plain-values/texts-torch2.15.pt", low: wick.Limits{StringBytes: 3}},
	"int bytes":     {file: "plain-values/numbers-torch2.15.pt", low: wick.Limits{IntBytes: 1}},
	"tensors":       {file: "state-dict/state_dict-torch2.15.pt", low: wick.Limits{Tensors: 1}},
	"records":       {file: "state-dict/state_dict-torch2.15.pt", low: wick.Limits{Records: 2}},
	"shards":        {file: "folders/index_bin-torch2.15", low: wick.Limits{Shards: 1}},
	"header bytes":  {file: "folders/index_safetensors-torch2.15/*-00001-*", low: wick.Limits{HeaderBytes: 9}},
	"expand":        {file: "zip-layouts/gzip-torch2.15.pt.gz", low: wick.Limits{Expand: 1, ExpandFloor: 1}},
	"expand floor":  {file: "views/expanded-torch2.15.pt", low: wick.Limits{Expand: 1, ExpandFloor: 40_000}, name: "expansion"},
	"inflate":       {file: "zip-layouts/deflated-torch2.15.pt", low: wick.Limits{Inflate: 1}},
	"inflate bytes": {file: "zip-layouts/gzip-torch2.15.pt.gz", low: wick.Limits{InflateBytes: 100}},
}

// TestEveryLimit meets each limit with a file of torch's, and reads the same
// file under the defaults.
func TestEveryLimit(t *testing.T) {
	for f := range new(wick.Limits).Fields() {
		c, ok := limitCases[f.Name]
		if !ok {
			t.Errorf("no case for the limit %s", f.Name)
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			files, err := filepath.Glob(c.file)
			if err != nil || len(files) == 0 {
				t.Fatalf("no file is called %s", c.file)
			}
			if c.name == "" {
				c.name = f.Name
			}
			if err := convertAll(t, files[0], wick.Limits{}); err != nil {
				t.Errorf("under the defaults: %v", err)
			}
			var e *fault.Error
			err = convertAll(t, files[0], c.low)
			if !errors.As(err, &e) || !errors.Is(err, fault.ErrLimit) || e.Limit != c.name || e.Value <= e.Max {
				t.Errorf("%v, want the limit %q", err, c.name)
			}
		})
	}
}

// convertAll opens a file under limits and writes all of it.
func convertAll(t *testing.T, file string, l wick.Limits) error {
	c, err := wick.Open(t.Context(), file, wick.WithLimits(l))
	if err != nil {
		return err
	}
	defer c.Close()
	for _, x := range c.Tensors() {
		if err := x.Err(); err != nil {
			return err
		}
	}
	_, err = wick.Convert(t.Context(), c, filepath.Join(t.TempDir(), "out.cbor"))
	return err
}

// TestLimitsTable holds the table in the documentation to the code: a row for
// each field of the struct, in order, with its name, default and most.
func TestLimitsTable(t *testing.T) {
	source, err := os.ReadFile("../checkpoint/limits.go")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^//\t([A-Z]\w+) +([a-z]+(?: [a-z]+)?) +(\S+) +(\S+)  +\S`).FindAllStringSubmatch(string(source), -1)
	var l wick.Limits
	s := reflect.TypeOf(l)
	if s.NumField() != len(rows) {
		t.Fatalf("%d fields and %d rows", s.NumField(), len(rows))
	}
	i := 0
	for f := range l.Fields() {
		most := strconv.FormatInt(f.Most, 10)
		if f.Most == 1<<62 {
			most = "1<<62"
		}
		want := fmt.Sprint(s.Field(i).Name, " ", f.Name, " ", f.Default, " ", most)
		if got := strings.Join(rows[i][1:], " "); got != want {
			t.Errorf("row %q, want %q", got, want)
		}
		if f.Value != reflect.ValueOf(&l).Elem().Field(i).Addr().Interface() {
			t.Errorf("%s is another field", f.Name)
		}
		i++
	}
}

// TestLimitRanges asks for too little and too much of each limit.
func TestLimitRanges(t *testing.T) {
	var l wick.Limits
	for f := range l.Fields() {
		for _, bad := range []int64{-1, f.Most + 1} {
			*f.Value = bad
			if _, err := checkpoint.NewOptions(wick.WithLimits(l)); !errors.Is(err, fault.ErrUsage) {
				t.Errorf("%s %d: %v", f.Name, bad, err)
			}
		}
		for _, good := range []int64{0, 1, f.Most} {
			*f.Value = good
			if _, err := checkpoint.NewOptions(wick.WithLimits(l)); err != nil {
				t.Errorf("%s %d: %v", f.Name, good, err)
			}
		}
		*f.Value = 0
	}
}

// TestLimitsFollowWhatIsThere opens small checkpoints in every way in which they
// come: none may have more paths than its size is worth.
func TestLimitsFollowWhatIsThere(t *testing.T) {
	present := int64(1000)
	env := &checkpoint.Env{Limits: wick.Limits{}.Default()}
	if low := env.Following(present); low.Limits.Paths > 1<<18+present || low.Limits.Tensors > 1<<16+present {
		t.Errorf("%+v", low.Limits)
	}
	env.Asked.Paths, env.Asked.Tensors = 1<<24, 1<<24
	if same := env.Following(present); same.Limits != env.Limits {
		t.Errorf("what was asked for is lowered: %+v", same.Limits)
	}
	for _, way := range []string{"file", "stream", "folder", "index", "distributed"} {
		c, err := openWay(t, way)
		if err != nil {
			t.Fatalf("%s: %v", way, err)
		}
		defer c.Close()
		if got := c.Limits().Paths; got >= 1<<24 || got < 1<<18 {
			t.Errorf("%s: %d paths", way, got)
		}
	}
}

// openWay opens a small checkpoint of torch's in one of the ways.
func openWay(t *testing.T, way string) (*wick.Checkpoint, error) {
	switch way {
	case "folder":
		return wick.Open(t.Context(), "zip-layouts/unpacked-torch2.15")
	case "index":
		return wick.Open(t.Context(), "folders/index_bin-torch2.15")
	case "distributed":
		return wick.Open(t.Context(), "distributed/single-torch2.15")
	}
	data, err := os.ReadFile("zip-layouts/plain-torch2.15.pt")
	if err != nil {
		t.Fatal(err)
	}
	if way == "stream" {
		return wick.OpenStream(t.Context(), "stream", bytes.NewReader(data))
	}
	return wick.OpenBytes(t.Context(), "file", data)
}
