package cli

import (
	"strconv"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/rules"
)

// limitFields are the limits by the names that --limit takes.
func limitFields(l *checkpoint.Limits) map[string]checkpoint.LimitField {
	fields := map[string]checkpoint.LimitField{}
	for f := range l.Fields() {
		fields[limitName(f.Name)] = f
		if f.Value == &l.ExpandFloor { // what a run calls the bytes that it would make
			fields["expansion"] = f
		}
	}
	return fields
}

// limitName is how --limit spells the name in an error, which has spaces.
func limitName(name string) string { return strings.NewReplacer(" ", "_", "-", "_").Replace(name) }

// parseLimits reads the values of --limit.
func parseLimits(flags []string) (checkpoint.Limits, error) {
	var l checkpoint.Limits
	fields := limitFields(&l)
	for _, flag := range flags {
		name, text, _ := strings.Cut(flag, "=")
		field, ok := fields[limitName(name)]
		if !ok {
			return l, unknownLimit(name, fields)
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 {
			return l, fault.New(fault.Usage, "--limit "+flag).Needs("", "give it as name=value with a positive integer")
		}
		*field.Value = n
	}
	return l, nil
}

func unknownLimit(name string, fields map[string]checkpoint.LimitField) error {
	names := sortedKeys(fields)
	e := fault.New(fault.Usage, "no limit is called "+name).Needs("", "one of "+strings.Join(names, ", "))
	if near := nested.Nearest(name, names); near != "" {
		e.Cure = "did you mean " + near + "?"
	}
	return e
}

// nameRoom is how many bytes names may have in all for each path that a listing
// may have, where they are gone through one by one.
const nameRoom = 16

// checkDetail fails on a checkpoint of more rows than a command can hold that
// keeps a few hundred bytes for each, a third of the paths that a listing may
// have, and of longer names than patterns can be tried on. Sound files come near
// the first with nothing but lists of small numbers, and not near the second.
func checkDetail(c *checkpoint.Checkpoint) error {
	d, err := detailOf(c)
	if err != nil {
		return err
	}
	return d.check(c)
}

// checkWhole does so where the tree is gone through by something else than a
// walk under the limits of the checkpoint, which would pass over what is beyond.
func checkWhole(c *checkpoint.Checkpoint) error {
	d, err := detailOf(c)
	if err != nil {
		return err
	}
	if most := c.Limits().Paths; d.beyond {
		e := fault.NewLimit("paths", most+1, most).In(c.Info.Name)
		e.Found = "a list or dict of more values than can be listed"
		return e
	}
	return d.check(c)
}

// detail counts rows and their names.
type detail struct {
	rows, text int64
	beyond     bool // whether something was passed over
}

func detailOf(c *checkpoint.Checkpoint) (d detail, err error) {
	err = c.Walk(d.visit)
	return d, err
}

func (d *detail) check(c *checkpoint.Checkpoint) error {
	most := c.Limits().Paths
	e := fault.NewLimit("paths", max(3*d.rows, d.text/nameRoom+1), most).In(c.Info.Name)
	switch {
	case d.rows > most/3:
		e.Found = strconv.FormatInt(d.rows, 10) + " values and tensors, too many to go through one by one"
		e.Need = "at most " + strconv.FormatInt(most/3, 10)
	case d.text/nameRoom > most:
		e.Found = "names of " + strconv.FormatInt(d.text, 10) + " bytes in all, too long to go through one by one"
		e.Need = "at most " + strconv.FormatInt(most*nameRoom, 10) + " bytes, each name counted for all that lies below it"
	default:
		return nil
	}
	return e
}

func (d *detail) visit(path nested.Path, v nested.Value) error {
	d.rows++
	for _, key := range path {
		if name, ok := key.(nested.String); ok {
			d.text += int64(len(name))
		}
	}
	if o, ok := v.(*nested.Opaque); ok && o.Reason == "limit" {
		d.beyond = true
	}
	return nil
}

// checkRules does both where rules are going to be applied, or tensors replaced,
// which names every value.
func checkRules(c *checkpoint.Checkpoint, sets []*rules.Set, replaces bool) error {
	if replaces || len(rules.Merge(sets...).Statements) > 0 {
		return checkWhole(c)
	}
	return nil
}
