package pytorch

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// The signatures and fixed sizes of PKWARE's APPNOTE.TXT 6.3.
const (
	sigLocal        = 0x04034b50
	sigDirectory    = 0x02014b50
	sigEnd          = 0x06054b50
	sigEnd64        = 0x06064b50
	sigEnd64Locator = 0x07064b50

	lenLocal        = 30
	lenDirectory    = 46
	lenEnd          = 22
	lenEnd64        = 56
	lenEnd64Locator = 20

	maxComment = math.MaxUint16
	max32      = math.MaxUint32
	max16      = math.MaxUint16

	extraZip64 = 0x0001

	flagEncrypted  = 1 << 0
	flagDescriptor = 1 << 3
	flagStrong     = 1 << 6
	flagMasked     = 1 << 13

	methodStored  = 0
	methodDeflate = 8
)

// entry is one record of a zip archive as the central directory has it.
type entry struct {
	name   string
	method uint16
	flags  uint16
	crc    uint32
	size   int64 // bytes when uncompressed
	stored int64 // bytes in the file
	header int64 // offset of the local header
	data   int64 // offset of the first byte, once the local header was proved; else -1
	used   bool  // whether it is a storage, or was read and its checksum was right
}

func (e *entry) isFolder() bool { return strings.HasSuffix(e.name, "/") }

// archive is the directory of a zip file. It is the authority on names and
// sizes: torch leaves the sizes of local headers zero (flag bit 3). The
// standard library's reader is not used because it takes too much on trust: it
// does not compare local headers with the directory, lets records overlap and
// repeat, counts records modulo 65,536, and fails on the zero checksums that
// torch.serialization.set_crc32_options(False) and skip_data write.
type archive struct {
	src       checkpoint.Source
	entries   []entry          // in the order of the directory
	byPlace   []int32          // indexes of entries by the offset of their headers
	index     map[string]int32 // by full name, folded; -1 for a name that repeats
	directory int64            // offset of the central directory
	faults    map[int32]error  // what is wrong with an entry's local header
	late      *lateProof       // proves local headers when they are needed; nil once all are proved
}

// readArchive reads the central directory of src and nothing else.
func readArchive(src checkpoint.Source, limits checkpoint.Limits) (*archive, error) {
	end, err := readEnd(src)
	if err != nil {
		return nil, err
	}
	if err := end.check(src.Size()); err != nil {
		return nil, err
	}
	if err := checkpoint.At("records", end.count, limits.Records); err != nil {
		return nil, err
	}
	text, err := readText(src, end.offset, end.size)
	if err != nil {
		return nil, err
	}
	a := &archive{src: src, directory: end.offset}
	if err := a.parse(text, end); err != nil {
		return nil, err
	}
	if err := a.arrange(); err != nil {
		return nil, err
	}
	return a, nil
}

// directoryEnd is what the end records say of the central directory.
type directoryEnd struct {
	count  int64
	size   int64 // bytes
	offset int64
	at     int64 // where the first end record begins, which is where the directory must end
}

func readEnd(src checkpoint.Source) (directoryEnd, error) {
	end, locator, err := smallEnd(src)
	if err != nil || locator == nil {
		return end, err
	}
	return readEnd64(src, end, locator)
}

// smallEnd reads the end record that every archive has, and the locator of the
// zip64 one in front of it, nil if there is none.
func smallEnd(src checkpoint.Source) (end directoryEnd, locator []byte, err error) {
	tail := make([]byte, min(src.Size(), lenEnd+maxComment+lenEnd64Locator))
	base := src.Size() - int64(len(tail))
	if err := readFull(src, tail, base); err != nil {
		return end, nil, err
	}
	i := lastEnd(tail)
	if i < 0 {
		return end, nil, fault.New(fault.Malformed, "a zip file without its central directory").
			Needs("a whole file", "the download is incomplete or was truncated; get it again")
	}
	b := tail[i:]
	if comment := int(le16(b, 20)); lenEnd+comment > len(b) {
		return end, nil, fault.New(fault.Malformed, "a zip file that ends inside its comment").At(base+int64(i)).
			Needs(strconv.Itoa(comment)+" bytes behind its end record", "the download is incomplete or was truncated; get it again")
	}
	end = directoryEnd{
		count:  int64(le16(b, 10)),
		size:   int64(le32(b, 12)),
		offset: int64(le32(b, 16)),
		at:     base + int64(i),
	}
	if le16(b, 4) != 0 || le16(b, 6) != 0 || le16(b, 8) != le16(b, 10) {
		if end.count != max16 {
			return end, nil, errVolume()
		}
	}
	if i < lenEnd64Locator || le32(tail[i-lenEnd64Locator:], 0) != sigEnd64Locator {
		return end, nil, nil
	}
	return end, tail[i-lenEnd64Locator : i], nil
}

func errVolume() error {
	return fault.New(fault.Unsupported, "one volume of a split zip archive").Needs("a single file", "join its volumes first, for example with zip -s 0")
}

// archiveShift returns how far the archive that ends src lies behind the place
// where its offsets put it: above zero with something in front of it, below
// with its beginning cut off. It is false where nothing looks like the end of one.
func archiveShift(src checkpoint.Source) (shift int64, ok bool) {
	end, locator, err := smallEnd(src)
	if err != nil {
		return 0, false
	}
	if locator != nil {
		at := end.at - lenEnd64Locator - lenEnd64 // where it must be, whatever the locator says
		b := make([]byte, lenEnd64)
		if at < 0 || readFull(src, b, at) != nil || le32(b, 0) != sigEnd64 {
			return 0, false
		}
		end = wideEnd(b, at)
	}
	if end.size < 0 || end.size > end.at || end.offset < 0 {
		return 0, false
	}
	return end.at - end.size - end.offset, true
}

// lastEnd finds the last end record, which is the one that torch's miniz and
// Python's zipfile take: one inside a comment wins over the one before it, and so
// does one whose own comment is not there.
func lastEnd(tail []byte) int {
	return bytes.LastIndex(tail[:max(len(tail)-lenEnd+4, 0)], []byte{'P', 'K', 5, 6})
}

// readEnd64 reads the zip64 end record, which torch always writes. Its values
// count; the small record must say the same or "see there".
func readEnd64(src checkpoint.Source, small directoryEnd, locator []byte) (directoryEnd, error) {
	at := le64(locator, 8)
	if at < 0 || at > small.at-lenEnd64Locator-lenEnd64 {
		return small, badEnd("the zip64 end record at "+strconv.FormatInt(at, 10), small.at)
	}
	b := make([]byte, lenEnd64)
	if err := readFull(src, b, at); err != nil {
		return small, err
	}
	end := wideEnd(b, at)
	agrees := func(small, big, most int64) bool { return small == most || small == big }
	switch {
	case le32(b, 0) != sigEnd64:
		return end, badEnd("no zip64 end record where the locator points", at)
	case le32(b, 16) != 0 || le32(b, 20) != 0:
		return end, errVolume()
	case !agrees(small.count, end.count, max16) || !agrees(small.size, end.size, max32) || !agrees(small.offset, end.offset, max32):
		return end, badEnd("two end records that disagree", at)
	}
	return end, nil
}

// wideEnd is what a zip64 end record at an offset says.
func wideEnd(b []byte, at int64) directoryEnd {
	return directoryEnd{count: le64(b, 32), size: le64(b, 40), offset: le64(b, 48), at: at}
}

// check proves that the directory lies in the file, right before its end
// record. Bytes in front of the archive would shift it.
func (d directoryEnd) check(size int64) error {
	switch {
	case d.offset < 0 || d.size < 0 || d.count < 0 || d.offset > size || d.size > size-d.offset || d.offset+d.size > d.at:
		return badEnd("a central directory of "+strconv.FormatInt(d.size, 10)+" bytes at "+strconv.FormatInt(d.offset, 10), d.at)
	case d.offset+d.size != d.at:
		return badEnd(strconv.FormatInt(d.at-d.size-d.offset, 10)+" bytes more than the archive accounts for", d.at)
	case d.count > d.size/lenDirectory:
		return badEnd(strconv.FormatInt(d.count, 10)+" records in a directory of "+strconv.FormatInt(d.size, 10)+" bytes", d.at)
	}
	return nil
}

func badEnd(found string, at int64) error {
	return fault.New(fault.Malformed, found).At(at).
		Needs("a central directory that ends where its end record begins", "the file is damaged or was joined with another")
}

// parse reads the entries. Their names stay parts of text.
func (a *archive) parse(text string, end directoryEnd) error {
	a.entries = make([]entry, 0, end.count)
	for at := 0; at < len(text); {
		e, n, err := parseEntry(text[at:])
		if err != nil {
			return inRecord(err, "central directory", int64(at))
		}
		a.entries = append(a.entries, e)
		at += n
	}
	if int64(len(a.entries)) != end.count {
		return badEnd(strconv.Itoa(len(a.entries))+" records where "+strconv.FormatInt(end.count, 10)+" were announced", end.at)
	}
	return nil
}

func parseEntry(text string) (entry, int, error) {
	if len(text) < lenDirectory || le32(text, 0) != sigDirectory {
		return entry{}, 0, fault.New(fault.Malformed, "no directory entry where one must be").
			Needs("as many entries as the end record says", fault.MadeToDeceive)
	}
	name, extra, comment := int(le16(text, 28)), int(le16(text, 30)), int(le16(text, 32))
	length := lenDirectory + name + extra + comment
	if length > len(text) {
		return entry{}, 0, fault.New(fault.Malformed, "a directory entry that is cut short").Needs("a whole entry", fault.MadeToDeceive)
	}
	e := entry{
		name:   text[lenDirectory : lenDirectory+name],
		flags:  le16(text, 8),
		method: le16(text, 10),
		crc:    le32(text, 16),
		stored: int64(le32(text, 20)),
		size:   int64(le32(text, 24)),
		header: int64(le32(text, 42)),
		data:   -1,
	}
	if e.size != max32 && e.stored != max32 && e.header != max32 {
		return e, length, nil
	}
	wide := e
	err := widen(text[lenDirectory+name:lenDirectory+name+extra], &wide.size, &wide.stored, &wide.header)
	return wide, length, err
}

// widen replaces the fields that say "see the zip64 extra" by what it has, in
// the order in which it has them.
func widen(extra string, fields ...*int64) error {
	needed := slices.DeleteFunc(fields, func(f *int64) bool { return *f != max32 })
	if len(needed) == 0 {
		return nil
	}
	body, ok := findExtra(extra, extraZip64)
	if !ok {
		return nil // a size of exactly 2^32-1 in a small file
	}
	for _, f := range needed {
		if len(body) < 8 {
			return fault.New(fault.Malformed, "a zip64 field that is cut short").Needs("8 bytes for each size", fault.MadeToDeceive)
		}
		if *f, body = le64(body, 0), body[8:]; *f < 0 {
			return fault.New(fault.Malformed, "a zip64 size beyond 2^63").Needs("a size that 63 bits can say", fault.MadeToDeceive)
		}
	}
	return nil
}

func findExtra(extra string, tag uint16) (string, bool) {
	for len(extra) >= 4 {
		have, n := le16(extra, 0), int(le16(extra, 2))
		if extra = extra[4:]; n > len(extra) {
			return "", false
		}
		if have == tag {
			return extra[:n], true
		}
		extra = extra[n:]
	}
	return "", false
}

// arrange indexes the entries by name and by place, and proves that none
// overlaps the next, as far as the directory alone can tell.
func (a *archive) arrange() error {
	a.index = make(map[string]int32, len(a.entries))
	a.byPlace = make([]int32, len(a.entries))
	repeats := 0
	for i := range a.entries {
		a.byPlace[i] = int32(i)
		name := fold(a.entries[i].name)
		if a.index[name] = int32(i); len(a.index)+repeats <= i {
			a.index[name] = -1
			repeats++
		}
	}
	byHeader := func(i, j int32) int { return compare(a.entries[i].header, a.entries[j].header) }
	if !slices.IsSortedFunc(a.byPlace, byHeader) {
		slices.SortStableFunc(a.byPlace, byHeader)
	}
	for k, i := range a.byPlace {
		e := &a.entries[i]
		least := lenLocal + int64(len(e.name))
		if room := a.limit(k) - e.header - least; e.stored > room {
			return overlap(e)
		}
	}
	return nil
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return 0
	}
}

// limit is where the k-th entry by place must have ended: at the next header
// or at the directory.
func (a *archive) limit(k int) int64 {
	if k+1 < len(a.byPlace) {
		return a.entries[a.byPlace[k+1]].header
	}
	return a.directory
}

func overlap(e *entry) error {
	return fault.New(fault.Malformed, "a record that reaches into the next").InRecord(e.name).At(e.header).
		Needs("records one after the other", "the file is damaged or was made to deceive")
}

// fold returns a name as torch looks it up: without regard to the case of
// ASCII's letters (miniz.c, mz_zip_reader_filename_less).
func fold(name string) string {
	for i := range len(name) {
		if isUpper(name[i]) {
			return lower(name)
		}
	}
	return name
}

func lower(name string) string {
	b := []byte(name)
	for i, c := range b {
		if isUpper(c) {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

// find returns the entry with the full name, nil if there is none. A name that
// stands twice, be it in two spellings, is an error: readers would differ on which it is.
func (a *archive) find(name string) (*entry, error) {
	i, ok := a.index[fold(name)]
	switch {
	case !ok:
		return nil, nil
	case i < 0:
		return nil, fault.New(fault.Malformed, "two records of one name").InRecord(name).
			Needs("one", "the file is damaged or was made to deceive")
	default:
		return &a.entries[i], nil
	}
}

// has reports whether some record has the full name.
func (a *archive) has(name string) bool {
	_, ok := a.index[fold(name)]
	return ok
}

// hasBelow reports whether some record lies in a folder.
func (a *archive) hasBelow(folder string) bool {
	return slices.ContainsFunc(a.entries, func(e entry) bool { return strings.HasPrefix(e.name, folder) })
}

// records lists the entries in the order of the file.
func (a *archive) records() []checkpoint.Record {
	list := make([]checkpoint.Record, 0, len(a.entries))
	for k, i := range a.byPlace {
		e := &a.entries[i]
		at := a.data(e)
		switch {
		case at < 0 && a.late != nil:
			at = a.expected(k)
		case at < 0:
			at = e.header
		}
		list = append(list, checkpoint.Record{Name: e.name, Offset: at, Size: e.size, Stored: e.stored})
	}
	return list
}

// readText reads a range of src, which exists, as one string.
func readText(src checkpoint.Source, off, size int64) (string, error) {
	if size > math.MaxInt {
		return "", fault.NewLimit("bytes in memory on this machine", size, math.MaxInt)
	}
	var text strings.Builder
	text.Grow(int(size))
	n, err := io.Copy(&text, io.NewSectionReader(src, off, size))
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	return text.String(), readError(err, off+n)
}

// readFull fills p from off, where the bytes were proved to be.
func readFull(src io.ReaderAt, p []byte, off int64) error {
	n, err := src.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return readError(err, off+int64(n))
}

// readError is what it means that bytes which were proved to exist could not
// be read.
func readError(err error, at int64) error {
	var known *fault.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fault.New(fault.Changed, "shorter than it was when it was opened").At(at)
	default:
		return fault.Wrap(fault.IO, "read failed", err).At(at)
	}
}

func inRecord(err error, record string, at int64) error {
	return fault.At(fault.InRecord(err, record), at)
}

func le16[T string | []byte](b T, at int) uint16 { return uint16(b[at]) | uint16(b[at+1])<<8 }

func le32[T string | []byte](b T, at int) uint32 {
	return uint32(le16(b, at)) | uint32(le16(b, at+2))<<16
}

// le64 reads a 64-bit size or offset; beyond 2^63 it is negative.
func le64[T string | []byte](b T, at int) int64 {
	return int64(uint64(le32(b, at)) | uint64(le32(b, at+4))<<32)
}
