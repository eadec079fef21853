package pytorch

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/wick-ml/wick/fault"
)

// fieldCase is a small file of a kind that people meet.
type fieldCase struct {
	File, Kind string
	OK         bool
	Exit       int
	Has        []string `json:"error_has"`
	Tensors    map[string]expectedTensor
	More       bool // whether more may rightly be listed
}

// exits are the kinds of faults behind the command's exit codes.
var exits = map[int][]fault.Kind{
	3: {fault.Malformed, fault.Checksum, fault.NotFound},
	4: {fault.Unsupported, fault.Limit, fault.Collision},
}

func TestFieldCases(t *testing.T) {
	data, err := os.ReadFile("testdata/cases/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []fieldCase
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) < 20 {
		t.Fatal(len(cases), err)
	}
	for _, c := range cases {
		t.Run(c.File, func(t *testing.T) {
			file := filepath.Join("testdata/cases", c.File)
			if c.OK {
				checkCase(t, file, c)
				return
			}
			err := openAndRead(file)
			if !slices.Contains(exits[c.Exit], fault.KindOf(err)) {
				t.Fatalf("%s: %v, want exit %d", c.Kind, err, c.Exit)
			}
			for _, pattern := range c.Has {
				if !regexp.MustCompile("(?i)" + pattern).MatchString(err.Error()) {
					t.Errorf("the error does not speak of %q: %v", pattern, err)
				}
			}
		})
	}
}

func checkCase(t *testing.T, file string, c fieldCase) {
	got, err := Open(t.Context(), file)
	if err != nil {
		t.Fatalf("%s: %v", c.Kind, err)
	}
	defer got.Close()
	if got.Len() != len(c.Tensors) && !c.More {
		t.Errorf("%s: %d tensors %q, want %d", c.Kind, got.Len(), got.Names(), len(c.Tensors))
	}
	for name, want := range c.Tensors {
		tn, err := got.Lookup(name)
		if err != nil {
			t.Errorf("%v", err)
		} else if tn.DType().String() != want.DType || !slices.Equal(tn.Shape(), want.Shape) || packedSHA256(t, tn) != want.SHA256 {
			t.Errorf("%s is %v %v, want %s %v with other values", name, tn.DType(), tn.Shape(), want.DType, want.Shape)
		}
	}
}
