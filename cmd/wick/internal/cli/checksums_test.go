package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// flipped is a copy of a fixture of torch's with one bit of a storage changed.
// Every tensor's record is named after torch's own key.
func flipped(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(fixture("state-dict/data_parallel-torch2.15.pt"))
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte("/data/0FB")) // the local header's name, and its padding
	if at < 0 {
		t.Fatal("no local header of data/0")
	}
	name := at + len("/data/0")
	pad := int(data[name+2]) | int(data[name+3])<<8
	data[name+4+pad] ^= 1
	bad := filepath.Join(t.TempDir(), "flip.pt")
	if err := os.WriteFile(bad, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return bad
}

// Who says that a checksum is wrong says of which tensor.
func TestWrongChecksumsNameTheTensor(t *testing.T) {
	bad := flipped(t)
	first := runFiles(t, "ls", "--json", bad)
	var doc struct {
		Tensors []struct{ Name, Storage string }
	}
	if err := json.Unmarshal([]byte(first.out), &doc); err != nil || len(doc.Tensors) == 0 {
		t.Fatal(err, first.out, first.err)
	}
	want := "/data/0: " + doc.Tensors[0].Name + ": checksum mismatch: "
	out := filepath.Join(t.TempDir(), "o.safetensors")
	for _, args := range [][]string{
		{"verify", bad}, {"convert", bad, out}, {"extract", bad, doc.Tensors[0].Name, "-o", out + ".npy"}, {"convert", "--salvage", bad, out},
	} {
		got := runFiles(t, args...)
		if got.code != 3 || !strings.Contains(got.err, want) {
			t.Errorf("%v: exit %d, no %q: %s", args, got.code, want, got.err)
		}
	}
	got := runFiles(t, "convert", "--json", "--force", "--salvage", bad, out)
	var report struct{ Notes []string }
	if err := json.Unmarshal([]byte(got.out), &report); err != nil || len(report.Notes) != 1 || !strings.Contains(report.Notes[0], want) {
		t.Errorf("%v: %s", err, got.out)
	}
	var fault struct {
		Error struct{ Kind, File, Record, Path string }
	}
	if err := json.Unmarshal([]byte(got.err), &fault); err != nil {
		t.Fatalf("%v: %s", err, got.err)
	}
	if e := fault.Error; got.code != 3 || e.Kind != "checksum" || e.File != bad || !strings.HasSuffix(e.Record, "/data/0") || e.Path != doc.Tensors[0].Name {
		t.Errorf("exit %d, %+v", got.code, e)
	}
}
