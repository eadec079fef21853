package shards

import (
	"encoding/json"
	"fmt"
	"hash/crc32"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/internal/strictjson"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/record/meta"
)

// asRecord puts the tensors into the tree that the index of a record has, and tells
// what the record says of itself.
func (u *union) asRecord(x *index) error {
	text, ok, err := x.recordText(u.env.Salvage)
	if err != nil || !ok {
		return err
	}
	header, root, err := u.recordTree(text)
	if err != nil {
		return inText(err)
	}
	u.record = root
	delete(x.metadata, meta.KeyIndexText) // said by the tree
	delete(x.metadata, meta.KeyIndexSum)
	told := checkpoint.Info{Metadata: x.metadata}
	meta.Tell(header, &told)
	u.info.Producer = told.Producer
	return nil
}

// recordTree reads the record, which must name all tensors of the shards and no others.
func (u *union) recordTree(text string) (checkpoint.RecordHeader, nested.Value, error) {
	used := make(map[string]bool, len(u.from))
	read := meta.TextReader{Limits: u.env.Limits, Leaf: func(r *strictjson.Reader) (nested.Value, error) {
		at := r.Offset()
		name, err := r.Text()
		if err != nil {
			return nil, err
		}
		leaf, ok := u.root.Lookup(name)
		if !ok {
			return nil, fault.New(fault.NotFound, "no shard has the tensor "+name).At(int64(at)).
				Needs("every tensor that the record names", "another tool took it out: write the record again")
		}
		used[name] = true
		return leaf, nil
	}}
	header, root, err := read.Read(text)
	if err != nil {
		return header, nil, err
	}
	for name := range u.from {
		if !used[name] {
			return header, nil, fault.New(fault.Malformed, "a tensor that the record does not name: "+name).
				Needs("the shards that were written with it", "another tool changed them: write the record again")
		}
	}
	return header, root, nil
}

// recordText returns the text of the record that the shards make, ok false if they
// make none, after it has compared its checksum.
func (x *index) recordText(salvage bool) (text string, ok bool, err error) {
	raw, isRecord := x.metadata[meta.KeyIndexText]
	rawSum, hasSum := x.metadata[meta.KeyIndexSum]
	if !isRecord && !hasSum {
		return "", false, nil
	}
	var want string
	if json.Unmarshal([]byte(raw), &text) != nil || json.Unmarshal([]byte(rawSum), &want) != nil {
		return "", false, inText(fault.New(fault.Malformed, "a record without its tree or its checksum").
			Needs(meta.KeyIndexText+" and "+meta.KeyIndexSum, "another tool changed this index: write the record again"))
	}
	if got := fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))); got != want && !salvage {
		return "", false, inText(fault.New(fault.Checksum, "the record's CRC-32 is "+got).
			Needs(want, "the index is damaged or another tool changed it: get it again, or open it with wick.Salvage()"))
	}
	return text, true, nil
}

func inText(err error) error {
	return fault.InRecord(err, "metadata "+meta.KeyIndexText)
}
