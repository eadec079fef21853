package shards

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// folderFormat is a folder with one checkpoint in it: an index, shards without
// an index, Meta's consolidated files, or a single file.
type folderFormat struct{}

// Name returns "shards".
func (folderFormat) Name() string { return "shards" }

// Sniff takes every folder whose files name a checkpoint.
func (folderFormat) Sniff(_ []byte, src checkpoint.Source) bool {
	_, files, err := checkpoint.ListFolder(src)
	return err == nil && survey(files).any()
}

// Open opens the best of what is there: an index before shards without one,
// and these before a single file.
func (folderFormat) Open(ctx context.Context, src checkpoint.Source, env *checkpoint.Env) (*checkpoint.Checkpoint, error) {
	dir, files, err := checkpoint.ListFolder(src)
	if err != nil {
		return nil, err
	}
	switch f := survey(files); {
	case f.converted():
		return openOne(ctx, dir, env, "model.safetensors")
	case len(f.indexes) > 0:
		return openOne(ctx, dir, env, preferred(f.indexes))
	case len(f.consolidated) > 0:
		return openConsolidated(ctx, dir, env, f.consolidated)
	case len(f.pieces) > 0:
		return openPieces(ctx, dir, env, f.pieces)
	case len(f.numbered) > 0:
		return openNumbered(ctx, dir, env, f.numbered)
	case len(f.ranks) > 0 && len(f.single) == 0:
		return openRanks(ctx, dir, env, f.ranks)
	case len(f.single) == 1 || twins(f.single):
		return openOne(ctx, dir, env, preferred(f.single))
	default: // nobody shall read weights that were not meant
		return nil, fault.New(fault.Ambiguous, "a folder of several checkpoints: "+strings.Join(slices.Concat(f.ranks, f.single), ", ")).Needs("one", "name the file")
	}
}

// found is what the names in a folder say.
type found struct{ indexes, consolidated, pieces, numbered, ranks, single []string }

var patterns = sync.OnceValue(func() [3]*regexp.Regexp {
	return [3]*regexp.Regexp{
		regexp.MustCompile(`^consolidated\.\d+\.pth$`),
		regexp.MustCompile(`^(.+)-(\d{5})-of-(\d{5})(\.bin|\.safetensors|\.pt|\.pth)$`),
		regexp.MustCompile(`\.(bin|safetensors|pt|pth|ckpt)$`),
	}
})

// survey looks at the files of the folder itself, not of those below it.
func survey(files []string) found {
	var f found
	p := patterns()
	for _, name := range files {
		switch {
		case strings.Contains(name, "/"):
		case strings.HasSuffix(name, ".h5.index.json"), strings.HasSuffix(name, ".msgpack.index.json"): // of TensorFlow and Flax
		case strings.HasSuffix(name, ".index.json"):
			f.indexes = append(f.indexes, name)
		case p[0].MatchString(name):
			f.consolidated = append(f.consolidated, name)
		case pieceFile().MatchString(name):
			f.pieces = append(f.pieces, name)
		case p[1].MatchString(name):
			f.numbered = append(f.numbered, name)
		case rankFile().MatchString(name):
			f.ranks = append(f.ranks, name)
		case p[2].MatchString(name) && !notWeights(name):
			f.single = append(f.single, name)
		}
	}
	return f
}

// notWeights names what a trainer leaves beside the weights, numbered for each
// process or object (transformers/trainer.py, accelerate/utils/constants.py).
func notWeights(name string) bool { return leftover().MatchString(name) }

var leftover = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(training_args|optimizer|scheduler|scaler|sampler|dl_state_dict|rng_state)(_\d+)?\.(bin|pt|pth)$`)
})

func (f found) any() bool {
	return len(f.indexes)+len(f.consolidated)+len(f.pieces)+len(f.numbered)+len(f.ranks)+len(f.single) > 0
}

// preferred is the safetensors one if there is one, as Hugging Face's own
// loader prefers it, else the first.
func preferred(names []string) string {
	i := slices.IndexFunc(names, func(n string) bool { return strings.Contains(n, "safetensors") })
	return names[max(i, 0)]
}

// openOne opens one file of the folder, which itself is not needed any more.
func openOne(ctx context.Context, dir checkpoint.Folder, env *checkpoint.Env, name string) (*checkpoint.Checkpoint, error) {
	src, err := dir.Sibling(name)
	if err != nil {
		return nil, err
	}
	c, err := env.Open(ctx, src)
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	if err := dir.Close(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// converted reports whether the shards behind an index of .bin files stand in
// one safetensors file too, which Hugging Face's own loader then takes (transformers/modeling_utils.py,
// _get_resolved_checkpoint_files): its hub converts models so.
func (f found) converted() bool {
	return slices.Contains(f.single, "model.safetensors") && len(f.indexes) == 1 && f.indexes[0] == "pytorch_model.bin.index.json"
}

// twins reports whether the files are one model in two formats, as hubs keep
// them: pytorch_model.bin beside model.safetensors.
func twins(names []string) bool {
	return len(names) == 2 && slices.Contains(names, "model.safetensors") && slices.Contains(names, "pytorch_model.bin")
}

// openNumbered opens shards that number themselves, NAME-00001-of-00003.bin, all
// of which must be there.
func openNumbered(ctx context.Context, dir checkpoint.Folder, env *checkpoint.Env, names []string) (*checkpoint.Checkpoint, error) {
	stem := patterns()[1].FindStringSubmatch(preferred(names))
	if err := oneSet(names, stem); err != nil {
		return nil, err
	}
	u := newUnion(dir, env)
	total, err := strconv.Atoi(stem[3])
	if err != nil || checkpoint.At("shards", int64(total), env.Limits.Shards) != nil {
		return nil, fault.NewLimit("shards", int64(total), env.Limits.Shards)
	}
	var wanted []string
	for i := 1; i <= total; i++ {
		name := fmt.Sprintf("%s-%05d-of-%s%s", stem[1], i, stem[3], stem[4])
		if !slices.Contains(names, name) {
			return nil, missingShard(nil, name)
		}
		wanted = append(wanted, name)
	}
	u.expect(ctx, wanted)
	for _, name := range wanted {
		if err := u.add(ctx, name); err != nil {
			return nil, u.abandon(err)
		}
	}
	return u.finish(dir, "shards", nil)
}

// oneSet fails where the folder has shards of another set than the preferred one,
// except the same model's in the other format.
func oneSet(names, stem []string) error {
	for _, name := range names {
		other := patterns()[1].FindStringSubmatch(name)
		same := other[1] == stem[1] || stem[1] == "model" && other[1] == "pytorch_model"
		if other[4] == stem[4] {
			same = other[1] == stem[1] && other[3] == stem[3]
		}
		if !same {
			return fault.New(fault.Ambiguous, "a folder of several sharded checkpoints: "+stem[0]+", "+name).Needs("one", "keep the others elsewhere")
		}
	}
	return nil
}

// openConsolidated opens Meta's model-parallel shards as a map from the file
// names to the state dicts: each holds a slice of every tensor, and which axis
// is cut only the model knows.
func openConsolidated(ctx context.Context, dir checkpoint.Folder, env *checkpoint.Env, names []string) (*checkpoint.Checkpoint, error) {
	u := newUnion(dir, env)
	u.expect(ctx, names)
	for i, name := range names {
		if want := fmt.Sprintf("consolidated.%02d.pth", i); path.Base(name) != want {
			return nil, u.abandon(missingShard(nil, want))
		}
		c, err := u.open(ctx, name)
		if err != nil {
			return nil, u.abandon(err)
		}
		if err := u.root.Set(nested.String(name), c.Root); err != nil {
			return nil, u.abandon(err)
		}
	}
	return u.finish(dir, "consolidated", nil)
}
