package serde

import (
	"reflect"
	"strings"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/rules"
)

// outcome is how well one variant matched.
type outcome struct {
	t    reflect.Type
	used int    // names that it takes
	why  string // it does not match, "" if it does
}

// variant fills an interface with the registered type whose names are all
// there. Each type is tried and undone; the best one is matched again.
func (m *matcher) variant(dst reflect.Value, p place, flags rules.Flags) error {
	t := dst.Type()
	if err := containerExpr(dst, p); err != nil {
		return err
	}
	types := m.cfg.variants[t]
	if len(types) == 0 {
		return fault.New(fault.Usage, "a field of the interface type "+t.String()).OnPath(p.field).Needs("its variants", "register them with the option Variants")
	}
	if !m.exists(p) || m.isNone(p) {
		if !p.optional && len(m.index.Lookup(p.name)) == 0 {
			m.missing(p, t)
		}
		return nil
	}
	best, wrong, err := m.bestOf(types, p, flags)
	if err != nil {
		return err
	}
	if wrong != "" {
		m.mismatch(p, "keys "+strings.Join(firstOf(m.index.Children(p.below()), 8), ", "), t, wrong)
		m.useBelow(p)
		return nil
	}
	fresh, elem := freshVariant(best)
	if err := m.value(elem, p, flags); err != nil {
		return err
	}
	m.plan.commit = append(m.plan.commit, func() { dst.Set(fresh()) })
	return nil
}

// bestOf tries the types and chooses one; wrong says why none.
func (m *matcher) bestOf(types []reflect.Type, p place, flags rules.Flags) (best reflect.Type, wrong string, err error) {
	var outcomes []outcome
	for _, t := range types {
		o, err := m.try(t, p, flags)
		if err != nil {
			return nil, "", err
		}
		outcomes = append(outcomes, o)
	}
	best, wrong = choose(outcomes)
	return best, wrong, nil
}

// freshVariant returns a zero struct of type t to fill, and what an interface
// holds of it then: the pointer if t is one, else the value at that time.
func freshVariant(t reflect.Type) (held func() reflect.Value, elem reflect.Value) {
	if t.Kind() == reflect.Pointer {
		ptr := reflect.New(t.Elem())
		return func() reflect.Value { return ptr }, ptr.Elem()
	}
	elem = reflect.New(t).Elem()
	return func() reflect.Value { return elem }, elem
}

// try matches a variant and undoes it.
func (m *matcher) try(t reflect.Type, p place, flags rules.Flags) (outcome, error) {
	before := m.mark()
	defer m.rollback(before)
	_, elem := freshVariant(t)
	if err := m.value(elem, p, flags); err != nil {
		return outcome{}, err
	}
	o := outcome{t: t, used: len(m.log) - before.log}
	var reasons []string
	for _, r := range m.plan.Missing[before.missing:] {
		reasons = append(reasons, r.Name+" is absent")
	}
	for _, r := range m.plan.Mismatched[before.mismatched:] {
		reasons = append(reasons, r.Name+": "+r.Note)
	}
	if len(reasons) == 0 && o.used == 0 {
		reasons = append(reasons, "none of its names is there")
	}
	o.why = strings.Join(firstOf(reasons, 3), ", ")
	return o, nil
}

// choose returns the variant that matches and takes the most names.
func choose(outcomes []outcome) (best reflect.Type, wrong string) {
	most, ties := -1, []string{}
	var reasons []string
	for _, o := range outcomes {
		switch {
		case o.why != "":
			reasons = append(reasons, o.t.String()+": "+o.why)
		case o.used > most:
			best, most, ties = o.t, o.used, []string{o.t.String()}
		case o.used == most:
			ties = append(ties, o.t.String())
		}
	}
	switch len(ties) {
	case 0:
		return nil, "no variant matches: " + strings.Join(reasons, "; ")
	case 1:
		return best, ""
	default:
		return nil, "several variants match: " + strings.Join(ties, ", ")
	}
}

func firstOf(s []string, n int) []string {
	if len(s) <= n {
		return s
	}
	return append(s[:n:n], "…")
}
