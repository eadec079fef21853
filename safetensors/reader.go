package safetensors

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/internal/crc"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// Format reads safetensors files. The tree is one map from the tensors' names,
// which are not split at dots, in the order of the header; in a file that
// [Target] wrote as a record it is the tree that was written.
type Format struct{}

// Name returns "safetensors".
func (Format) Name() string { return "safetensors" }

// sniffMost is the largest header length that looks like one: what starts like
// a pickle or a zip gives far larger numbers.
const sniffMost = 1 << 40

const space = " \t\r\n"

// Sniff recognises a length and the start of a JSON object. The file may be cut
// off behind it: Open says so.
func (Format) Sniff(head []byte, _ checkpoint.Source) bool {
	if len(head) <= lengthBytes {
		return false
	}
	n := binary.LittleEndian.Uint64(head)
	text, object := bytes.CutPrefix(bytes.TrimLeft(head[lengthBytes:], space), []byte("{"))
	rest := bytes.TrimLeft(text, space)
	return object && n >= 2 && n < sniffMost && (len(rest) == 0 || rest[0] == '"' || rest[0] == '}')
}

// Open reads the header and proves every tensor's place in the file.
func (Format) Open(ctx context.Context, src checkpoint.Source, env *checkpoint.Env) (*checkpoint.Checkpoint, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	info := infoOf(src)
	h, err := readHeader(src, env.Limits.Default())
	if err != nil {
		return nil, err
	}
	sums, err := h.sums()
	if err != nil && !env.Salvage {
		return nil, err
	}
	root, info, err := h.decode(src, sums, info, env)
	if err != nil {
		return nil, err
	}
	return checkpoint.New(root, info, env, src.Close)
}

func infoOf(src checkpoint.Source) checkpoint.Info {
	return checkpoint.Info{Name: src.Name(), Format: "safetensors", Producer: "safetensors"}
}

// DecodeBytes reads the tree of a file in memory, and what it says of itself, without
// making a checkpoint of it: src stays the caller's, and lends its bytes until the
// tensors are dropped. All checksums are compared at once, and no later read does;
// verified is the number of tensors that had one. All tensors lie over one storage:
// it is for programs that embed a record and load it in little memory; everybody
// else opens files. It fails with [fault.ErrUsage] on a src that is no
// [checkpoint.Lender].
func DecodeBytes(src checkpoint.Source, env *checkpoint.Env) (root nested.Value, info checkpoint.Info, verified int, err error) {
	info = infoOf(src)
	h, err := readHeader(src, env.Limits.Default())
	if err != nil {
		return nil, info, 0, err
	}
	data, lent := checkpoint.LentRange(src, h.data, src.Size()-h.data)
	if !lent {
		return nil, info, 0, fault.New(fault.Usage, "a file that is not in memory")
	}
	sums, err := h.sums()
	if err != nil {
		return nil, info, 0, err
	}
	for i, want := range sums {
		e := &h.entries[i]
		if got := crc.Update(0, data[e.begin:e.end]); got != want {
			return nil, info, 0, fault.New(fault.Checksum, "CRC-32 "+digitsOf(got)).At(h.data+e.begin).OnPath(e.name).
				Needs(digitsOf(want)+", as stored", "the bytes are damaged: get the file again")
		}
	}
	h.whole = tensor.NewStorage(tensor.StorageSpec{Name: src.Name(), Size: int64(len(data)), File: src, Offset: h.data, Memory: data})
	root, info, err = h.decode(src, nil, info, env)
	return root, info, len(sums), err
}

// decode makes the tree; sums are beside the entries, nil if there are none or they
// have been compared.
func (h *header) decode(src checkpoint.Source, sums []uint32, info checkpoint.Info, env *checkpoint.Env) (nested.Value, checkpoint.Info, error) {
	info.Metadata = h.metadata
	if h.whole == nil {
		info.Storages = make([]*tensor.Storage, 0, len(h.entries))
	}
	leaves := make([]*nested.Tensor, len(h.entries))
	for i := range leaves {
		leaf, err := h.leaf(src, i, sums, &info)
		if err != nil {
			return nil, info, err
		}
		leaves[i] = leaf
	}
	if h.isRecord() {
		tree, err := h.tree(leaves, &info, env.Limits)
		return tree, info, err
	}
	root, err := h.flat(leaves)
	return root, info, err
}

// flat is the map from names to tensors that a file is which is no record.
func (h *header) flat(leaves []*nested.Tensor) (nested.Value, error) {
	root := nested.NewMap("dict")
	root.Grow(len(leaves))
	for i, leaf := range leaves {
		if err := root.Set(nested.String(h.entries[i].name), leaf); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// leaf makes the lazy tensor of one entry.
func (h *header) leaf(src checkpoint.Source, i int, sums []uint32, info *checkpoint.Info) (*nested.Tensor, error) {
	e := &h.entries[i]
	dtype, shape, missing, broken := e.geometry()
	if broken != nil {
		return nil, broken
	}
	if missing != nil {
		return &nested.Tensor{Class: "torch.Tensor", Tensor: tensor.Unavailable(dtype, ints(shape), missing)}, nil
	}
	if size := int64(dtype.Size()); h.whole != nil && e.begin%size == 0 {
		t, err := h.make(tensor.Spec{Storage: h.whole, DType: dtype, Shape: shape, Offset: e.begin / size})
		if err != nil {
			return nil, fault.OnPath(err, e.name)
		}
		return &nested.Tensor{Class: "torch.Tensor", Tensor: t}, nil
	}
	spec := tensor.StorageSpec{Name: e.name, Size: e.end - e.begin, Guard: checkpoint.GuardOf(src)}
	spec.File, spec.Offset = checkpoint.Place(src, h.data+e.begin)
	spec.Memory, _ = checkpoint.LentRange(src, h.data+e.begin, spec.Size)
	if sums != nil {
		spec.CRC32, spec.HasCRC = sums[i], true
	}
	storage := tensor.NewStorage(spec)
	t, err := h.make(tensor.Spec{Storage: storage, DType: dtype, Shape: shape})
	if err != nil {
		return nil, fault.OnPath(err, e.name)
	}
	info.Storages = append(info.Storages, storage)
	return &nested.Tensor{Class: "torch.Tensor", Tensor: t}, nil
}

// make makes tensors from blocks where there are many of them.
func (h *header) make(spec tensor.Spec) (*tensor.Tensor, error) {
	const few = 128
	if len(h.entries) <= few {
		return tensor.New(spec)
	}
	if h.maker == nil {
		h.maker = &tensor.Maker{}
	}
	return h.maker.New(spec)
}

// ints is a shape for show: sizes beyond this machine's int are cut.
func ints(shape []int64) []int {
	out := make([]int, len(shape))
	for i, n := range shape {
		out[i] = int(min(n, math.MaxInt))
	}
	return out
}
