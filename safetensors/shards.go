package safetensors

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/internal/strictjson"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/record/meta"
)

// indexSuffix ends the name of the file that lists the shards, as Hugging
// Face's libraries name it.
const indexSuffix = ".safetensors.index.json"

// shards lays the tensors out over several files, in the tree's order, and adds
// the index, whose name is the last.
func (p *plan) shards(items []item) (*checkpoint.Output, error) {
	groups := p.group(items)
	stem := strings.TrimSuffix(strings.TrimSuffix(p.opts.Name, indexSuffix), ".safetensors")
	out := &checkpoint.Output{}
	home := map[string]string{}
	for i, group := range groups {
		name := fmt.Sprintf("%s-%05d-of-%05d.safetensors", stem, i+1, len(groups))
		layout, err := p.shard(group)
		if err != nil {
			return nil, err
		}
		for k := range group {
			home[group[k].name] = name
		}
		out.Files = append(out.Files, checkpoint.OutputFile{Name: name, Layout: layout})
	}
	index, err := p.index(items, home)
	if err != nil {
		return nil, err
	}
	out.Files = append(out.Files, checkpoint.OutputFile{Name: stem + indexSuffix, Layout: index, Index: true})
	return out, nil
}

// shard lays out one of several files. Those of a record are records themselves, of
// their tensors under flat names: so each checks its own bytes, and the index has the
// tree that they belong to.
func (p *plan) shard(items []item) (*checkpoint.Layout, error) {
	if p.opts.Record == nil {
		return p.file(items)
	}
	flat := nested.NewMap("dict")
	items = slices.Clone(items)
	for i := range items {
		key := nested.String(items[i].name)
		items[i].path = nested.Path{key}
		if err := flat.Set(key, &nested.Tensor{Tensor: items[i].tensor, Class: "torch.Tensor"}); err != nil {
			return nil, err
		}
	}
	one := plan{opts: p.opts, root: flat}
	one.opts.Record = &checkpoint.RecordHeader{Writer: p.opts.Record.Writer}
	return one.file(items)
}

// group fills one shard after another.
func (p *plan) group(items []item) [][]item {
	var groups [][]item
	start, size := 0, int64(0)
	for i := range items {
		n := items[i].tensor.Bytes()
		if i > start && size+n > p.opts.ShardBytes {
			groups = append(groups, items[start:i])
			start, size = i, 0
		}
		size += n
	}
	return append(groups, items[start:])
}

// index is the JSON that says where each tensor is, with sorted keys as Hugging
// Face's libraries write it. A record's has the tree and its checksum besides.
func (p *plan) index(items []item, home map[string]string) (*checkpoint.Layout, error) {
	names := make([]string, len(items))
	total := int64(0)
	for i := range items {
		names[i] = items[i].name
		total += items[i].tensor.Bytes()
	}
	slices.Sort(names)
	out := []byte("{\n  \"metadata\": {\n    \"total_size\": " + strconv.FormatInt(total, 10))
	if p.opts.Record != nil {
		text, err := p.recordText(nil)
		if err != nil {
			return nil, err
		}
		out = append(out, ",\n    "...)
		out = appendMember(out, meta.KeyIndexText, text)
		out = append(out, ",\n    "...)
		out = appendMember(out, meta.KeyIndexSum, digitsOf(crc32.ChecksumIEEE([]byte(text))))
	}
	out = append(out, "\n  },\n  \"weight_map\": {"...)
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, "\n    "...)
		out = appendMember(out, name, home[name])
	}
	l := &checkpoint.Layout{}
	l.Bytes(append(out, "\n  }\n}\n"...))
	return l, nil
}

// appendMember appends a key, which is UTF-8, says Flatten, and its text.
func appendMember(out []byte, key, text string) []byte {
	out, _ = strictjson.AppendText(out, key)
	out = append(out, ": "...)
	out, _ = strictjson.AppendText(out, strings.ToValidUTF8(text, "\uFFFD"))
	return out
}
