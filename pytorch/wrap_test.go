package pytorch

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstded(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

func TestWrappers(t *testing.T) {
	sound := soundLegacy().bytes()
	cases := map[string]struct {
		data           []byte
		format, inside string
	}{
		"gzip":          {gzipped(t, sound), "gzip", "legacy"},
		"zstd":          {zstded(t, sound), "zstd", "legacy"},
		"gzip of zstd":  {gzipped(t, zstded(t, sound)), "gzip", "zstd around legacy"},
		"two members":   {append(gzipped(t, sound[:100]), gzipped(t, sound[100:])...), "gzip", "legacy"},
		"stored in zip": {zipLayout{records: []zipRecord{{name: "readme", data: "text"}, {name: "m.pth", data: string(sound)}}}.bytes(), "zip", "legacy"},
		"deflated in zip": {zipLayout{records: []zipRecord{{name: "m.pth", data: string(sound), deflate: true}, {name: "__MACOSX/m.pth", data: string(sound)},
			{name: "folder/", data: ""}, {name: ".DS_Store", data: "PK\x03\x04"}}}.bytes(), "zip", "legacy"},
	}
	for name, c := range cases {
		got, err := OpenBytes(t.Context(), "test", c.data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if a, b := vector(t, got, "a"), vector(t, got, "b"); !equalFloats(a, 4, 5) || !equalFloats(b, 1, 2) {
			t.Errorf("%s: a is %v, b is %v", name, a, b)
		}
		if got.Info.Format != c.format || got.Info.Metadata["inside"] != c.inside {
			t.Errorf("%s: format %q, inside %q", name, got.Info.Format, got.Info.Metadata["inside"])
		}
		if err := got.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
	}
}

// Python's bz2.compress of eight letters, since Go cannot write the format.
func TestBzip2(t *testing.T) {
	const letters = "425a68393141592653595024ec6100000001003fc02000310c08191a69933573f945dc914e142414093b1840"
	data, err := hex.DecodeString(letters)
	if err != nil {
		t.Fatal(err)
	}
	r, _, err := openBzip2(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "abcdefgh" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestWrapperErrors(t *testing.T) {
	sound := gzipped(t, soundLegacy().bytes())
	flipped := bytes.Clone(sound)
	flipped[len(flipped)-6] ^= 1 // of the checksum
	small := WithLimits(checkpoint.Limits{InflateBytes: 100})
	layers := soundLegacy().bytes()
	for range 12 {
		layers = gzipped(t, layers)
	}
	low := WithLimits(checkpoint.Limits{ExpandFloor: 4 << 20})
	bomb := gzipped(t, make([]byte, 8<<20))
	cases := map[string]struct {
		data []byte
		opts []Option
		want error
	}{
		"cut":               {sound[:len(sound)/2], nil, fault.ErrMalformed},
		"without its end":   {sound[:len(sound)-4], nil, fault.ErrMalformed},
		"checksum":          {flipped, nil, fault.ErrChecksum},
		"no gzip":           {append([]byte("\x1f\x8b\x08\xff"), make([]byte, 40)...), nil, fault.ErrMalformed},
		"no zstd":           {append([]byte("\x28\xb5\x2f\xfd"), make([]byte, 40)...), nil, fault.ErrMalformed},
		"no bzip2":          {append([]byte("BZh9"), make([]byte, 40)...), nil, fault.ErrMalformed},
		"over the limit":    {sound, []Option{small}, fault.ErrLimit},
		"bomb":              {bomb, []Option{low}, fault.ErrLimit},
		"twelve layers":     {layers, nil, fault.ErrLimit},
		"something in it":   {gzipped(t, []byte("<!DOCTYPE html><html></html>")), nil, fault.ErrUnsupported},
		"nothing in it":     {gzipped(t, nil), nil, fault.ErrMalformed},
		"two in a zip":      {zipLayout{records: []zipRecord{{name: "a.pt", data: string(sound)}, {name: "b.pt", data: string(sound)}}}.bytes(), nil, fault.ErrUnsupported},
		"none in a zip":     {zipLayout{records: []zipRecord{{name: "a.txt", data: "a"}, {name: "b.txt", data: "b"}}}.bytes(), nil, fault.ErrUnsupported},
		"a zip of nothing":  {zipLayout{}.bytes(), nil, fault.ErrMalformed},
		"a zip of a page":   {zipLayout{records: []zipRecord{{name: "a.pt", data: "<html></html>"}}}.bytes(), nil, fault.ErrUnsupported},
		"a bomb in a zip":   {zipLayout{records: []zipRecord{{name: "a.pt", data: strings.Repeat("\x00", 8<<20), deflate: true}}}.bytes(), []Option{low}, fault.ErrLimit},
		"a zip of itself":   {zipInZip(12), nil, fault.ErrLimit},
		"a checksum in zip": {zipLayout{records: []zipRecord{{name: "a.pt", data: string(soundLegacy().bytes()), deflate: true, sums: func(c uint32) uint32 { return c ^ 1 }}}}.bytes(), nil, fault.ErrChecksum},
	}
	for name, c := range cases {
		_, err := OpenBytes(t.Context(), "test", c.data, c.opts...)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// The limit that an error names must be the one to raise.
func TestLimitsThatErrorsName(t *testing.T) {
	bomb := gzipped(t, make([]byte, 8<<20))
	object := "\x80\x02" + strings.Repeat("N0", 4<<20) + "N."
	pickled := zipLayout{records: []zipRecord{{name: "a/data.pkl", data: object, deflate: true}}}.bytes()
	cases := map[string]struct {
		data   []byte
		limits checkpoint.Limits
		limit  string
	}{
		"wrapper that expands":   {bomb, checkpoint.Limits{ExpandFloor: 4 << 20}, "expand"},
		"wrapper that is held":   {bomb, checkpoint.Limits{InflateBytes: 1 << 20}, "inflate bytes"},
		"pickle that expands":    {pickled, checkpoint.Limits{ExpandFloor: 4 << 20}, "expand"},
		"pickle that is large":   {pickled, checkpoint.Limits{PickleBytes: 1 << 20}, "pickle bytes"},
		"record beyond DEFLATE":  {pickled, checkpoint.Limits{Inflate: 2}, "inflate"},
		"records that are many":  {zipLayout{records: three()}.bytes(), checkpoint.Limits{Records: 2}, "records"},
		"configuration too long": {exportArchive(weightJSON), checkpoint.Limits{HeaderBytes: 10}, "header bytes"},
	}
	for name, c := range cases {
		_, err := OpenBytes(t.Context(), "test", c.data, WithLimits(c.limits))
		var e *fault.Error
		if !errors.As(err, &e) || e.Kind != fault.Limit || e.Limit != c.limit || e.Value <= e.Max {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if e.Limit != "expand" {
			continue
		}
		c.limits.Expand = e.Value // as the error says
		if _, err := OpenBytes(t.Context(), "test", c.data, WithLimits(c.limits)); errors.As(err, &e) && e.Limit == "expand" {
			t.Errorf("%s: raised as asked for: %v", name, err)
		}
	}
}

func zipInZip(depth int) []byte {
	data := soundLegacy().bytes()
	for range depth {
		data = zipLayout{records: []zipRecord{{name: "inner.zip", data: string(data)}}}.bytes()
	}
	return data
}

func TestWrapperStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OpenBytes(ctx, "test", gzipped(t, soundLegacy().bytes())); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestInflateRoom(t *testing.T) {
	for present, want := range map[int64]int64{0: 64 << 20, 1 << 20: 96 << 20, 1 << 30: 1 << 30, 1 << 62: 1 << 30} {
		if got := inflateRoom(present, defaults); got != want {
			t.Errorf("%d bytes may become %d, want %d", present, got, want)
		}
	}
}

func TestChunks(t *testing.T) {
	text := strings.Repeat("0123456789", chunkSize/4)
	for _, n := range []int{0, 1, chunkSize - 1, chunkSize, chunkSize + 1, 2 * chunkSize, len(text)} {
		var c chunks
		if size, err := c.fill(strings.NewReader(text[:n]), 1<<30); err != nil || size != int64(n) {
			t.Fatalf("%d bytes: %d, %v", n, size, err)
		}
		got, err := io.ReadAll(io.NewSectionReader(&c, 0, int64(n)))
		if err != nil || string(got) != text[:n] {
			t.Errorf("%d bytes: %d come back, %v", n, len(got), err)
		}
		if k, err := c.ReadAt(make([]byte, 2), int64(n)-1); !errors.Is(err, io.EOF) || k > 1 {
			t.Errorf("%d bytes: %d past the end, %v", n, k, err)
		}
		if _, err := new(chunks).fill(strings.NewReader(text[:n]), int64(n)-1); !errors.Is(err, errRoom) {
			t.Errorf("%d bytes where one fewer is allowed: %v", n, err)
		}
	}
}

// A zip of one short text holds no checkpoint; one called a checkpoint is cut
// short.
func TestZipOfOneShortFile(t *testing.T) {
	for name, c := range map[string]struct {
		kind fault.Kind
		says string
	}{
		"hello.txt": {fault.Unsupported, "a zip archive of 1 file without a checkpoint: hello.txt"},
		"LICENSE":   {fault.Unsupported, "without a checkpoint: LICENSE"},
		"model.pt":  {fault.Malformed, "a file of 1 byte, too short"},
		"a/m.CKPT":  {fault.Malformed, "a file of 1 byte, too short"},
	} {
		_, err := OpenBytes(t.Context(), "test", zipLayout{records: []zipRecord{{name: name, data: "h"}}}.bytes())
		if fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
