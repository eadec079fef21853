package serde

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/wick-ml/wick/fault"
)

// maxCell bounds one cell of the table; texts come from files.
const maxCell = 80

// String returns the plan as an aligned table: every row that is applied, then
// what is mismatched, missing, unexpected and ignored, then the totals.
func (p *Plan) String() string {
	var b, trimmed strings.Builder
	_ = p.write(&b) // a strings.Builder does not fail
	for line := range strings.Lines(b.String()) {
		trimmed.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return trimmed.String()
}

func (p *Plan) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, group := range []struct {
		mark string
		rows []Row
	}{{"", p.Applied}, {"mismatch", p.Mismatched}, {"missing", p.Missing}, {"unexpected", p.Unexpected}, {"ignored", p.Ignored}} {
		for i := range group.rows {
			r := &group.rows[i]
			mark := group.mark
			if mark == "" {
				mark = string(r.How)
			}
			if _, err := fmt.Fprintln(w, strings.Join([]string{mark, cell(r.Name), cell(r.From), arrow(r), cell(r.To), cell(r.remark())}, "\t")); err != nil {
				return err
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, p.totals())
	return err
}

func cell(s string) string { return fault.Clean(s, maxCell) }

func arrow(r *Row) string {
	if r.Field == "" {
		return ""
	}
	return "→ " + cell(r.Field)
}

func (r *Row) remark() string {
	if r.Near != "" {
		return strings.TrimSpace("did you mean " + r.Near + "? " + r.Note)
	}
	return r.Note
}

func (p *Plan) totals() string {
	s := fmt.Sprintf("%d applied, %d mismatched, %d missing, %d unexpected, %d ignored; %s in fields, %s peak",
		len(p.Applied), len(p.Mismatched), len(p.Missing), len(p.Unexpected), len(p.Ignored), bytesText(p.FieldBytes), bytesText(p.PeakBytes))
	if p.AliasBytes > 0 {
		s += ", " + bytesText(p.AliasBytes) + " aliased"
	}
	return s
}

// String returns the plan's table, and a line on what the run read, copied and checked.
func (r *Report) String() string {
	s := fmt.Sprintf("%s read, %s copied, %s aliased; checksums: %d verified, %d unverified, %d absent",
		bytesText(r.Read), bytesText(r.Copied), bytesText(r.Aliased), r.Checks.Verified, r.Checks.Unverified, r.Checks.Absent)
	if r.Checks.Failed > 0 {
		s += fmt.Sprintf(", %d failed", r.Checks.Failed)
	}
	if r.Overflow > 0 {
		s += fmt.Sprintf("; %d numbers too large for their fields", r.Overflow)
	}
	return r.Plan.String() + s + "\n"
}

// bytesText prints a size in the binary unit that keeps it short.
func bytesText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, u := float64(n), 0
	for f >= 1024 && u < len(units)-1 {
		f, u = f/1024, u+1
	}
	if u == 0 {
		return strconv.FormatInt(n, 10) + " B"
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + " " + units[u]
}

// MarshalJSON returns the plan as one JSON object with the lists applied,
// missing, unexpected, mismatched and ignored, which are never null, and the
// totals in bytes.
func (p *Plan) MarshalJSON() ([]byte, error) {
	type plain Plan // without this method
	out := plain(*p)
	for _, rows := range []*[]Row{&out.Applied, &out.Missing, &out.Unexpected, &out.Mismatched, &out.Ignored} {
		if *rows == nil {
			*rows = []Row{}
		}
	}
	return json.Marshal(&out)
}

// Change is one name that two plans treat differently; a side without it is
// nil.
type Change struct {
	Name       string
	Sort, Was  string // "applied", "missing", "unexpected", "mismatched", "ignored"; "" where the name is absent
	Row, Other *Row
}

// Compare returns the rows in which p and other differ, by name and field, in
// the order of p and then of other.
func (p *Plan) Compare(other *Plan) []Change {
	mine, theirs := p.rows(), other.rows()
	was := map[[2]string]sorted{}
	for _, r := range theirs {
		was[r.key()] = r
	}
	var out []Change
	for _, r := range mine {
		o, ok := was[r.key()]
		delete(was, r.key())
		switch {
		case !ok:
			out = append(out, Change{Name: r.row.Name, Sort: r.sort, Row: r.row})
		case o.sort != r.sort || *o.row != *r.row:
			out = append(out, Change{Name: r.row.Name, Sort: r.sort, Was: o.sort, Row: r.row, Other: o.row})
		}
	}
	for _, r := range theirs {
		if _, left := was[r.key()]; left {
			out = append(out, Change{Name: r.row.Name, Was: r.sort, Other: r.row})
		}
	}
	return out
}

type sorted struct {
	sort string
	row  *Row
}

func (s sorted) key() [2]string { return [2]string{s.row.Name, s.row.Field} }

func (p *Plan) rows() []sorted {
	var out []sorted
	add := func(sort string, rows []Row) {
		for i := range rows {
			out = append(out, sorted{sort, &rows[i]})
		}
	}
	add("applied", p.Applied)
	add("mismatched", p.Mismatched)
	add("missing", p.Missing)
	add("unexpected", p.Unexpected)
	add("ignored", p.Ignored)
	return slices.Clip(out)
}
