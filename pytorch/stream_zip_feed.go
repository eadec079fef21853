package pytorch

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// load reads the pickle and what its record has behind it.
func (z *zipStream) load(main *local) (nested.Value, error) {
	if !main.sized && main.method == methodStored {
		return z.loadUnsized(main)
	}
	b := z.body(main, -1)
	root, err := z.loader.load(z.cursor(b))
	if err != nil {
		return nil, err
	}
	if err := b.end(); err != nil {
		return nil, err
	}
	return root, b.checked()
}

// loadUnsized reads a pickle that ends with its STOP opcode.
func (z *zipStream) loadUnsized(main *local) (nested.Value, error) {
	look := &lookReader{in: z.in}
	cursor := z.cursor(look)
	root, err := z.loader.load(cursor)
	if err != nil {
		return nil, err
	}
	look.stop(cursor.Offset())
	b := &body{z: z, h: main, sum: look.sum, size: cursor.Offset()}
	if err := b.settle(); err != nil {
		return nil, err
	}
	return root, b.checked()
}

// lookReader shows what comes and takes it only when more is asked for, so that
// a reader which asks too far leaves the rest where it was.
type lookReader struct {
	in    *streamReader
	shown []byte // by the last Read
	taken int64
	sum   uint32
}

// Read shows the next bytes.
func (l *lookReader) Read(p []byte) (int, error) {
	l.take(len(l.shown))
	b, err := l.in.some(len(p))
	l.shown = b
	if err != nil {
		return 0, l.in.ended(err)
	}
	return copy(p, b), nil
}

func (l *lookReader) take(n int) {
	l.sum = crc32.Update(l.sum, crc32.IEEETable, l.shown[:n])
	l.in.take(n)
	l.taken += int64(n)
}

// stop takes no more than size bytes in all, of which the last lie in what was
// shown last.
func (l *lookReader) stop(size int64) { l.take(int(size - l.taken)) }

// prelude reads the records up to the header of the first storage.
func (z *zipStream) prelude() error {
	for {
		h, err := z.header()
		if err != nil || h == nil {
			return err
		}
		if z.storages[h.name] != nil {
			z.next = h
			return nil
		}
		text, err := z.small(h)
		if err != nil {
			return err
		}
		if err := z.notice(strings.TrimPrefix(h.name, z.top), strings.TrimSpace(string(text))); err != nil {
			return err
		}
	}
}

// notice takes what the small records of torch say.
func (z *zipStream) notice(name, text string) error {
	switch name {
	case "byteorder":
		order, err := parseOrder(text, z.top+name)
		if err != nil {
			return err
		}
		z.info.Order = order
		for _, a := range z.storages {
			a.storage.SetOrder(order)
		}
	case "version", ".data/version", ".format_version", ".storage_alignment", ".data/serialization_id":
		if key := path.Base(name); z.info.Metadata[key] == "" && text != "" {
			z.info.Metadata[key] = text
		}
	}
	return nil
}

// small reads a record that is no storage, and returns its bytes as far as a
// note can be long.
func (z *zipStream) small(h *local) ([]byte, error) {
	if !h.sized && h.method == methodStored {
		return z.unsized(h)
	}
	b := z.body(h, -1)
	text, err := io.ReadAll(io.LimitReader(b, maxNote))
	if err != nil {
		return nil, err
	}
	if err := b.end(); err != nil {
		return nil, err
	}
	return text, b.checked()
}

// unsized reads a record that ends where a descriptor fits what came before it.
func (z *zipStream) unsized(h *local) ([]byte, error) {
	sum, summed := uint32(0), 0
	for at := 0; at <= maxUnsized; {
		text, err := z.in.peek(at + lenDescriptor)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, inRecord(z.in.ended(err), h.name, z.in.off)
		}
		i := bytes.Index(text[at:], []byte("PK\x07\x08"))
		if i > 0 {
			at += i
			continue // to see all of it
		}
		if i == 0 {
			if d, ok := fitDescriptor(text[at:], int64(at), int64(at)); ok {
				sum, summed = crc32.Update(sum, crc32.IEEETable, text[summed:at]), at
				if d.crc == sum || d.crc == 0 {
					return z.unsizedEnd(h, d, at, text), nil
				}
			}
			at++
		} else {
			at = max(at, len(text)-3)
		}
		if err != nil {
			return nil, inRecord(z.in.ended(err), h.name, z.in.off)
		}
	}
	return nil, fault.New(fault.Unsupported, "a record of unknown length and more than "+strconv.Itoa(maxUnsized)+" bytes").
		InRecord(h.name).Needs("a record that the pickle names", "save the stream to a file, and open that")
}

// unsizedEnd takes size bytes of text as the record, and its descriptor.
func (z *zipStream) unsizedEnd(h *local, d descriptor, size int, text []byte) []byte {
	note := bytes.Clone(text[:min(size, maxNote)])
	h.crc, h.size, h.stored = d.crc, int64(size), int64(size)
	z.in.take(size + d.length)
	z.entries = append(z.entries, h.entry)
	return note
}

// feed takes all records that follow.
func (z *zipStream) feed(f *tensor.Feed) error {
	for {
		h, err := z.header()
		if err != nil {
			return err
		}
		if h == nil {
			break
		}
		if a := z.storages[h.name]; a != nil {
			err = z.feedStorage(f, h, a)
		} else {
			err = z.feedOther(h)
		}
		if err != nil {
			return err
		}
	}
	if err := z.complete(); err != nil {
		return err
	}
	return z.proveDirectory()
}

func (z *zipStream) feedStorage(f *tensor.Feed, h *local, a *arrival) error {
	if a.came {
		return fault.New(fault.Malformed, "two records of one name").InRecord(h.name).Needs("one", fault.MadeToDeceive)
	}
	a.came = true
	if h.sized && h.size < a.storage.Size() {
		return fault.New(fault.Malformed, strconv.FormatInt(h.size, 10)+" bytes where the pickle says "+
			strconv.FormatInt(a.storage.Size(), 10)).InRecord(h.name).
			Needs("a record as long as its storage", fault.CutShort)
	}
	b := z.body(h, a.storage.Size())
	if f.Wants(a.storage) {
		if err := f.Storage(a.storage, b); err != nil {
			return err
		}
	}
	if err := b.end(); err != nil {
		return err
	}
	if h.hasSum() {
		f.Sum(a.storage, b.sum, h.crc)
	}
	return nil
}

// feedOther passes over a record that no tensor needs.
func (z *zipStream) feedOther(h *local) error {
	text, err := z.small(h)
	if err == nil && h.name == z.top+"byteorder" {
		var order tensor.ByteOrder
		if order, err = parseOrder(strings.TrimSpace(string(text)), h.name); err == nil && order != z.info.Order {
			return fault.New(fault.Unsupported, "a byte order that stands behind the storages").InRecord(h.name).
				Needs("a stream that can be read in order", "save the stream to a file, and open that")
		}
	}
	return err
}

// tail is the end of a file whose beginning has gone by.
type tail struct {
	base int64 // offset of its first byte in the file
	b    []byte
}

// ReadAt reads as [io.ReaderAt] does; what has gone by is zeros.
func (t tail) ReadAt(p []byte, off int64) (int, error) {
	n := int(min(max(t.base-off, 0), int64(len(p))))
	clear(p[:n])
	at := min(max(off+int64(n)-t.base, 0), int64(len(t.b)))
	n += copy(p[n:], t.b[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// proveDirectory reads the directory and compares it with what came.
func (z *zipStream) proveDirectory() error {
	base := z.in.off
	most := int64(maxComment + lenEnd + lenEnd64 + lenEnd64Locator)
	for i := range z.entries {
		most += lenDirectory + int64(len(z.entries[i].name)) + maxEntryExtra
	}
	text, err := io.ReadAll(io.LimitReader(z.in, most+1))
	if err != nil {
		return z.in.ended(err)
	}
	if int64(len(text)) > most {
		return fault.New(fault.Malformed, "more bytes than the records account for").At(base).Needs("the end of the archive", fault.MadeToDeceive)
	}
	end := tail{base, text}
	a, err := readArchive(checkpoint.NewReaderAt(z.name, end, base+int64(len(text))), z.env.Limits)
	if err != nil {
		return err
	}
	if len(a.entries) != len(z.entries) || a.directory != base {
		return badEnd(strconv.Itoa(len(a.entries))+" records where "+strconv.Itoa(len(z.entries))+" came", base)
	}
	for k, i := range a.byPlace {
		if err := sameEntry(&a.entries[i], &z.entries[k]); err != nil {
			return err
		}
	}
	top, found, err := a.top()
	if err == nil && (!found || top != z.top) {
		err = fault.New(fault.Malformed, "another data.pkl than the one that came first").InRecord(top+"data.pkl").Needs("one", fault.MadeToDeceive)
	}
	if err != nil {
		return err
	}
	return z.sameNames(a)
}

// sameNames proves that random access finds the records that this pass took, where
// names may stand in other letters and more than once.
func (z *zipStream) sameNames(a *archive) error {
	took := []string{z.top + "data.pkl", z.top + "byteorder"}
	for name := range z.storages {
		took = append(took, name)
	}
	for _, name := range took {
		e, err := a.find(name)
		if err != nil {
			return err
		}
		if e != nil && e.name != name {
			return fault.New(fault.Unsupported, "a record whose name stands in other letters").InRecord(e.name).
				Needs(name, "save the stream to a file, and open that")
		}
	}
	return nil
}

// maxEntryExtra is how much extra fields and comments an entry of the directory
// may have on the average.
const maxEntryExtra = 256

func sameEntry(listed, came *entry) error {
	if listed.name == came.name && listed.method == came.method && listed.crc == came.crc && listed.size == came.size &&
		listed.stored == came.stored && listed.header == came.header && (listed.flags^came.flags)&(flagEncrypted|flagStrong|flagMasked) == 0 {
		return nil
	}
	return fault.New(fault.Malformed, "a record that the directory describes otherwise").InRecord(came.name).At(came.header).
		Needs("a directory that agrees with the records", "the file is damaged or was made to deceive")
}
