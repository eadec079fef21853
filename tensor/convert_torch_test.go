package tensor

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// torchTables are torch's own conversions, written by
// pytorch-tests/conversions/generate.py. All bytes in it are little-endian.
type torchTables struct {
	Widened  map[string]map[string]torchHash // 16-bit float → wider one, of all 65,536 values
	Crossed  map[string]torchHash
	Small    map[string]string // 8-bit float → float32, of all 256 values
	Narrowed struct {
		Source string
		To     map[string]torchHash
	}
	Doubles struct {
		File string
		To   map[string]string
	}
	Integers struct {
		Values []int64
		To     map[string]string
	}
}

type torchHash struct{ SHA256, File string }

const torchTablesFolder = "../pytorch-tests/conversions"

func readTorchTables(t *testing.T) (tables torchTables) {
	t.Helper()
	if err := json.Unmarshal(readTorchFile(t, "expected.json"), &tables); err != nil {
		t.Fatal(err)
	}
	return tables
}

func readTorchFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(torchTablesFolder, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// swapIfBig turns elements from little-endian to host order or back.
func swapIfBig(b []byte, d DType) []byte {
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		swapBytes(b, d.Component())
	}
	return b
}

func dtypeNamed(t *testing.T, name string) DType {
	t.Helper()
	d, ok := ParseDType(name)
	if !ok {
		t.Fatalf("no dtype is called %q", name)
	}
	return d
}

// checkHash compares a conversion with the hash of torch's.
func checkHash(t *testing.T, want torchHash, to DType, src []byte, from DType) {
	t.Helper()
	got, _ := mustConvert(t, to, src, from)
	if sum := sha256.Sum256(swapIfBig(got, to)); hex.EncodeToString(sum[:]) != want.SHA256 {
		t.Errorf("%v to %v: sha256 %x, torch's has %s", from, to, sum, want.SHA256)
	}
}

// checkBytes compares a conversion with torch's, element by element.
func checkBytes(t *testing.T, want []byte, to DType, src []byte, from DType) {
	t.Helper()
	got, _ := mustConvert(t, to, src, from)
	got = swapIfBig(got, to)
	if len(got) != len(want) {
		t.Fatalf("%v to %v: %d bytes, torch has %d", from, to, len(got), len(want))
	}
	for i := 0; i < len(got); i += to.Size() {
		if g, w := got[i:i+to.Size()], want[i:i+to.Size()]; !bytes.Equal(g, w) {
			n := i / to.Size() * from.Size()
			t.Errorf("%v to %v of %x: %x, torch has %x", from, to, src[n:n+from.Size()], g, w)
		}
	}
}

func fromHex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTorchWidensHalfs(t *testing.T) {
	tables := readTorchTables(t)
	for from, to := range tables.Widened {
		d := dtypeNamed(t, from)
		for name, want := range to {
			checkHash(t, want, dtypeNamed(t, name), allBits(d), d)
		}
	}
	checkHash(t, tables.Crossed["float16_to_bfloat16"], BF16, allBits(F16), F16)
	checkHash(t, tables.Crossed["bfloat16_to_float16"], F16, allBits(BF16), BF16)
}

func TestTorchWidensFloat8(t *testing.T) {
	small := readTorchTables(t).Small
	if len(small) != 5 {
		t.Fatalf("tables of %d dtypes, want 5", len(small))
	}
	for name, want := range small {
		d := dtypeNamed(t, name)
		checkBytes(t, fromHex(t, want), F32, allBits(d), d)
	}
}

func TestTorchNarrowsHardValues(t *testing.T) {
	narrowed := readTorchTables(t).Narrowed
	src := swapIfBig(readTorchFile(t, narrowed.Source), F32)
	if len(narrowed.To) != 7 {
		t.Fatalf("tables of %d dtypes, want 7", len(narrowed.To))
	}
	for name, want := range narrowed.To {
		to := dtypeNamed(t, name)
		if want.File != "" {
			checkBytes(t, readTorchFile(t, want.File), to, src, F32)
		}
		checkHash(t, want, to, src, F32)
	}
}

func TestTorchNarrowsDoubles(t *testing.T) {
	doubles := readTorchTables(t).Doubles
	src := swapIfBig(readTorchFile(t, doubles.File), F64)
	for name, want := range doubles.To {
		checkBytes(t, fromHex(t, want), dtypeNamed(t, name), src, F64)
	}
}

func TestTorchRoundsIntegers(t *testing.T) {
	integers := readTorchTables(t).Integers
	for name, want := range integers.To {
		checkBytes(t, fromHex(t, want), dtypeNamed(t, name), bytesFrom(integers.Values...), I64)
	}
}
