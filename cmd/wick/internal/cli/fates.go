package cli

import (
	"slices"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
)

// fates puts together what several sets of rules did one after another, and what
// was changed before them: for each name that is left, the names in the file c that
// it comes from.
func fates(left []rules.Entry, reports []*rules.Report, c *checkpoint.Checkpoint) *rules.Report {
	isNew := newIn(c)
	anyNew := slices.ContainsFunc(left, func(e rules.Entry) bool { return isNew(e.Value) })
	if len(reports) == 1 && len(reports[0].Made) == 0 && !anyNew {
		return reports[0] // it says what it took from the file itself: most do
	}
	out := &rules.Report{}
	past := history(reports)
	for i := range left {
		e := &left[i]
		from, made := past.origins(e.Name)
		change := rules.Change{From: from, To: e.Name}
		switch {
		case made || isNew(e.Value):
			out.Made = append(out.Made, change)
		case !slices.Equal(from, []string{e.Name}):
			out.Renamed = append(out.Renamed, change)
		}
	}
	for i, r := range reports {
		for _, name := range r.Dropped {
			from, _ := past[:i].origins(name)
			out.Dropped = append(out.Dropped, from...)
		}
		out.Unmatched = append(out.Unmatched, r.Unmatched...)
	}
	return out
}

// stage is what one set of rules did, by the names that it left.
type stage struct{ renamed, made map[string][]string }

// stages are sets of rules that were applied in this order.
type stages []stage

func history(reports []*rules.Report) stages {
	var list stages
	for _, r := range reports {
		list = append(list, stage{renamed: changesTo(r.Renamed), made: changesTo(r.Made)})
	}
	return list
}

func changesTo(changes []rules.Change) map[string][]string {
	m := map[string][]string{}
	for _, c := range changes {
		m[c.To] = c.From
	}
	return m
}

// origins goes back from a name behind all stages to those before the first.
func (s stages) origins(name string) (names []string, made bool) {
	names = []string{name}
	for _, step := range slices.Backward(s) {
		for _, name := range names {
			_, ok := step.made[name]
			made = made || ok
		}
		names = before(before(names, step.made), step.renamed)
	}
	return names, made
}

// before takes each name for those that it comes from, where changes say so.
func before(names []string, changes map[string][]string) []string {
	var out []string
	for _, name := range names {
		if from, ok := changes[name]; ok {
			out = append(out, from...)
		} else {
			out = append(out, name)
		}
	}
	return out
}

// newIn tells tensors that are not those of the file: what was quantized or sparse
// there. Rules that only choose and rename keep a tensor itself.
func newIn(c *checkpoint.Checkpoint) func(nested.Value) bool {
	had := map[*nested.Tensor]bool{}
	for _, t := range c.Tensors() {
		had[t] = true
	}
	return func(v nested.Value) bool {
		t, ok := v.(*nested.Tensor)
		return ok && !had[t]
	}
}
