package rules

import (
	"embed"
	"path"
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// The named sets are rule files like those of users.
//
//go:embed sets/*.rules
var setFiles embed.FS

// Names returns the names of the sets that come with wick, sorted.
func Names() []string {
	entries, _ := setFiles.ReadDir("sets") // embedded: it cannot fail
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), ".rules")
	}
	return names
}

// Named returns the set called name that comes with wick. It fails with
// [fault.ErrNotFound], naming the near miss.
func Named(name string) (*Set, error) {
	text, err := setFiles.ReadFile(path.Join("sets", name+".rules"))
	if err != nil {
		e := fault.New(fault.NotFound, "no set of rules is called "+name).Needs("one of "+strings.Join(Names(), ", "), "")
		if near := nested.Nearest(name, Names()); near != "" {
			e.Cure = "did you mean " + near + "?"
		}
		return nil, e
	}
	return Parse(name, string(text))
}
