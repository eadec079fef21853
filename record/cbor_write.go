package record

import (
	"encoding/binary"
	"hash/crc32"
	"math/big"

	"github.com/fxamacker/cbor/v2"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/record/meta"
)

// scalars encodes what is neither a container nor a tensor. Floats keep their
// eight bytes, so that a number says how it was computed.
var scalars = func() cbor.EncMode {
	mode, err := cbor.EncOptions{NaNConvert: cbor.NaNConvertNone, InfConvert: cbor.InfConvertNone}.EncMode()
	if err != nil {
		panic("BUG: wick/record: " + err.Error())
	}
	return mode
}()

// cborWriter lays a record out. What stands between the tensors is summed as
// it goes: its checksum is the last number of the file.
type cborWriter struct {
	layout checkpoint.Layout
	out    []byte // not yet in the layout
	sum    uint32
	sums   []*checkpoint.Sum
	tour   *meta.Tour
	report checkpoint.Report
}

// record writes {"wick": {…}, "root": …, "crc32": […]} behind the tag that says
// that it is CBOR.
func (w *cborWriter) record(h checkpoint.RecordHeader, root nested.Value) error {
	w.out = append(w.out, selfDefined...)
	w.head(majorMap, 3)
	w.text(keyRecord)
	w.head(majorMap, 4)
	w.text("version")
	w.head(majorUint, meta.Version)
	for _, member := range meta.Members(&h) {
		w.text(member.Key)
		w.text(*member.Text)
	}
	w.text(keyRoot)
	if err := w.value(nil, root); err != nil {
		return err
	}
	w.text(keySums)
	w.head(majorArray, uint64(len(w.sums)+1))
	w.flush()
	const each = 5 // bytes of a sum: all have the same length, so that it is known
	w.layout.Late(int64(each*(len(w.sums)+1)), w.trailer)
	return nil
}

// trailer is the sums of the tensors and, last, the sum of all other bytes.
func (w *cborWriter) trailer() ([]byte, error) {
	var out []byte
	for _, s := range w.sums {
		out = binary.BigEndian.AppendUint32(append(out, majorUint<<5|26), s.Value())
	}
	out = append(out, majorUint<<5|26)
	return binary.BigEndian.AppendUint32(out, crc32.Update(w.sum, crc32.IEEETable, out)), nil
}

func (w *cborWriter) head(major byte, n uint64) { w.out = appendHead(w.out, major, n) }

func (w *cborWriter) text(s string) {
	w.head(majorText, uint64(len(s)))
	w.out = append(w.out, s...)
}

// flush puts what was written into the layout.
func (w *cborWriter) flush() {
	w.sum = crc32.Update(w.sum, crc32.IEEETable, w.out)
	w.layout.Bytes(w.out)
	w.out = w.out[:0]
}

func (w *cborWriter) value(path nested.Path, v nested.Value) error {
	if leaf, ok := v.(nested.Leaf); ok {
		return w.leaf(path, leaf)
	}
	entered, err := w.tour.Enter(v)
	if err != nil {
		return fault.OnPath(err, path.String())
	}
	defer w.tour.Leave(v, entered)
	if name, args, ok := meta.Unbuild(entered); ok {
		return w.object(path, name, args)
	}
	switch v := entered.(type) {
	case *nested.List:
		w.head(majorArray, uint64(len(v.Items)))
		for i, item := range v.Items {
			if err := w.value(append(path, nested.Int(i)), item); err != nil {
				return err
			}
		}
		return nil
	case *nested.Map:
		return w.dict(path, v)
	default:
		return w.scalar(path, v)
	}
}

// object writes tag 27 over [name, argument, …].
func (w *cborWriter) object(path nested.Path, name string, args []nested.Value) error {
	w.head(majorTag, tagObject)
	w.head(majorArray, uint64(len(args)+1))
	if err := w.value(path, nested.String(name)); err != nil {
		return err
	}
	for _, arg := range args {
		if err := w.value(path, arg); err != nil {
			return err
		}
	}
	return nil
}

func (w *cborWriter) dict(path nested.Path, m *nested.Map) error {
	w.head(majorMap, uint64(m.Len()))
	for key, v := range m.All() {
		if _, leaf := key.(nested.Leaf); leaf {
			return meta.TensorKey(path)
		}
		if err := w.value(path, key); err != nil {
			return err
		}
		if err := w.value(append(path, key), v); err != nil {
			return err
		}
	}
	return nil
}

func (w *cborWriter) scalar(path nested.Path, v nested.Value) error {
	var plain any
	switch v := v.(type) {
	case nested.None:
	case nested.Bool:
		plain = bool(v)
	case nested.Int:
		plain = int64(v)
	case nested.BigInt:
		plain = new(big.Int).Set(v.Int)
	case nested.Float:
		plain = float64(v)
	case nested.String:
		plain = string(v)
	case nested.Bytes:
		plain = []byte(v)
	default:
		return fault.New(fault.Unsupported, "a "+nested.TypeName(v)+" in a record").OnPath(path.String())
	}
	b, err := scalars.Marshal(plain)
	if err != nil {
		return fault.Wrap(fault.Unsupported, "a value that CBOR cannot say", err).OnPath(path.String())
	}
	w.out = append(w.out, b...)
	return nil
}

// leaf writes tag 40 over [dimensions, typed array]; a dtype that RFC 8746 does
// not know is the object wick.tensor(dtype, bits).
func (w *cborWriter) leaf(path nested.Path, leaf nested.Leaf) error {
	if err := checkpoint.Storable(leaf); err != nil {
		return fault.OnPath(err, path.String())
	}
	t := leaf.AsTensor()
	by, parts, ok := carrier(t.DType())
	if !ok {
		return fault.New(fault.Unsupported, "a "+t.DType().String()+" tensor").OnPath(path.String())
	}
	if by != t.DType() {
		w.head(majorTag, tagObject)
		w.head(majorArray, 3)
		w.text(nameTensor)
		w.text(t.DType().String())
	}
	shape := carried(t.Shape(), parts)
	w.head(majorTag, tagRowMajor)
	w.head(majorArray, 2)
	w.head(majorArray, uint64(len(shape)))
	for _, n := range shape {
		w.head(majorUint, uint64(n))
	}
	w.head(majorTag, typedArrays[by])
	w.head(majorBytes, uint64(t.Bytes()))
	w.flush()
	w.sums = append(w.sums, w.layout.Summed(t))
	w.report.Tensors++
	w.report.Bytes += t.Bytes()
	return nil
}
