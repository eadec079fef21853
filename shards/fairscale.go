package shards

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// rankFile matches the files that fairseq and metaseq save of models under
// fairscale's FullyShardedDataParallel: NAME-shard0.pt, NAME-shard1.pt …
var rankFile = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(.+)-shard(\d+)(\.pt|\.pth|\.bin)$`) })

// fairscale is the ranks of a model whose modules flatten their parameters into
// vectors and cut these over the ranks. Each file says beside its share which
// parameters that was: shard_metadata, as local_metadata_dict of fairscale's
// fully_sharded_data_parallel.py returns it. Here they become what
// consolidate_shard_weights of the same file makes of them.
type fairscale struct {
	*union

	weights  []state // "model" of each rank
	metadata []state // "shard_metadata" of each rank
}

// openRanks opens the files of all ranks as one state dict.
func openRanks(ctx context.Context, dir checkpoint.Folder, env *checkpoint.Env, names []string) (*checkpoint.Checkpoint, error) {
	f := &fairscale{union: newUnion(dir, env)}
	stem := rankFile().FindStringSubmatch(names[0])
	for i := range names {
		name := stem[1] + "-shard" + strconv.Itoa(i) + stem[3]
		if !slices.Contains(names, name) {
			return nil, f.abandon(missingShard(nil, name))
		}
		if err := f.rank(ctx, name); err != nil {
			return nil, f.abandon(err)
		}
	}
	if err := f.build(); err != nil {
		return nil, f.abandon(err)
	}
	return f.finish(dir, "fairscale", nil)
}

// rank opens one file.
func (f *fairscale) rank(ctx context.Context, name string) error {
	c, err := f.open(ctx, name)
	if err != nil {
		return err
	}
	root, ok := c.Root.(*nested.Map)
	if !ok {
		return noMetadata(name)
	}
	s := state{name, root}
	weights, err := s.dict("model")
	if err != nil {
		return noMetadata(name)
	}
	metadata, err := s.dict("shard_metadata")
	if err != nil {
		return noMetadata(name)
	}
	f.weights, f.metadata = append(f.weights, weights), append(f.metadata, metadata)
	return nil
}

// noMetadata is a rank that does not say which parameters its share is of.
func noMetadata(name string) error {
	return fault.New(fault.Unsupported, "a rank's share of the parameters without shard_metadata").InRecord(name).
		Needs("the names and shapes that were flattened", "save the full state dict, or open one file to see its flat parts")
}

func (f *fairscale) broken(rank int, found string) *fault.Error {
	return fault.New(fault.Malformed, found).InRecord(f.metadata[rank].file).Needs("fairscale's shard_metadata", "the file is damaged, or of another model")
}

// build makes the state dict: the modules' parameters, and the buffers of the first
// rank.
func (f *fairscale) build() error {
	modules, err := f.modules(0)
	if err != nil {
		return err
	}
	for i := range modules {
		if err := f.module(i); err != nil {
			return err
		}
	}
	names, _ := f.metadata[0].root.Lookup("buffer_names")
	list, ok := names.(*nested.List)
	if !ok {
		return nil
	}
	for _, name := range list.Items {
		if v, ok := f.weights[0].root.Get(name); ok {
			if err := f.root.Set(name, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// modules are what a rank says of each wrapped module.
func (f *fairscale) modules(rank int) ([]state, error) {
	v, _ := f.metadata[rank].root.Lookup("param_metadata")
	list, ok := v.(*nested.List)
	if !ok {
		return nil, f.broken(rank, "no list called param_metadata")
	}
	out := make([]state, len(list.Items))
	for i, item := range list.Items {
		m, ok := item.(*nested.Map)
		if !ok {
			return nil, f.broken(rank, "a module's metadata that is no dict")
		}
		out[i] = state{f.metadata[rank].file, m}
	}
	return out, nil
}

// module puts the parameters of one wrapped module together.
func (f *fairscale) module(i int) error {
	modules, err := f.modules(0)
	if err != nil {
		return err
	}
	params, err := modules[i].dict("params")
	if err != nil {
		return err
	}
	prefix := ""
	if p, _ := modules[i].root.Lookup("fsdp_path"); p != nil && nested.KeyName(p) != "" {
		prefix = nested.KeyName(p) + "."
	}
	whole, _ := modules[i].root.Lookup("no_broadcast_optim_state")
	for key, v := range params.root.All() {
		m, ok := v.(*nested.Map)
		if !ok {
			return f.broken(0, "a parameter's metadata that is no dict")
		}
		all, err := f.gather(i, key, prefix, whole == nested.Bool(true))
		if err != nil {
			return err
		}
		if err := f.split(all, prefix, state{f.metadata[0].file, m}); err != nil {
			return err
		}
	}
	return f.shared(modules[i])
}

// gather is the vector of a flat parameter over all ranks without its padding; one
// that is whole in every rank is taken from the first.
func (f *fairscale) gather(module int, key nested.Value, prefix string, whole bool) (*vector, error) {
	name := prefix + nested.KeyName(key)
	all := &vector{}
	for rank, w := range f.weights {
		v, _ := w.root.Lookup(name)
		t, err := flat(w.file, name, v)
		if err != nil {
			return nil, err
		}
		pad, err := f.padding(rank, module, key)
		if err != nil {
			return nil, err
		}
		if pad < 0 || pad > t.Size(0) {
			return nil, f.broken(rank, fmt.Sprintf("a padding of %d in %d elements", pad, t.Size(0))).OnPath(name)
		}
		if t, err = t.Narrow(0, 0, t.Size(0)-pad); err != nil {
			return nil, err
		}
		if err := all.add(t); err != nil {
			return nil, onName(err, w.file, name)
		}
		if whole {
			break
		}
	}
	return all, nil
}

// padding is how many elements at the end of a rank's share are none.
func (f *fairscale) padding(rank, module int, key nested.Value) (int, error) {
	modules, err := f.modules(rank)
	if err != nil || module >= len(modules) {
		return 0, f.broken(rank, "other modules than in "+f.metadata[0].file)
	}
	params, err := modules[module].dict("params")
	if err != nil {
		return 0, err
	}
	v, _ := params.root.Get(key)
	m, ok := v.(*nested.Map)
	if !ok {
		return 0, f.broken(rank, "other parameters than in "+f.metadata[0].file)
	}
	pad, _ := m.Lookup("padding")
	return largest(pad), nil
}

// split cuts a vector into the parameters that it was made of.
func (f *fairscale) split(all *vector, prefix string, of state) error {
	v, _ := of.root.Lookup("names")
	names, ok := v.(*nested.List)
	v, _ = of.root.Lookup("shapes")
	shapes, ok2 := v.(*nested.List)
	if !ok || !ok2 || len(names.Items) != len(shapes.Items) {
		return f.broken(0, "names without shapes")
	}
	at := 0
	for i, n := range names.Items {
		name := prefix + nested.KeyName(n)
		t, size, err := all.next(at, shapes.Items[i])
		if err != nil {
			return onName(err, of.file, name)
		}
		if err := f.root.Set(nested.String(name), &nested.Tensor{Tensor: t, Class: "torch.Tensor"}); err != nil {
			return err
		}
		at += size
	}
	if at != all.len {
		return f.broken(0, strconv.Itoa(at)+" elements in the shapes and "+strconv.Itoa(all.len)+" in the files")
	}
	return nil
}

// next is the tensor of a shape that begins at an element, and how many it has.
func (v *vector) next(at int, shape nested.Value) (*tensor.Tensor, int, error) {
	size, ok := sizes(shape)
	n, fits := elements(size)
	if !ok || !fits {
		return nil, 0, fault.New(fault.Malformed, "no shape")
	}
	t, err := v.view(at, size)
	return t, n, err
}

// shared gives tied parameters their other names: pairs of a name and its copy's.
func (f *fairscale) shared(module state) error {
	v, _ := module.root.Lookup("shared_param_info")
	list, ok := v.(*nested.List)
	if !ok {
		return nil
	}
	for _, item := range list.Items {
		pair, ok := item.(*nested.List)
		if !ok || len(pair.Items) != 2 {
			return f.broken(0, "a shared parameter that is no pair")
		}
		if t, ok := f.root.Get(pair.Items[0]); ok {
			if err := f.root.Set(pair.Items[1], t); err != nil {
				return err
			}
		}
	}
	return nil
}
