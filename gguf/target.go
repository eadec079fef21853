package gguf

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/llama"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// Target writes GGUF files of models of the Llama family. It needs the config of
// the model beside the weights.
type Target struct{}

// Name returns "gguf".
func (Target) Name() string { return "gguf" }

// Extensions returns the file names' ending.
func (Target) Extensions() []string { return []string{".gguf"} }

// form is how numbers are stored: enum ggml_type in ggml's ggml.h.
type form struct {
	name  string // as --dtype spells it
	alias string
	code  uint32
	file  int          // general.file_type of a file that is mostly so: LlamaFileType in gguf-py
	dtype tensor.DType // Invalid for what tensors cannot be cast to
}

var forms = []form{
	{"float32", "f32", 0, 0, tensor.F32},
	{"float16", "f16", 1, 1, tensor.F16},
	{"bfloat16", "bf16", 30, 32, tensor.BF16},
	{"q8_0", "q8", 8, 7, tensor.Invalid},
}

var formF32, formF16, formQ8 = &forms[0], &forms[1], &forms[3]

// findForm returns the form of a name, nil for one that GGUF files of wick do not
// have.
func findForm(name string) *form {
	i := slices.IndexFunc(forms, func(f form) bool { return f.name == name || f.alias == name })
	if i < 0 {
		return nil
	}
	return &forms[i]
}

// CheckDType knows float32, float16, bfloat16 and q8_0.
func (Target) CheckDType(name string) error {
	if findForm(name) != nil {
		return nil
	}
	return fault.New(fault.Usage, "no dtype of gguf is called "+name).Needs("", "float32, float16, bfloat16 or q8_0")
}

// item is one tensor of the file.
type item struct {
	name   string
	tensor *tensor.Tensor // in its stored dtype; float32 before it is quantized
	form   *form
	size   int64 // bytes in the file
}

// Plan lays out one file. It fails with [fault.ErrNotFound] without a config
// beside the weights, with [fault.ErrMismatch] naming a parameter that is missing,
// not known or of the wrong shape, and with [fault.ErrUnsupported] on a model of
// another family.
func (Target) Plan(root nested.Value, opts checkpoint.TargetOptions) (*checkpoint.Output, error) {
	if opts.ShardBytes > 0 {
		return nil, fault.New(fault.Usage, "a GGUF file in several files").Needs("one file", "leave out the shard size")
	}
	if opts.Record != nil {
		return nil, fault.New(fault.Usage, "a record as a GGUF file").Needs("a format that holds records", "write .safetensors, .cbor or .json")
	}
	cfg, err := llama.ReadConfig(opts.Beside)
	if err != nil {
		return nil, err
	}
	if err := supported(&cfg); err != nil {
		return nil, err
	}
	if root, err = llama.Rename(root, opts.Beside, llama.GGUF); err != nil {
		return nil, err
	}
	leaves, report, err := checkpoint.Flatten(root, opts.Limits)
	if err != nil {
		return nil, err
	}
	items, err := itemsOf(leaves, findForm(opts.DType))
	if err != nil {
		return nil, err
	}
	m := &model{cfg: cfg, items: items}
	if err := m.check(); err != nil {
		return nil, err
	}
	m.scale()
	head, err := m.metadata(opts)
	if err != nil {
		return nil, err
	}
	report.Tensors, report.Bytes, report.Notes = len(m.items), 0, m.notes
	for i := range m.items {
		report.Bytes += m.items[i].size
	}
	return &checkpoint.Output{Files: []checkpoint.OutputFile{{Layout: layout(head, m.items)}}, Report: report}, nil
}

// itemsOf chooses the form of each tensor; want is nil to keep theirs.
func itemsOf(leaves []checkpoint.Named, want *form) ([]item, error) {
	items := make([]item, len(leaves))
	for i, leaf := range leaves {
		if leaf.Tensor.DType().Class() != tensor.FloatClass || leaf.Tensor.Dims() == 0 || leaf.Tensor.Dims() > maxDims {
			return nil, fault.New(fault.Unsupported, "a "+leaf.Tensor.DType().String()+" tensor of "+strconv.Itoa(leaf.Tensor.Dims())+" dimensions").
				OnPath(leaf.Name).Needs("floats in 1 to 4 dimensions", "leave it out with the rule `drop`")
		}
		it, err := newItem(leaf.Name, leaf.Tensor, want)
		if err != nil {
			return nil, err
		}
		items[i] = it
	}
	return items, nil
}

// maxDims is GGML_MAX_DIMS in ggml's ggml.h.
const maxDims = 4

func newItem(name string, t *tensor.Tensor, want *form) (item, error) {
	f := cmp.Or(want, findForm(t.DType().String()), formF32)
	switch rows := t.Size(t.Dims() - 1); {
	case t.Dims() == 1:
		f = formF32
	case f == formQ8 && rows%q8Elements != 0:
		f = formF16 // as llama.cpp's convert_hf_to_gguf.py does with rows that blocks do not divide
	}
	stored := f.dtype
	if f == formQ8 {
		stored = tensor.F32
	}
	t, err := t.Cast(stored)
	if err != nil {
		return item{}, err
	}
	size := t.Bytes()
	if f == formQ8 {
		size = t.Len() / q8Elements * q8Bytes
	}
	return item{name, t, f, size}, nil
}

// layout is the file: the header, and the tensors behind it, each aligned.
func layout(head *pairs, items []item) *checkpoint.Layout {
	b := append([]byte(nil), magic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(items)))
	b = binary.LittleEndian.AppendUint64(b, head.count)
	b = append(b, head.b...)
	offset := int64(0)
	for i := range items {
		b = items[i].appendInfo(b, offset)
		offset += items[i].size + padding(items[i].size)
	}
	l := &checkpoint.Layout{}
	l.Bytes(append(b, make([]byte, padding(int64(len(b))))...))
	for i := range items {
		items[i].appendTo(l)
	}
	return l
}

// padding is how many zeros follow n bytes.
func padding(n int64) int64 { return (alignment - n%alignment) % alignment }

func (it *item) appendInfo(b []byte, offset int64) []byte {
	b = appendString(b, it.name)
	shape := it.tensor.Shape()
	slices.Reverse(shape) // ggml counts dimensions from the innermost
	b = binary.LittleEndian.AppendUint32(b, uint32(len(shape)))
	for _, n := range shape {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	b = binary.LittleEndian.AppendUint32(b, it.form.code)
	return binary.LittleEndian.AppendUint64(b, uint64(offset))
}

func (it *item) appendTo(l *checkpoint.Layout) {
	if it.form == formQ8 {
		l.Text(it.tensor, newQ8Writer)
	} else {
		l.Tensor(it.tensor)
	}
	l.Bytes(make([]byte, padding(it.size)))
}
