package pytorch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

const fixtures = "../pytorch-tests/"

// readExpectations reads what torch says of the files of a case.
func readExpectations(t *testing.T, dir string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(fixtures, dir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		t.Fatal(dir, err)
	}
}

// TestContainers compares files in containers around or beside the zip of
// torch.save with what torch says is in them.
func TestContainers(t *testing.T) {
	for _, dir := range []string{"zip-layouts", "exported", "byte-order", "legacy", "legacy-tar"} {
		var all struct{ Files map[string]expectation }
		readExpectations(t, dir, &all)
		for name, want := range all.Files {
			if want.Error != nil {
				continue
			}
			t.Run(dir+"/"+name, func(t *testing.T) {
				file := filepath.Join(fixtures, dir, name)
				if want.Format == "package" { // names in a package are the reader's
					checkInside(t, file, want)
				} else {
					checkFixture(t, file, want)
				}
				checkFormat(t, file, want.Format)
			})
		}
	}
}

// checkInside looks for tensors of whatever name.
func checkInside(t *testing.T, file string, want expectation) {
	t.Helper()
	c, err := Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sums := map[string]bool{}
	for _, tn := range c.Tensors() {
		sums[packedSHA256(t, tn)] = true
	}
	for _, row := range want.Tensors {
		if !sums[row.SHA256] {
			t.Errorf("tensor %s is missing", row.Name)
		}
	}
}

func checkFormat(t *testing.T, file, format string) {
	t.Helper()
	c, err := Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if c.Info.Format != format {
		t.Errorf("format %q, want %q", c.Info.Format, format)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for _, tn := range c.Tensors() {
		if tn.Len() == 0 || tn.Err() != nil {
			continue
		}
		if _, err := tn.WriteTo(new(bytes.Buffer)); !errors.Is(err, fault.ErrClosed) {
			t.Errorf("a read after Close: %v", err)
		}
		break
	}
}

// refusal is how a file that is no sound checkpoint must be refused.
type refusal struct {
	Tensors []struct{ Name, SHA256 string }
	With    *struct {
		Exit  int
		Error string
		Name  string
	} `json:"with_sha256"`
	Error *struct {
		Kind string
		Exit any
		Has  []string
	}
}

// TestBroken opens what is no checkpoint, or no longer one.
func TestBroken(t *testing.T) {
	var all struct{ Files map[string]refusal }
	readExpectations(t, "broken", &all)
	for name, want := range all.Files {
		t.Run(name, func(t *testing.T) {
			err := openAndRead(filepath.Join(fixtures, "broken", name))
			kinds, has := []string{""}, []string(nil)
			switch {
			case want.Error != nil:
				kinds, has = strings.Split(want.Error.Kind, "|"), want.Error.Has
			case want.With != nil:
				kinds = []string{want.With.Error}
			}
			if !slices.Contains(kinds, string(fault.KindOf(err))) {
				t.Errorf("%v, want %q", err, kinds)
			}
			for _, pattern := range has {
				if err == nil || !regexp.MustCompile("(?i)"+pattern).MatchString(err.Error()) {
					t.Errorf("the error does not speak of %q: %v", pattern, err)
				}
			}
		})
	}
}

// openAndRead opens a file and reads all tensors; it returns the first error.
func openAndRead(file string) error {
	c, err := Open(context.Background(), file)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, tn := range c.Tensors() {
		if _, err := tn.WriteTo(new(bytes.Buffer)); err != nil {
			return err
		}
	}
	return nil
}

// TestFrontDoors opens the same bytes through each door.
func TestFrontDoors(t *testing.T) {
	const name = "plain-torch2.15.pt"
	file := filepath.Join(fixtures, "zip-layouts", name)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	doors := map[string]func(...Option) (*checkpoint.Checkpoint, error){
		"Open":      func(o ...Option) (*checkpoint.Checkpoint, error) { return Open(ctx, file, o...) },
		"OpenBytes": func(o ...Option) (*checkpoint.Checkpoint, error) { return OpenBytes(ctx, name, data, o...) },
		"OpenReaderAt": func(o ...Option) (*checkpoint.Checkpoint, error) {
			return OpenReaderAt(ctx, name, bytes.NewReader(data), int64(len(data)), o...)
		},
		"OpenFS": func(o ...Option) (*checkpoint.Checkpoint, error) {
			return OpenFS(ctx, os.DirFS(filepath.Dir(file)), name, o...)
		},
	}
	want := ""
	for door, open := range doors {
		c, err := open()
		if err != nil {
			t.Fatalf("%s: %v", door, err)
		}
		var sums []string
		for _, tn := range c.Tensors() {
			sums = append(sums, packedSHA256(t, tn))
		}
		if got := strings.Join(sums, " "); want == "" {
			want = got
		} else if got != want {
			t.Errorf("%s reads other values", door)
		}
		lends := len(c.Info.Storages) > 0 && c.Info.Storages[0].Lent() != nil
		if lends != (door == "OpenBytes") {
			t.Errorf("%s: lends memory: %v", door, lends)
		}
		if err := c.Close(); err != nil {
			t.Errorf("%s: Close: %v", door, err)
		}
		if _, err := open(WithLimits(checkpoint.Limits{Tensors: -1})); !errors.Is(err, fault.ErrUsage) {
			t.Errorf("%s: a negative limit: %v", door, err)
		}
		if _, err := open(WithLimits(checkpoint.Limits{Records: 1})); !errors.Is(err, fault.ErrLimit) {
			t.Errorf("%s: more records than allowed: %v", door, err)
		}
	}
}

// truncations opens every prefix of a file, which must be refused.
func truncations(t *testing.T, data []byte, open func([]byte) error) {
	t.Helper()
	for n := range data {
		err := open(data[:n])
		if err == nil {
			t.Fatalf("%d of %d bytes were opened", n, len(data))
		}
		if kind := fault.KindOf(err); kind != fault.Malformed && kind != fault.Unsupported {
			t.Errorf("%d of %d bytes: %v", n, len(data), err)
		}
	}
}

func openAll(data []byte) error {
	c, err := OpenBytes(context.Background(), "test", data)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, tn := range c.Tensors() {
		if err := tn.Err(); err != nil {
			return err
		}
	}
	return nil
}

func readFixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(fixtures, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestTruncatedAnywhere cuts real files at every byte.
func TestTruncatedAnywhere(t *testing.T) {
	for _, name := range []string{"legacy/state_dict-torch2.15.pth", "legacy-tar/tar-torch1.13.pth.tar", "zip-layouts/deflated-torch2.15.pt", "zip-layouts/gzip-torch2.15.pt.gz", "zip-layouts/zstd-torch2.15.pt.zst"} {
		data := readFixture(t, name)
		if strings.Contains(name, ".tar") {
			data = bytes.TrimRight(data, "\x00") // a tar ends with zero blocks, of which torch needs none
		}
		t.Run(name, func(t *testing.T) { truncations(t, data, openAll) })
	}
}

// mustLookup returns the value behind keys.
func mustLookup(t *testing.T, v nested.Value, keys ...string) nested.Value {
	t.Helper()
	for _, key := range keys {
		m, ok := v.(*nested.Map)
		if !ok {
			t.Fatalf("%q is not in a map", key)
		}
		if v, ok = m.Lookup(key); !ok {
			t.Fatalf("no %q", key)
		}
	}
	return v
}

// TestOldArchives compares archives in layouts of earlier versions with what
// torch says is in them.
func TestOldArchives(t *testing.T) {
	data, err := os.ReadFile("testdata/archives/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]struct {
		Format  string
		Tensors map[string]expectedTensor
	}
	if err := json.Unmarshal(data, &all); err != nil || len(all) < 4 {
		t.Fatal(len(all), err)
	}
	for name, want := range all {
		file := filepath.Join("testdata/archives", name)
		checkFormat(t, file, want.Format)
		c, err := Open(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if c.Len() != len(want.Tensors) {
			t.Errorf("%s: %d tensors %q, want %d", name, c.Len(), c.Names(), len(want.Tensors))
		}
		for key, row := range want.Tensors {
			tn, err := c.Lookup(key)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if tn.DType().String() != row.DType || !slices.Equal(tn.Shape(), row.Shape) || packedSHA256(t, tn) != row.SHA256 {
				t.Errorf("%s: %s is %v %v, want %s %v with other values", name, key, tn.DType(), tn.Shape(), row.DType, row.Shape)
			}
		}
	}
}

func TestScriptAttributes(t *testing.T) {
	c, err := Open(t.Context(), "testdata/archives/script-1.2.pt")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if v := mustLookup(t, c.Root, "steps"); v != nested.Int(5) {
		t.Errorf("steps is %v", v)
	}
	sizes, ok := mustLookup(t, c.Root, "sizes").(*nested.List)
	if !ok || !slices.Equal(sizes.Items, []nested.Value{nested.Int(1), nested.Int(2)}) {
		t.Errorf("sizes is %v", sizes)
	}
	if loose, bias := mustLookup(t, c.Root, "loose"), mustLookup(t, c.Root, "block", "bias"); loose != bias {
		t.Error("one tensor of the table became two")
	}
}
