//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// report is the whole run, as written to the JSON file.
type report struct {
	Machine machine        `json:"machine"`
	Tasks   []measuredTask `json:"tasks"`
}

type measuredTask struct {
	Name         string        `json:"name"`
	About        string        `json:"about"`
	Series       string        `json:"series,omitempty"`
	Expected     string        `json:"expected_checksum,omitempty"` // of what converters write
	LoadBefore   string        `json:"load_average_before"`
	LoadAfter    string        `json:"load_average_after"`
	Measurements []measurement `json:"programs"` // the first is the baseline
}

// missing says of all programs that they could not be run.
func (t *measuredTask) missing(why string) {
	for i := range t.Measurements {
		t.Measurements[i].Missing = why
	}
}

// write writes what was measured so far to the files that are wanted.
func (r report) write(jsonFile, mdFile string) error {
	if mdFile != "" {
		if err := os.WriteFile(mdFile, []byte(r.markdown()), 0o666); err != nil {
			return err
		}
	}
	if jsonFile == "" {
		return nil
	}
	document, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(jsonFile, append(document, '\n'), 0o666)
}

func (r report) markdown() string {
	var b strings.Builder
	b.WriteString(r.Machine.markdown())
	series := ""
	for _, t := range r.Tasks {
		if t.Series == "" {
			t.markdown(&b)
			continue
		}
		if t.Series != series {
			series = t.Series
			fmt.Fprintf(&b, "\n### growth with the %s\n\n| file | program | wall | user + system | peak RSS |\n|---|---|--:|--:|--:|\n", series)
		}
		t.growth(&b)
	}
	return b.String()
}

// growth writes the rows of a task in the table of its series.
func (t measuredTask) growth(b *strings.Builder) {
	for _, m := range t.Measurements {
		if len(m.Samples) == 0 {
			fmt.Fprintf(b, "| %s | %s | missing: %s | | |\n", t.About, m.Name, m.Missing)
			continue
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %.1f MiB |\n", t.About, m.Name, milliseconds(m.median(wallOf)),
			milliseconds(m.median(func(s sample) float64 { return s.User + s.System })),
			m.median(func(s sample) float64 { return float64(s.PeakKiB) })/1024)
	}
}

func (t measuredTask) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n### %s: %s\n\nLoad average of the machine: %s before, %s after.\n\n", t.Name, t.About, t.LoadBefore, t.LoadAfter)
	b.WriteString("| program | wall | × | best | user | system | in process | peak RSS | page faults | values |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n")
	reference := t.reference()
	for _, m := range t.Measurements {
		if len(m.Samples) > 0 {
			m.row(b, t.Measurements[0], reference, t.Expected)
		}
	}
	for _, m := range t.Measurements {
		if anonymous := m.median(func(s sample) float64 { return float64(s.AnonKiB) }); anonymous > 0 && t.Name == "map" {
			fmt.Fprintf(b, "\nAnonymous memory of %s before a value is touched: %.1f MiB.\n", m.Name, anonymous/1024)
		}
		if len(m.Samples) == 0 {
			fmt.Fprintf(b, "\nMissing: %s (%s)\n", m.Name, m.Missing)
		}
	}
}

// row writes medians; × is the median of the ratios to the baseline of the same round, best is the fastest round.
func (m measurement) row(b *strings.Builder, baseline measurement, reference, expected string) {
	wall := m.median(wallOf)
	ratio := "–"
	if r := ratios(m.all(wallOf), baseline.all(wallOf)); len(r) > 0 {
		ratio = fmt.Sprintf("%.2f", median(r))
	}
	inside := "–"
	if load := m.median(func(s sample) float64 { return s.LoadSeconds }); load > 0 {
		inside = milliseconds(load)
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %.1f MiB | %.0f | %s |\n",
		m.Name, milliseconds(wall), ratio, milliseconds(slices.Min(m.all(wallOf))),
		milliseconds(m.median(func(s sample) float64 { return s.User })),
		milliseconds(m.median(func(s sample) float64 { return s.System })),
		inside, m.median(func(s sample) float64 { return float64(s.PeakKiB) })/1024,
		m.median(func(s sample) float64 { return float64(s.Faults) }), m.verdict(reference, expected))
}

// ratios divides what was measured in the same rounds.
func ratios(values, base []float64) []float64 {
	var list []float64
	for i := range min(len(values), len(base)) {
		list = append(list, values[i]/base[i])
	}
	return list
}

// reference returns the checksum that torch's loader printed, or none.
func (t measuredTask) reference() string {
	for _, m := range t.Measurements {
		if strings.HasPrefix(m.Name, "torch") && len(m.Samples) > 0 {
			return m.Samples[0].Checksum
		}
	}
	return ""
}

// verdict compares the values that a loader loaded with torch's, and those that a converter wrote with the expected. The
// floor's sum is of the file, not of its tensors.
func (m measurement) verdict(reference, expected string) string {
	switch m.Written {
	case "":
	case expected:
		return "written as loaded"
	default:
		return "**differ** (" + m.Written + ")"
	}
	for _, s := range m.Samples {
		switch {
		case s.Checksum == "" || s.Tensors == 0 || reference == "":
			return "–"
		case s.Checksum != reference:
			return "**differ** (" + s.Checksum + ")"
		}
	}
	return "as torch's"
}

func wallOf(s sample) float64 { return s.Wall }

func (m measurement) all(of func(sample) float64) []float64 {
	var list []float64
	for _, s := range m.Samples {
		list = append(list, of(s))
	}
	return list
}

func (m measurement) median(of func(sample) float64) float64 { return median(m.all(of)) }

// median returns 0 for no values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

func milliseconds(seconds float64) string {
	if seconds < 0.1 {
		return fmt.Sprintf("%.1f ms", seconds*1000)
	}
	return fmt.Sprintf("%.0f ms", seconds*1000)
}
