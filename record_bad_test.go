package wick_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/serde"
)

// fourKB is a record of about 4 KB with something of every kind.
type fourKB struct {
	Weight [][]float32
	Bias   []float64
	Name   string
	Epoch  int
	Notes  []string
}

func newFourKB() *fourKB {
	v := &fourKB{Bias: make([]float64, 100), Name: strings.Repeat("name ", 20), Epoch: 1 << 30, Notes: []string{"a", "b"}}
	for i := range 8 {
		row := make([]float32, 64)
		for j := range row {
			row[j] = float32(i*64+j) / 7
		}
		v.Weight = append(v.Weight, row)
	}
	return v
}

// doors are the ways into a record in a file. Each returns the value that it
// loaded, or nil if it makes none, and must leave nothing behind after an error.
var doors = map[string]func(t *testing.T, file string) (*fourKB, error){
	"Load": func(t *testing.T, file string) (*fourKB, error) {
		v := &fourKB{Name: "before"}
		_, err := wick.Load(t.Context(), file, v)
		if err != nil && (v.Name != "before" || v.Weight != nil) {
			t.Errorf("half filled: %+v", v)
		}
		return v, err
	},
	"serde.Unmarshal": func(t *testing.T, file string) (*fourKB, error) {
		c, err := wick.Open(t.Context(), file)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		v := &fourKB{}
		_, err = serde.Unmarshal(t.Context(), c.Root, v)
		return v, err
	},
	"to safetensors": converting(".safetensors"),
	"to CBOR":        converting(".cbor.gz"),
	"to JSON":        converting(".json"),
}

func converting(ext string) func(t *testing.T, file string) (*fourKB, error) {
	return func(t *testing.T, file string) (*fourKB, error) {
		c, err := wick.Open(t.Context(), file)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		out := filepath.Join(filepath.Dir(file), "out"+ext)
		if _, err := wick.Convert(t.Context(), c, out); err != nil {
			if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 1 {
				t.Errorf("%v is left after an error", left)
			}
			return nil, err
		}
		v := &fourKB{}
		_, err = wick.Load(t.Context(), out, v)
		return v, errors.Join(err, os.Remove(out))
	}
}

// throughDoors writes b to file and takes it through all doors: each must refuse
// it by the file's name, or give what was written.
func throughDoors(t *testing.T, file string, b []byte, what string) (refused int) {
	t.Helper()
	if err := os.WriteFile(file, b, 0o666); err != nil {
		t.Fatal(err)
	}
	for name, door := range doors {
		v, err := door(t, file)
		switch {
		case err == nil && !reflect.DeepEqual(v, newFourKB()):
			t.Errorf("%s: %s gives other values: %+v", what, name, v)
		case err != nil && (!strings.Contains(err.Error(), file) || fault.KindOf(err) == ""):
			t.Errorf("%s: %s does not name the file: %v", what, name, err)
		case err != nil:
			refused++
		}
	}
	return refused
}

// inEveryForm calls f with the bytes of the record in each form, and a name to
// write them to.
func inEveryForm(t *testing.T, f func(t *testing.T, file string, b []byte)) {
	saved(t, newFourKB(), func(t *testing.T, file string) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f(t, file, b)
	})
}

// A bit that was changed is an error that names the file, through every door, or
// makes no difference: JSON's blanks, a field of gzip's header.
func TestFlippedBitsNameTheFile(t *testing.T) {
	inEveryForm(t, func(t *testing.T, file string, b []byte) {
		refused, tried := 0, 0
		for i := 0; i < len(b); i += max(1, len(b)/60) {
			b[i] ^= 2
			refused += throughDoors(t, file, b, fmt.Sprintf("byte %d of %d", i, len(b)))
			tried += len(doors)
			b[i] ^= 2
		}
		if refused < tried*9/10 {
			t.Errorf("%d of %d are refused", refused, tried)
		}
	})
}

// So is a record that was cut off, wherever.
func TestTruncatedRecordsNameTheFile(t *testing.T) {
	inEveryForm(t, func(t *testing.T, file string, b []byte) {
		end := len(bytes.TrimRight(b, "\n"))
		lengths := []int{0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 16, 64, end - 65, end - 9, end - 8, end - 5, end - 4, end - 1}
		for n := 100; n < end; n += end / 40 {
			lengths = append(lengths, n)
		}
		for _, n := range lengths {
			what := fmt.Sprintf("%d of %d bytes", n, len(b))
			if refused := throughDoors(t, file, b[:n], what); refused != len(doors) {
				t.Errorf("%s: %d doors refuse it", what, refused)
			}
		}
	})
}

// later is the record under a version that is not there yet, with the checksums
// that it would have.
func later(t *testing.T, ext string, b []byte) []byte {
	t.Helper()
	b = slices.Clone(b)
	patch := func(find, with string) {
		at := bytes.Index(b, []byte(find))
		if at < 0 || len(find) != len(with) {
			t.Fatalf("no %q in the record", find)
		}
		copy(b[at:], with)
	}
	switch ext {
	case ".safetensors":
		patch(`\"version\":1`, `\"version\":9`)
		const key, none = `"wick.header_crc32":"`, "00000000"
		at := bytes.Index(b, []byte(key)) + len(key)
		copy(b[at:], none)
		header := b[8 : 8+binary.LittleEndian.Uint64(b)]
		copy(b[at:], fmt.Sprintf("%08x", crc32.ChecksumIEEE(header)))
	case ".cbor":
		patch("\x67version\x01", "\x67version\x09")
	case ".json":
		patch(`"version": 1`, `"version": 9`)
	}
	return b
}

// A record of a later version names both versions, not a checksum.
func TestALaterVersionNamesBothSides(t *testing.T) {
	inEveryForm(t, func(t *testing.T, file string, b []byte) {
		ext := filepath.Ext(file)
		if ext == ".gz" || ext == ".zst" {
			return // what is within is plain CBOR
		}
		if refused := throughDoors(t, file, later(t, ext, b), "version 9"); refused != len(doors) {
			t.Errorf("%d doors refuse it", refused)
		}
		_, err := wick.Load(t.Context(), file, &fourKB{})
		if !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), "version 9") || !strings.Contains(err.Error(), "version 1") {
			t.Errorf("%v", err)
		}
	})
}

// liar is the length that once made a small machine ask for 758 MB.
const liar = 758_360_262

// lies are the record with each of its length fields, and of what looks like one,
// claiming 758,360,262.
func lies(ext string, b []byte, f func(lie []byte, what string)) {
	overwrite := func(at int, with []byte) {
		lie := slices.Clone(b)
		copy(lie[at:], with)
		f(lie, fmt.Sprintf("%x at %d", with, at))
	}
	next := func(at int) int { // all of the beginning and of the end, and samples of what lies between
		if at < 256 || at > len(b)-64 {
			return at + 1
		}
		return at + 7
	}
	switch ext {
	case ".safetensors":
		overwrite(0, binary.LittleEndian.AppendUint64(nil, liar))
		numbers(b[:8+binary.LittleEndian.Uint64(b)], func(text []byte, what string) {
			lie := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text)-8)), text[8:]...)
			f(append(lie, b[8+binary.LittleEndian.Uint64(b):]...), what)
		})
	case ".cbor":
		for at := 0; at < len(b); at = next(at) { // whatever is a head there
			overwrite(at, binary.BigEndian.AppendUint32([]byte{b[at]&0xe0 | 26}, liar))
			overwrite(at, binary.BigEndian.AppendUint64([]byte{b[at]&0xe0 | 27}, liar))
		}
	case ".json":
		numbers(b, f)
	default: // compressed: any four bytes may be a size, in either order
		for at := 0; at < len(b); at = next(at) {
			overwrite(at, binary.LittleEndian.AppendUint32(nil, liar))
			overwrite(at, binary.BigEndian.AppendUint32(nil, liar))
		}
	}
}

// numbers replaces each integer of a text by the lie.
func numbers(text []byte, f func(lie []byte, what string)) {
	for i, at := range regexp.MustCompile(`\b[0-9]+\b`).FindAllIndex(text, -1) {
		if i > 100 && i%7 > 0 {
			continue // most are elements of tensors
		}
		f(slices.Concat(text[:at[0]], []byte(strconv.Itoa(liar)), text[at[1]:]), fmt.Sprintf("%q at %d", text[at[0]:at[1]], at[0]))
	}
}

// allocatedBy is [serdetest.Allocated] without the collection before, for many calls.
func allocatedBy(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// A length that lies is refused, or is none, and costs no more memory than the
// record does, and what it takes to look for other formats in its bytes.
func TestLengthsThatLie(t *testing.T) {
	inEveryForm(t, func(t *testing.T, file string, b []byte) {
		ext := filepath.Ext(file)
		open := func(b []byte) (*fourKB, error) {
			v := &fourKB{}
			return v, unmarshalBytes(t, file, b, v)
		}
		decode := func() {
			if _, err := open(b); err != nil {
				t.Fatal(err)
			}
		}
		decode() // what is made once
		sound := allocatedBy(decode)
		most, tried, refused := int64(0), 0, 0
		lies(ext, b, func(lie []byte, what string) {
			var v *fourKB
			var err error
			n := allocatedBy(func() { v, err = open(lie) })
			tried++
			if err != nil {
				refused++
			} else if !reflect.DeepEqual(v, newFourKB()) {
				t.Errorf("%s gives other values: %+v", what, v)
			}
			most = max(most, n)
			if n > sound+int64(len(b))+128<<10 {
				t.Errorf("%s: %d bytes allocated, %d without the lie: %v", what, n, sound, err)
			}
		})
		t.Logf("%d bytes, %d lies, %d refused; %d bytes allocated by the record, %d by a lie", len(b), tried, refused, sound, most)
		if refused < tried*8/10 {
			t.Errorf("%d of %d are refused", refused, tried)
		}
	})
}

// A record of another type, or nothing at all, through the doors that know types.
func TestAnotherTypeNamesBothSides(t *testing.T) {
	inEveryForm(t, func(t *testing.T, file string, _ []byte) {
		_, err := wick.Load(t.Context(), file, &another{})
		for _, side := range []string{file, "wick_test.fourKB", "wick_test.another"} {
			if !errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), side) {
				t.Errorf("%v does not name %s", err, side)
			}
		}
		if _, err := wick.Load(t.Context(), file+"x", &another{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), file) {
			t.Errorf("no file: %v", err)
		}
	})
}

// inShards writes v as a record in shards and returns the files and the index.
func inShards(t *testing.T, v any, most int64) (files []string, index string) {
	t.Helper()
	dir := t.TempDir()
	if _, err := wick.Save(t.Context(), filepath.Join(dir, "model.safetensors"), v, wick.ShardBytes(most)); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	return files, filepath.Join(dir, "model.safetensors.index.json")
}

// A record in shards is the same record: the index has its tree.
func TestRecordsInShards(t *testing.T) {
	_, index := inShards(t, newModel(), 16)
	var got model
	if _, err := wick.Load(t.Context(), index, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&got, newModel()) {
		t.Errorf("got %+v", got)
	}
	if h := header(t, index); h.Type != "wick_test.model" || h.Version != 1 || h.Writer != "wick" {
		t.Errorf("%+v", h)
	}
	_, err := wick.Load(t.Context(), index, &another{})
	for _, side := range []string{index, "wick_test.model", "wick_test.another"} {
		if !errors.Is(err, fault.ErrMismatch) || !strings.Contains(err.Error(), side) {
			t.Errorf("%v does not name %s", err, side)
		}
	}
	c, err := wick.Open(t.Context(), index)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	single, again := filepath.Join(t.TempDir(), "again.cbor"), model{}
	if _, err := wick.Convert(t.Context(), c, single); err != nil {
		t.Fatal(err)
	}
	if _, err := wick.Load(t.Context(), single, &again); err != nil || !reflect.DeepEqual(&again, newModel()) {
		t.Errorf("in one file again: %v, %+v", err, again)
	}
	_, err = wick.PlanConversion(c, filepath.Join(t.TempDir(), "part.safetensors"), wick.ShardBytes(16), wick.Part(1, 2), wick.AsRecord(header(t, single)))
	if !errors.Is(err, fault.ErrUsage) {
		t.Errorf("a record in parts: %v", err)
	}
}

// Every shard and the index check what is in them, and belong together.
func TestDamagedShardsOfARecord(t *testing.T) {
	files, index := inShards(t, newFourKB(), 1000)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		refused, tried := 0, 0
		for i := 0; i < len(b); i += 9 {
			b[i] ^= 2
			if err := os.WriteFile(file, b, 0o666); err != nil {
				t.Fatal(err)
			}
			b[i] ^= 2
			tried++
			v := &fourKB{}
			_, err := wick.Load(t.Context(), index, v)
			switch {
			case err == nil && !reflect.DeepEqual(v, newFourKB()):
				t.Errorf("%s: byte %d: other values", file, i)
			case err != nil && (fault.KindOf(err) == "" || !strings.Contains(err.Error(), filepath.Dir(file))):
				t.Errorf("%s: byte %d: %v", file, i, err)
			case err != nil:
				refused++
			}
		}
		if refused < tried*9/10 {
			t.Errorf("%s: %d of %d are refused", file, refused, tried)
		}
		if err := os.WriteFile(file, b[:len(b)/2], 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := wick.Load(t.Context(), index, &fourKB{}); err == nil || !strings.Contains(err.Error(), filepath.Dir(file)) {
			t.Errorf("%s: half of it: %v", file, err)
		}
		if err := os.WriteFile(file, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
