package meta

import (
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/internal/strictjson"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// The members that make a record of an index of shards: the text, and the CRC-32 of
// its bytes as eight digits. The shards are records of their tensors by flat names.
const (
	KeyIndexText = "wick"
	KeyIndexSum  = "wick.text_crc32"
)

// TextReader reads the text of a record whose tensors lie elsewhere: what a
// safetensors file, or the index of its shards, keeps in its metadata.
//
//	{"version": 1, "type": …, "precision": …, "writer": …, "root": tree}
//
// Tensors of the tree are objects {"$tensor": name}. Members that a later wick
// adds are passed over.
type TextReader struct {
	// Leaf takes the name of a tensor off r and returns the tensor.
	Leaf func(r *strictjson.Reader) (nested.Value, error)
	// Flat takes the value of a member "flat", which may stand for the tree, off r;
	// nil where there is no such member.
	Flat func(r *strictjson.Reader) (nested.Value, error)
	// Limits bounds the number of values and the digits of an integer.
	Limits checkpoint.Limits
}

// Read returns what the record says of itself and its tree. It fails with
// [fault.ErrMalformed] on other text, and with [fault.ErrUnsupported] on a later
// version.
func (t TextReader) Read(text string) (h checkpoint.RecordHeader, root nested.Value, err error) {
	read := JSONReader{Limits: t.Limits, Leaf: t.Leaf}
	r := strictjson.NewReader(tensor.StringBytes(text)) // reads it and no more
	err = r.Object(func(key string) error {
		ok, err := ReadMember(r, key, &h)
		switch {
		case err != nil:
		case key == "version":
			err = CheckVersion(h) // before a tree that is written in another way
		case ok:
		case key == "root":
			root, err = read.Value(r)
		case key == "flat" && t.Flat != nil:
			root, err = t.Flat(r)
		default:
			err = r.Skip()
		}
		return err
	})
	if err == nil {
		err = r.End()
	}
	if err == nil && (root == nil || h.Version == 0) {
		err = fault.New(fault.Malformed, "a record without version or root").Needs("both", fault.GetAgain)
	}
	if err == nil && read.Parts {
		root, err = Quantized(root)
	}
	return h, root, err
}
