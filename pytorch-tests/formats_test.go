package pytorchtests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFormatsPage holds docs/formats.md to the fixtures: what its tables name
// exists and has an expectation, and no case goes unnamed.
func TestFormatsPage(t *testing.T) {
	raw, err := os.ReadFile("../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	for _, line := range strings.Split(page, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), "|")
		last := strings.TrimSpace(cells[len(cells)-1])
		if !strings.HasPrefix(line, "| ") || last == "fixtures" || len(cells) < 3 || strings.HasPrefix(last, "100,000") || figures.MatchString(last) {
			continue
		}
		for _, name := range strings.Split(last, ", ") {
			if _, err := os.Stat(filepath.Join(folderOf(name), "expected.json")); err != nil {
				t.Errorf("%q names fixtures that are not there: %v", line, err)
			}
		}
	}
	cases, err := filepath.Glob("*/expected.json")
	if err != nil || len(cases) == 0 {
		t.Fatal("no fixtures", err)
	}
	for _, c := range cases {
		name := filepath.Dir(c)
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(page) {
			t.Errorf("the page says nothing of %s", name)
		}
	}
}

// figures are the cells of the tables of measurements.
var figures = regexp.MustCompile(`^[0-9]+\.[0-9]+`)

// folderOf is where a name of the page lies: a case beside this test, or a
// path from the root.
func folderOf(name string) string {
	if strings.Contains(name, "/") {
		return filepath.Join("..", filepath.FromSlash(name))
	}
	return name
}
