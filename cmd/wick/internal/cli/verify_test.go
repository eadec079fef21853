package cli

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

func TestVerifyFile(t *testing.T) {
	good := tensor.NewStorage(tensor.StorageSpec{Name: "data/0", Size: 4, Memory: []byte("wick"), CRC32: crcOfWick, HasCRC: true})
	bad := tensor.NewStorage(tensor.StorageSpec{Name: "data/1", Size: 4, Memory: []byte("wicK"), CRC32: crcOfWick, HasCRC: true})
	none := tensor.NewStorage(tensor.StorageSpec{Name: "data/2", Size: 4, Memory: []byte("wick")})
	// The tensor is a part of the storage: the checksum is of all of it.
	part := func(s *tensor.Storage) *nested.Tensor {
		x, err := tensor.New(tensor.Spec{Storage: s, DType: tensor.U8, Shape: []int64{2}})
		if err != nil {
			t.Fatal(err)
		}
		return lazy(x)
	}
	for _, c := range []struct {
		name string
		root nested.Value
		code int
		want string
	}{
		{"verified", mapOf(t, str("a"), part(good)), 0, "checksums: 1 verified; ok"},
		{"absent", mapOf(t, str("a"), part(good), str("b"), part(none)), 0, "checksums: 1 verified, 1 have none; ok"},
		{"wrong", mapOf(t, str("a"), part(good), str("b"), part(bad)), 3, "1 fault"},
		{"row", mapOf(t, str("a"), lazy(tensor.Unavailable(tensor.F32, nil, fault.New(fault.NotFound, "no record").InRecord("data/9")))), 3, "1 fault"},
	} {
		t.Run(c.name, func(t *testing.T) {
			trees := map[string]nested.Value{"m.pt": c.root}
			got := runTrees(t.Context(), trees, "verify", "m.pt")
			if got.code != c.code || !strings.Contains(got.out, c.want) || (got.err == "") != (c.code == 0) {
				t.Errorf("exit %d, stdout %q, stderr %q", got.code, got.out, got.err)
			}
			got = runTrees(t.Context(), trees, "verify", "--json", "m.pt")
			var doc struct {
				OK     bool
				Faults []struct{ Kind, Record string }
			}
			if err := json.Unmarshal([]byte(got.out), &doc); err != nil || doc.OK != (c.code == 0) || (len(doc.Faults) == 0) != doc.OK || got.code != c.code {
				t.Errorf("exit %d, %v, %s", got.code, err, got.out)
			}
		})
	}
}

// Every record of an archive has a checksum, also what no tensor needs: code,
// versions, files that somebody added. One byte of any of them is noticed.
func TestVerifyEveryRecord(t *testing.T) {
	for _, name := range []string{"torchscript/extra_files-torch2.15.pt", "zip-layouts/deflated-torch2.15.pt"} {
		file, err := os.ReadFile(fixture(name))
		if err != nil {
			t.Fatal(err)
		}
		archive, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "damaged.pt")
		for _, record := range archive.File {
			at, err := record.DataOffset()
			if err != nil {
				t.Fatal(err)
			}
			if record.CompressedSize64 == 0 {
				continue
			}
			damaged := bytes.Clone(file)
			damaged[at+int64(record.CompressedSize64)/2] ^= 0x10
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := runCLI(t, "verify", path); got.code != exitMalformed {
				t.Errorf("%s, a byte of %s: exit %d, stdout %q, stderr %q", name, record.Name, got.code, got.out, got.err)
			}
		}
	}
}

const crcOfWick = 0x041a3722 // zlib.crc32(b"wick") in Python

func TestVerifyPair(t *testing.T) {
	x := lazy(tensor.Of([]float32{1, 2}))
	same := lazy(tensor.Of([]float32{1, 2}))
	nan1, nan2 := lazy(tensor.Of([]uint32{0x7fc00000})), lazy(tensor.Of([]uint32{0x7fc00001}))
	minus := lazy(tensor.Of([]float32{1, -2}))
	wide := lazy(tensor.Of([]float64{1, 2}))
	tall := lazy(tensor.Of([]float32{1, 2}, 2, 1))
	for _, c := range []struct {
		name string
		a, b nested.Value
		code int
		want string // the kind of the difference
	}{
		{"equal", mapOf(t, str("w"), x), mapOf(t, str("w"), same), 0, ""},
		{"more in b", mapOf(t, str("w"), x), mapOf(t, str("w"), same, str("v"), same), 0, ""},
		{"nested against flat", mapOf(t, str("s"), mapOf(t, str("w"), x)), mapOf(t, str("s.w"), same), 0, ""},
		{"missing", mapOf(t, str("w"), x, str("v"), x), mapOf(t, str("w"), same), 1, "missing"},
		{"values", mapOf(t, str("w"), x), mapOf(t, str("w"), minus), 1, "values"},
		{"one bit of a NaN", mapOf(t, str("w"), nan1), mapOf(t, str("w"), nan2), 1, "values"},
		{"dtype", mapOf(t, str("w"), x), mapOf(t, str("w"), wide), 1, "dtype"},
		{"shape", mapOf(t, str("w"), x), mapOf(t, str("w"), tall), 1, "shape"},
		{"int key beside text", mapOf(t, nested.Int(0), x, str("0"), minus), mapOf(t, str("0"), minus, nested.Int(0), same), 0, ""},
		{"collision that agrees with neither", mapOf(t, nested.Int(0), x), mapOf(t, str("0"), minus), 1, "values"},
	} {
		t.Run(c.name, func(t *testing.T) {
			trees := map[string]nested.Value{"a.pt": c.a, "b.st": c.b}
			got := runTrees(t.Context(), trees, "verify", "a.pt", "b.st")
			if got.code != c.code || got.err != "" || !strings.HasPrefix(got.out, c.want) {
				t.Errorf("exit %d, stdout %q, stderr %q", got.code, got.out, got.err)
			}
			got = runTrees(t.Context(), trees, "verify", "--json", "a.pt", "b.st")
			var doc struct {
				OK          bool
				Differences []struct{ Kind string }
			}
			if err := json.Unmarshal([]byte(got.out), &doc); err != nil {
				t.Fatalf("%v: %s", err, got.out)
			}
			if doc.OK != (c.want == "") || (c.want != "") != (len(doc.Differences) == 1 && doc.Differences[0].Kind == c.want) {
				t.Errorf("%s", got.out)
			}
		})
	}
}

// A file that is broken is no mere difference.
func TestVerifyPairOfBroken(t *testing.T) {
	x := lazy(tensor.Of([]float32{1}))
	broken := lazy(tensor.Unavailable(tensor.F32, []int{1}, fault.New(fault.Malformed, "out of bounds")))
	trees := map[string]nested.Value{"a.pt": mapOf(t, str("w"), x), "b.pt": mapOf(t, str("w"), broken)}
	for _, order := range [][]string{{"a.pt", "b.pt"}, {"b.pt", "a.pt"}} {
		got := runTrees(t.Context(), trees, "verify", order[0], order[1])
		if got.code != 3 || !strings.Contains(got.out, "unreadable") || !strings.Contains(got.err, "out of bounds") {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", order, got.code, got.out, got.err)
		}
	}
}
