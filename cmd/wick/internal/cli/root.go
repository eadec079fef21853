package cli

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/remote"
)

// commands are all commands in the order in which help shows them. A new one is
// a file of its own and a line here.
var commands = []func(*app) *cobra.Command{
	newLs,
	newTree,
	newInfo,
	newShow,
	newDiff,
	newExtract,
	newConvert,
	newPack,
	newVerify,
	newScan,
	newDisasm,
	newPlan,
	newGen,
	newReport,
	newDemo,
	newVersion,
}

func init() { cobra.EnableCommandSorting = false } // help shows them in the order above

func (a *app) root() *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "wick",
		Short: "PyTorch checkpoints without Python",
		Long: "wick reads PyTorch checkpoints (.pt, .pth, .bin, .ckpt) and safetensors without Python\n" +
			"and without running anything that is in them.\n\n" +
			"FILE is a file, a folder, an index of shards, - for standard input, an http or https URL, or hf://ORG/MODEL/FILE\n" +
			"on a model hub. Of what is on a server only the parts that are needed are fetched.",
		Example: "  wick demo                                see it work; needs no file\n" +
			"  wick ls model.pt                         what is in this file?\n" +
			"  wick convert model.pt model.safetensors  every tensor, bit for bit\n" +
			"  wick verify model.pt model.safetensors   is it all there?\n" +
			"  wick ls hf://ORG/MODEL                   what is on the hub, not downloaded",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if version && len(args) == 0 {
				return a.version(thisBuild(), false)
			}
			return a.rootRun(cmd, args)
		},
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error { return a.globals(cmd.Name(), len(args)) },
	}
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(a.help)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetHelpCommand(newHelp())
	root.SuggestionsMinimumDistance = 2
	root.Flags().BoolVar(&version, "version", false, "print the version, as wick version does")
	a.globalFlags(root.PersistentFlags())
	for _, build := range commands {
		cmd := build(a)
		cmd.DisableFlagsInUseLine = true
		root.AddCommand(cmd)
	}
	strictCompletion(root)
	return root
}

func (a *app) globalFlags(f *pflag.FlagSet) {
	f.BoolVarP(&a.quiet, "quiet", "q", false, "no progress and no remarks on stderr")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "say more on stderr")
	f.StringVar(&a.color, "color", "auto", "colour `when`: auto, always, never")
	f.StringArrayVar(&a.limits, "limit", nil, "raise a limit, as `name=value`; the error names it")
	f.StringVar(&a.spool, "spool", "", "keep what an input - cannot give in order in a temporary file in this `folder`")
	a.shards.register(f)
}

func (a *app) globals(command string, args int) error {
	if err := a.shards.settle(command, args); err != nil {
		return err
	}
	switch a.color {
	case "auto", "always", "never":
		a.colours(a.color, a.getenv)
		return nil
	default:
		return fault.New(fault.Usage, "--color "+a.color).Needs("", "one of auto, always, never")
	}
}

// rootRun is met when no command was named, or one that does not exist.
func (a *app) rootRun(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	name := remote.Redact(args[0])
	e := fault.New(fault.Usage, "unknown command "+name).Needs("", "see wick help")
	if _, err := os.Stat(args[0]); err == nil || remote.IsURL(args[0]) {
		e.Cure = "to see what is in it: wick ls " + name
	} else if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		e.Cure = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return e
}

func flagError(cmd *cobra.Command, err error) error {
	text := err.Error()
	if before, _, ok := strings.Cut(text, ": strconv."); ok { // how Go parses is nobody's concern
		text = before
	}
	e := fault.New(fault.Usage, text).Needs("", "see "+cmd.CommandPath()+" --help")
	name, ok := strings.CutPrefix(text, "unknown flag: --")
	switch {
	case ok && hasFlag(cmd.Root(), name): // spelled as it is meant
		e.Found = cmd.Name() + " has no --" + name
	case ok:
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if near := nested.Nearest(name, known); near != "" {
			e.Cure = "did you mean --" + near + "?"
		}
	}
	return e
}

// hasFlag reports whether a command or one below it has a flag.
func hasFlag(cmd *cobra.Command, name string) bool {
	if cmd.Flags().Lookup(name) != nil {
		return true
	}
	return slices.ContainsFunc(cmd.Commands(), func(c *cobra.Command) bool { return hasFlag(c, name) })
}
