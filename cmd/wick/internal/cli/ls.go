package cli

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/tensor"
)

// lsFlags is what ls was asked for.
type lsFlags struct {
	json, jsonl, sha256 bool
	long, all           bool
	sort                string
	change              changeFlags // --key
}

func newLs(a *app) *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use:   "ls [--json|--jsonl] [--sha256] [--long] [--all] [--sort BY] [--key NAME] FILE [PATTERN…]",
		Short: "List tensors: name, dtype, shape, size",
		Long: "ls lists the tensors of a checkpoint without reading their bytes. A PATTERN is a name, the beginning\n" +
			"of names up to a dot, has * for one part of a name and ** for any number of parts, or is a /regular expression/.",
		Example: "  wick ls model.pt\n" +
			"  wick ls model.pt layer1 '**.running_mean'\n" +
			"  wick ls --long --sort size model.pt\n" +
			"  wick ls --key state_dict model.ckpt\n" +
			"  wick ls --json --sha256 model.pt | jq '.tensors[].name'",
		Args: argCount(1, -1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.ls(cmd.Context(), &f, args[0], args[1:]) },
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	cmd.Flags().BoolVar(&f.jsonl, "jsonl", false, "print one JSON object for each row")
	cmd.Flags().BoolVar(&f.sha256, "sha256", false, "read every tensor and print the SHA-256 of its packed bytes")
	cmd.Flags().BoolVarP(&f.long, "long", "l", false, "also exact bytes, offset, strides that are not row-major, and classes other than torch.Tensor")
	cmd.Flags().BoolVarP(&f.all, "all", "a", false, "also plain values and opaque objects")
	f.change.registerKey(cmd.Flags())
	cmd.Flags().StringVar(&f.sort, "sort", "file", "sort `by` file, name, size, offset")
	return cmd
}

func (a *app) ls(ctx context.Context, f *lsFlags, file string, patterns []string) error {
	if f.json && f.jsonl {
		return bothJSON()
	}
	if !slices.Contains([]string{"file", "name", "size", "offset"}, f.sort) {
		return fault.New(fault.Usage, "--sort "+f.sort).Needs("", "one of file, name, size, offset")
	}
	c, err := a.openBelow(ctx, file, &f.change)
	if err != nil {
		return err
	}
	defer a.close(c)
	if len(patterns) > 0 {
		if err := checkDetail(c); err != nil {
			return err
		}
	}
	l, err := listing.Of(c)
	if err != nil {
		return err
	}
	if err := filter(l, patterns); err != nil {
		return err
	}
	sortRows(l, f.sort)
	if err := a.readRows(ctx, c, l, f.sha256); err != nil {
		return err
	}
	if err := a.printListing(l, f); err != nil {
		return err
	}
	return l.Err()
}

// readRows reads what rows show beside the metadata: in one run, as a stream has
// no second one.
func (a *app) readRows(ctx context.Context, c *checkpoint.Checkpoint, l *listing.Listing, sha256 bool) error {
	if sha256 {
		return a.hash(ctx, c, l)
	}
	return l.ReadQuant(ctx)
}

func (a *app) printListing(l *listing.Listing, f *lsFlags) error {
	switch {
	case f.json:
		return l.WriteJSON(a.out)
	case f.jsonl:
		return l.WriteLines(a.out)
	default:
		return a.printTable(l, f)
	}
}

// hash reads every tensor of a listing, under the limits of its checkpoint.
func (a *app) hash(ctx context.Context, c *checkpoint.Checkpoint, l *listing.Listing, opts ...tensor.RunOption) error {
	p := a.progress("reading")
	defer p.done()
	limits := c.Limits()
	opts = append(opts, tensor.Progress(p.report), tensor.Expansion(limits.Expand, limits.ExpandFloor))
	_, err := l.Hash(ctx, opts...)
	return err
}

// bothJSON refuses two forms of output at once.
func bothJSON() error {
	return fault.New(fault.Usage, "--json and --jsonl").Needs("", "give one of them")
}

func sortRows(l *listing.Listing, key string) {
	rows := l.Tensors
	switch key {
	case "name":
		slices.SortStableFunc(rows, func(x, y listing.Tensor) int { return rules.Natural(x.Name(), y.Name()) })
	case "size":
		slices.SortStableFunc(rows, func(x, y listing.Tensor) int { return cmp.Compare(y.Tensor().Bytes(), x.Tensor().Bytes()) })
	case "offset":
		slices.SortStableFunc(rows, func(x, y listing.Tensor) int { return cmp.Compare(place(&x), place(&y)) })
	}
}

// place is where a tensor's first byte lies in the file, as far as it has a place.
func place(t *listing.Tensor) int64 {
	s, _, offset, ok := t.Tensor().Strided()
	if !ok {
		return 1 << 62
	}
	_, start, _ := s.Extent()
	bytes, _ := t.Tensor().DType().Bytes(offset)
	return start + bytes
}
