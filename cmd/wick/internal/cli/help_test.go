package cli

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every flag that a help text names is one that its command has.
func TestHelpNamesRealFlags(t *testing.T) {
	a := &app{streams: newStreams(nil, &bytes.Buffer{}, &bytes.Buffer{}), getenv: os.Getenv}
	flag := regexp.MustCompile(`(?:^|[\s\[|])--([a-z][a-z0-9-]*)`)
	for _, cmd := range a.root().Commands() {
		texts := cmd.Long + "\n" + cmd.Use + "\n" + ownExamples(cmd)
		for _, m := range flag.FindAllStringSubmatch(texts, -1) {
			if cmd.Flags().Lookup(m[1]) == nil && cmd.InheritedFlags().Lookup(m[1]) == nil {
				t.Errorf("wick %s names --%s, which it does not have", cmd.Name(), m[1])
			}
		}
	}
}

// ownExamples are the lines that run this command and no other.
func ownExamples(cmd *cobra.Command) string {
	var own []string
	for line := range strings.Lines(cmd.Example) {
		line, _, _ = strings.Cut(line, "&&")
		line, _, _ = strings.Cut(line, " | ")
		own = append(own, line)
	}
	return strings.Join(own, "\n")
}

// Every command has a line in help, examples, and its own help.
func TestHelp(t *testing.T) {
	all := runFiles(t, "help")
	if all.code != 0 || !strings.Contains(all.out, "Exit codes") || all.err != "" {
		t.Errorf("exit %d, %s", all.code, all.err)
	}
	if bare := runFiles(t); bare.code != 0 || bare.out != all.out {
		t.Errorf("wick alone is not wick help: exit %d, %s", bare.code, bare.out)
	}
	for _, build := range commands {
		cmd := build(&app{})
		if !strings.Contains(all.out, "\n  "+cmd.Name()+" ") {
			t.Errorf("help does not list %s", cmd.Name())
		}
		got := runFiles(t, cmd.Name(), "--help")
		examples, usage := strings.Index(got.out, "Examples\n"), strings.Index(got.out, "Usage\n  wick "+cmd.Name())
		if got.code != 0 || examples < 0 || usage < examples {
			t.Errorf("wick %s --help: exit %d, %s%s", cmd.Name(), got.code, got.out, got.err)
		}
		if other := runFiles(t, "help", cmd.Name()); other.out != got.out {
			t.Errorf("wick help %s is not wick %[1]s --help", cmd.Name())
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := runFiles(t, "completion", shell); got.code != 0 || len(got.out) < 1000 || got.err != "" {
			t.Errorf("%s: exit %d, %d bytes, %s", shell, got.code, len(got.out), got.err)
		}
	}
}

func TestVersionFlag(t *testing.T) {
	command, flag := runFiles(t, "version"), runFiles(t, "--version")
	if flag.code != 0 || flag != command || !strings.HasPrefix(flag.out, "wick ") {
		t.Errorf("exit %d, %q%s; wick version: %q", flag.code, flag.out, flag.err, command.out)
	}
}

func TestVersionSaysWhatItIsBuiltFrom(t *testing.T) {
	var out bytes.Buffer
	a := &app{streams: newStreams(nil, &out, &bytes.Buffer{}), verbose: true}
	b := build{version: "v1.2.3", revision: "0123abc", time: "2026-11-30T12:00:00Z", goVersion: "go1.26.0", platform: "linux/amd64", modified: true,
		tags: []string{"nounsafe"}, modules: []*debug.Module{
			{Path: "example.org/a", Version: "v1.0.0", Sum: "h1:x"},
			{Path: "example.org/long", Version: "v2.0.0", Replace: &debug.Module{Path: "../long", Version: "(devel)"}},
		}}
	for _, c := range []struct {
		json bool
		want string
	}{
		{false, "wick v1.2.3 linux/amd64 go1.26.0\nrevision 0123abc of 2026-11-30T12:00:00Z, modified\ntags nounsafe\nexample.org/a     v1.0.0\nexample.org/long  (devel)\n"},
		{true, `{"version":"v1.2.3","revision":"0123abc","time":"2026-11-30T12:00:00Z","modified":true,"go":"go1.26.0","platform":"linux/amd64","tags":["nounsafe"],` +
			`"modules":[{"path":"example.org/a","version":"v1.0.0","sum":"h1:x"},{"path":"example.org/long","version":"(devel)","sum":null}]}` + "\n"},
	} {
		out.Reset()
		if err := errors.Join(a.version(b, c.json), a.out.Flush()); err != nil || out.String() != c.want {
			t.Errorf("%v\n%swant\n%s", err, out.String(), c.want)
		}
	}
}
