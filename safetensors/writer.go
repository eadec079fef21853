package safetensors

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/internal/strictjson"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/record/meta"
	"github.com/wick-ml/wick/tensor"
)

// maxHeader is the longest header that readers accept: MAX_HEADER_SIZE in the
// format's safetensors/src/tensor.rs.
const maxHeader = 100_000_000

// Target writes safetensors files. Tensors are sorted as the format's own
// writer sorts them, by dtype and then by name, so that one set of tensors
// gives one sequence of bytes. Metadata always has "format": "pt", which
// Python's libraries ask for; a record has its own members beside it.
type Target struct{}

// Name returns "safetensors".
func (Target) Name() string { return "safetensors" }

// Extensions returns the file names' ending.
func (Target) Extensions() []string { return []string{".safetensors", indexSuffix} }

// Plan lays out one file, or shards and an index file.
func (Target) Plan(root nested.Value, opts checkpoint.TargetOptions) (*checkpoint.Output, error) {
	if err := checkAlign(opts.Align); err != nil {
		return nil, err
	}
	isIndex := strings.HasSuffix(opts.Name, indexSuffix)
	if isIndex && opts.ShardBytes == 0 {
		return nil, fault.New(fault.Usage, "an index of shards as the output").Needs("a size for the shards", "give it with wick.ShardBytes")
	}
	if opts.Record != nil {
		plain, err := meta.Plain(root)
		if err != nil {
			return nil, err
		}
		root = plain
	}
	leaves, report, err := checkpoint.Flatten(root, opts.Limits)
	if err != nil {
		return nil, err
	}
	items, err := itemsOf(leaves)
	if err != nil {
		return nil, err
	}
	p := plan{opts: opts, root: root}
	if opts.Record != nil {
		report.LeftOut = nil
	}
	if opts.ShardBytes > 0 && (isIndex || report.Bytes > opts.ShardBytes) {
		out, err := p.shards(items)
		return withReport(out, report), err
	}
	layout, err := p.file(items)
	if err != nil {
		return nil, err
	}
	return &checkpoint.Output{Files: []checkpoint.OutputFile{{Layout: layout}}, Report: report}, nil
}

func withReport(out *checkpoint.Output, report checkpoint.Report) *checkpoint.Output {
	if out != nil {
		out.Report = report
	}
	return out
}

func checkAlign(align int) error {
	if align == 0 || align >= lengthBytes && align&(align-1) == 0 {
		return nil
	}
	return fault.New(fault.Usage, "an alignment of "+strconv.Itoa(align)).Needs("a power of two, at least 8", "")
}

// item is one tensor to be written.
type item struct {
	name   string
	path   nested.Path
	rank   int // in dtypes
	tensor *tensor.Tensor
	sum    *checkpoint.Sum
}

// castCure says what to do with a dtype that the format has not.
func castCure(d tensor.DType) string {
	switch {
	case d.Class() == tensor.ComplexClass:
		return "write a .cbor record, or cast it by a rule: NAME = NAME | cast complex64"
	case tensor.Convertible(d, tensor.F32):
		return "write a .cbor record, or cast it by a rule: NAME = NAME | cast float32"
	default:
		return "write a .cbor record"
	}
}

func itemsOf(leaves []checkpoint.Named) ([]item, error) {
	items := make([]item, len(leaves))
	for i, leaf := range leaves {
		rank, ok := byDType[leaf.Tensor.DType()]
		if !ok {
			return nil, fault.New(fault.Unsupported, "a "+leaf.Tensor.DType().String()+" tensor").OnPath(leaf.Name).
				Needs("a dtype that safetensors has", castCure(leaf.Tensor.DType()))
		}
		if leaf.Name == metadataKey {
			return nil, fault.New(fault.Unsupported, "a tensor named "+metadataKey).OnPath(leaf.Name).
				Needs("a name that the format does not reserve", "give it another one with the rule `rename`")
		}
		items[i] = item{name: leaf.Name, path: leaf.Path, rank: rank, tensor: leaf.Tensor}
	}
	return items, nil
}

// plan is one call of [Target.Plan].
type plan struct {
	opts checkpoint.TargetOptions
	root nested.Value
}

// file lays one file out.
func (p *plan) file(items []item) (*checkpoint.Layout, error) {
	items = slices.Clone(items)
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.name, b.name))
	})
	members, err := p.metadata(items)
	if err != nil {
		return nil, err
	}
	head := headerText(items, members, p.opts.Align)
	if len(head) > maxHeader {
		return nil, fault.New(fault.Unsupported, "a header of "+strconv.Itoa(len(head))+" bytes").
			Needs("at most "+strconv.Itoa(maxHeader), "wick.ShardBytes writes several files")
	}
	l := &checkpoint.Layout{}
	l.Bytes(binary.LittleEndian.AppendUint64(nil, uint64(len(head))))
	if p.opts.Record == nil {
		l.Bytes(head)
		for i := range items {
			l.Tensor(items[i].tensor)
		}
		return l, nil
	}
	l.Late(int64(len(head)), func() ([]byte, error) { return p.recordHeader(items, members) })
	for i := range items {
		items[i].sum = l.Summed(items[i].tensor)
	}
	return l, nil
}

// member is one entry of __metadata__.
type member struct{ key, value string }

// headerText is the JSON header, padded with spaces so that the data behind it
// is aligned.
func headerText(items []item, members []member, align int) []byte {
	out := append(make([]byte, 0, 64+96*len(items)), `{"`+metadataKey+`":{`...)
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out, _ = strictjson.AppendText(out, m.key) // checked by metadata
		out = append(out, ':')
		out, _ = strictjson.AppendText(out, m.value)
	}
	out = append(out, '}')
	offset := int64(0)
	for i := range items {
		out = append(out, ',')
		out, _ = strictjson.AppendText(out, items[i].name) // UTF-8, says Flatten
		out = items[i].appendInfo(append(out, ':'), offset)
		offset += items[i].tensor.Bytes()
	}
	out = append(out, '}')
	if align = max(align, lengthBytes); (lengthBytes+len(out))%align != 0 {
		out = append(out, slices.Repeat([]byte{' '}, align-(lengthBytes+len(out))%align)...)
	}
	return out
}

func (it *item) appendInfo(out []byte, offset int64) []byte {
	out = append(out, `{"dtype":"`+dtypes[it.rank].name+`","shape":[`...)
	shape := it.tensor.Shape()
	for d, n := range shape {
		if d > 0 {
			out = append(out, ',')
		}
		size := int64(n)
		if it.tensor.DType() == tensor.F4E2M1FNx2 && d == len(shape)-1 {
			size *= 2
		}
		out = strconv.AppendInt(out, size, 10)
	}
	out = append(out, `],"data_offsets":[`...)
	out = strconv.AppendInt(out, offset, 10)
	out = strconv.AppendInt(append(out, ','), offset+it.tensor.Bytes(), 10)
	return append(out, "]}"...)
}
