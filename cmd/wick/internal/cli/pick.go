package cli

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
)

// target is one tensor that a command line names: by its flat name, or by its
// exact path.
type target struct {
	name, path string
}

// targetArgs checks FILE and NAME, which --path can stand for.
func targetArgs(path *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if *path != "" {
			return argCount(1, 1, "FILE beside --path")(cmd, args)
		}
		return argCount(2, 2, "FILE and NAME")(cmd, args)
	}
}

func targetOf(args []string, path string) target {
	if path != "" {
		return target{path: path}
	}
	return target{name: args[1]}
}

// pick returns the one tensor that is meant. Several with the same name are an
// ambiguity that lists their paths; none is an error with the near miss.
func (t target) pick(l *listing.Listing) (*listing.Tensor, error) {
	if t.path != "" {
		return pickPath(l, t.path)
	}
	if strings.HasPrefix(t.name, `["`) && !slices.ContainsFunc(l.Tensors, func(x listing.Tensor) bool { return x.Name() == t.name }) {
		return pickPath(l, t.name)
	}
	var found []*listing.Tensor
	for i := range l.Tensors {
		if l.Tensors[i].Name() == t.name {
			found = append(found, &l.Tensors[i])
		}
	}
	switch len(found) {
	case 0:
		return nil, noTensor(l, t.name)
	case 1:
		return found[0], nil
	}
	paths := make([]string, len(found))
	for i, row := range found {
		paths[i] = "--path '" + string(listing.AppendPath(nil, row.Path)) + "'"
	}
	return nil, fault.New(fault.Ambiguous, "several tensors are called "+t.name).In(l.File).
		Needs("one of "+strings.Join(paths, ", "), "")
}

func noTensor(l *listing.Listing, name string) error {
	names := make([]string, len(l.Tensors))
	for i := range l.Tensors {
		names[i] = l.Tensors[i].Name()
	}
	if e := noTensorBut(l, name); e != nil {
		return e.In(l.File)
	}
	e := fault.New(fault.NotFound, "no tensor is called "+name).In(l.File)
	var below []string
	for _, n := range names {
		if strings.HasPrefix(n, name+".") {
			below = append(below, n)
		}
	}
	if len(below) > 0 {
		e.Cure = "below it: " + few(below)
	} else if near := nested.Nearest(name, names); near != "" {
		e.Cure = "did you mean " + near + "?"
	}
	return e
}

// noTensorBut says what else has a name that no tensor has, nil where nothing
// has it.
func noTensorBut(l *listing.Listing, name string) *fault.Error {
	for row := range l.InOrder() {
		if text, _ := row.Path.Text(); row.Tensor != nil || text != name {
			continue
		}
		switch {
		case row.Opaque == nil:
			text := nested.Repr(row.Value)
			if row.Empty {
				text = emptyText(row.Value)
			}
			return fault.New(fault.NotFound, name+" is no tensor but a value: "+text).Needs("", "wick tree shows values")
		case len(componentsOf(l, name)) > 0:
			e := fault.New(fault.NotFound, name+" is a "+row.Opaque.Reason+" tensor, which is several").Needs("one of "+few(componentsOf(l, name)), "")
			if strings.HasPrefix(row.Opaque.Reason, "torch.sparse_") {
				e.Cure = "wick convert --densify makes it dense"
			}
			return e
		default:
			return fault.New(fault.NotFound, name+" is no tensor but an object of "+row.Opaque.Class).Needs("", "wick tree shows what is in it")
		}
	}
	return nil
}

// componentsOf returns the names of the tensors that a sparse or nested one is of.
func componentsOf(l *listing.Listing, name string) (names []string) {
	for i := range l.Tensors {
		if n := l.Tensors[i].Name(); strings.HasPrefix(n, name+"#") {
			names = append(names, n)
		}
	}
	return names
}

// few lists names, of many the first ones.
func few(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + " and " + human.Count(len(names)-most) + " more"
}

// pickPath finds a path given as JSON, as ls --json prints it.
func pickPath(l *listing.Listing, path string) (*listing.Tensor, error) {
	want, err := normal([]byte(path))
	if _, isList := want.([]any); err != nil || !isList {
		return nil, fault.New(fault.Usage, "--path "+path).Needs("a list of keys, such as [\"a.b\", 0]", "ls --json prints the path of every tensor")
	}
	for i := range l.Tensors {
		have, err := normal(listing.AppendPath(nil, l.Tensors[i].Path))
		if err == nil && reflect.DeepEqual(have, want) {
			return &l.Tensors[i], nil
		}
	}
	return nil, fault.New(fault.NotFound, "no tensor has the path "+path).In(l.File).Needs("", "ls --json prints the path of every tensor")
}

// normal reads JSON so that two spellings of one value are equal. Numbers stay
// as they are written: 64 bits do not fit a float.
func normal(text []byte) (any, error) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fault.New(fault.Usage, "more than one value")
	}
	return v, nil
}
