package shards

import (
	"context"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// pieceFile matches the files that the ranks of torch.distributed.checkpoint
// save through its HuggingFaceStorageWriter: shard-00001-model-00001-of-00002.safetensors.
var pieceFile = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^shard-(\d{5})-.+-\d{5}-of-\d{5}\.safetensors$`)
})

// pieces are the files of all ranks, in each of which a part of every tensor
// lies. The metadata say where in the tensor: DCP_SHARDING_INFO is
// {"w": {"saved_offsets": [3, 0]}}. They become what torch's own
// consolidate_safetensors_files makes of them (torch/distributed/checkpoint/_consolidate_hf_safetensors.py):
// each tensor is as large as its parts reach, since nothing tells its size.
type pieces struct {
	*union

	names []string
	parts map[string][]tensor.Part
	seen  map[string]bool // name and place of every piece with elements: others there are replicas
}

func openPieces(ctx context.Context, dir checkpoint.Folder, env *checkpoint.Env, files []string) (*checkpoint.Checkpoint, error) {
	p := &pieces{union: newUnion(dir, env), parts: map[string][]tensor.Part{}, seen: map[string]bool{}}
	files = slices.Sorted(slices.Values(files))
	if err := allRanks(files); err != nil {
		return nil, err
	}
	p.expect(ctx, files)
	for _, file := range files {
		if err := p.read(ctx, file); err != nil {
			return nil, p.abandon(err)
		}
	}
	if err := p.build(); err != nil {
		return nil, p.abandon(err)
	}
	return p.finish(dir, "shards", nil)
}

// allRanks fails where a number of the ranks, which count from 1, has no file.
func allRanks(files []string) error {
	last := 0
	for _, file := range files {
		rank, _ := strconv.Atoi(pieceFile().FindStringSubmatch(file)[1]) // five digits
		if rank > last+1 || rank == 0 {
			return missingShard(nil, "of rank "+strconv.Itoa(last+1))
		}
		last = rank
	}
	return nil
}

// read opens one file and notes the places of its tensors.
func (p *pieces) read(ctx context.Context, file string) error {
	c, err := p.open(ctx, file)
	if err != nil {
		return err
	}
	root, ok := c.Root.(*nested.Map)
	var places map[string]struct {
		Offsets []int `json:"saved_offsets"`
	}
	if !ok || json.Unmarshal([]byte(c.Info.Metadata["DCP_SHARDING_INFO"]), &places) != nil {
		return fault.New(fault.Unsupported, "a rank's file without DCP_SHARDING_INFO").InRecord(file).
			Needs("the place of each piece", "consolidate the files with the torch that saved them, or open one to see its pieces")
	}
	for key, value := range root.All() {
		leaf, ok := value.(*nested.Tensor)
		place, known := places[nested.KeyName(key)]
		if !ok || !known {
			return noPlace(file, nested.KeyName(key))
		}
		p.add(nested.KeyName(key), tensor.Part{Tensor: leaf.Tensor, At: place.Offsets})
	}
	return nil
}

func noPlace(file, name string) error {
	return fault.New(fault.Malformed, "a piece of which nobody says where it belongs").InRecord(file).OnPath(name).
		Needs("its offsets in DCP_SHARDING_INFO", fault.GetAgain)
}

// add notes a piece, unless another rank has saved the same.
func (p *pieces) add(name string, part tensor.Part) {
	place := name + "@" + tensor.ShapeString(part.At)
	if p.seen[place] {
		return
	}
	p.seen[place] = part.Tensor.Len() > 0
	if p.parts[name] == nil {
		p.names = append(p.names, name)
	}
	p.parts[name] = append(p.parts[name], part)
}

// build puts the tensors together.
func (p *pieces) build() error {
	for _, name := range p.names {
		parts := p.parts[name]
		shape, ok := reach(parts)
		if !ok {
			return noPlace("", name)
		}
		t, err := tensor.Assemble(parts[0].Tensor.DType(), shape, parts...)
		if err != nil {
			return fault.OnPath(fault.Wrap(fault.Malformed, "pieces that leave a hole or overlap", err).
				Needs("the files of all ranks of one save", "copy the files of every rank"), name)
		}
		if err := p.root.Set(nested.String(name), &nested.Tensor{Tensor: t, Class: "torch.Tensor"}); err != nil {
			return err
		}
	}
	return nil
}

// reach returns the smallest shape that all parts lie in.
func reach(parts []tensor.Part) ([]int, bool) {
	shape := make([]int, len(parts[0].At))
	for _, part := range parts {
		sizes := part.Tensor.Shape()
		if len(sizes) != len(shape) || len(part.At) != len(shape) {
			return nil, false
		}
		for i, at := range part.At {
			if at < 0 || at > math.MaxInt-sizes[i] {
				return nil, false
			}
			shape[i] = max(shape[i], at+sizes[i])
		}
	}
	return shape, true
}
