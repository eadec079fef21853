package attacks

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"strings"
)

// Record is an entry of a zip archive that can lie about itself.
type Record struct {
	Name    string
	Data    string
	Deflate bool
	Flags   uint16
	Method  uint16              // beside what Deflate says
	Local   func(header []byte) // changes the local header
	Central func(header []byte) // changes the directory's entry
	Extra   string              // of the directory's entry
	At      int64               // where the directory says that it lies, 0 for where it is
}

// Zip is an archive that can lie about itself.
type Zip struct {
	Prefix  string
	Records []Record
	Comment string
	End     func(record []byte) // changes the end record
	Zip64   func(record []byte) // changes a zip64 end record, which nil leaves out
}

// Bytes returns the archive.
func (z Zip) Bytes() []byte {
	var b bytes.Buffer
	b.WriteString(z.Prefix)
	var directory []byte
	for _, r := range z.Records {
		directory = append(directory, r.write(&b, len(z.Prefix))...)
	}
	at := b.Len() - len(z.Prefix)
	b.Write(directory)
	end := make([]byte, 22, 22+len(z.Comment))
	copy(end, "PK\x05\x06")
	n := uint16(len(z.Records))
	binary.LittleEndian.PutUint16(end[8:], n)
	binary.LittleEndian.PutUint16(end[10:], n)
	binary.LittleEndian.PutUint32(end[12:], uint32(len(directory)))
	binary.LittleEndian.PutUint32(end[16:], uint32(at))
	binary.LittleEndian.PutUint16(end[20:], uint16(len(z.Comment)))
	if z.Zip64 != nil {
		z.wide(&b, end)
	}
	if z.End != nil {
		z.End(end)
	}
	b.Write(append(end, z.Comment...))
	return b.Bytes()
}

// wide writes a zip64 end record with what the small one says, and its locator.
func (z Zip) wide(b *bytes.Buffer, end []byte) {
	at := b.Len()
	r := make([]byte, 56)
	copy(r, "PK\x06\x06")
	binary.LittleEndian.PutUint64(r[4:], 44)
	for i, n := range []uint64{uint64(binary.LittleEndian.Uint16(end[8:])), uint64(binary.LittleEndian.Uint16(end[10:])),
		uint64(binary.LittleEndian.Uint32(end[12:])), uint64(binary.LittleEndian.Uint32(end[16:]))} {
		binary.LittleEndian.PutUint64(r[24+8*i:], n)
	}
	z.Zip64(r)
	b.Write(r)
	b.WriteString("PK\x06\x07" + u32(0) + u64(uint64(at)) + u32(1))
}

// write writes the local header and the data, and returns the directory's entry.
func (r Record) write(b *bytes.Buffer, base int) []byte {
	at, stored, method := b.Len()-base, r.Data, r.Method
	if r.Deflate {
		stored, method = deflated(r.Data), 8
	}
	h := make([]byte, 30)
	copy(h, "PK\x03\x04")
	central := make([]byte, 46)
	copy(central, "PK\x01\x02")
	for _, f := range []struct {
		header []byte
		at     int
	}{{h, 6}, {central, 8}} {
		binary.LittleEndian.PutUint16(f.header[f.at:], r.Flags)
		binary.LittleEndian.PutUint16(f.header[f.at+2:], method)
		binary.LittleEndian.PutUint32(f.header[f.at+8:], crc32.ChecksumIEEE([]byte(r.Data)))
		binary.LittleEndian.PutUint32(f.header[f.at+12:], uint32(len(stored)))
		binary.LittleEndian.PutUint32(f.header[f.at+16:], uint32(len(r.Data)))
		binary.LittleEndian.PutUint16(f.header[f.at+20:], uint16(len(r.Name)))
	}
	if r.At != 0 {
		at = int(r.At)
	}
	binary.LittleEndian.PutUint32(central[42:], uint32(at))
	binary.LittleEndian.PutUint16(central[30:], uint16(len(r.Extra)))
	if r.Local != nil {
		r.Local(h)
	}
	if r.Central != nil {
		r.Central(central)
	}
	b.Write(h)
	b.WriteString(r.Name + stored)
	return concat(string(central), r.Name, r.Extra)
}

func deflated(s string) string {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		panic("attacks: " + err.Error())
	}
	_, _ = strings.NewReader(s).WriteTo(w) // a buffer takes everything
	_ = w.Close()
	return b.String()
}

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = strings.NewReader(s).WriteTo(w) // a buffer takes everything
	_ = w.Close()
	return b.String()
}

func put16(at int, v uint16) func([]byte) {
	return func(h []byte) { binary.LittleEndian.PutUint16(h[at:], v) }
}

func put32(at int, v uint32) func([]byte) {
	return func(h []byte) { binary.LittleEndian.PutUint32(h[at:], v) }
}

func put64(at int, v uint64) func([]byte) {
	return func(h []byte) { binary.LittleEndian.PutUint64(h[at:], v) }
}

// model is the object of a checkpoint with one tensor of the storage "0".
var model = dict("w", tensor(storage("0", 16), 0, []int64{4, 4}, []int64{4, 1}))

const floats = "\x00\x00\x80\x3f"

// with is a sound archive with changes to its records and its end.
func with(name string, exits []int, change func(z *Zip), mentions ...string) Case {
	return single("zip: "+name, exits, func() []byte {
		z := Zip{Records: []Record{{Name: "m/data.pkl", Data: model}, {Name: "m/data/0", Data: repeat(floats, 16)}, {Name: "m/version", Data: "3\n"}}}
		change(&z)
		return z.Bytes()
	}, mentions...)
}

// stackBomb makes the pickle a compressed stack of 60 MiB: values that nothing
// takes off it again.
func stackBomb(unit string) func(*Zip) {
	return func(z *Zip) {
		z.Records[0] = Record{Name: "m/data.pkl", Data: "\x80\x04(N" + repeat(unit, 60<<20/len(unit)) + "l.", Deflate: true}
	}
}

// stackBombs are small archives of pickles whose stack grows without end.
func stackBombs() []Case {
	return []Case{
		with("a bomb of None", Refused, stackBomb("N")),
		with("a bomb of empty tuples", Refused, stackBomb(")")),
		with("a bomb of DUP", Refused, stackBomb("2")),
		with("a bomb of letters", Refused, stackBomb("\x8c\x01a")),
		with("a bomb of floats", Refused, stackBomb("G12345678")),
		with("a bomb of globals", Refused, stackBomb("ca\nb\n")),
	}
}

// Zips are archives that lie.
func Zips() []Case {
	cases := []Case{
		with("sound", Sound, func(*Zip) {}),
		with("deflated", Sound, func(z *Zip) { z.Records[0].Deflate, z.Records[1].Deflate = true, true }),
		with("the storage overlaps the pickle", Malformed, func(z *Zip) { z.Records[1].Central = put32(42, 0) }),
		with("two storages in one place", Malformed, func(z *Zip) {
			z.Records = append(z.Records, Record{Name: "m/data/1", Data: "x", At: 1})
		}),
		with("headers of other names", Malformed, func(z *Zip) { z.Records[1].Local = func(h []byte) { h[26]-- } }),
		with("headers of other sizes", Malformed, func(z *Zip) { z.Records[1].Local = put32(22, 12) }),
		with("headers of other methods", Malformed, func(z *Zip) { z.Records[1].Local = put16(8, 8) }),
		with("an extra field over the data", Malformed, func(z *Zip) { z.Records[2].Local = put16(28, 65535); z.Records[1].Local = put16(28, 65535) }),
		with("two storages of one name", Malformed, func(z *Zip) { z.Records = append(z.Records, z.Records[1]) }, "two records"),
		with("two pickles of one name", Malformed, func(z *Zip) { z.Records = append(z.Records, z.Records[0]) }, "two records"),
		with("no storage", Malformed, func(z *Zip) { z.Records = append(z.Records[:1:1], z.Records[2]) }),
		with("a path that climbs", Sound, func(z *Zip) { z.Records = append(z.Records, Record{Name: "../../../../tmp/wick-climbed", Data: "x"}) }),
		with("an absolute path", Sound, func(z *Zip) { z.Records = append(z.Records, Record{Name: "/tmp/wick-climbed", Data: "x"}) }),
		with("a NUL in a name", Any, func(z *Zip) { z.Records[1].Name = "m/data/0\x00.txt" }),
		with("a NUL in the pickle's name", Any, func(z *Zip) { z.Records[0].Name = "m/data.pkl\x00" }),
		with("encrypted", []int{4}, func(z *Zip) { z.Records[0].Flags = 1 }, "encrypted"),
		with("encrypted storage", []int{4}, func(z *Zip) { z.Records[1].Flags = 1 }),
		with("bad CRC of the pickle", Malformed, func(z *Zip) { z.Records[0].Central = put32(16, 1); z.Records[0].Local = put32(14, 1) }, "checksum"),
		with("bad CRC of a storage", Any, func(z *Zip) { z.Records[1].Central = put32(16, 1); z.Records[1].Local = put32(14, 1) }),
		with("an unknown method", []int{4}, func(z *Zip) { z.Records[0].Method = 99 }),
		with("DEFLATE that is none", Malformed, func(z *Zip) { z.Records[0].Method = 8 }),
		with("junk in front", Any, func(z *Zip) { z.Prefix = repeat("junk", 100) }),
		with("another archive in front", Any, func(z *Zip) { z.Prefix = string(Checkpoint("N.")) }),
		with("an archive in the comment", Any, func(z *Zip) { z.Comment = string(Checkpoint("N.")) }),
		with("an end record in the comment", Any, func(z *Zip) { z.Comment = "PK\x05\x06" + repeat("\x00", 18) }),
		with("a comment that is not there", Malformed, func(z *Zip) { z.End = put16(20, 5) }),
		with("a comment of 65535 bytes", Sound, func(z *Zip) { z.Comment = repeat("c", 65535) }),
		with("a split archive", []int{3, 4}, func(z *Zip) { z.End = put16(4, 7) }),
		with("a zip64 locator into nowhere", Malformed, func(z *Zip) {
			z.Comment = ""
			z.Records = append(z.Records, Record{Name: "m/x", Data: "PK\x06\x07" + u32(0) + u64(1<<40) + u32(1)})
			z.Zip64 = func(r []byte) { r[0] = 'X' }
		}),
		with("nothing in it", Refused, func(z *Zip) { z.Records = nil }),
		with("a pickle bomb", Refused, func(z *Zip) {
			z.Records[0] = Record{Name: "m/data.pkl", Data: "\x80\x02(" + repeat("}", 40<<20), Deflate: true}
		}),
		with("a string bomb", Refused, func(z *Zip) {
			z.Records[0] = Record{Name: "m/data.pkl", Data: "\x80\x02X" + u32(100<<20) + repeat("a", 100<<20) + ".", Deflate: true}
		}),
		with("a storage bomb", Any, func(z *Zip) {
			z.Records[0].Data = dict("w", tensor(storage("0", 25<<20), 0, []int64{25 << 20}, []int64{1}))
			z.Records[1] = Record{Name: "m/data/0", Data: repeat("\x00", 100<<20), Deflate: true}
		}),
		with("a ratio beyond DEFLATE", Refused, func(z *Zip) {
			z.Records[1] = Record{Name: "m/data/0", Data: repeat(floats, 16), Deflate: true, Central: put32(24, 1<<31), Local: put32(22, 1<<31)}
		}),
	}
	for _, n := range hugeNumbers {
		cases = append(cases,
			with(numbered("a stored size of", n), Refused, func(z *Zip) { z.Records[1].Central = put32(20, uint32(n)) }),
			with(numbered("a size of", n), Refused, func(z *Zip) { z.Records[1].Central = put32(24, uint32(n)) }),
			with(numbered("a header at", n), Refused, func(z *Zip) { z.Records[1].Central = put32(42, uint32(n)) }),
			with(numbered("a directory at", n), Malformed, func(z *Zip) { z.End = put32(16, uint32(n|1)) }),
			with(numbered("a directory of bytes", n), Malformed, func(z *Zip) { z.End = put32(12, uint32(n|1)) }),
			with(numbered("zip64 records", n), Malformed, func(z *Zip) { z.Zip64, z.End = put64(32, n), put16(10, 65535) }),
			with(numbered("a zip64 directory at", n), Malformed, func(z *Zip) { z.Zip64, z.End = put64(48, n), put32(16, 1<<32-1) }),
			with(numbered("a zip64 directory of bytes", n), Malformed, func(z *Zip) { z.Zip64, z.End = put64(40, n), put32(12, 1<<32-1) }),
			with(numbered("a zip64 size of", n), Refused, func(z *Zip) {
				z.Records[1].Central, z.Records[1].Extra = put32(24, 1<<32-1), "\x01\x00"+u16(8)+u64(n)
			}),
			with(numbered("a zip64 header at", n), Refused, func(z *Zip) {
				z.Records[1].Central, z.Records[1].Extra = put32(42, 1<<32-1), "\x01\x00"+u16(8)+u64(n)
			}),
		)
	}
	return append(append(cases, stackBombs()...), wrappers()...)
}

// wrappers are archives in archives and compressions.
func wrappers() []Case {
	inside := func(levels int, wrap func([]byte) []byte) func() []byte {
		return func() []byte {
			b := Checkpoint(model)
			for range levels {
				b = wrap(b)
			}
			return b
		}
	}
	zipped := func(b []byte) []byte { return Zip{Records: []Record{{Name: "model.pt", Data: string(b)}}}.Bytes() }
	gz := func(b []byte) []byte { return []byte(gzipped(string(b))) }
	return []Case{
		single("zips in zips: 3", Any, inside(3, zipped)), single("zips in zips: 100", Refused, inside(100, zipped)),
		single("gzip in gzip: 3", Sound, inside(3, gz)), single("gzip in gzip: 100", Refused, inside(100, gz)),
		single("a gzip bomb", Refused, func() []byte { return gz(make([]byte, 200<<20)) }),
		single("a gzip bomb in a gzip", Refused, func() []byte { return gz(gz(make([]byte, 200<<20))) }),
		single("a gzip that is cut", Malformed, func() []byte { b := gz(Checkpoint(model)); return b[:len(b)/2] }),
		single("a gzip with a wrong checksum", Malformed, func() []byte { b := gz(Checkpoint(model)); b[len(b)-5] ^= 1; return b }),
		single("a zstd window of gigabytes", Refused, func() []byte { return []byte("\x28\xb5\x2f\xfd\x00\xf8\x01\x00\x00") }),
	}
}

// hugeNumbers are where signed and unsigned sizes of 32 and 64 bits end.
var hugeNumbers = []uint64{1 << 31, 1<<32 - 1, 1 << 63, 1<<64 - 1}
