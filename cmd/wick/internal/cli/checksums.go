package cli

import (
	"slices"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// tensorsOver names the tensors over each of some storages: the first few, and
// how many more there are.
func tensorsOver(c *checkpoint.Checkpoint, storages map[*tensor.Storage]bool) map[*tensor.Storage]string {
	const most = 3
	names := map[*tensor.Storage][]string{}
	for name, t := range c.Tensors() {
		for s := range t.AsTensor().Storages() {
			if storages[s] && !slices.Contains(names[s][max(0, len(names[s])-1):], name) {
				names[s] = append(names[s], name)
			}
		}
	}
	texts := map[*tensor.Storage]string{}
	for s, list := range names {
		texts[s] = strings.Join(list[:min(len(list), most)], ", ")
		if n := len(list) - most; n > 0 {
			texts[s] += " and " + human.Count(n) + " more"
		}
	}
	return texts
}

// namedSum names the tensor in the error of a wrong checksum that knows the
// record alone. Records of one name, as the files of a distributed checkpoint
// have, cannot be told apart.
func namedSum(err error, c *checkpoint.Checkpoint) error {
	if fault.KindOf(err) != fault.Checksum || describe(err).Record == "" {
		return err
	}
	record := describe(err).Record
	var found []*tensor.Storage
	for _, t := range c.Tensors() {
		for s := range t.AsTensor().Storages() {
			if s.Name() == record && !slices.Contains(found, s) {
				found = append(found, s)
			}
		}
	}
	if len(found) != 1 {
		return err
	}
	return listing.Locate(err, c.Info.Name, tensorsOver(c, map[*tensor.Storage]bool{found[0]: true})[found[0]])
}

// wrongSums are the wrong checksums that a salvage went over, each once.
func wrongSums(c *checkpoint.Checkpoint, stats tensor.Stats) []error {
	storages := map[*tensor.Storage]bool{}
	for _, w := range stats.Wrong {
		storages[w.Storage] = true
	}
	if len(storages) == 0 {
		return nil
	}
	names := tensorsOver(c, storages)
	var list []error
	for _, w := range stats.Wrong {
		if storages[w.Storage] {
			storages[w.Storage] = false
			list = append(list, listing.Locate(w.Err(), c.Info.Name, names[w.Storage]))
		}
	}
	return list
}

// sumNotes says the same in the notes of a report, with what was noted when the
// file was opened: a pickle under a wrong checksum.
func sumNotes(c *checkpoint.Checkpoint, wrong []error) []string {
	var notes []string
	if text := c.Info.Metadata["salvaged"]; text != "" {
		notes = append(notes, "read under a wrong checksum: "+fault.Clean(text, maxName))
	}
	for _, err := range wrong {
		notes = append(notes, "written under a wrong checksum: "+err.Error())
	}
	return notes
}

// salvaged says loudly what was written under a wrong checksum.
func salvaged(stats tensor.Stats, wrong []error) error {
	if len(wrong) == 0 {
		return nil
	}
	n := 0
	for _, check := range stats.Checks {
		if check == tensor.Failed {
			n++
		}
	}
	first := describe(wrong[0])
	found := human.Plural(n, "tensor") + " written under a wrong checksum"
	if n > 1 {
		found += ", this the first"
	}
	return fault.New(fault.Checksum, found).In(first.File).InRecord(first.Record).OnPath(first.Path)
}
