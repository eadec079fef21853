package pytorch

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/klauspost/compress/flate"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// hasSum reports whether the entry's checksum was computed. Where it was not, it is
// zero: of all records after torch.serialization.set_crc32_options(False), of the
// storages alone under skip_data, which leaves their bytes to be filled in later.
func (e *entry) hasSum() bool { return e.crc != 0 || e.size == 0 }

// open starts a pass over the uncompressed bytes of an entry. What comes out is
// exactly e.size bytes or ends with an error; its checksum is the caller's.
func (a *archive) open(e *entry) io.Reader {
	var r io.Reader = io.NewSectionReader(a.src, a.data(e), e.stored)
	if e.method == methodDeflate {
		r = flate.NewReader(r)
	}
	return &exactReader{r: r, record: e.name, left: e.size}
}

// exactReader gives a record as many bytes as its directory says, and errors
// that say where they are from.
type exactReader struct {
	r      io.Reader
	record string
	at     int64
	left   int64
}

// Read reads on, and past the last byte proves that there is no more.
func (x *exactReader) Read(p []byte) (int, error) {
	if x.left == 0 {
		return 0, x.end()
	}
	if int64(len(p)) > x.left {
		p = p[:x.left]
	}
	n, err := x.r.Read(p)
	x.at, x.left = x.at+int64(n), x.left-int64(n)
	if err == io.EOF && x.left == 0 {
		err = nil
	}
	return n, x.explain(err)
}

func (x *exactReader) end() error {
	var one [1]byte
	n, err := io.ReadFull(x.r, one[:])
	if n == 1 {
		return fault.New(fault.Malformed, "a record that goes on after its last byte").InRecord(x.record).At(x.at).
			Needs("as many bytes as the directory says", fault.MadeToDeceive)
	}
	if err == io.EOF {
		return io.EOF
	}
	return x.explain(err)
}

func (x *exactReader) explain(err error) error {
	var corrupt flate.CorruptInputError
	var known *fault.Error
	switch {
	case err == nil || errors.As(err, &known):
		return inRecord(err, x.record, x.at)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		what := "compressed data without its end"
		if x.left > 0 {
			what = "compressed data that ends " + strconv.FormatInt(x.left, 10) + " bytes too early"
		}
		return fault.New(fault.Malformed, what).InRecord(x.record).At(x.at).Needs("the record's whole data", fault.GetAgain)
	case errors.As(err, &corrupt):
		return fault.Wrap(fault.Malformed, "compressed data that cannot be inflated", err).InRecord(x.record).At(x.at).
			Needs("sound DEFLATE data", fault.GetAgain)
	default:
		return fault.Wrap(fault.IO, "read failed", err).InRecord(x.record).At(x.at)
	}
}

// storage is the storage that an entry holds.
func (a *archive) storage(e *entry, order tensor.ByteOrder, limits checkpoint.Limits) (*tensor.Storage, error) {
	s, err := a.describe(e, order, limits)
	e.used = e.used || err == nil
	return s, err
}

// rest are the entries that are no storages and were not read, as storages for
// those who read all there is. One that cannot be read says so when it is.
func (a *archive) rest(limits checkpoint.Limits) []*tensor.Storage {
	var rest []*tensor.Storage
	for _, i := range a.byPlace {
		e := &a.entries[i]
		if e.used || e.isFolder() && e.size == 0 {
			continue
		}
		s, err := a.describe(e, tensor.LittleEndian, limits)
		if err != nil {
			s = unreadable(e, err)
		}
		rest = append(rest, s)
	}
	return rest
}

// unreadable stands for an entry that cannot be read.
func unreadable(e *entry, err error) *tensor.Storage {
	return tensor.NewStorage(tensor.StorageSpec{
		Name: e.name, Size: e.size,
		Open: func(context.Context) (io.ReadCloser, error) { return nil, inRecord(err, e.name, 0) },
	})
}

// describe describes an entry as a storage. Stored bytes lie in the file and can
// be lent; deflated ones are read in order.
func (a *archive) describe(e *entry, order tensor.ByteOrder, limits checkpoint.Limits) (*tensor.Storage, error) {
	if err := a.listed(e); err != nil {
		return nil, err
	}
	spec := tensor.StorageSpec{
		Name: e.name, Size: e.size, Order: order,
		CRC32: e.crc, HasCRC: e.hasSum(),
	}
	if guard := checkpoint.GuardOf(a.src); guard != nil {
		spec.Guard = guard
	}
	if e.method == methodStored && a.late != nil {
		spec.File, spec.Offset = a.late, a.expected(a.late.at(e.header))
		return tensor.NewStorage(spec), nil
	}
	if e.method == methodStored {
		spec.File, spec.Offset = checkpoint.Place(a.src, e.data)
		spec.Memory, _ = checkpoint.LentRange(a.src, e.data, e.size)
		return tensor.NewStorage(spec), nil
	}
	if err := checkInflate(e, limits); err != nil {
		return nil, err
	}
	spec.Open = func(context.Context) (io.ReadCloser, error) {
		if err := a.usable(e); err != nil {
			return nil, err
		}
		return io.NopCloser(a.open(e)), nil
	}
	return tensor.NewStorage(spec), nil
}

// checkInflate refuses sizes that DEFLATE cannot reach from the bytes there
// are: the claim must not be what memory is sized by.
func checkInflate(e *entry, limits checkpoint.Limits) error {
	if e.method == methodStored || e.stored > 1<<62/limits.Inflate {
		return nil
	}
	if most := e.stored * limits.Inflate; e.size > most {
		err := fault.NewLimit("inflate", e.size/max(e.stored, 1)+1, limits.Inflate)
		err.Found = strconv.FormatInt(e.size, 10) + " bytes from " + strconv.FormatInt(e.stored, 10)
		return err.InRecord(e.name)
	}
	return nil
}

// read returns a whole small record, checked. It may have most bytes.
func (a *archive) read(e *entry, most int64, limits checkpoint.Limits) ([]byte, error) {
	if err := a.usable(e); err != nil {
		return nil, err
	}
	if err := checkInflate(e, limits); err != nil {
		return nil, err
	}
	if err := checkpoint.At("header bytes", e.size, most); err != nil {
		return nil, inRecord(err, e.name, 0)
	}
	r := a.summed(e)
	var b bytes.Buffer
	if _, err := io.Copy(&b, r); err != nil {
		return nil, err
	}
	err := r.verify()
	e.used = e.used || err == nil
	return b.Bytes(), err
}

// summed is a pass over an entry that adds up its checksum.
func (a *archive) summed(e *entry) *summedReader {
	return &summedReader{r: a.open(e), entry: e, has: e.hasSum()}
}

type summedReader struct {
	r     io.Reader
	entry *entry
	has   bool
	sum   uint32
}

// Read reads on and adds what it read.
func (s *summedReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.sum = crc32.Update(s.sum, crc32.IEEETable, p[:n])
	return n, err
}

// verify reads what is left and compares the checksum of the whole record with
// the directory's.
func (s *summedReader) verify() error {
	if _, err := io.Copy(io.Discard, s); err != nil {
		return err
	}
	if s.has && s.sum != s.entry.crc {
		return fault.New(fault.Checksum, "CRC-32 "+hex32(s.sum)).InRecord(s.entry.name).
			Needs("CRC-32 "+hex32(s.entry.crc), fault.GetAgain)
	}
	return nil
}

func hex32(v uint32) string {
	s := strconv.FormatUint(uint64(v), 16)
	return "00000000"[len(s):] + s
}
