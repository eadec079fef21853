package safetensors

import (
	"bytes"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/internal/crc"
	"github.com/wick-ml/wick/internal/strictjson"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/record/meta"
)

// The members of __metadata__ that make a file a record. Every other tool sees
// free text.
const (
	keyRecord = "wick"              // the header and the tree, as JSON; tensors by name
	keySums   = "wick.crc32"        // CRC-32 of each tensor's bytes, in the header's order
	keyHeader = "wick.header_crc32" // CRC-32 of the header, these eight digits read as zeros
)

const (
	noSum     = "00000000"
	sumDigits = len(noSum)
)

// metadata returns the members of __metadata__ in their order: sorted, so that
// the bytes do not change from run to run. Those of a record have their final
// length but not yet their sums.
func (p *plan) metadata(items []item) ([]member, error) {
	all := map[string]string{"format": "pt"}
	for key, value := range p.opts.Metadata {
		if key == keyRecord || strings.HasPrefix(key, keyRecord+".") {
			continue // of the record that was read, not of this file
		}
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return nil, fault.New(fault.Usage, "metadata that is no UTF-8: "+key)
		}
		all[key] = value
	}
	if p.opts.Record != nil {
		text, err := p.recordText(items)
		if err != nil {
			return nil, err
		}
		all[keyRecord], all[keyHeader] = text, noSum
		all[keySums] = strings.TrimSuffix(strings.Repeat(noSum+" ", len(items)), " ")
	}
	out := make([]member, 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, member{key, all[key]})
	}
	return out, nil
}

// recordText is the record's header and its tree. A tree that is one dict of
// tensors, as a state dict is, is said by the places of its names in the header,
// in the dict's order.
func (p *plan) recordText(items []item) (string, error) {
	w := meta.NewJSON(p.opts.Limits, func(w *meta.JSON, path nested.Path, _ nested.Leaf) error {
		text, _ := nested.String(path.String()).Text()
		w.Raw(`{"$tensor":`)
		w.Text(text)
		w.Raw("}")
		return nil
	})
	h, err := meta.Complete(*p.opts.Record, p.root, p.opts.Limits)
	if err != nil {
		return "", err
	}
	w.Raw(`{"version":` + strconv.Itoa(meta.Version))
	for _, m := range meta.Members(&h) {
		w.Raw(`,"` + m.Key + `":`)
		w.Text(*m.Text)
	}
	if places, ok := flatPlaces(p.root, items); ok {
		w.Raw(`,"flat":[`)
		for i, place := range places {
			if i > 0 {
				w.Raw(",")
			}
			w.Raw(strconv.Itoa(place))
		}
		w.Raw("]}")
		return string(w.Take()), nil
	}
	w.Raw(`,"root":`)
	if err := w.Value(nil, p.root); err != nil {
		return "", err
	}
	w.Raw("}")
	return string(w.Take()), nil
}

// flatPlaces returns the place among items of each value of a plain dict of
// tensors under their own names; ok is false for any other tree.
func flatPlaces(root nested.Value, items []item) (places []int, ok bool) {
	m, ok := root.(*nested.Map)
	if !ok || m.Class != "dict" || m.Attrs != nil || m.Len() != len(items) || m.Len() == 0 {
		return nil, false
	}
	at := make(map[string]int, len(items))
	for i := range items {
		at[items[i].name] = i
	}
	for key, v := range m.All() {
		name, isText := key.(nested.String)
		_, isLeaf := v.(nested.Leaf)
		place, known := at[string(name)]
		if !isText || !isLeaf || !known || len(items[place].path) != 1 {
			return nil, false
		}
		places = append(places, place)
	}
	return places, true
}

// recordHeader is the final header, once the tensors' sums are known.
func (p *plan) recordHeader(items []item, members []member) ([]byte, error) {
	members = slices.Clone(members)
	sums := make([]string, len(items))
	for i := range items {
		sums[i] = digitsOf(items[i].sum.Value())
	}
	set(members, keySums, strings.Join(sums, " "))
	whole := crc32.ChecksumIEEE(headerText(items, members, p.opts.Align))
	set(members, keyHeader, digitsOf(whole))
	return headerText(items, members, p.opts.Align), nil
}

func set(members []member, key, value string) {
	for i := range members {
		if members[i].key == key {
			members[i].value = value
		}
	}
}

// isRecord reports whether any member says so: where one is left, the others
// must be too.
func (h *header) isRecord() bool {
	for _, key := range []string{keyRecord, keySums, keyHeader} {
		if _, ok := h.metadata[key]; ok {
			return true
		}
	}
	return false
}

// sums returns the checksums of a record's entries, nil for other files, after
// it has checked that of the header.
func (h *header) sums() ([]uint32, error) {
	if !h.isRecord() {
		return nil, nil
	}
	if err := h.checkHeader(); err != nil {
		return nil, err
	}
	text := h.metadata[keySums]
	if n := len(strings.TrimSpace(text)); n != max(len(h.entries)*(sumDigits+1)-1, 0) {
		return nil, fault.New(fault.Malformed, strconv.Itoa((n+1)/(sumDigits+1))+" checksums for "+strconv.Itoa(len(h.entries))+" tensors").
			Needs("one for each", "another tool changed this record: write it again, or open it with wick.Salvage()")
	}
	sums := make([]uint32, len(h.entries))
	for i := range sums {
		field, rest, _ := strings.Cut(text, " ")
		n, err := strconv.ParseUint(field, 16, 32)
		if err != nil {
			return nil, fault.New(fault.Malformed, "the checksum "+field).OnPath(h.entries[i].name).
				Needs("a number in base 16", "the file is damaged or another tool changed it: get it again, or open it with wick.Salvage()")
		}
		sums[i], text = uint32(n), rest
	}
	return sums, nil
}

// checkHeader compares the header with its own checksum.
func (h *header) checkHeader() error {
	want := h.metadata[keyHeader]
	digits := []byte(`"` + keyHeader + `":"` + want + `"`)
	at := bytes.Index(h.text, digits)
	if len(want) != sumDigits || at < 0 {
		return fault.New(fault.Malformed, "a record without the checksum of its header").
			Needs(keyHeader, "another tool changed this record: write it again, or open it with wick.Salvage()")
	}
	at += len(digits) - 1 - sumDigits
	sum := crc.Update(0, h.text[:at])
	sum = crc.Update(sum, []byte(noSum))
	sum = crc.Update(sum, h.text[at+sumDigits:])
	if got := digitsOf(sum); got != want {
		return fault.New(fault.Checksum, "the header's CRC-32 is "+got).At(lengthBytes).
			Needs(want, "the file is damaged or another tool changed it: get it again, or open it with wick.Salvage()")
	}
	return nil
}

// digitsOf writes a checksum as records have it.
func digitsOf(sum uint32) string {
	var b [sumDigits]byte
	for i := range b {
		b[i] = "0123456789abcdef"[sum>>(4*(sumDigits-1-i))&15]
	}
	return string(b[:])
}

// tree returns the tree of a record, whose tensors are leaves, beside the entries.
func (h *header) tree(leaves []*nested.Tensor, info *checkpoint.Info, limits checkpoint.Limits) (nested.Value, error) {
	text := meta.TextReader{Leaf: h.leafByName(leaves), Limits: limits}
	text.Flat = func(r *strictjson.Reader) (nested.Value, error) { return h.flatTree(r, leaves) }
	found, root, err := text.Read(h.metadata[keyRecord])
	if err != nil {
		return nil, inMetadata(err)
	}
	for _, key := range []string{keyRecord, keySums, keyHeader} {
		delete(info.Metadata, key) // said by the tree, the storages and the header
	}
	meta.Tell(found, info)
	return root, nil
}

// inMetadata places an error in the record's text.
func inMetadata(err error) error {
	return fault.InRecord(err, metadataKey+" "+keyRecord)
}

// flatTree takes the places of a dict's tensors in the header.
func (h *header) flatTree(r *strictjson.Reader, leaves []*nested.Tensor) (nested.Value, error) {
	root := nested.NewMap("dict")
	root.Grow(len(leaves))
	err := r.Array(func() error {
		at := r.Offset()
		i, err := r.Uint()
		if err != nil {
			return err
		}
		if i >= int64(len(leaves)) || root.Len() == len(leaves) {
			return fault.New(fault.Malformed, "tensor "+strconv.FormatInt(i, 10)+" of "+strconv.Itoa(len(leaves))).At(int64(at)).
				Needs("the place of each once", "another tool changed this record: write it again")
		}
		return root.Set(nested.String(h.entries[i].name), leaves[i])
	})
	if err == nil && root.Len() != len(leaves) {
		err = r.Wrong("the place of every tensor")
	}
	return root, err
}

// leafByName returns how the tensors that the tree names are found.
func (h *header) leafByName(leaves []*nested.Tensor) func(*strictjson.Reader) (nested.Value, error) {
	var find func(name string) int
	return func(r *strictjson.Reader) (nested.Value, error) {
		if find == nil {
			find = h.finder()
		}
		at := r.Offset()
		name, err := r.Text()
		if err != nil {
			return nil, err
		}
		i := find(name)
		if i < 0 {
			return nil, fault.New(fault.NotFound, "no tensor is called "+name).At(int64(at)).
				Needs("every tensor that the record names", "another tool took it out: write the record again")
		}
		return leaves[i], nil
	}
}

// finder returns how the entry of a name is found, -1 if there is none.
func (h *header) finder() func(name string) int {
	order := make([]int32, len(h.entries))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return strings.Compare(h.entries[a].name, h.entries[b].name) })
	return func(name string) int {
		at, ok := slices.BinarySearchFunc(order, name, func(i int32, name string) int { return strings.Compare(h.entries[i].name, name) })
		if !ok {
			return -1
		}
		return int(order[at])
	}
}
