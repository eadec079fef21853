package pytorch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// The pieces of pickles of protocol 2 that the tests of containers put together.

func pickleOf(body string) string { return "\x80\x02" + body + "." }

func pickleText(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

func pickleInt(n int64) string {
	if n >= math.MinInt32 && n <= math.MaxInt32 {
		return "J" + string(binary.LittleEndian.AppendUint32(nil, uint32(int32(n))))
	}
	return "\x8a\x08" + string(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

func pickleTuple(items ...string) string { return "(" + strings.Join(items, "") + "t" }

func pickleList(items ...string) string { return "](" + strings.Join(items, "") + "e" }

// legacyStorageID is the persistent id of a storage of floats.
func legacyStorageID(key string, elements int64, view string) string {
	return pickleTuple(pickleText("storage"), "ctorch\nFloatStorage\n", pickleText(key), pickleText("cpu"), pickleInt(elements), view) + "Q"
}

// legacyVector is a tensor of n floats over a storage.
func legacyVector(storage string, offset, n int64) string {
	return "ctorch._utils\n_rebuild_tensor_v2\n" +
		pickleTuple(storage, pickleInt(offset), pickleTuple(pickleInt(n)), pickleTuple(pickleInt(1)), "\x89", "}") + "R"
}

func floats(values ...float32) string {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return string(b)
}

func count64(n int64) string { return string(binary.LittleEndian.AppendUint64(nil, uint64(n))) }

// legacyFile is a file of stacked pickles, part by part.
type legacyFile struct{ magic, version, system, object, keys, storages string }

// soundLegacy has storages in another order than the pickle names them.
func soundLegacy() legacyFile {
	return legacyFile{
		magic:   "\x80\x02" + magicLong,
		version: pickleOf("M\xe9\x03"),
		system:  pickleOf("}(" + pickleText("little_endian") + "\x88u"),
		object: pickleOf("}(" + pickleText("a") + legacyVector(legacyStorageID("20", 3, "N"), 1, 2) +
			pickleText("b") + legacyVector(legacyStorageID("10", 2, "N"), 0, 2) + "u"),
		keys:     pickleOf(pickleList(pickleText("10"), pickleText("20"))),
		storages: count64(2) + floats(1, 2) + count64(3) + floats(3, 4, 5),
	}
}

func (f legacyFile) bytes() []byte {
	return []byte(f.magic + f.version + f.system + f.object + f.keys + f.storages)
}

func vector(t *testing.T, c *checkpoint.Checkpoint, name string) []float32 {
	t.Helper()
	tn, err := c.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := tensor.Values[float32](t.Context(), tn.Tensor)
	if err != nil {
		t.Fatal(name, err)
	}
	return v
}

func equalFloats(a []float32, b ...float32) bool { return floats(a...) == floats(b...) }

func TestLegacyStoragesInTheOrderOfTheirKeys(t *testing.T) {
	magics := map[string]string{"text": magicText, "protocol 2": legacyMagics[1], "protocol 3": legacyMagics[2], "protocol 4": legacyMagics[3], "protocol 5": legacyMagics[4]}
	for name, magic := range magics {
		file := soundLegacy()
		file.magic = magic
		data := file.bytes()
		c, err := OpenBytes(t.Context(), "test", data)
		if err != nil {
			t.Fatal(name, err)
		}
		if a, b := vector(t, c, "a"), vector(t, c, "b"); !equalFloats(a, 4, 5) || !equalFloats(b, 1, 2) {
			t.Errorf("%s: a is %v, b is %v", name, a, b)
		}
		s := c.Info.Storages[0] // the pickle's first
		_, off, ok := s.Extent()
		if want := bytes.Index(data, []byte(floats(3, 4, 5))); !ok || off != int64(want) || s.Lent() == nil {
			t.Errorf("%s: extent at %d, want %d; lent %v", name, off, want, s.Lent() != nil)
		}
		if c.Info.Metadata["little_endian"] != "True" || c.Info.Format != "legacy" {
			t.Errorf("%s: %v", name, c.Info)
		}
	}
}

// torch converts elements to little-endian when it saves; versions of before
// 2019 forgot the counts.
func TestLegacyCountsOfBigEndianMachines(t *testing.T) {
	file := soundLegacy()
	file.system = pickleOf("}(" + pickleText("little_endian") + "\x89u")
	file.storages = "\x00\x00\x00\x00\x00\x00\x00\x02" + floats(1, 2) + "\x00\x00\x00\x00\x00\x00\x00\x03" + floats(3, 4, 5)
	c, err := OpenBytes(t.Context(), "test", file.bytes())
	if err != nil {
		t.Fatal(err)
	}
	if a := vector(t, c, "a"); !equalFloats(a, 4, 5) {
		t.Errorf("a is %v", a)
	}
}

func TestLegacyLies(t *testing.T) {
	cases := map[string]struct {
		change func(*legacyFile)
		want   error
	}{
		"other protocol version":    {func(f *legacyFile) { f.version = pickleOf("K\x05") }, fault.ErrUnsupported},
		"version that is a text":    {func(f *legacyFile) { f.version = pickleOf(pickleText("1001")) }, fault.ErrUnsupported},
		"one element more":          {func(f *legacyFile) { f.storages = strings.Replace(f.storages, count64(2), count64(3), 1) }, fault.ErrMalformed},
		"one element fewer":         {func(f *legacyFile) { f.storages = strings.Replace(f.storages, count64(2), count64(1), 1) }, fault.ErrMalformed},
		"2^63 elements":             {func(f *legacyFile) { f.storages = strings.Replace(f.storages, count64(2), count64(math.MinInt64), 1) }, fault.ErrMalformed},
		"minus one element":         {func(f *legacyFile) { f.storages = strings.Replace(f.storages, count64(2), count64(-1), 1) }, fault.ErrMalformed},
		"storage of 2^40 in pickle": {func(f *legacyFile) { f.object = strings.Replace(f.object, pickleInt(3), pickleInt(1<<40), 1) }, fault.ErrMalformed},
		"storage of 2^62 in pickle": {func(f *legacyFile) { f.object = strings.Replace(f.object, pickleInt(3), pickleInt(1<<62), 1) }, fault.ErrMalformed},
		"key twice":                 {func(f *legacyFile) { f.keys = pickleOf(pickleList(pickleText("10"), pickleText("10"))) }, fault.ErrMalformed},
		"key of no tensor":          {func(f *legacyFile) { f.keys = pickleOf(pickleList(pickleText("10"), pickleText("30"))) }, fault.ErrMalformed},
		"key missing":               {func(f *legacyFile) { f.keys = pickleOf(pickleList(pickleText("10"))) }, fault.ErrMalformed},
		"keys that are no list":     {func(f *legacyFile) { f.keys = pickleOf(pickleInt(2)) }, fault.ErrMalformed},
		"key that is no text":       {func(f *legacyFile) { f.keys = pickleOf(pickleList("N")) }, fault.ErrMalformed},
		"no storages":               {func(f *legacyFile) { f.storages = "" }, fault.ErrMalformed},
	}
	for name, c := range cases {
		file := soundLegacy()
		c.change(&file)
		if _, err := OpenBytes(t.Context(), "test", file.bytes()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestLegacyViews(t *testing.T) {
	view := func(offset, n int64) string {
		return legacyStorageID("20", 3, pickleTuple(pickleText("21"), pickleInt(offset), pickleInt(n)))
	}
	for _, c := range []struct {
		offset, n int64
		ok        bool
	}{{1, 2, true}, {2, 2, false}, {-1, 2, false}, {1 << 61, 2, false}} {
		file := soundLegacy()
		file.object = pickleOf("}(" + pickleText("a") + legacyVector(view(c.offset, c.n), 0, 2) +
			pickleText("b") + legacyVector(legacyStorageID("10", 2, "N"), 0, 2) + "u")
		got, err := OpenBytes(t.Context(), "test", file.bytes())
		if err == nil {
			tn, lookupErr := got.Lookup("a")
			if lookupErr != nil {
				t.Fatal(lookupErr)
			}
			err = tn.Err()
		}
		if c.ok && (err != nil || !equalFloats(vector(t, got, "a"), 4, 5)) {
			t.Errorf("the view at %d: %v", c.offset, err)
		}
		if !c.ok && !errors.Is(err, fault.ErrMalformed) {
			t.Errorf("the view at %d: %v", c.offset, err)
		}
	}
}

// Torch keeps storages and views in one table, by their keys. With two meanings
// for a key it gives what it met first (torch 1.13 and 2.15 read [3 4] for both of
// the first file's tensors); nobody may take that for what the id says.
func TestLegacyKeysWithTwoMeanings(t *testing.T) {
	view := func(root string, n int64, key string, offset int64) string {
		return legacyStorageID(root, n, pickleTuple(pickleText(key), pickleInt(offset), pickleInt(2)))
	}
	whole := legacyStorageID("10", 2, "N")
	for name, c := range map[string]struct {
		a, b   string
		aBad   bool
		bWants []float32 // nil: it is refused
	}{
		"two windows":            {view("20", 3, "21", 0), view("20", 3, "21", 1), false, nil},
		"windows of two":         {view("20", 3, "21", 0), view("10", 2, "21", 0), false, nil},
		"a view, then a storage": {view("20", 3, "10", 0), whole, false, nil},
		"a storage, then a view": {view("20", 3, "20", 1), whole, true, []float32{1, 2}},
		"one view twice":         {view("20", 3, "21", 1), view("20", 3, "21", 1), false, []float32{4, 5}},
		"two views":              {view("20", 3, "21", 0), view("20", 3, "22", 1), false, []float32{4, 5}},
	} {
		file := soundLegacy()
		file.object = pickleOf("}(" + pickleText("a") + legacyVector(c.a, 0, 2) + pickleText("b") + legacyVector(c.b, 0, 2) +
			pickleText("c") + legacyVector(legacyStorageID("20", 3, "N"), 0, 3) + pickleText("d") + legacyVector(whole, 0, 2) + "u")
		got, err := OpenBytes(t.Context(), "test", file.bytes())
		if err != nil {
			t.Error(name, err)
			continue
		}
		a, _ := got.Lookup("a")
		b, _ := got.Lookup("b")
		if refused := errors.Is(a.Err(), fault.ErrMalformed); refused != c.aBad {
			t.Errorf("%s: the first: %v", name, a.Err())
		}
		if refused := errors.Is(b.Err(), fault.ErrMalformed); refused != (c.bWants == nil) {
			t.Errorf("%s: the second: %v", name, b.Err())
		} else if !refused && !equalFloats(vector(t, got, "b"), c.bWants...) {
			t.Errorf("%s: the second is %v", name, vector(t, got, "b"))
		}
	}
}

// What follows the last storage is another file's, or nothing of ours.
func TestLegacyTrailingBytes(t *testing.T) {
	c, err := OpenBytes(t.Context(), "test", append(soundLegacy().bytes(), "more"...))
	if err != nil || !equalFloats(vector(t, c, "b"), 1, 2) {
		t.Error(err)
	}
}

func TestLegacySniff(t *testing.T) {
	for _, magic := range legacyMagics {
		if !(legacyFormat{}).Sniff([]byte(magic+"more"), nil) || !(legacyFormat{}).Sniff([]byte(magic[:minFile]), nil) {
			t.Errorf("%q is not taken", magic)
		}
		if (legacyFormat{}).Sniff([]byte(magic[:minFile-1]), nil) || (legacyFormat{}).Sniff([]byte(magic[:len(magic)-2]+"??"), nil) {
			t.Errorf("something near %q is taken", magic)
		}
	}
}
