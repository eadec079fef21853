package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/cmd/wick/internal/jsonout"
	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

func newVerify(a *app) *cobra.Command {
	var json bool
	var f modelFlags
	cmd := &cobra.Command{
		Use:   "verify [FLAGS] FILE [OTHER]",
		Short: "Check a file, or that another holds the same tensors bit for bit",
		Long: "verify FILE reads every storage and every other record and checks sizes, places and stored checksums.\n" +
			"Stacked pickles of torch before 1.6, tars and safetensors that are no records of wick's hold no\n" +
			"checksums: what has none is counted, and a changed value in it goes unseen.\n" +
			"verify FILE OTHER compares each tensor of FILE with the one of the same name in OTHER: dtype, shape and\n" +
			"every bit, and checks the checksums of all tensors of both. The two may be of different formats. Flags\n" +
			"that change FILE are those that convert made OTHER with.",
		Example: "  wick verify model.pt\n  wick verify model.pt model.safetensors\n" +
			"  wick verify --key state_dict model.ckpt model.safetensors",
		Args: inputArgs(1, 2, "FILE, or FILE and OTHER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if err := f.checkAlone(cmd.Flags()); err != nil {
					return err
				}
				return a.verifyFile(cmd.Context(), args[0], json)
			}
			return a.verifyPair(cmd.Context(), &f, args[0], args[1], json)
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().BoolVar(&json, "json", false, "print one JSON document")
	return cmd
}

// integrity is what reading all of a file showed.
type integrity struct {
	storages, others             int
	bytes                        int64
	verified, unverified, absent int
	failed                       []error
}

func (a *app) verifyFile(ctx context.Context, file string, json bool) error {
	c, err := a.openArg(ctx, file, false)
	if err != nil {
		return err
	}
	defer a.close(c)
	l, err := listing.Of(c)
	if err != nil {
		return err
	}
	found, err := a.integrity(ctx, c, l)
	if err != nil {
		return err
	}
	if json {
		_, err = a.out.Write(append(integrityJSON(c, l, found), '\n'))
	} else {
		err = a.printIntegrity(c, l, found)
	}
	return cmp.Or(err, found.worst(), l.Err())
}

// integrity reads every storage of a checkpoint from end to end. Faults are
// collected; the error is one that is no fault of the data.
func (a *app) integrity(ctx context.Context, c *checkpoint.Checkpoint, l *listing.Listing) (*integrity, error) {
	w := whole{seen: map[*tensor.Storage]bool{}}
	if err := w.add(slices.Values(c.Info.Storages)); err != nil {
		return nil, err
	}
	for i := range l.Tensors {
		if err := w.add(l.Tensors[i].Tensor().Storages()); err != nil {
			return nil, err
		}
	}
	storages := len(w.moves)
	if err := w.add(slices.Values(c.Info.Rest)); err != nil {
		return nil, err
	}
	moves := w.moves
	p := a.progress("checking")
	defer p.done()
	errs := make([]error, len(moves))
	stats, err := tensor.Run(ctx, moves, tensor.Verify(), tensor.Progress(p.report),
		tensor.Each(func(move int, err error) { errs[move] = err }))
	if err := listing.Fatal(ctx, err, errs); err != nil {
		return nil, err
	}
	found := &integrity{storages: storages, others: len(moves) - storages, bytes: stats.Bytes}
	names := tensorsOver(c, failedStorages(moves, errs))
	for i, check := range stats.Checks {
		var path string
		for s := range moves[i].From.Storages() { // one
			path = names[s]
		}
		found.count(check, errs[i], c.Info.Name, path)
	}
	return found, nil
}

// failedStorages are the storages of the moves that failed.
func failedStorages(moves []tensor.Move, errs []error) map[*tensor.Storage]bool {
	failed := map[*tensor.Storage]bool{}
	for i, err := range errs {
		if err == nil {
			continue
		}
		for s := range moves[i].From.Storages() {
			failed[s] = true
		}
	}
	return failed
}

func (i *integrity) count(check tensor.Check, err error, file, path string) {
	switch {
	case err != nil:
		i.failed = append(i.failed, listing.Locate(err, file, path))
	case check == tensor.Verified:
		i.verified++
	case check == tensor.Absent:
		i.absent++
	default:
		i.unverified++
	}
}

// worst is the fault that decides the exit code.
func (i *integrity) worst() error {
	for _, err := range i.failed {
		if exitCode(err) == exitMalformed {
			return err
		}
	}
	if len(i.failed) > 0 {
		return i.failed[0]
	}
	return nil
}

// whole collects moves of the bytes of whole storages to nowhere, one of each.
type whole struct {
	seen  map[*tensor.Storage]bool
	moves []tensor.Move
}

func (w *whole) add(storages iter.Seq[*tensor.Storage]) error {
	for s := range storages {
		if w.seen[s] {
			continue
		}
		w.seen[s] = true
		t, err := tensor.New(tensor.Spec{Storage: s, DType: tensor.U8, Shape: []int64{s.Size()}})
		if err != nil {
			return err
		}
		w.moves = append(w.moves, tensor.Move{From: t, To: tensor.Stream(new(nowhere))})
	}
	return nil
}

// nowhere takes bytes. It is not [io.Discard] because moves to one writer wait
// for each other.
type nowhere struct{ _ byte } // with a size: two of them have two addresses

// Write takes everything.
func (*nowhere) Write(p []byte) (int, error) { return io.Discard.Write(p) }

func integrityJSON(c *checkpoint.Checkpoint, l *listing.Listing, i *integrity) []byte {
	var o jsonout.Object
	o.String("file", c.Info.Name)
	o.String("format", c.Info.Format)
	o.Int("tensors", int64(len(l.Tensors)))
	o.Int("storages", int64(i.storages))
	o.Int("others", int64(i.others))
	o.Int("bytes", i.bytes)
	o.Int("verified", int64(i.verified))
	o.Int("unverified", int64(i.unverified))
	o.Int("absent", int64(i.absent))
	o.Raw("faults", list(slices.Concat(i.failed, rowFaults(l)), errorObject))
	o.Bool("ok", len(i.failed) == 0 && l.Err() == nil)
	return o.Bytes()
}

// rowFaults are the faults of tensors, located.
func rowFaults(l *listing.Listing) []error {
	var faults []error
	for i := range l.Tensors {
		if t := &l.Tensors[i]; listing.RowKind(t.Err) != "" {
			faults = append(faults, listing.Locate(t.Err, l.File, t.Name()))
		}
	}
	return faults
}

func (a *app) printIntegrity(c *checkpoint.Checkpoint, l *listing.Listing, i *integrity) error {
	faults := slices.Concat(i.failed, rowFaults(l))
	for _, err := range faults {
		_, _ = fmt.Fprintln(a.out, a.paint(red, "bad"), err) // Flush reports what went wrong
	}
	verdict := a.paint(green, "ok")
	if len(faults) > 0 {
		verdict = a.paint(red, human.Plural(len(faults), "fault"))
	}
	where := human.Plural(i.storages, "storage")
	if i.others > 0 {
		where += ", " + human.Plural(i.others, "other record")
	}
	_, err := fmt.Fprintf(a.out, "%s: %s, %s in %s, %s read; checksums: %s; %s\n", fault.Clean(c.Info.Name, maxName), c.Info.Format,
		human.Plural(len(l.Tensors), "tensor"), where, human.Bytes(i.bytes), i.checksums(), verdict)
	return err
}

// checksums says what became of the stored checksums.
func (i *integrity) checksums() string {
	text := human.Count(i.verified) + " verified"
	if i.unverified > 0 {
		text += ", " + human.Count(i.unverified) + " unverified"
	}
	if i.absent > 0 {
		text += ", " + human.Count(i.absent) + " have none"
	}
	return text
}
