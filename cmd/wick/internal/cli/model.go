package cli

import (
	"cmp"
	"context"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/arith"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
)

// modelFlags are all flags by which convert changes a tree: rules, and what no
// rule says. What compares a file with one that was made of it takes the same.
type modelFlags struct {
	changeFlags

	dequantize, densify bool
	names, config       string
	configText          []byte // what is in config
}

func (f *modelFlags) register(flags *pflag.FlagSet) {
	f.changeFlags.register(flags)
	flags.BoolVar(&f.dequantize, "dequantize", false, "make quantized tensors the floats that they stand for")
	flags.BoolVar(&f.densify, "densify", false, "make sparse tensors dense ones")
	flags.StringVar(&f.names, "names", "", "give a Llama's tensors the names, and q and k the layout, of `whom`: hf (transformers), meta or gguf (llama.cpp)")
	flags.StringVar(&f.config, "config", "", "the model's params.json or config.json, if not beside the weights: a `file`")
}

// given lists those of the flags that a command line has.
func (*modelFlags) given(line *pflag.FlagSet) []string {
	var own pflag.FlagSet
	var list []string
	new(modelFlags).register(&own)
	own.VisitAll(func(f *pflag.Flag) {
		if line.Changed(f.Name) {
			list = append(list, "--"+f.Name)
		}
	})
	return list
}

func (f *modelFlags) changes() bool {
	return f.changeFlags.changes() || f.dequantize || f.densify || f.names != ""
}

// readConfig reads the file of --config.
func (f *modelFlags) readConfig() error {
	if f.config == "" {
		return nil
	}
	info, err := os.Stat(f.config)
	if err != nil {
		return err
	}
	if info.Size() > maxRuleFile {
		return fault.NewLimit("config bytes", info.Size(), maxRuleFile).In(f.config)
	}
	f.configText, err = os.ReadFile(f.config)
	return err
}

// options are what the flags are beside rules.
func (f *modelFlags) options(ctx context.Context, limits checkpoint.Limits) []wick.ConvertOption {
	var opts []wick.ConvertOption
	most := arith.Limits{Expand: limits.Expand, Floor: limits.ExpandFloor}
	if f.dequantize {
		opts = append(opts, wick.Changing(func(root nested.Value) (nested.Value, error) {
			return arith.DequantizeTree(root, most)
		}))
	}
	if f.densify {
		opts = append(opts, wick.Changing(func(root nested.Value) (nested.Value, error) {
			return arith.DensifyTree(ctx, root, most)
		}))
	}
	if f.names != "" {
		opts = append(opts, wick.Names(f.names))
	}
	if f.configText != nil {
		opts = append(opts, wick.Config(f.configText))
	}
	return opts
}

// openChanged opens a FILE argument and changes its tree as convert does.
func (a *app) openChanged(ctx context.Context, name string, o openOptions, f *modelFlags) (*checkpoint.Checkpoint, error) {
	sets, err := f.sets()
	if err := cmp.Or(err, f.readConfig()); err != nil {
		return nil, err
	}
	c, err := a.openWith(ctx, name, o)
	if err != nil || !f.changes() {
		return c, err
	}
	changed, err := a.change(ctx, c, sets, f)
	if err != nil {
		a.close(c)
		return nil, err
	}
	return changed, nil
}

// openBelow opens a FILE argument for what only shows it: --key is all that changes it.
func (a *app) openBelow(ctx context.Context, name string, f *changeFlags) (*checkpoint.Checkpoint, error) {
	return a.openChanged(ctx, name, openOptions{}, &modelFlags{changeFlags: *f})
}

// change changes an open checkpoint's tree, and warns of rules that match nothing.
func (a *app) change(ctx context.Context, c *checkpoint.Checkpoint, sets []*rules.Set, f *modelFlags) (*checkpoint.Checkpoint, error) {
	if err := checkWhole(c); err != nil {
		return nil, err
	}
	changed, reports, err := wick.Changed(c, append(f.options(ctx, c.Limits()), wick.WithRules(sets...))...)
	if err != nil {
		return nil, err
	}
	for _, text := range unmatchedTexts(reports, c.Names(), &f.changeFlags) {
		a.warn(text)
	}
	return changed, nil
}

// checkLeft fails where the flags left nothing to compare: that would be the same as
// anything.
func (f *modelFlags) checkLeft(x *comparison) error {
	if len(x.a.Tensors) > 0 || !f.changes() {
		return nil
	}
	return fault.New(fault.NotFound, "no tensor is left to compare").In(x.a.File).Needs("", "see what is there: wick ls")
}

// checkAlone refuses the flags where there is no second file.
func (f *modelFlags) checkAlone(line *pflag.FlagSet) error {
	if list := f.given(line); len(list) > 0 {
		return fault.New(fault.Usage, strings.Join(list, " and ")+" with one file").
			Needs("the file to compare with", "of one file all is checked: leave the flag out, or name the other file")
	}
	return nil
}
