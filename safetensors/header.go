package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/internal/strictjson"
	"github.com/wick-ml/wick/tensor"
)

const (
	lengthBytes = 8 // of the header's length in front of it
	metadataKey = "__metadata__"
)

// entry is one tensor of a header.
type entry struct {
	name       string
	dtype      string
	shape      []int64
	begin, end int64 // in the data, which starts behind the header
}

// header is a parsed header.
type header struct {
	text     []byte
	entries  []entry // in the header's order
	metadata map[string]string
	data     int64 // offset of the data in the file
	maker    *tensor.Maker
	whole    *tensor.Storage // of all tensors, see DecodeBytes; nil if each has its own
}

// readHeader reads and parses the header of src and proves that the entries
// cover the rest of the file exactly.
func readHeader(src checkpoint.Source, limits checkpoint.Limits) (*header, error) {
	var length [lengthBytes]byte
	if err := readFull(src, length[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > uint64(src.Size()-lengthBytes) {
		return nil, fault.New(fault.Malformed, "a header of "+strconv.FormatUint(n, 10)+" bytes in a file of "+
			strconv.FormatInt(src.Size(), 10)).At(0).Needs("the whole file", "the file was cut off: get it again")
	}
	if err := checkpoint.At("header bytes", int64(n), limits.HeaderBytes); err != nil {
		return nil, err
	}
	h := &header{data: lengthBytes + int64(n)}
	var lent bool
	if h.text, lent = checkpoint.LentRange(src, lengthBytes, int64(n)); !lent {
		h.text = make([]byte, n)
		if err := readFull(src, h.text, lengthBytes); err != nil {
			return nil, err
		}
	}
	if err := h.parse(limits); err != nil {
		return nil, inHeader(err)
	}
	if err := h.checkCover(src.Size() - h.data); err != nil {
		return nil, err
	}
	return h, nil
}

// inHeader makes an offset in the header one in the file.
func inHeader(err error) error {
	var e *fault.Error
	if errors.As(err, &e) && e.HasOffset {
		e.Offset += lengthBytes
	}
	return err
}

func readFull(src checkpoint.Source, b []byte, off int64) error {
	n, err := src.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case fault.KindOf(err) != "":
		return err
	case err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fault.New(fault.Malformed, "the file ends inside its header").At(off+int64(n)).
			Needs("the whole file", "the file was cut off: get it again")
	default:
		return fault.Wrap(fault.IO, "read failed", err).At(off + int64(n))
	}
}

func (h *header) parse(limits checkpoint.Limits) error {
	r := strictjson.NewReader(h.text)
	h.entries = make([]entry, 0, min(bytes.Count(h.text, []byte(`"data_offsets"`)), len(h.text)/leastEntry))
	err := r.Object(func(name string) error {
		if name == metadataKey {
			return h.parseMetadata(r)
		}
		e := entry{name: name}
		if err := e.parse(r); err != nil {
			return err
		}
		h.entries = append(h.entries, e)
		return checkpoint.At("tensors", int64(len(h.entries)), limits.Tensors)
	})
	if err != nil {
		return err
	}
	return r.End()
}

// leastEntry is the length of the shortest entry:
// "":{"dtype":"U8","shape":[],"data_offsets":[0,1]},.
const leastEntry = 49

func (h *header) parseMetadata(r *strictjson.Reader) error {
	if r.Kind() == strictjson.Null { // some writers say so that there is none
		return r.Null()
	}
	h.metadata = map[string]string{}
	return r.Object(func(key string) error {
		value, err := r.Text()
		h.metadata[key] = value
		return err
	})
}

// parse takes {"dtype": …, "shape": […], "data_offsets": [begin, end]}; members
// that it does not know are passed over, as the format's own reader does.
func (e *entry) parse(r *strictjson.Reader) error {
	var dtype, shape, offsets bool
	at := r.Offset()
	err := r.Object(func(key string) (err error) {
		switch key {
		case "dtype":
			dtype = true
			e.dtype, err = r.Word()
		case "shape":
			shape = true
			var few [4]int64
			sizes := few[:0]
			err = r.Array(func() error {
				n, err := r.Uint()
				sizes = append(sizes, n)
				return err
			})
			e.shape = append(make([]int64, 0, len(sizes)), sizes...)
		case "data_offsets":
			offsets = true
			err = e.parseOffsets(r)
		default:
			err = r.Skip()
		}
		return err
	})
	if err == nil && !(dtype && shape && offsets) {
		return fault.New(fault.Malformed, "a tensor without dtype, shape or data_offsets").At(int64(at)).OnPath(e.name).
			Needs("all three", fault.GetAgain)
	}
	return err
}

func (e *entry) parseOffsets(r *strictjson.Reader) error {
	var both [2]int64
	pair := both[:0]
	at := r.Offset()
	err := r.Array(func() error {
		n, err := r.Uint()
		if len(pair) == len(both) {
			return r.Wrong("the end of data_offsets")
		}
		pair = append(pair, n)
		return err
	})
	if err != nil {
		return err
	}
	if len(pair) != 2 || pair[1] < pair[0] {
		return fault.New(fault.Malformed, "data_offsets "+tensor.ShapeString(pair)).At(int64(at)).OnPath(e.name).
			Needs("begin and end", fault.GetAgain)
	}
	e.begin, e.end = pair[0], pair[1]
	return nil
}

// checkCover proves that the entries lie end to end over all size bytes of data.
func (h *header) checkCover(size int64) error {
	order := make([]int32, len(h.entries))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := &h.entries[a], &h.entries[b]
		return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(x.end, y.end))
	})
	at := int64(0)
	for _, i := range order {
		e := &h.entries[i]
		if e.end > size {
			return e.broken("bytes "+span(e.begin, e.end)+" of "+strconv.FormatInt(size, 10), "all bytes in the file", "the file was cut off: get it again")
		}
		if e.begin != at {
			return e.broken("bytes "+span(e.begin, e.end)+" where "+strconv.FormatInt(at, 10)+" comes next", "tensors end to end, without gap or overlap", "write the file with a tool that follows the format")
		}
		at = e.end
	}
	if at != size {
		return fault.New(fault.Malformed, byteCount(size-at)+" behind the last tensor").At(h.data+at).
			Needs("nothing", "the file was written over a longer one, or is damaged: get it again")
	}
	return nil
}

func span(begin, end int64) string {
	return strconv.FormatInt(begin, 10) + " to " + strconv.FormatInt(end, 10)
}

// byteCount prints a size, in bytes.
func byteCount(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// claim is what a header says of one tensor.
func (e *entry) claim() string {
	return e.dtype + " " + tensor.ShapeString(e.shape) + " in " + byteCount(e.end-e.begin)
}

func (e *entry) broken(found, need, cure string) error {
	return fault.New(fault.Malformed, found).OnPath(e.name).Needs(need, cure)
}

// geometry returns the tensor's dtype and shape in torch's terms. err says why
// the tensor cannot be had though the file is sound; broken that it is not.
func (e *entry) geometry() (d tensor.DType, shape []int64, err, broken error) {
	i, known := byName[e.dtype]
	if !known {
		return tensor.Invalid, e.shape, e.unknown(), nil
	}
	bits := dtypes[i].bits
	for _, n := range e.shape {
		if n != 0 && bits > math.MaxInt64/n {
			return 0, nil, nil, e.broken("shape "+tensor.ShapeString(e.shape)+" overflows", "a size that 63 bits can say", fault.GetAgain)
		}
		bits *= n
	}
	if bits%8 != 0 {
		return 0, nil, nil, e.broken(e.claim(), "a whole number of bytes, which "+strconv.FormatInt(bits, 10)+" bits are not", "write the file with a shape that fills its bytes")
	}
	if bits/8 != e.end-e.begin {
		return 0, nil, nil, e.broken(e.claim(), byteCount(bits/8), fault.GetAgain)
	}
	switch d = dtypes[i].ours; d {
	case tensor.F4E2M1FNx2:
		shape, err = e.pairs()
		return d, shape, err, nil
	case tensor.Invalid:
		return d, e.shape, e.unknown(), nil
	default:
		return d, e.shape, nil, nil
	}
}

func (e *entry) unknown() error {
	return fault.New(fault.Unsupported, "dtype "+e.dtype).OnPath(e.name).
		Needs("a dtype that PyTorch has", "cast the tensor before writing the file")
}

// pairs is the shape of 4-bit elements in bytes of two, as torch counts them.
func (e *entry) pairs() ([]int64, error) {
	shape := slices.Clone(e.shape)
	last := len(shape) - 1
	if last < 0 || shape[last]%2 != 0 {
		return shape, fault.New(fault.Unsupported, "4-bit floats in rows of odd length").OnPath(e.name).
			Needs("an even last dimension", "pad the tensor before writing the file")
	}
	shape[last] /= 2
	return shape, nil
}
