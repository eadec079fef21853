package pytorch

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// tarFile is a tar of torch 0.1, member by member.
type tarFile map[string]string

func (f tarFile) bytes(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range []string{"sys_info", "pickle", "tensors", "storages", "extra"} {
		data, ok := f[name]
		if !ok {
			continue
		}
		// Python writes times as fractions, which takes extended headers.
		h := &tar.Header{Name: name, Size: int64(len(data)), Mode: 0o644, ModTime: time.Unix(1, 5), Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarStorageOf(key int64, values ...float32) string {
	return pickleOf(pickleTuple(pickleInt(key), pickleText("cpu"), "ctorch\nFloatStorage\n")) + count64(int64(len(values))) + floats(values...)
}

func tarTensorOf(key, storage int64, ndim int32, numbers ...int64) string {
	s := pickleOf(pickleTuple(pickleInt(key), pickleInt(storage), "ctorch\nFloatTensor\n"))
	s += string(binary.LittleEndian.AppendUint32(nil, uint32(ndim))) + "\x00\x00\x00\x00"
	for _, n := range numbers {
		s += count64(n)
	}
	return s
}

func tarViewOf(key, root, offset, n int64) string {
	return pickleTuple(pickleInt(key), pickleInt(root), pickleInt(offset), pickleInt(n))
}

func soundTar() tarFile {
	return tarFile{
		"sys_info": pickleOf("}"),
		"storages": pickleOf("K\x01") + tarStorageOf(11, 1, 2, 3, 4) + pickleOf(pickleList(tarViewOf(12, 11, 1, 3))),
		"tensors":  pickleOf("K\x02") + tarTensorOf(1, 11, 2, 2, 2, 1, 2, 0) + tarTensorOf(2, 12, 1, 2, 1, 1),
		"pickle":   pickleOf("}(" + pickleText("a") + pickleText("1") + "Q" + pickleText("v") + "K\x02Q" + pickleText("s") + "K\x0bQ" + pickleText("again") + "K\x01Qu"),
	}
}

func TestTar(t *testing.T) {
	data := soundTar().bytes(t)
	c, err := OpenBytes(t.Context(), "test", data)
	if err != nil {
		t.Fatal(err)
	}
	if a := vector(t, c, "a"); !equalFloats(a, 1, 3, 2, 4) {
		t.Errorf("a is %v", a)
	}
	if v := vector(t, c, "v"); !equalFloats(v, 3, 4) {
		t.Errorf("the view is %v", v)
	}
	if s := vector(t, c, "s"); !equalFloats(s, 1, 2, 3, 4) {
		t.Errorf("the storage is %v", s)
	}
	if mustLookup(t, c.Root, "a") != mustLookup(t, c.Root, "again") {
		t.Error("one tensor became two")
	}
	_, off, ok := c.Info.Storages[0].Extent()
	if want := bytes.Index(data, []byte(floats(1, 2, 3, 4))); !ok || off != int64(want) {
		t.Errorf("the storage is at %d, want %d", off, want)
	}
}

func TestTarEmptyTensor(t *testing.T) {
	file := soundTar()
	file["storages"] = pickleOf("K\x01") + tarStorageOf(11) + pickleOf("]")
	file["tensors"] = pickleOf("K\x01") + tarTensorOf(1, 11, 0, 0)
	file["pickle"] = pickleOf("K\x01Q")
	c, err := OpenBytes(t.Context(), "test", file.bytes(t))
	if err != nil {
		t.Fatal(err)
	}
	if v := vector(t, c, ""); len(v) != 0 {
		t.Errorf("a tensor without dimensions over no elements is %v", v)
	}
}

func TestTarLies(t *testing.T) {
	storages := func(s string) func(tarFile) { return func(f tarFile) { f["storages"] = s } }
	tensors := func(s string) func(tarFile) { return func(f tarFile) { f["tensors"] = s } }
	views := func(list ...string) func(tarFile) {
		return storages(pickleOf("K\x01") + tarStorageOf(11, 1, 2, 3, 4) + pickleOf(pickleList(list...)))
	}
	one := tarStorageOf(11, 1)
	cases := map[string]func(tarFile){
		"2^40 storages":            storages(pickleOf(pickleInt(1<<40)) + one),
		"minus one storages":       storages(pickleOf(pickleInt(-1))),
		"a count that is a text":   storages(pickleOf(pickleText("1"))),
		"2^61 elements":            storages(pickleOf("K\x01") + one[:len(one)-12] + count64(1<<61)),
		"minus one elements":       storages(pickleOf("K\x01") + one[:len(one)-12] + count64(-1)),
		"one element too many":     storages(pickleOf("K\x01") + one[:len(one)-12] + count64(2) + floats(1)),
		"a storage twice":          storages(pickleOf("K\x02") + one + one + pickleOf("]")),
		"a storage of no class":    storages(pickleOf("K\x01") + pickleOf(pickleTuple("K\x0b", pickleText("cpu"), "cos\nsystem\n")) + count64(0) + pickleOf("]")),
		"a storage of two":         storages(pickleOf("K\x01") + pickleOf(pickleTuple("K\x0b", pickleText("cpu")))),
		"no views":                 storages(pickleOf("K\x01") + one),
		"views that are no list":   storages(pickleOf("K\x01") + one + pickleOf("K\x01")),
		"a view past the end":      views(tarViewOf(12, 11, 2, 3)),
		"a view of minus one":      views(tarViewOf(12, 11, 0, -1)),
		"a view that overflows":    views(tarViewOf(12, 11, 1<<62, 1<<62)),
		"a view of nothing":        views(tarViewOf(12, 13, 0, 1)),
		"a view of a view":         views(tarViewOf(12, 11, 1, 2), tarViewOf(13, 12, 0, 1)),
		"a view with a known key":  views(tarViewOf(11, 11, 1, 2)),
		"a view of three":          views(pickleTuple("K\x01", "K\x0b", "K\x00")),
		"2^40 tensors":             tensors(pickleOf(pickleInt(1<<40)) + tarTensorOf(1, 11, 1, 1, 1, 0)),
		"minus one dimensions":     tensors(pickleOf("K\x01") + tarTensorOf(1, 11, -1, 0)),
		"65 dimensions":            tensors(pickleOf("K\x01") + tarTensorOf(1, 11, 65, make([]int64, 131)...)),
		"sizes that are missing":   tensors(pickleOf("K\x01") + tarTensorOf(1, 11, 3, 1, 1)),
		"a tensor over nothing":    tensors(pickleOf("K\x01") + tarTensorOf(1, 99, 1, 1, 1, 0)),
		"a tensor twice":           tensors(pickleOf("K\x02") + tarTensorOf(1, 11, 1, 1, 1, 0) + tarTensorOf(1, 11, 1, 1, 1, 0)),
		"an unknown object":        func(f tarFile) { f["pickle"] = pickleOf("K\x63Q") },
		"an object without a name": func(f tarFile) { f["pickle"] = pickleOf("NQ") },
		"no storages":              func(f tarFile) { delete(f, "storages") },
		"no tensors":               func(f tarFile) { delete(f, "tensors") },
		"no pickle":                func(f tarFile) { delete(f, "pickle") },
	}
	for name, change := range cases {
		file := soundTar()
		change(file)
		if _, err := OpenBytes(t.Context(), "test", file.bytes(t)); !errors.Is(err, fault.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A tensor out of its storage's bounds costs itself alone.
func TestTarTensorOutOfBounds(t *testing.T) {
	for name, numbers := range map[string][]int64{
		"too long": {5, 1, 0}, "offset": {1, 1, 4}, "negative size": {-1, 1, 0}, "negative stride": {2, -1, 3}, "overflow": {1 << 30, 1 << 62, 0},
	} {
		file := soundTar()
		file["tensors"] = pickleOf("K\x02") + tarTensorOf(1, 11, 1, numbers...) + tarTensorOf(2, 12, 1, 2, 1, 1)
		c, err := OpenBytes(t.Context(), "test", file.bytes(t))
		if err != nil {
			t.Errorf("%s: it cost the file: %v", name, err)
			continue
		}
		if tn, err := c.Lookup("a"); err != nil || !errors.Is(tn.Err(), fault.ErrMalformed) {
			t.Errorf("%s: %v, %v", name, tn, err)
		}
		if v := vector(t, c, "v"); !equalFloats(v, 3, 4) {
			t.Errorf("%s: another tensor is %v", name, v)
		}
	}
}

func TestTarSniff(t *testing.T) {
	for _, f := range []tarFile{soundTar(), {"extra": "x"}} {
		if !(tarFormat{}).Sniff(f.bytes(t), nil) {
			t.Error("a tar is not taken")
		}
	}
	if (tarFormat{}).Sniff([]byte("sys_info"), nil) || (tarFormat{}).Sniff(make([]byte, tarBlock), nil) {
		t.Error("another file is taken")
	}
	if _, err := OpenBytes(t.Context(), "test", tarFile{"extra": "x"}.bytes(t)); !errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("a tar without a checkpoint: %v", err)
	}
}

// The standard library's writer and ours agree on names, sizes and places.
func TestTarHeaders(t *testing.T) {
	long := strings.Repeat("folder/", 30) + "file"
	for format, want := range map[tar.Format]string{tar.FormatUSTAR: "", tar.FormatPAX: "", tar.FormatGNU: "with a name of GNU's own"} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range []*tar.Header{{Name: "folder/", Typeflag: tar.TypeDir}, {Name: long, Size: 700}, {Name: "short", Size: 3}} {
			if h.Typeflag == 0 {
				h.Typeflag = tar.TypeReg
			}
			h.Mode, h.Format = 0o644, format
			if err := w.WriteHeader(h); err != nil {
				t.Fatal(format, err)
			}
			if _, err := w.Write(bytes.Repeat([]byte(h.Name[:1]), int(h.Size))); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var got []string
		err := tarFiles(checkpoint.NewBytes("", b.Bytes()), defaults, func(h *tarHeader) error {
			got = append(got, h.name)
			if data := b.Bytes()[h.off:][:h.size]; strings.Trim(string(data), h.name[:1]) != "" {
				t.Errorf("%v: %s is %q", format, h.name, data)
			}
			if h.name == long && h.odd != want {
				t.Errorf("%v: a long name is %q", format, h.odd)
			}
			return nil
		})
		if err != nil || !slices.Equal(got, []string{"folder/", long, "short"}) {
			t.Errorf("%v: %q, %v", format, got, err)
		}
	}
}

func TestTarNumbers(t *testing.T) {
	for field, want := range map[string]int64{
		"00000000017\x00": 15, "         17 ": 15, "17\x00        ": 15, "\x00\x00\x00\x00": 0, "    ": 0, "\x80\x00\x01\x00": 256,
		"\x0000000017\x00": -1, "17\x0017": -1, "1_7 ": -1, "+17 ": -1, "18  ": -1, "17x ": -1, "\xff\xff\xff\xff": -1, "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff": -1,
	} {
		if got, ok := tarNumber([]byte(field)); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q is %d, %v, want %d", field, got, ok, want)
		}
	}
	for field, want := range map[string]int64{"17\x0099": 15, " +1_7 ": 15, "0o17": 15, "": -1, "1 7": -1, "-17": -15, "\xff\xff\xff\xff\xff\xff\xff": -256} {
		if got, ok := looseNumber(append([]byte(field), 0)); ok != (want != -1) || ok && got != want {
			t.Errorf("%q is loosely %d, %v, want %d", field, got, ok, want)
		}
	}
}
