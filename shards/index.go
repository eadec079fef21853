package shards

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/record/meta"
)

// indexFormat is the index.json that save_pretrained of Hugging Face's
// transformers writes beside its shards: {"metadata": …, "weight_map": {tensor
// name: file name}}.
type indexFormat struct{}

// Name returns "shards".
func (indexFormat) Name() string { return "shards" }

// Sniff looks for a JSON object with a weight_map.
func (indexFormat) Sniff(head []byte, src checkpoint.Source) bool {
	_, neighbours := src.(checkpoint.Siblings)
	return neighbours && looksLikeIndex(head)
}

// looksLikeIndex reports whether a file begins as an index does: a JSON object with
// a weight_map, or with the text of a record in its metadata, behind which the
// weight_map can be far away.
func looksLikeIndex(head []byte) bool {
	const space = " \t\r\n"
	rest, isObject := bytes.CutPrefix(bytes.TrimLeft(head, space), []byte("{"))
	if !isObject || bytes.Contains(head, []byte(`"weight_map"`)) {
		return isObject
	}
	return bytes.HasPrefix(bytes.TrimLeft(rest, space), []byte(`"metadata"`)) && bytes.Contains(head, []byte(`"`+meta.KeyIndexText+`"`))
}

// Open reads the index and the metadata of every shard that it names.
func (indexFormat) Open(ctx context.Context, src checkpoint.Source, env *checkpoint.Env) (*checkpoint.Checkpoint, error) {
	near, ok := src.(checkpoint.Siblings)
	if !ok {
		return nil, fault.New(fault.Unsupported, "an index of shards without their folder").Needs("its shards beside it", "open the file in its folder")
	}
	x, err := readIndex(src, env.Limits)
	if err != nil {
		return nil, err
	}
	u := newUnion(near, env)
	u.owner = x.shardOf
	u.expect(ctx, x.files)
	for _, name := range x.files {
		if err := u.add(ctx, name); err != nil {
			return nil, u.abandon(err)
		}
	}
	if err := u.missing(x); err != nil {
		return nil, u.abandon(err)
	}
	if err := u.asRecord(x); err != nil {
		return nil, u.abandon(err)
	}
	return u.finish(src, "shards", x.metadata)
}

// index is the content of an index file.
type index struct {
	names    []string          // of tensors, in the file's order
	shardOf  map[string]string // tensor name to file name
	files    []string          // in the order in which they are first named
	known    map[string]bool   // those files
	metadata map[string]string
}

func readIndex(src checkpoint.Source, limits checkpoint.Limits) (*index, error) {
	if err := checkpoint.At("header bytes", src.Size(), limits.HeaderBytes); err != nil {
		return nil, err
	}
	x := &index{shardOf: map[string]string{}, known: map[string]bool{}, metadata: map[string]string{}}
	d := json.NewDecoder(io.NewSectionReader(src, 0, src.Size()))
	d.UseNumber()
	if err := x.read(d); err != nil {
		var known *fault.Error
		if errors.As(err, &known) {
			return nil, err
		}
		bad := fault.Wrap(fault.Malformed, "an index that is no JSON", err)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			bad = fault.New(fault.Malformed, "an index that ends early")
		}
		return nil, bad.At(d.InputOffset()).Needs("an object with a weight_map", "get the index again")
	}
	return x, checkpoint.At("shards", int64(len(x.files)), limits.Shards)
}

// read takes the index token by token, to keep its order and to see keys that
// stand twice.
func (x *index) read(d *json.Decoder) error {
	return eachMember(d, func(key string) error {
		switch key {
		case "weight_map":
			return eachMember(d, func(name string) error { return x.weight(d, name) })
		case "metadata":
			return x.note(d)
		default:
			var skip json.RawMessage
			return d.Decode(&skip)
		}
	})
}

// eachMember calls f after each key of a JSON object.
func eachMember(d *json.Decoder, f func(key string) error) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return errNoObject
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string) // the decoder lets only strings be keys
		if err := f(key); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

var errNoObject = errors.New("an object was expected")

func (x *index) weight(d *json.Decoder, name string) error {
	var file string
	if err := d.Decode(&file); err != nil {
		return err
	}
	if _, twice := x.shardOf[name]; twice {
		return fault.New(fault.Malformed, "a name that stands twice in the weight_map").OnPath(name).At(d.InputOffset()).
			Needs("each name once", "write the index again")
	}
	if !x.known[file] {
		x.known[file] = true
		x.files = append(x.files, file)
	}
	x.names = append(x.names, name)
	x.shardOf[name] = file
	return nil
}

// note keeps the metadata as text: its values have no fixed type.
func (x *index) note(d *json.Decoder) error {
	var members map[string]json.RawMessage
	if err := d.Decode(&members); err != nil {
		return err
	}
	for k, v := range members {
		x.metadata[k] = string(v)
	}
	return nil
}
