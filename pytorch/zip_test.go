package pytorch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// zipRecord is one record of an archive that a test lays out byte by byte.
type zipRecord struct {
	name    string
	data    string
	deflate bool
	flags   uint16
	method  uint16              // overrides what deflate says when not 0
	pad     int                 // bytes of the local extra field
	size    int64               // overrides the size when not 0
	local   func(header []byte) // changes the local header
	central func(header []byte) // changes the directory entry
	sums    func(crc uint32) uint32
}

// zipLayout is an archive.
type zipLayout struct {
	records []zipRecord
	prefix  string
	gap     string // between the last record and the directory
	after   string // between the directory and its end record
	comment string
	zip64   func(end []byte) // nil for no zip64 end record
	end     func(end []byte)
}

func (l zipLayout) bytes() []byte {
	le := binary.LittleEndian
	var file, directory []byte
	file = append(file, l.prefix...)
	for _, r := range l.records {
		at := len(file) - len(l.prefix)
		body := []byte(r.data)
		method := r.method
		if r.deflate {
			method, body = methodDeflate, deflated(r.data)
		}
		size := uint32(len(r.data))
		if r.size != 0 {
			size = uint32(r.size)
		}
		sum := crc32.ChecksumIEEE([]byte(r.data))
		if r.sums != nil {
			sum = r.sums(sum)
		}
		common := le.AppendUint16(nil, r.flags)
		common = le.AppendUint16(common, method)
		common = le.AppendUint32(common, 0) // time and date
		common = le.AppendUint32(common, sum)
		common = le.AppendUint32(common, uint32(len(body)))
		common = le.AppendUint32(common, size)
		common = le.AppendUint16(common, uint16(len(r.name)))

		local := append(le.AppendUint32(nil, sigLocal), 20, 0)
		local = append(local, common...)
		local = le.AppendUint16(local, uint16(r.pad))
		if r.flags&flagDescriptor != 0 {
			clear(local[14:26])
		}
		local = append(append(local, r.name...), make([]byte, r.pad)...)
		if r.local != nil {
			r.local(local)
		}
		file = append(append(file, local...), body...)
		if r.flags&flagDescriptor != 0 {
			file = append(le.AppendUint32(file, 0x08074b50), common[8:20]...)
		}

		entry := append(le.AppendUint32(nil, sigDirectory), 20, 0, 20, 0)
		entry = append(entry, common...)
		entry = append(entry, make([]byte, 12)...)
		entry = le.AppendUint32(entry, uint32(at))
		entry = append(entry, r.name...)
		if r.central != nil {
			r.central(entry)
		}
		directory = append(directory, entry...)
	}
	file = append(file, l.gap...)
	start := len(file) - len(l.prefix)
	file = append(append(file, directory...), l.after...)
	if l.zip64 != nil {
		at := len(file) - len(l.prefix)
		end := le.AppendUint64(le.AppendUint32(nil, sigEnd64), 44)
		end = append(end, 45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		for _, v := range []int{len(l.records), len(l.records), len(directory), start} {
			end = le.AppendUint64(end, uint64(v))
		}
		end = append(le.AppendUint32(end, sigEnd64Locator), 0, 0, 0, 0)
		end = append(le.AppendUint64(end, uint64(at)), 1, 0, 0, 0)
		l.zip64(end)
		file = append(file, end...)
	}
	end := append(le.AppendUint32(nil, sigEnd), 0, 0, 0, 0)
	for range 2 {
		end = le.AppendUint16(end, uint16(len(l.records)))
	}
	end = le.AppendUint32(end, uint32(len(directory)))
	end = le.AppendUint32(end, uint32(start))
	end = le.AppendUint16(end, uint16(len(l.comment)))
	if l.end != nil {
		l.end(end)
	}
	return append(append(file, end...), l.comment...)
}

func deflated(s string) []byte {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err == nil {
		_, err = w.Write([]byte(s))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// put16 and put32 return changes of a header.
func put16(at int, v uint16) func([]byte) {
	return func(b []byte) { binary.LittleEndian.PutUint16(b[at:], v) }
}

func put32(at int, v uint32) func([]byte) {
	return func(b []byte) { binary.LittleEndian.PutUint32(b[at:], v) }
}

func put64(at int, v uint64) func([]byte) {
	return func(b []byte) { binary.LittleEndian.PutUint64(b[at:], v) }
}

func nothing([]byte) {}

var defaults = checkpoint.Limits{}.Default()

func openArchive(b []byte, limits checkpoint.Limits) (*archive, error) {
	a, err := readArchive(checkpoint.NewBytes("test.zip", b), limits)
	if err != nil {
		return nil, err
	}
	if err := a.prove(); err != nil {
		return nil, err
	}
	return a, nil
}

// three are records that lie as torch and as other writers lay them.
func three() []zipRecord {
	return []zipRecord{
		{name: "top/data.pkl", data: "pickle", flags: flagDescriptor, pad: 11},
		{name: "top/data/0", data: strings.Repeat("0123456789", 20), deflate: true},
		{name: "top/data/1", data: strings.Repeat("x", 100), pad: 64},
	}
}

func TestZipLayouts(t *testing.T) {
	cases := map[string]zipLayout{
		"plain":                       {},
		"zip64 end record":            {zip64: nothing},
		"zip64 end record that rules": {zip64: nothing, end: func(b []byte) { put16(8, max16)(b); put16(10, max16)(b); put32(12, max32)(b); put32(16, max32)(b) }},
		"comment":                     {comment: "made by hand"},
		"bytes after the end":         {comment: "", end: nothing},
		"gap":                         {gap: "something between the records and the directory"},
	}
	for name, layout := range cases {
		layout.records = three()
		a, err := openArchive(layout.bytes(), defaults)
		if err != nil || len(a.faults) > 0 {
			t.Errorf("%s: %v, %v", name, err, a)
			continue
		}
		for _, r := range three() {
			e, err := a.find(r.name)
			if err != nil || e == nil {
				t.Fatalf("%s: %s: %v, %v", name, r.name, e, err)
			}
			if got, err := a.read(e, 1<<20, defaults); err != nil || string(got) != r.data {
				t.Errorf("%s: %s holds %q, %v", name, r.name, got, err)
			}
		}
	}
}

func TestZipDirectoryLies(t *testing.T) {
	one := func(change func(*zipRecord)) func(*zipLayout) {
		return func(l *zipLayout) { change(&l.records[1]) }
	}
	cases := map[string]struct {
		change func(*zipLayout)
		want   error
	}{
		"junk before":               {func(l *zipLayout) { l.prefix = "junk" }, fault.ErrMalformed},
		"junk before the end":       {func(l *zipLayout) { l.after = "junk" }, fault.ErrMalformed},
		"more records":              {func(l *zipLayout) { l.end = func(b []byte) { put16(8, 4)(b); put16(10, 4)(b) } }, fault.ErrMalformed},
		"fewer records":             {func(l *zipLayout) { l.end = func(b []byte) { put16(8, 2)(b); put16(10, 2)(b) } }, fault.ErrMalformed},
		"65,536 records more":       {func(l *zipLayout) { l.zip64 = put64(32, 3+1<<16) }, fault.ErrMalformed},
		"2^63 records":              {func(l *zipLayout) { l.zip64 = put64(32, 1<<63) }, fault.ErrMalformed},
		"directory elsewhere":       {func(l *zipLayout) { l.end = put32(16, 7) }, fault.ErrMalformed},
		"directory at 2^64":         {func(l *zipLayout) { l.zip64 = put64(48, 1<<64-1); l.end = put32(16, max32) }, fault.ErrMalformed},
		"directory of 2^62":         {func(l *zipLayout) { l.zip64 = put64(40, 1<<62); l.end = put32(12, max32) }, fault.ErrMalformed},
		"end records that disagree": {func(l *zipLayout) { l.zip64 = put64(48, 1) }, fault.ErrMalformed},
		"locator that points away":  {func(l *zipLayout) { l.zip64 = put64(lenEnd64+8, 1<<40) }, fault.ErrMalformed},
		"locator at nothing":        {func(l *zipLayout) { l.zip64 = put64(lenEnd64+8, 3) }, fault.ErrMalformed},
		"split archive":             {func(l *zipLayout) { l.end = put16(4, 1) }, fault.ErrUnsupported},
		"no directory entry":        {one(func(r *zipRecord) { r.central = put32(0, 1) }), fault.ErrMalformed},
		"name past the directory":   {func(l *zipLayout) { l.records[2].central = put16(28, 60000) }, fault.ErrMalformed},
		"overlap":                   {one(func(r *zipRecord) { r.central = put32(20, 1<<20) }), fault.ErrMalformed},
		"two records in one place":  {one(func(r *zipRecord) { r.central = put32(42, 0) }), fault.ErrMalformed},
		"header past the directory": {one(func(r *zipRecord) { r.central = put32(42, 1<<30) }), fault.ErrMalformed},
	}
	for name, c := range cases {
		layout := zipLayout{records: three()}
		c.change(&layout)
		if _, err := openArchive(layout.bytes(), defaults); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestZipRecordLies(t *testing.T) {
	cases := map[string]struct {
		change func(*zipRecord)
		want   error
	}{
		"encrypted":               {func(r *zipRecord) { r.flags = flagEncrypted }, fault.ErrUnsupported},
		"strongly encrypted":      {func(r *zipRecord) { r.flags = flagStrong }, fault.ErrUnsupported},
		"encrypted in one header": {func(r *zipRecord) { r.local = put16(6, 1) }, fault.ErrMalformed},
		"other method":            {func(r *zipRecord) { r.local = put16(8, 0) }, fault.ErrMalformed},
		"method lzma":             {func(r *zipRecord) { r.deflate, r.method = false, 14 }, fault.ErrUnsupported},
		"method 1234":             {func(r *zipRecord) { r.deflate, r.method = false, 1234 }, fault.ErrUnsupported},
		"no local header":         {func(r *zipRecord) { r.local = put32(0, 0) }, fault.ErrMalformed},
		"other name":              {func(r *zipRecord) { r.local = func(b []byte) { b[lenLocal]++ } }, fault.ErrMalformed},
		"longer name":             {func(r *zipRecord) { r.local = put16(26, 11) }, fault.ErrMalformed},
		"huge extra field":        {func(r *zipRecord) { r.local = put16(28, 65535) }, fault.ErrMalformed},
		"other stored size":       {func(r *zipRecord) { r.local = put32(18, 3) }, fault.ErrMalformed},
		"other size":              {func(r *zipRecord) { r.local = put32(22, 3) }, fault.ErrMalformed},
		"other checksum":          {func(r *zipRecord) { r.local = put32(14, 3) }, fault.ErrMalformed},
		"zip64 without the field": {func(r *zipRecord) { r.local = put32(22, max32) }, fault.ErrMalformed},
		"wrong checksum":          {func(r *zipRecord) { r.sums = func(c uint32) uint32 { return c ^ 1 } }, fault.ErrChecksum},
		"longer than said":        {func(r *zipRecord) { r.size = 199 }, fault.ErrMalformed},
		"shorter than said":       {func(r *zipRecord) { r.size = 201 }, fault.ErrMalformed},
		"bomb":                    {func(r *zipRecord) { r.size = 1 << 30 }, fault.ErrLimit},
		"no DEFLATE data":         {func(r *zipRecord) { r.deflate, r.method = false, methodDeflate }, fault.ErrMalformed},
		"stored in two sizes":     {func(r *zipRecord) { r.deflate, r.size = false, 5 }, fault.ErrMalformed},
	}
	for name, c := range cases {
		layout := zipLayout{records: three()}
		c.change(&layout.records[1])
		for way, open := range map[string]archiveOpener{"near": openArchive, "far": openFarArchive} {
			checkRecordLie(t, way+": "+name, open, layout.bytes(), c.want)
		}
	}
}

type archiveOpener func(b []byte, limits checkpoint.Limits) (*archive, error)

// checkRecordLie holds that a lie about top/data/0 costs that record alone.
func checkRecordLie(t *testing.T, name string, open archiveOpener, b []byte, want error) {
	t.Helper()
	a, err := open(b, defaults)
	if err != nil {
		t.Errorf("%s: it cost the archive: %v", name, err)
		return
	}
	for _, record := range []string{"top/data.pkl", "top/data/1"} {
		if _, err := a.read(mustFind(t, a, record), 1<<20, defaults); err != nil {
			t.Errorf("%s: it cost %s: %v", name, record, err)
		}
	}
	if _, err = a.read(mustFind(t, a, "top/data/0"), 1<<31, defaults); !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", name, err, want)
	}
	var e *fault.Error
	if errors.As(err, &e) && e.Record != "top/data/0" {
		t.Errorf("%s: the error names record %q", name, e.Record)
	}
}

func mustFind(t *testing.T, a *archive, name string) *entry {
	t.Helper()
	e, err := a.find(name)
	if err != nil || e == nil {
		t.Fatalf("%s: %v, %v", name, e, err)
	}
	return e
}

func TestZipNamesThatRepeat(t *testing.T) {
	records := append(three(), zipRecord{name: "top/data/1", data: "other"}, zipRecord{name: "top/data/1", data: "third"})
	a, err := openArchive(zipLayout{records: records}.bytes(), defaults)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.find("top/data/1"); !errors.Is(err, fault.ErrMalformed) {
		t.Errorf("a name that stands three times: %v", err)
	}
	if e, err := a.find("top/data/0"); e == nil || err != nil {
		t.Errorf("it cost another record: %v, %v", e, err)
	}
	if e, err := a.find("top/data/2"); e != nil || err != nil {
		t.Errorf("a record that is not there: %v, %v", e, err)
	}
}

func TestZipLastEndRecordCounts(t *testing.T) {
	inner := zipLayout{records: []zipRecord{{name: "inner", data: "1"}}}.bytes()
	fake := zipLayout{}.bytes()
	layout := zipLayout{records: []zipRecord{{name: "outer", data: string(inner)}}, comment: string(fake)}
	a, err := openArchive(layout.bytes(), defaults)
	if err == nil {
		t.Errorf("an end record inside a comment gave %d entries", len(a.entries))
	}
	layout.comment = ""
	if a, err = openArchive(layout.bytes(), defaults); err != nil || a.entries[0].name != "outer" {
		t.Errorf("an archive in an archive: %v", err)
	}
}

func TestZipRecordLimit(t *testing.T) {
	b := zipLayout{records: three()}.bytes()
	for _, limit := range []int64{2, 3} {
		limits := checkpoint.Limits{Records: limit}.Default()
		if _, err := openArchive(b, limits); errors.Is(err, fault.ErrLimit) != (limit == 2) {
			t.Errorf("three records under a limit of %d: %v", limit, err)
		}
	}
}

func TestZipWithoutChecksums(t *testing.T) {
	records := three()
	for i := range records {
		records[i].sums = func(uint32) uint32 { return 0 }
	}
	a, err := openArchive(zipLayout{records: records}.bytes(), defaults)
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.storage(mustFind(t, a, "top/data/1"), tensor.LittleEndian, defaults)
	if err != nil {
		t.Fatal(err)
	}
	if _, has := s.CRC32(); has {
		t.Error("a checksum that was not computed is believed")
	}
	if _, err := a.read(mustFind(t, a, "top/data/1"), 1<<20, defaults); err != nil {
		t.Error(err)
	}
}

func TestZipStorages(t *testing.T) {
	b := zipLayout{records: three()}.bytes()
	a, err := openArchive(b, defaults)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := a.storage(mustFind(t, a, "top/data/1"), tensor.BigEndian, defaults)
	if err != nil {
		t.Fatal(err)
	}
	file, off, ok := plain.Extent()
	at := bytes.Index(b, []byte("xxxxx"))
	if !ok || file != io.ReaderAt(a.src) || off != int64(at) || plain.Size() != 100 || plain.Order() != tensor.BigEndian {
		t.Errorf("extent %v, %d, %v; size %d; order %v; the data begins at %d", file, off, ok, plain.Size(), plain.Order(), at)
	}
	if got := plain.Lent(); string(got) != strings.Repeat("x", 100) {
		t.Errorf("lends %q", got)
	}
	packed, err := a.storage(mustFind(t, a, "top/data/0"), tensor.LittleEndian, defaults)
	if err != nil {
		t.Fatal(err)
	}
	if !packed.Sequential() || packed.Size() != 200 || packed.Lent() != nil {
		t.Errorf("a deflated record: sequential %v, size %d", packed.Sequential(), packed.Size())
	}
}

func TestZipTruncatedAnywhere(t *testing.T) {
	b := zipLayout{records: three(), zip64: nothing}.bytes()
	for n := range b {
		a, err := openArchive(b[:n], defaults)
		if err == nil {
			t.Fatalf("%d of %d bytes gave %d entries", n, len(b), len(a.entries))
		}
		if !errors.Is(err, fault.ErrMalformed) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
	}
}

func TestZipFarHeadersAreReadAlone(t *testing.T) {
	var records []zipRecord
	for i := range 40 {
		size := 10
		if i >= 30 {
			size = 20000
		}
		records = append(records, zipRecord{name: "top/data/" + string(rune('A'+i)), data: strings.Repeat("x", size)})
	}
	b := zipLayout{records: records}.bytes()
	counted := &countingReader{r: bytes.NewReader(b)}
	a, err := readArchive(checkpoint.NewReaderAt("test.zip", counted, int64(len(b))), defaults)
	if err != nil {
		t.Fatal(err)
	}
	counted.sizes = nil
	if err := a.prove(); err != nil || len(a.faults) > 0 {
		t.Fatal(err, a.faults)
	}
	total := 0
	for _, n := range counted.sizes {
		total += n
	}
	if len(counted.sizes) > 24 || total > 2*headerWindow {
		t.Errorf("40 headers took %d reads of %d bytes", len(counted.sizes), total)
	}
	for i := range a.entries {
		if got, err := a.read(&a.entries[i], 1<<20, defaults); err != nil || string(got) != records[i].data {
			t.Errorf("%s: %d bytes, %v", records[i].name, len(got), err)
		}
	}
}

type countingReader struct {
	r     io.ReaderAt
	sizes []int
}

func (c *countingReader) ReadAt(p []byte, off int64) (int, error) {
	c.sizes = append(c.sizes, len(p))
	return c.r.ReadAt(p, off)
}

func TestZipTopFolder(t *testing.T) {
	cases := []struct {
		names []string
		top   string
		want  error
	}{
		{[]string{"archive/data.pkl", "archive/data/0"}, "archive/", nil},
		{[]string{"data.pkl", "data/0"}, "", nil},
		{[]string{"data.pkl", "sub/data.pkl"}, "", nil},
		{[]string{"a/b/c/data.pkl"}, "a/b/c/", nil},
		{[]string{"__MACOSX/data.pkl", "a/b/data.pkl"}, "a/b/", nil},
		{[]string{"a/__MACOSX/data.pkl", "a/b/c/data.pkl"}, "a/b/c/", nil},
		{[]string{"x/version", "a/data.pkl", "x/data.pkl"}, "x/", nil},
		{[]string{"readme", "a/data.pkl", "b/data.pkl"}, "", fault.ErrUnsupported},
		{[]string{"моя модель (v2) é/data.pkl"}, "моя модель (v2) é/", nil},
	}
	for _, c := range cases {
		var records []zipRecord
		for _, name := range c.names {
			records = append(records, zipRecord{name: name, data: "x"})
		}
		a, err := openArchive(zipLayout{records: records}.bytes(), defaults)
		if err != nil {
			t.Fatal(err)
		}
		top, found, err := findTop(a.names())
		if !errors.Is(err, c.want) || top != c.top || found != (c.want == nil) {
			t.Errorf("%q: %q, %v, %v", c.names, top, found, err)
		}
	}
}

func TestZipSniff(t *testing.T) {
	yes := [][]byte{zipLayout{records: three()}.bytes(), zipLayout{}.bytes()}
	no := [][]byte{nil, []byte("PK"), []byte("PK\x01\x02"), []byte("\x80\x02")}
	for _, b := range yes {
		if !(zipFormat{}).Sniff(b, nil) {
			t.Errorf("%q is not taken", b[:4])
		}
	}
	if i := slices.IndexFunc(no, func(b []byte) bool { return zipFormat{}.Sniff(b, nil) }); i >= 0 {
		t.Errorf("%q is taken", no[i])
	}
}

func BenchmarkZipDirectory(b *testing.B) {
	records := make([]zipRecord, 100_000)
	for i := range records {
		records[i] = zipRecord{name: "archive/data/" + strconv.Itoa(i), data: "1234", pad: 40, flags: flagDescriptor}
	}
	file := zipLayout{records: records, zip64: nothing, end: func(e []byte) { put16(8, max16)(e); put16(10, max16)(e) }}.bytes()
	src := checkpoint.NewReaderAt("bench.zip", bytes.NewReader(file), int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		a, err := readArchive(src, defaults)
		if err != nil {
			b.Fatal(err)
		}
		if err := a.prove(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
}

func TestSalvageOfThePickle(t *testing.T) {
	files := unpacked()
	records := []zipRecord{
		{name: "m/data.pkl", data: files["data.pkl"], sums: func(c uint32) uint32 { return c ^ 1 }},
		{name: "m/data/0", data: files["data/0"]}, {name: "m/data/1", data: files["data/1"]},
	}
	data := zipLayout{records: records}.bytes()
	if _, err := OpenBytes(t.Context(), "test", data); !errors.Is(err, fault.ErrChecksum) {
		t.Errorf("%v", err)
	}
	c, err := OpenBytes(t.Context(), "test", data, Salvage())
	if err != nil || !strings.Contains(c.Info.Metadata["salvaged"], "data.pkl") {
		t.Fatalf("%v, %v", c, err)
	}
	if a := vector(t, c, "a"); !equalFloats(a, 4, 5) {
		t.Errorf("a is %v", a)
	}
	records[0].data = files["data.pkl"][:50]
	if _, err := OpenBytes(t.Context(), "test", zipLayout{records: records}.bytes(), Salvage()); !errors.Is(err, fault.ErrChecksum) {
		t.Errorf("a pickle that cannot be understood either: %v", err)
	}
}

// capitals is a checkpoint whose records stand in other letters, which torch finds
// all the same: the byte order too.
func capitals(more ...zipRecord) zipLayout {
	return zipLayout{records: append([]zipRecord{
		{name: "m/DATA.pkl", data: unpacked()["data.pkl"]}, {name: "m/ByteOrder", data: "big"},
		{name: "m/data/0", data: floats(3, 4, 5)}, {name: "M/Data/1", data: "\x3f\x80\x00\x00\x40\x00\x00\x00"},
	}, more...)}
}

func TestZipNamesInCapitals(t *testing.T) {
	c, err := OpenBytes(t.Context(), "test", capitals().bytes())
	if err != nil {
		t.Fatal(err)
	}
	if b := vector(t, c, "b"); !equalFloats(b, 1, 2) {
		t.Errorf("b is %v", b)
	}
	for _, twin := range []string{"m/data.PKL", "m/BYTEORDER", "m/DATA/1"} {
		file := capitals(zipRecord{name: twin, data: unpacked()["data.pkl"]}).bytes()
		c, err := OpenBytes(t.Context(), "test", file)
		if err == nil {
			err = mustLookup(t, c.Root, "b").(*nested.Tensor).Err()
		}
		if !errors.Is(err, fault.ErrMalformed) {
			t.Errorf("with a twin called %s: %v", twin, err)
		}
	}
}

// One pass takes names as they stand, and never other values than random access.
func TestStreamNamesInCapitals(t *testing.T) {
	for _, change := range []string{"m/DATA.pkl", "m/ByteOrder", "M/Data/1"} {
		layout := capitals()
		for i := range layout.records {
			if r := &layout.records[i]; r.name != change {
				r.name = fold(r.name)
			}
		}
		c, err := OpenStream(t.Context(), "test", bytes.NewReader(layout.bytes()), Formats(), checkpoint.Options{})
		if err == nil {
			_, _, err = sums(t, c)
		}
		if err == nil && change != "m/DATA.pkl" {
			t.Errorf("%s was passed over", change)
		}
	}
	twins := capitals(zipRecord{name: "m/data.pkl", data: "\x80\x02}."})
	for i := range 4 {
		twins.records[i].name = fold(twins.records[i].name)
	}
	twins.records[4].name = "M/DATA.PKL"
	c, err := OpenStream(t.Context(), "test", bytes.NewReader(twins.bytes()), Formats(), checkpoint.Options{})
	if err == nil {
		_, _, err = sums(t, c)
	}
	if !errors.Is(err, fault.ErrMalformed) {
		t.Errorf("two pickles: %v", err)
	}
}

// Torch takes the folder of the directory's first record, wherever it lies.
func TestZipTop(t *testing.T) {
	for want, names := range map[string][]string{
		"a/":    {"a/data.pkl", "b/data.pkl"},
		"b/":    {"b/version", "a/data.pkl", "b/data.pkl"},
		"data/": {"data/data.pkl", "data.pkl"},
		"":      {"x", "data.pkl", "data/data.pkl"},
		"c/d/":  {"c/d/data.pkl", "c/d/version"},
		"m/":    {"__MACOSX/m/._data.pkl", "m/data.pkl"},
		"M/":    {"M/Data.pkl", "m/data/0"},
	} {
		var layout zipLayout
		for _, name := range names {
			layout.records = append(layout.records, zipRecord{name: name, data: "}."})
		}
		a, err := openArchive(layout.bytes(), defaults)
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(a.byPlace) // as if they lay in another order than the directory has
		if got, found, err := a.top(); err != nil || !found || got != want {
			t.Errorf("%q: %q, %v, %v, want %q", names, got, found, err, want)
		}
	}
}

func TestZipEndsInsideItsComment(t *testing.T) {
	first := zipLayout{records: three()}.bytes()
	for what, file := range map[string][]byte{
		"alone":              zipLayout{records: three(), end: put16(20, 1)}.bytes(),
		"behind another end": append(first, zipLayout{end: put16(20, 1)}.bytes()...),
	} {
		if _, err := openArchive(file, defaults); !errors.Is(err, fault.ErrMalformed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
