package cli

import (
	"slices"

	"github.com/spf13/pflag"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/fault"
)

// joinFlags say whether Meta's consolidated.NN.pth are one state dict or a map of
// shards. What shows files shows these as they are; what compares or makes a model
// takes the model.
type joinFlags struct {
	join, keepShards bool
	opening          bool // the command joins while it opens
}

func (j *joinFlags) register(f *pflag.FlagSet) {
	f.BoolVar(&j.join, "join", false, "show Meta's consolidated.NN.pth as one state dict, as convert, pack, diff, plan, gen and verify A B take them")
	f.BoolVar(&j.keepShards, "keep-shards", false, "leave Meta's consolidated.NN.pth as they are: a map of shards")
}

// settle decides for a command with so many arguments.
func (j *joinFlags) settle(command string, args int) error {
	if j.join && j.keepShards {
		return fault.New(fault.Usage, "--join and --keep-shards").Needs("", "give one of them")
	}
	switch {
	case j.keepShards, command == "convert", command == "pack": // these join in their plan, which --config is for
	case j.join, slices.Contains([]string{"diff", "plan", "gen"}, command):
		j.opening = true
	case command == "verify", command == "report":
		j.opening = args == 2
	}
	return nil
}

// convert adds what was said of shards to the options of a conversion.
func (j *joinFlags) convert(opts ...wick.ConvertOption) []wick.ConvertOption {
	if j.keepShards {
		opts = append(opts, wick.KeepShards())
	}
	return opts
}
