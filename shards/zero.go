package shards

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/tensor"
)

// zeroFormat is what DeepSpeed's ZeRO saves of a training: every rank flattens
// the parameters into vectors and keeps its share of them in float32, and the
// shapes stand in another file:
//
//	latest                                    the name of the folder of the last step
//	STEP/mp_rank_00_model_states.pt           names and shapes, buffers (stages 1 and 2)
//	STEP/zero_pp_rank_N_mp_rank_00_model_states.pt                   the same (stage 3)
//	STEP/…zero_pp_rank_N_mp_rank_00_optim_states.pt        the rank's share of the vectors
//
// It opens as the state dict that zero_to_fp32.py, which DeepSpeed puts beside
// them, makes; here every tensor is a view.
type zeroFormat struct{}

// Name returns "deepspeed".
func (zeroFormat) Name() string { return "deepspeed" }

const (
	modelStates = "_model_states.pt"
	optimStates = "_optim_states.pt"
)

// Sniff takes a folder that has files of both kinds, in itself or in the folder of
// a step.
func (zeroFormat) Sniff(_ []byte, src checkpoint.Source) bool {
	_, files, err := checkpoint.ListFolder(src)
	return err == nil && len(stepsOf(files)) > 0
}

// stepsOf lists the folders that have both kinds of files, "." for the one itself.
func stepsOf(files []string) []string {
	var steps []string
	has := map[string]int{}
	for _, f := range files {
		step := path.Dir(f)
		switch {
		case strings.HasSuffix(f, modelStates):
			has[step] |= 1
		case strings.HasSuffix(f, optimStates):
			has[step] |= 2
		default:
			continue
		}
		if has[step] == 3 && !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}
	return steps
}

// Open reads the metadata of all ranks.
func (zeroFormat) Open(ctx context.Context, src checkpoint.Source, env *checkpoint.Env) (*checkpoint.Checkpoint, error) {
	dir, files, err := checkpoint.ListFolder(src)
	if err != nil {
		return nil, err
	}
	step, err := chooseStep(dir, files)
	if err != nil {
		return nil, err
	}
	z := &zero{union: newUnion(dir, env)}
	if err := z.open(ctx, files, step); err != nil {
		return nil, z.abandon(err)
	}
	if err := z.build(); err != nil {
		return nil, z.abandon(err)
	}
	return z.finish(dir, "deepspeed", nil)
}

// chooseStep is the only step, or the one that the file latest names.
func chooseStep(dir checkpoint.Folder, files []string) (string, error) {
	steps := stepsOf(files)
	if len(steps) == 1 {
		return steps[0], nil
	}
	if slices.Contains(files, "latest") {
		name, err := readText(dir, "latest")
		if err != nil {
			return "", err
		}
		if slices.Contains(steps, name) {
			return name, nil
		}
	}
	return "", fault.New(fault.Ambiguous, "a folder of several steps: "+strings.Join(steps, ", ")).Needs("one", "name its folder")
}

// maxLatest bounds the name of a step, bytes.
const maxLatest = 4096

func readText(dir checkpoint.Folder, name string) (string, error) {
	src, err := dir.Sibling(name)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.NewSectionReader(src, 0, min(src.Size(), maxLatest)))
	return strings.TrimSpace(string(b)), errors.Join(err, src.Close())
}

// zero is the files of a step on their way to one state dict.
type zero struct {
	*union

	models []state // of the ranks
	optims []state
	stage  int
}

// state is the tree of one file.
type state struct {
	file string
	root *nested.Map
}

// open opens all files of a step in the order of the ranks.
func (z *zero) open(ctx context.Context, files []string, step string) error {
	slices.SortFunc(files, rules.Natural)
	for _, f := range files {
		into := &z.models
		switch {
		case path.Dir(f) != step:
			continue
		case strings.HasSuffix(f, optimStates):
			into = &z.optims
		case !strings.HasSuffix(f, modelStates):
			continue
		}
		if !strings.Contains(f, "mp_rank_00_") {
			return fault.New(fault.Unsupported, "a checkpoint whose layers are cut over ranks: "+f).
				Needs("ranks of data parallelism alone", "convert it with DeepSpeed's own ds_to_universal.py")
		}
		c, err := z.union.open(ctx, f)
		if err != nil {
			return err
		}
		root, ok := c.Root.(*nested.Map)
		if !ok {
			return malformed(f, "no dict at its top")
		}
		*into = append(*into, state{f, root})
	}
	return nil
}

func malformed(file, found string) *fault.Error {
	return fault.New(fault.Malformed, found).InRecord(file).Needs("what DeepSpeed's ZeRO saves", "the file is damaged, or of another step")
}

// build makes the state dict.
func (z *zero) build() error {
	if err := z.checkRanks(); err != nil {
		return err
	}
	if err := z.buffers(); err != nil {
		return err
	}
	if err := z.frozen(); err != nil {
		return err
	}
	var err error
	if z.stage == 3 {
		err = z.partitioned()
	} else {
		err = z.grouped()
	}
	if err != nil {
		return err
	}
	return z.shared()
}

// checkRanks reads the stage and sees that no rank is missing.
func (z *zero) checkRanks() error {
	first := z.optims[0]
	optimizer, err := first.dict("optimizer_state_dict")
	if err != nil {
		return err
	}
	v, _ := optimizer.root.Lookup("zero_stage")
	if o, ok := v.(*nested.Opaque); ok && o.Args != nil && len(o.Args.Items) == 1 {
		v = o.Args.Items[0] // ZeroStageEnum
	}
	stage, ok := v.(nested.Int)
	if !ok || stage < 1 || stage > 3 {
		return malformed(first.file, "no stage of ZeRO")
	}
	z.stage = int(stage)
	v, _ = optimizer.root.Lookup("partition_count")
	world := largest(v)
	if world != len(z.optims) {
		return fault.New(fault.Malformed, strconv.Itoa(len(z.optims))+" files *"+optimStates).InRecord(first.file).
			Needs("one of each of "+strconv.Itoa(world)+" ranks", "copy the files of all ranks into the folder")
	}
	if z.stage == 3 && len(z.models) != world {
		return fault.New(fault.Malformed, strconv.Itoa(len(z.models))+" files *"+modelStates).InRecord(z.models[0].file).
			Needs("one of each of "+strconv.Itoa(world)+" ranks", "copy the files of all ranks into the folder")
	}
	return nil
}

// largest is an int, or the largest of a list of them.
func largest(v nested.Value) int {
	switch x := v.(type) {
	case nested.Int:
		return int(x)
	case *nested.List:
		most := 0
		for _, item := range x.Items {
			most = max(most, largest(item))
		}
		return most
	default:
		return 0
	}
}

// dict is the map under a key.
func (s state) dict(key string) (state, error) {
	v, _ := s.root.Lookup(key)
	m, ok := v.(*nested.Map)
	if !ok {
		return state{}, malformed(s.file, "no dict called "+key)
	}
	return state{s.file, m}, nil
}

// set puts a tensor into the state dict, once under each name.
func (z *zero) set(name string, t *tensor.Tensor) error {
	return z.root.Set(nested.String(name), &nested.Tensor{Tensor: t, Class: "torch.Tensor"})
}

// buffers takes the buffers, floats as float32.
func (z *zero) buffers() error {
	m := z.models[0]
	module, err := m.dict("module")
	if err != nil {
		return err
	}
	names, _ := m.root.Lookup("buffer_names")
	list, ok := names.(*nested.List)
	if !ok {
		return malformed(m.file, "no list called buffer_names")
	}
	wanted := map[string]bool{}
	for _, n := range list.Items {
		wanted[nested.KeyName(n)] = true
	}
	for key, v := range module.root.All() {
		leaf, ok := v.(nested.Leaf)
		if !ok || !wanted[nested.KeyName(key)] {
			continue
		}
		t := leaf.AsTensor()
		if t.DType().Class() == tensor.FloatClass {
			if t, err = t.Cast(tensor.F32); err != nil {
				return err
			}
		}
		if err := z.set(nested.KeyName(key), t); err != nil {
			return err
		}
	}
	return nil
}

// frozen takes the parameters that were not trained: whole up to stage 2, else a
// part of each from every rank.
func (z *zero) frozen() error {
	v, _ := z.models[0].root.Lookup("frozen_param_shapes")
	shapes, ok := v.(*nested.Map)
	if !ok {
		return nil // None: there are no such parameters
	}
	models := z.models
	if z.stage < 3 {
		models = models[:1]
	}
	for key, s := range shapes.All() {
		name := nested.KeyName(key)
		var all vector
		for _, m := range models {
			fragments, err := m.dict("frozen_param_fragments")
			if err != nil {
				return err
			}
			v, _ := fragments.root.Get(key)
			t, err := flat(m.file, name, v)
			if err != nil {
				return err
			}
			if err := all.add(t); err != nil {
				return onName(err, m.file, name)
			}
		}
		if err := z.place(&all, name, s); err != nil {
			return err
		}
	}
	return nil
}

// flat is a leaf with its elements in a row.
func flat(file, name string, v nested.Value) (*tensor.Tensor, error) {
	leaf, ok := v.(nested.Leaf)
	if !ok {
		return nil, malformed(file, "no tensor").OnPath(name)
	}
	t, err := leaf.AsTensor().Reshape(-1)
	return t, onName(err, file, name)
}

// place sets the parameter of a name to the first elements of a vector.
func (z *zero) place(v *vector, name string, shape nested.Value) error {
	size, ok := sizes(shape)
	if !ok {
		return malformed(z.models[0].file, "no shape").OnPath(name)
	}
	t, err := v.view(0, size)
	if err != nil {
		return onName(err, z.models[0].file, name)
	}
	return z.set(name, t)
}

func onName(err error, file, name string) error {
	return fault.OnPath(fault.InRecord(err, file), name)
}

// sizes reads a torch.Size.
func sizes(v nested.Value) ([]int, bool) {
	list, ok := v.(*nested.List)
	if !ok {
		return nil, false
	}
	out := make([]int, len(list.Items))
	for i, item := range list.Items {
		n, ok := item.(nested.Int)
		if !ok || int64(int(n)) != int64(n) {
			return nil, false
		}
		out[i] = int(n)
	}
	return out, true
}

// shapes is the list of dicts of names and shapes, one for each group.
func (z *zero) shapes() ([]*nested.Map, error) {
	v, _ := z.models[0].root.Lookup("param_shapes")
	list, ok := v.(*nested.List)
	if !ok {
		return nil, malformed(z.models[0].file, "no list called param_shapes")
	}
	groups := make([]*nested.Map, len(list.Items))
	for i, item := range list.Items {
		if groups[i], ok = item.(*nested.Map); !ok {
			return nil, malformed(z.models[0].file, "param_shapes that are no dicts")
		}
	}
	return groups, nil
}

// groups are the flat tensors of a rank.
func groups(s state, key string) ([]*tensor.Tensor, error) {
	optimizer, err := s.dict("optimizer_state_dict")
	if err != nil {
		return nil, err
	}
	v, _ := optimizer.root.Lookup(key)
	list, ok := v.(*nested.List)
	if !ok {
		return nil, malformed(s.file, "no list called "+key)
	}
	out := make([]*tensor.Tensor, len(list.Items))
	for i, item := range list.Items {
		if out[i], err = flat(s.file, key, item); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// grouped cuts the vectors of stages 1 and 2: each group's lies over the ranks one
// after another.
func (z *zero) grouped() error {
	shapes, err := z.shapes()
	if err != nil {
		return err
	}
	vectors := make([]vector, len(shapes))
	for _, s := range z.optims {
		parts, err := groups(s, "single_partition_of_fp32_groups")
		if err != nil {
			return err
		}
		if len(parts) != len(shapes) {
			return malformed(s.file, strconv.Itoa(len(parts))+" groups where the shapes are of "+strconv.Itoa(len(shapes)))
		}
		for i, t := range parts {
			if err := vectors[i].add(t); err != nil {
				return onName(err, s.file, "")
			}
		}
	}
	for i, group := range shapes {
		if err := z.group(&vectors[i], group, z.gaps(i)); err != nil {
			return err
		}
	}
	return nil
}

// gaps is what lies between the parameters of a group, elements behind each; nil
// for nothing.
func (z *zero) gaps(group int) *nested.List {
	optimizer, err := z.optims[0].dict("optimizer_state_dict")
	if err != nil {
		return nil
	}
	v, _ := optimizer.root.Lookup("param_alignment_paddings")
	list, ok := v.(*nested.List)
	if !ok || group >= len(list.Items) {
		return nil
	}
	gaps, _ := list.Items[group].(*nested.List)
	return gaps
}

// group cuts one vector. What is left over is less than the ranks are padded by.
func (z *zero) group(v *vector, shapes *nested.Map, gaps *nested.List) error {
	at, i := 0, 0
	for key, shape := range shapes.All() {
		name := nested.KeyName(key)
		t, n, err := v.next(at, shape)
		if err != nil {
			return onName(err, z.models[0].file, name)
		}
		if err := z.set(name, t); err != nil {
			return err
		}
		at += n
		if gaps != nil && i < len(gaps.Items) {
			at += max(0, largest(gaps.Items[i]))
		}
		i++
	}
	if align := 2 * len(z.optims); (v.len+align-1)/align != (at+align-1)/align {
		return malformed(z.models[0].file, strconv.Itoa(at)+" elements in the shapes and "+strconv.Itoa(v.len)+" in the files")
	}
	return nil
}

// partitioned puts the parameters of stage 3 together: of each, every rank has an
// equal part, the last of them padded.
func (z *zero) partitioned() error {
	shapes, err := z.shapes()
	if err != nil {
		return err
	}
	ranks := make([]vector, len(z.optims))
	for i, s := range z.optims {
		parts, err := groups(s, "fp32_flat_groups")
		if err != nil {
			return err
		}
		for _, t := range parts {
			if err := ranks[i].add(t); err != nil {
				return onName(err, s.file, "")
			}
		}
		if ranks[i].len != ranks[0].len {
			return malformed(s.file, strconv.Itoa(ranks[i].len)+" elements, and in "+z.optims[0].file+" "+strconv.Itoa(ranks[0].len))
		}
	}
	at := 0
	for _, group := range shapes {
		for key, shape := range group.All() {
			if at, err = z.gather(ranks, at, nested.KeyName(key), shape); err != nil {
				return err
			}
		}
	}
	if at != ranks[0].len {
		return malformed(z.models[0].file, strconv.Itoa(at)+" elements in the shapes and "+strconv.Itoa(ranks[0].len)+" in the files")
	}
	return nil
}

// gather puts one parameter together and returns where the next begins in every
// rank.
func (z *zero) gather(ranks []vector, at int, name string, shape nested.Value) (int, error) {
	size, ok := sizes(shape)
	n, fits := elements(size)
	if !ok || !fits {
		return 0, malformed(z.models[0].file, "no shape").OnPath(name)
	}
	share := n / len(ranks)
	if n%len(ranks) > 0 {
		share++
	}
	if share > ranks[0].len-at {
		return 0, malformed(z.models[0].file, "the shape "+tensor.ShapeString(size)+" of more elements than there are").OnPath(name)
	}
	var all vector
	for i := range ranks {
		part, err := ranks[i].cut(at, at+share)
		if err != nil {
			return 0, err
		}
		if err := all.add(part); err != nil {
			return 0, onName(err, z.optims[i].file, name)
		}
	}
	return at + share, z.place(&all, name, shape)
}

// shared gives tied parameters their other names.
func (z *zero) shared() error {
	v, _ := z.models[0].root.Lookup("shared_params")
	m, ok := v.(*nested.Map)
	if !ok {
		return nil
	}
	for key, of := range m.All() {
		if t, ok := z.root.Get(of); ok {
			if err := z.root.Set(key, t); err != nil {
				return err
			}
		}
	}
	return nil
}
