package cli

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// newHelp is the command that prints the help of others. Unlike cobra's own it
// takes an unknown name for an error.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				if found == nil {
					found = cmd.Root()
				}
				if len(rest) == 0 {
					rest = args
				}
				return unknownBelow(found, rest[0])
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// strictCompletion makes a shell that is not known, or none, an error.
func strictCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Use = "completion SHELL"
			cmd.Short = "Print a script that completes command lines in a shell"
			cmd.Long = "completion prints a script by which a shell completes wick's command lines. The help of each shell's own says\n" +
				"where such scripts go: wick help completion bash."
			cmd.Example = "  source <(wick completion bash)\n  wick completion zsh > _wick"
			cmd.DisableFlagsInUseLine = true
			cmd.Args = cobra.ArbitraryArgs
			cmd.RunE = completionRun
		}
	}
}

func completionRun(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownBelow(cmd, args[0])
	}
	return usage(cmd, "completion needs a shell: "+strings.Join(namesBelow(cmd), ", "))
}

// unknownBelow says that a command has no command of that name.
func unknownBelow(cmd *cobra.Command, name string) error {
	names := namesBelow(cmd)
	e := fault.New(fault.Usage, "unknown command "+strings.TrimPrefix(cmd.CommandPath()+" "+name, "wick "))
	if near := nested.Nearest(name, names); near != "" {
		e.Cure = "did you mean " + near + "?"
	} else if len(names) > 0 {
		e.Cure = "one of " + strings.Join(names, ", ")
	}
	return e
}

func namesBelow(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// help prints a command's help: what it is for, examples, then the reference.
func (a *app) help(cmd *cobra.Command, _ []string) {
	var b strings.Builder
	width := a.helpWidth()
	about := cmd.Long
	if about == "" {
		about = cmd.Short
	}
	b.WriteString(wrapText(about, width))
	if cmd.Example != "" {
		b.WriteString("\n" + a.paint(bold, "Examples") + "\n")
		for line := range strings.SplitSeq(strings.TrimRight(cmd.Example, "\n"), "\n") {
			b.WriteString(strings.Join(wrapShell(line, width), "\n") + "\n")
		}
	}
	usage := strings.ReplaceAll(strings.Join(wrap(wholeBrackets(usageLine(cmd)), width-6), "\n      "), noBreak, " ")
	b.WriteString("\n" + a.paint(bold, "Usage") + "\n  " + usage + "\n")
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n" + a.paint(bold, "Commands") + "\n" + wrapText(subcommands(cmd), width))
	}
	if f := cmd.LocalNonPersistentFlags(); f.HasAvailableFlags() {
		b.WriteString("\n" + a.paint(bold, "Flags") + "\n" + f.FlagUsagesWrapped(width))
	}
	if cmd.HasParent() {
		b.WriteString("\nMore flags, for all commands, and the exit codes: wick help\n")
	} else {
		b.WriteString("\n" + a.paint(bold, "Flags for all commands") + "\n" + cmd.PersistentFlags().FlagUsagesWrapped(width) + wrapText(environment(a)+exitCodes(a), width))
	}
	_, _ = a.out.WriteString(b.String()) // Flush reports what went wrong
}

// helpWidth is how wide help is: as a terminal, but no wider than is good to read.
func (a *app) helpWidth() int {
	const most = 100
	return min(max(cmp.Or(a.width, usualWidth), usualWidth/2), most)
}

// usualWidth is the columns of whatever is no terminal.
const usualWidth = 80

const noBreak = "\u00a0"

// wholeBrackets keeps the words of a bracket on one line.
func wholeBrackets(usage string) string {
	var b strings.Builder
	depth := 0
	for _, r := range usage {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == ' ' && depth > 0:
			b.WriteString(noBreak)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func usageLine(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return "wick COMMAND [FLAGS] ARGUMENTS"
	}
	return cmd.UseLine()
}

func subcommands(cmd *cobra.Command) string {
	var b strings.Builder
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			b.WriteString("  " + c.Name() + strings.Repeat(" ", max(1, 12-len(c.Name()))) + c.Short + "\n")
		}
	}
	return b.String()
}

func environment(a *app) string {
	return "\n" + a.paint(bold, "Environment") + `
  HF_TOKEN                   token for hf:// names, sent to the hub alone
  HF_TOKEN_PATH              a file with the token, where HF_TOKEN is not set
  HF_ENDPOINT                another hub than https://huggingface.co
  HTTPS_PROXY, HTTP_PROXY, NO_PROXY
                             how servers are reached
  NO_COLOR, CLICOLOR_FORCE   no colour, or colour everywhere; --color decides before them
`
}

func exitCodes(a *app) string {
	return "\n" + a.paint(bold, "Exit codes") + `
  0    done
  1    the answer is "no": differences, findings, a plan that does not match
  2    usage, or what the system refused: no such file, permission, disk full, output exists
  3    the bytes break their own format: truncated, checksum, missing record, out of bounds
  4    sound, but something else, not supported, or over a limit
  130  interrupted
  141  whoever read the bytes of convert - or extract -o - went away before their end
`
}
