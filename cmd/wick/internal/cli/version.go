package cli

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
)

// build is what the binary knows of itself.
type build struct {
	version, revision, time, goVersion, platform string
	modified                                     bool
	tags                                         []string
	modules                                      []*debug.Module
}

func newVersion(a *app) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:     "version [--json]",
		Short:   "Print the version, and what this program was built from",
		Long:    "version prints the version, the revision and the version of Go; with --verbose or --json also the versions of\nall modules in the program.",
		Example: "  wick version\n  wick version --verbose\n  wick version --json",
		Args:    argCount(0, 0, "no arguments"),
		RunE:    func(*cobra.Command, []string) error { return a.version(thisBuild(), json) },
	}
	cmd.Flags().BoolVar(&json, "json", false, "print JSON")
	return cmd
}

func thisBuild() build {
	b := build{version: "unknown", goVersion: runtime.Version(), platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.version, b.modules = info.Main.Version, info.Deps
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.revision = s.Value
		case "vcs.time":
			b.time = s.Value
		case "vcs.modified":
			b.modified = s.Value == "true"
		case "-tags":
			b.tags = strings.Split(s.Value, ",")
		}
	}
	return b
}

func (a *app) version(b build, json bool) error {
	if json {
		var o jsonout.Object
		o.String("version", b.version)
		o.StringOrNull("revision", b.revision)
		o.StringOrNull("time", b.time)
		o.Bool("modified", b.modified)
		o.String("go", b.goVersion)
		o.String("platform", b.platform)
		o.Raw("tags", stringsJSON(b.tags))
		o.Raw("modules", list(b.modules, moduleJSON))
		_, err := a.out.Write(append(o.Bytes(), '\n'))
		return err
	}
	text := "wick " + b.version + " " + b.platform + " " + b.goVersion
	if b.revision != "" {
		text += "\nrevision " + b.revision + " of " + b.time
		if b.modified {
			text += ", modified"
		}
	}
	if len(b.tags) > 0 {
		text += "\ntags " + strings.Join(b.tags, ", ")
	}
	a.line(text)
	if a.verbose {
		t := table{}
		for _, m := range b.modules {
			t.add(cell{m.Path, plain}, cell{used(m).Version, plain})
		}
		return t.print(a.streams)
	}
	return nil
}

// used is the module that stands for m in the program.
func used(m *debug.Module) *debug.Module {
	if m.Replace != nil {
		return m.Replace
	}
	return m
}

func moduleJSON(m *debug.Module) []byte {
	var o jsonout.Object
	o.String("path", m.Path)
	o.String("version", used(m).Version)
	o.StringOrNull("sum", used(m).Sum)
	return o.Bytes()
}
