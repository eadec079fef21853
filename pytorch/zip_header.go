package pytorch

import (
	"io"
	"slices"
	"strconv"

	"github.com/wick-ml/wick/fault"
)

// Where the data of a record begins stands only in its local header, behind a
// name and an extra field of any length. Nothing may be believed of it before
// it was read, so opening reads every local header once, in the order of the
// file: headers that are close together (100,000 small tensors) come in one
// read of a window, headers that are far apart (a storage of megabytes between
// them) in one small read each. A thousand records cost a thousand reads of a
// hundred bytes, less than a millisecond when the file is cached; a million
// tensors cost one pass over a file that is mostly headers. Over a network this
// would be a thousand round trips: there it is put off, see [lateProof].
const (
	headerWindow = 64 << 10 // bytes of a read for close headers
	headerClose  = 16       // headers within a window that make it worth while
	headerSlack  = 32       // bytes behind the name: a zip64 extra field, if there is one, begins there
)

// prove reads all local headers and compares them with the directory. What is
// wrong with one is kept for who needs that entry; only a failure to read ends
// it. Where reads are far it is put off until an entry is used.
func (a *archive) prove() error {
	if a.putOff() {
		return nil
	}
	w := window{src: a.src, end: a.directory}
	for k, i := range a.byPlace {
		e := &a.entries[i]
		head, err := w.at(e.header, lenLocal+len(e.name)+headerSlack, a.dense(k))
		if err != nil {
			return err
		}
		if e.data, err = a.proveOne(e, head, a.limit(k)); err != nil {
			a.blame(i, err)
		}
	}
	return nil
}

// dense reports whether the headers from the k-th on are close together.
func (a *archive) dense(k int) bool {
	far := k + headerClose
	return far < len(a.byPlace) && a.entries[a.byPlace[far]].header-a.entries[a.byPlace[k]].header < headerWindow
}

func (a *archive) blame(i int32, err error) {
	if a.faults == nil {
		a.faults = map[int32]error{}
	}
	a.faults[i] = err
}

// proveOne returns the offset of an entry's data, which must end at limit.
func (a *archive) proveOne(e *entry, head []byte, limit int64) (int64, error) {
	if len(head) < lenLocal+len(e.name) || le32(head, 0) != sigLocal {
		return -1, disagree(e, "no local header where the directory points", "")
	}
	extra := int64(le16(head, 28))
	data := e.header + lenLocal + int64(len(e.name)) + extra
	switch {
	case int(le16(head, 26)) != len(e.name) || string(head[lenLocal:lenLocal+len(e.name)]) != e.name:
		return -1, disagree(e, "a local header of another name", "")
	case le16(head, 8) != e.method:
		return -1, disagree(e, "method "+strconv.Itoa(int(le16(head, 8)))+" in the local header", "method "+strconv.Itoa(int(e.method)))
	case (le16(head, 6)^e.flags)&flagEncrypted != 0:
		return -1, disagree(e, "two opinions on encryption", "")
	case data > limit || e.stored > limit-data:
		return -1, overlap(e)
	}
	return data, a.proveSizes(e, head, extra)
}

// proveSizes compares the sizes of the local header, unless bit 3, of this header
// or of the directory's, says that they follow the data.
func (a *archive) proveSizes(e *entry, head []byte, extra int64) error {
	crc, stored, size := le32(head, 14), int64(le32(head, 18)), int64(le32(head, 22))
	follow := (e.flags|le16(head, 6))&flagDescriptor != 0
	if follow && crc == 0 && stored == 0 && size == 0 {
		return nil
	}
	if size == max32 || stored == max32 {
		var err error
		if size, stored, err = a.wideSizes(e, size, stored, extra); err != nil {
			return err
		}
	}
	if follow && stored == 0 && size == 0 {
		return nil
	}
	if stored != e.stored || size != e.size || crc != e.crc {
		return disagree(e, "a local header with other sizes or another checksum", strconv.FormatInt(e.size, 10)+" bytes")
	}
	return nil
}

// wideSizes reads the sizes from the local header's zip64 field.
func (a *archive) wideSizes(e *entry, size, stored, extra int64) (wideSize, wideStored int64, err error) {
	text, err := readText(a.src, e.header+lenLocal+int64(len(e.name)), extra)
	if err == nil {
		err = widen(text, &size, &stored)
	}
	return size, stored, inRecord(err, e.name, e.header)
}

func disagree(e *entry, found, need string) error {
	if need == "" {
		need = "a local header that agrees with the central directory"
	}
	return fault.New(fault.Malformed, found).InRecord(e.name).At(e.header).
		Needs(need, "the file is damaged or was made to deceive")
}

// usable returns why an entry cannot be read, nil if it can.
func (a *archive) usable(e *entry) error {
	if err := a.listed(e); err != nil || a.late == nil {
		return err
	}
	_, err := a.late.locate(e)
	return err
}

// listed is usable as far as is known without another read.
func (a *archive) listed(e *entry) error {
	if e.flags&(flagEncrypted|flagStrong|flagMasked) != 0 {
		return fault.New(fault.Unsupported, "an encrypted record").InRecord(e.name).
			Needs("a plain zip archive", "decrypt it first, for example by unpacking it with its password")
	}
	if len(a.faults) > 0 {
		if i, ok := a.index[fold(e.name)]; ok && i >= 0 && a.faults[i] != nil {
			return a.faults[i]
		}
	}
	switch e.method {
	case methodStored:
		if e.size != e.stored {
			return disagree(e, strconv.FormatInt(e.stored, 10)+" stored bytes", strconv.FormatInt(e.size, 10)+" bytes")
		}
	case methodDeflate:
	default:
		return fault.New(fault.Unsupported, "compression method "+methodName(e.method)).InRecord(e.name).
			Needs("stored or deflated records", "unpack it and save it again")
	}
	return nil
}

func methodName(method uint16) string {
	names := map[uint16]string{9: "deflate64", 12: "bzip2", 14: "lzma", 93: "zstd", 95: "xz", 99: "AES"}
	if name, ok := names[method]; ok {
		return name
	}
	return strconv.Itoa(int(method))
}

// window is the part of a file that was read last.
type window struct {
	src  io.ReaderAt
	end  int64 // where headers cannot be any more
	base int64
	buf  []byte
}

// at returns n bytes from off, fewer at the end. They are valid until the next
// call.
func (w *window) at(off int64, n int, dense bool) ([]byte, error) {
	if off < 0 || off >= w.end {
		return nil, nil
	}
	n = int(min(int64(n), w.end-off))
	if off >= w.base && off+int64(n) <= w.base+int64(len(w.buf)) {
		return w.buf[off-w.base:][:n], nil
	}
	size := n
	if dense {
		size = int(min(max(int64(n), headerWindow), w.end-off))
	}
	w.base, w.buf = off, slices.Grow(w.buf[:0], size)[:size]
	if err := readFull(w.src, w.buf, off); err != nil {
		w.buf = w.buf[:0]
		return nil, err
	}
	return w.buf[:n], nil
}
