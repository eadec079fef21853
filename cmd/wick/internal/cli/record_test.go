package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A record with a changed byte in a tensor is refused by every command that reads the
// tensor, with the names of the file and the tensor, and nothing is written. One that was
// changed elsewhere is not even listed.
func TestDamagedRecordsNameFileAndTensor(t *testing.T) {
	for _, ext := range []string{".cbor", ".safetensors", ".json"} {
		t.Run(ext, func(t *testing.T) {
			dir := t.TempDir()
			file, out := filepath.Join(dir, "model"+ext), filepath.Join(dir, "out.safetensors")
			if got := runFiles(t, "convert", "--record", "../../../../examples/tiny/digits.pt", file); got.code != 0 {
				t.Fatal(got.err)
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			flip := func(at int, bit byte) {
				t.Helper()
				b[at] ^= bit
				if err := os.WriteFile(file, b, 0o666); err != nil {
					t.Fatal(err)
				}
				b[at] ^= bit
			}
			refused := func(says []string, args ...string) {
				t.Helper()
				got := runFiles(t, args...)
				if got.code != 3 {
					t.Errorf("%v: exit %d, stderr %q", args, got.code, got.err)
				}
				for _, word := range append(says, file) {
					if !strings.Contains(got.err, word) {
						t.Errorf("%v: stderr %q does not say %s", args, got.err, word)
					}
				}
				if _, err := os.Stat(out); err == nil {
					t.Errorf("%v wrote its output", args)
				}
			}
			middle := len(b) / 2 // in the matrix of 32 × 15, which is more than half of all
			for ext == ".json" && (b[middle] < '0' || b[middle] > '9') {
				middle++ // a digit becomes another one
			}
			flip(middle, 1)
			refused([]string{"fc1.weight"}, "convert", file, out)
			refused([]string{"fc1.weight"}, "verify", file)
			refused([]string{"fc1.weight"}, "show", file, "fc1.weight")
			flip(strings.Index(string(b), "fc2.bias"), 1)
			for _, args := range [][]string{{"ls", file}, {"convert", file, out}, {"verify", file}} {
				refused(nil, args...)
			}
		})
	}
}

// A record in shards is read by its index, however far behind the record's text the
// names stand in it, and by its folder.
func TestRecordInShardsIsRead(t *testing.T) {
	const in = fixtures + "/demo-resnet/demo-resnet-torch2.15.pt"
	dir := t.TempDir()
	got := runFiles(t, "convert", "--record", "--shard-size", "10KB", in, filepath.Join(dir, "r.safetensors"))
	if got.code != 0 || !strings.Contains(got.err, "in 6 shards, which r.safetensors.index.json lists\n") {
		t.Fatalf("exit %d, %s", got.code, got.err)
	}
	for _, name := range []string{dir, filepath.Join(dir, "r.safetensors.index.json")} {
		if got := runFiles(t, "verify", in, name); got.code != 0 {
			t.Errorf("%s: exit %d, %s", name, got.code, got.err)
		}
		if got := runFiles(t, "tree", "--depth", "1", name); !strings.Contains(got.out, "── arch = 'resnet18'\n") {
			t.Errorf("%s: exit %d, %s%s", name, got.code, got.out, got.err)
		}
	}
	// Without --record the values are left out, and the flag is named.
	got = runFiles(t, "convert", "--shard-size", "10KB", in, filepath.Join(t.TempDir(), "p.safetensors"))
	if got.code != 0 || !strings.Contains(got.err, "left out 12 other values, which need --record: epoch") {
		t.Errorf("exit %d, %s", got.code, got.err)
	}
}
