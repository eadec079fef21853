package record_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/record"
	"github.com/wick-ml/wick/record/meta"
	"github.com/wick-ml/wick/safetensors"
	"github.com/wick-ml/wick/tensor"
)

const cborTag = "\xd9\xd9\xf7"

// small is a record of every kind of part that is still small.
func small() nested.Value {
	return mapOf("dict", nested.String("w"), leafOf([]float32{1, 2, 3}), nested.String("h"), leafOf([]tensor.BFloat16{1, 2}, 2, 1),
		nested.String("n"), nested.NewList("tuple", nested.Int(300), nested.String("text")))
}

func TestEveryByteIsChecked(t *testing.T) {
	for _, target := range []checkpoint.Target{safetensors.Target{}, record.CBORTarget{}} {
		file := save(t, target, small(), checkpoint.RecordHeader{Type: "T", Writer: "w"})
		for at := range file {
			for _, flip := range []byte{1, 0x80} {
				file[at] ^= flip
				if c, err := open(t.Context(), file); err == nil && readAll(c) == nil {
					t.Errorf("%s: byte %d of %d changed by %#x and nobody noticed", target.Name(), at, len(file), flip)
				}
				file[at] ^= flip
			}
		}
	}
}

// JSON is for people: what stands behind the text's checksum is theirs, and a
// number may be spelled otherwise as long as it is the same.
func TestEveryByteOfJSONIsChecked(t *testing.T) {
	file := save(t, record.JSONTarget{}, small(), checkpoint.RecordHeader{Type: "T", Writer: "w"})
	want := describe(t, small())
	end := bytes.Index(file, []byte(`"crc32"`))
	for at := range end {
		file[at] ^= 1
		if c, err := open(t.Context(), file); err == nil && describe(t, c.Root) != want {
			t.Errorf("byte %d of %d changed and nobody noticed: %s", at, len(file), file)
		}
		file[at] ^= 1
	}
}

func TestTruncatedRecords(t *testing.T) {
	for _, target := range []checkpoint.Target{safetensors.Target{}, record.CBORTarget{}, record.JSONTarget{}} {
		file := save(t, target, small(), checkpoint.RecordHeader{})
		file = bytes.TrimRight(file, "\n")
		for n := range file {
			_, err := open(t.Context(), file[:n])
			if err == nil {
				t.Fatalf("%s: %d of %d bytes open", target.Name(), n, len(file))
			}
			if n > 20 && fault.KindOf(err) != fault.Malformed {
				t.Errorf("%s cut to %d: %v, want a malformed error", target.Name(), n, err)
			}
		}
	}
}

// A wrong length field once asked for 758,360,262 bytes on a machine that had
// far less. Here it costs nothing.
func TestClaimedLengthCostsNothing(t *testing.T) {
	const claim = 758_360_262
	length := func(major byte) string {
		return string(binary.BigEndian.AppendUint32([]byte{major<<5 | 26}, claim))
	}
	pad := strings.Repeat("\x00", 4096)
	files := map[string]string{
		"CBOR bytes":       cborTag + length(2) + pad,
		"CBOR text":        cborTag + length(3) + pad,
		"CBOR list":        cborTag + length(4) + pad,
		"CBOR map":         cborTag + length(5) + pad,
		"CBOR big number":  cborTag + "\xc2" + length(2) + pad,
		"CBOR typed array": cborTag + "\xd8\x55" + length(2) + pad,
		"CBOR tensor":      cborTag + "\xd8\x28\x82\x81" + length(0) + "\xd8\x55" + length(2) + pad,
		"CBOR shape":       cborTag + "\xd8\x28\x82\x81" + length(0) + "\xd8\x55\x44abcd" + pad,
		"CBOR dimensions":  cborTag + "\xd8\x28\x82" + length(4) + pad,
		"safetensors":      string(binary.LittleEndian.AppendUint64(nil, claim)) + `{"` + pad,
		"JSON tensor":      `{"wick":{"version":1},"root":{"$tensor":{"dtype":"float32","shape":[758360262],"data":[1]}}}` + strings.Repeat(" ", 4096),
	}
	for name, file := range files {
		b := []byte(file)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := open(t.Context(), b)
		runtime.ReadMemStats(&after)
		if fault.KindOf(err) != fault.Malformed {
			t.Errorf("%s: %v, want a malformed error", name, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 24<<10 {
			t.Errorf("%s: %d bytes allocated for a file of %d", name, used, len(b))
		}
	}
}

func TestRefusedCBOR(t *testing.T) {
	deep := cborTag + strings.Repeat("\x81", 20_000) + "\x00"
	cases := map[string]struct {
		file string
		kind fault.Kind
	}{
		"nothing":             {cborTag, fault.Malformed},
		"bytes behind":        {cborTag + "\x00\x00", fault.Malformed},
		"reserved head":       {cborTag + "\x1c", fault.Malformed},
		"indefinite":          {cborTag + "\x9f\xff", fault.Unsupported},
		"unknown tag":         {cborTag + "\xc1\x00", fault.Unsupported},
		"float128 array":      {cborTag + "\xd8\x57\x50" + strings.Repeat("a", 16), fault.Unsupported},
		"column-major":        {cborTag + "\xd9\x04\x10\x82\x81\x01\xd8\x40\x41a", fault.Unsupported},
		"list as array":       {cborTag + "\xd8\x28\x82\x81\x01\x81\x00", fault.Unsupported},
		"bytes and shape":     {cborTag + "\xd8\x28\x82\x81\x02\xd8\x55\x44abcd", fault.Malformed},
		"overflowing shape":   {cborTag + "\xd8\x28\x82\x82" + strings.Repeat("\x1b\x7f\xff\xff\xff\xff\xff\xff\xff", 2) + "\xd8\x55\x44abcd", fault.Malformed},
		"negative dimension":  {cborTag + "\xd8\x28\x82\x81\x20\xd8\x55\x40", fault.Malformed},
		"text for bytes":      {cborTag + "\xd8\x28\x82\x81\x01\xd8\x55\x64abcd", fault.Malformed},
		"no UTF-8":            {cborTag + "\x61\xff", fault.Malformed},
		"unassigned simple":   {cborTag + "\xf0", fault.Unsupported},
		"a key twice":         {cborTag + "\xa2\x00\x01\x00\x02", fault.Malformed},
		"a list as key":       {cborTag + "\xa1\x80\x00", fault.Malformed},
		"an object's name":    {cborTag + "\xd8\x1b\x81\x01", fault.Malformed},
		"an object's args":    {cborTag + "\xd8\x1b\x82\x61a\x01", fault.Malformed},
		"dtype and bits":      {cborTag + "\xd8\x1b\x83\x6bwick.tensor\x68bfloat16\xd8\x28\x82\x81\x04\xd8\x40\x44abcd", fault.Malformed},
		"unknown dtype":       {cborTag + "\xd8\x1b\x83\x6bwick.tensor\x66float9\xd8\x28\x82\x81\x04\xd8\x40\x44abcd", fault.Unsupported},
		"depth":               {deep, fault.Limit},
		"record of no header": {cborTag + "\xa1\x64wick\x01", fault.Malformed},
		"record of no root":   {cborTag + "\xa1\x64wick\xa1\x67version\x01", fault.Malformed},
		"version 0":           {cborTag + "\xa1\x64wick\xa1\x67version\x00", fault.Malformed},
		"version 2":           {cborTag + "\xa1\x64wick\xa1\x67version\x02", fault.Unsupported},
	}
	for name, c := range cases {
		if _, err := open(t.Context(), []byte(c.file)); fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want kind %s", name, err, c.kind)
		}
	}
}

func TestRefusedJSON(t *testing.T) {
	root := func(s string) string { return `{"wick":{"version":1},"root":` + s + `}` }
	leaf := func(s string) string { return root(`{"$tensor":` + s + `}`) }
	cases := map[string]struct {
		file string
		kind fault.Kind
	}{
		"no root":         {`{"wick":{"version":1}}`, fault.Malformed},
		"version 7":       {`{"wick":{"version":7},"root":1}`, fault.Unsupported},
		"no version":      {`{"wick":{},"root":1}`, fault.Malformed},
		"text behind":     {root("1") + "x", fault.Malformed},
		"key twice":       {root(`{"a":1,"a":2}`), fault.Malformed},
		"no object":       {root(`{"$tuple":1}`), fault.Malformed},
		"two objects":     {root(`{"$tuple":[[1]],"b":1}`), fault.Malformed},
		"bad hex":         {root(`{"$bytes":["0"]}`), fault.Malformed},
		"bad float":       {root(`{"$float":["1"]}`), fault.Malformed},
		"float range":     {root(`1e999`), fault.Malformed},
		"dict key twice":  {root(`{"$dict":[[1,2],[1,3]]}`), fault.Malformed},
		"dict of numbers": {root(`{"$dict":[[1,2],3]}`), fault.Malformed},
		"depth":           {root(strings.Repeat("[", 20_000)), fault.Limit},
		"dtype":           {leaf(`{"dtype":"float9","shape":[1],"data":[1]}`), fault.Unsupported},
		"quantized":       {leaf(`{"dtype":"qint8","shape":[1],"data":[1]}`), fault.Unsupported},
		"data first":      {leaf(`{"data":[1],"dtype":"float32","shape":[1]}`), fault.Malformed},
		"no data":         {leaf(`{"dtype":"float32","shape":[1]}`), fault.Malformed},
		"too few":         {leaf(`{"dtype":"float32","shape":[3],"data":[1,2]}`), fault.Malformed},
		"too many":        {leaf(`{"dtype":"float32","shape":[1],"data":[1,2]}`), fault.Malformed},
		"int range":       {leaf(`{"dtype":"int8","shape":[1],"data":[128]}`), fault.Malformed},
		"int fraction":    {leaf(`{"dtype":"int8","shape":[1],"data":[1.5]}`), fault.Malformed},
		"uint sign":       {leaf(`{"dtype":"uint8","shape":[1],"data":[-1]}`), fault.Malformed},
		"bool range":      {leaf(`{"dtype":"bool","shape":[1],"data":[256]}`), fault.Malformed},
		"half range":      {leaf(`{"dtype":"float16","shape":[1],"data":[65520]}`), fault.Malformed},
		"no NaN":          {leaf(`{"dtype":"float32","shape":[1],"data":["0x7f800000"]}`), fault.Malformed},
		"a word":          {leaf(`{"dtype":"float32","shape":[1],"data":["one"]}`), fault.Malformed},
		"sums":            {`{"wick":{"version":1},"root":1,"crc32":[]}`, fault.Malformed},
		"wrong sum":       {`{"wick":{"version":1},"root":1,"crc32":["00000000"]}`, fault.Checksum},
	}
	for name, c := range cases {
		if _, err := open(t.Context(), []byte(c.file)); fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want kind %s", name, err, c.kind)
		}
	}
}

func TestLimits(t *testing.T) {
	root := mapOf("dict", nested.String("a"), leafOf([]int8{1}), nested.String("b"), leafOf([]int8{2}), nested.String("s"), nested.String("long text"))
	limits := map[string]checkpoint.Limits{
		"tensors": {Tensors: 1}, "depth": {Depth: 1}, "paths": {Paths: 2}, "header": {HeaderBytes: 16}, "strings": {StringBytes: 2},
	}
	applies := map[string]string{"safetensors": "tensors header", "cbor": "tensors depth paths strings", "json": "tensors header paths"}
	for _, target := range []checkpoint.Target{safetensors.Target{}, record.CBORTarget{}, record.JSONTarget{}} {
		file := save(t, target, root, checkpoint.RecordHeader{})
		for _, name := range strings.Fields(applies[target.Name()]) {
			if _, err := open(t.Context(), file, checkpoint.WithLimits(limits[name])); !errors.Is(err, fault.ErrLimit) {
				t.Errorf("%s with a limit on %s: %v", target.Name(), name, err)
			}
		}
	}
}

func TestMismatchNamesBothSides(t *testing.T) {
	c, err := open(t.Context(), save(t, record.CBORTarget{}, small(), checkpoint.RecordHeader{Type: "a.Net", Precision: "half", Writer: "wick 1"}))
	if err != nil {
		t.Fatal(err)
	}
	h, _ := meta.Told(c.Info)
	if err := meta.Check(h, checkpoint.RecordHeader{Type: "a.Net", Precision: "half"}); err != nil {
		t.Error(err)
	}
	if err := meta.Check(h, checkpoint.RecordHeader{}); err != nil {
		t.Error("nothing expected:", err)
	}
	for _, want := range []checkpoint.RecordHeader{{Type: "b.Net"}, {Precision: "full"}} {
		err := meta.Check(h, want)
		if !errors.Is(err, fault.ErrMismatch) {
			t.Fatalf("%+v: %v", want, err)
		}
		for _, side := range []string{h.Type, want.Type, h.Precision, want.Precision} {
			if side == "" || want.Type != "" && side == h.Precision || want.Precision != "" && side == h.Type {
				continue
			}
			if !strings.Contains(err.Error(), side) {
				t.Errorf("%q does not name %q", err, side)
			}
		}
	}
}

// Members that a later wick adds are passed over; those it leaves out are empty.
func TestTolerance(t *testing.T) {
	files := map[string]string{
		"json": `{"wick":{"version":1,"shape":{"x":[1]}},"later":[1,{"a":null}],"root":{"n":1}}`,
		"cbor": cborTag + "\xa4\x64wick\xa2\x67version\x01\x65later\x80\x65later\x81\x01\x64root\xa1\x61n\x01\x65crc32\x81\x1a\x00\x00\x00\x00",
	}
	for name, file := range files {
		c, err := open(t.Context(), []byte(file), checkpoint.Salvage())
		if err != nil {
			t.Fatal(name, err)
		}
		if got := describe(t, c.Root); got != describe(t, mapOf("dict", nested.String("n"), nested.Int(1))) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestUnstorable(t *testing.T) {
	meta := tensor.Unavailable(tensor.F32, []int{2}, fault.New(fault.NoData, "meta"))
	cases := map[string]struct {
		v    nested.Value
		cure string
	}{
		"meta":         {&nested.Tensor{Tensor: meta}, "`drop`"},
		"tensor key":   {mapOf("dict", leafOf([]int8{1}), nested.Int(1)), "`drop`"},
		"broken bytes": {&nested.Tensor{Tensor: tensor.Unavailable(tensor.F32, []int{2}, fault.New(fault.Unsupported, "x").Needs("", "cure y"))}, "cure y"},
	}
	for name, c := range cases {
		for _, target := range targets {
			_, err := target.Plan(mapOf("dict", nested.String("a"), c.v), checkpoint.TargetOptions{Record: &checkpoint.RecordHeader{}})
			var e *fault.Error
			if !errors.As(err, &e) || e.Kind != fault.Unsupported || !strings.HasPrefix(e.Path, "a") || !strings.Contains(e.Cure, c.cure) {
				t.Errorf("%s as %s: %v", name, target.Name(), err)
			}
		}
	}
}

func TestCycle(t *testing.T) {
	for _, target := range targets {
		m := mapOf("dict", nested.String("a"), nested.Int(1))
		if err := m.Set(nested.String("self"), m); err != nil {
			t.Fatal(err)
		}
		c, err := open(t.Context(), unpack(t, save(t, target, m, checkpoint.RecordHeader{})))
		if err != nil {
			t.Fatal(target.Name(), err)
		}
		want := mapOf("dict", nested.String("a"), nested.Int(1), nested.String("self"), &nested.Opaque{Class: "dict", Reason: "cycle"})
		if got := describe(t, c.Root); got != describe(t, want) {
			t.Errorf("%s: %s", target.Name(), got)
		}
	}
}
