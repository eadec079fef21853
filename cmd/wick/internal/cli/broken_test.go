package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const fixtures = "../../../../pytorch-tests"

// runFiles runs a command line as main does, on real files.
func runFiles(t *testing.T, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	code := Run(t.Context(), args, strings.NewReader(""), &out, &errs)
	return outcome{code, out.String(), errs.String()}
}

// Files that are no sound checkpoints: pytorch-tests/broken says for each what
// its generator did to it, the exit code, and what the error must speak of.
func TestBrokenFiles(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(fixtures, "broken", "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Files map[string]struct {
			Error *struct {
				Kind string
				Exit json.RawMessage
				Has  []string
			}
			WithSHA256 *struct {
				Exit        int
				Error, Name string
			} `json:"with_sha256"`
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	for file, want := range doc.Files {
		t.Run(file, func(t *testing.T) {
			got := runFiles(t, "ls", "--json", "--sha256", filepath.Join(fixtures, "broken", file))
			switch {
			case want.Error != nil:
				checkRefusal(t, got, exits(t, want.Error.Exit), want.Error.Kind, want.Error.Has)
			case want.WithSHA256 != nil:
				checkFaultyRow(t, got, want.WithSHA256.Exit, want.WithSHA256.Name, want.WithSHA256.Error)
			case got.code != 0 || got.err != "":
				t.Errorf("exit %d, %s", got.code, got.err)
			}
		})
	}
}

// exits reads an exit code, or a list of those that are right.
func exits(t *testing.T, raw json.RawMessage) []int {
	t.Helper()
	var one int
	if json.Unmarshal(raw, &one) == nil {
		return []int{one}
	}
	var list []int
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func checkRefusal(t *testing.T, got outcome, exits []int, kind string, has []string) {
	t.Helper()
	right := false
	for _, code := range exits {
		right = right || got.code == code
	}
	if !right {
		t.Errorf("exit %d, want %v: %s", got.code, exits, got.err)
	}
	if k := errorKind(t, got.err); !regexp.MustCompile("^(" + kind + ")$").MatchString(k) {
		t.Errorf("kind %q, want %s", k, kind)
	}
	for _, pattern := range has {
		if !regexp.MustCompile("(?i)" + pattern).MatchString(got.err) {
			t.Errorf("the error does not speak of %s: %s", pattern, got.err)
		}
	}
}

func checkFaultyRow(t *testing.T, got outcome, exit int, name, kind string) {
	t.Helper()
	if got.code != exit || errorKind(t, got.err) == "" {
		t.Errorf("exit %d, want %d: %s", got.code, exit, got.err)
	}
	for _, row := range tensorRows(t, got.out) {
		switch {
		case row.Name == name && (row.Error.Kind != kind || row.SHA256 != ""):
			t.Errorf("row %s has the error %q, want %q", name, row.Error.Kind, kind)
		case row.Name != name && (row.Error.Kind != "" || row.SHA256 == ""):
			t.Errorf("row %s has the error %q", row.Name, row.Error.Text)
		}
	}
}
