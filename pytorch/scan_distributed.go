package pytorch

import (
	"cmp"
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
)

// span is a range of a file, bytes.
type span struct{ from, to int64 }

// within returns the range as a source of its own.
func (p span) within(src checkpoint.Source) checkpoint.Source {
	return checkpoint.Section(src, p.from, p.to-p.from, src.Name())
}

// archiveChain cuts a file into the zip archives that it is put together of: one
// begins where the other ends, as torch.distributed.checkpoint writes one
// torch.save file behind the other (_write_item in filesystem.py). Each counts
// its offsets from its own beginning, so they are told from the end: where an
// end record stands, and how far before it its archive began. Whether they are
// sound is for who reads them. It returns nil for a file that is no such chain,
// by as much as a byte that belongs to none.
func archiveChain(src checkpoint.Source, limits checkpoint.Limits) ([]span, error) {
	var chain []span
	for end := src.Size(); end > 0; {
		start, err := archiveStart(src, end)
		if err != nil || start < 0 {
			return nil, err
		}
		chain = append(chain, span{start, end})
		if err := checkpoint.At("records", int64(len(chain)), limits.Records); err != nil {
			return nil, err
		}
		end = start
	}
	return chain, nil
}

// archiveStart is where the archive begins that ends at an offset, -1 if none
// with a record does. Torch writes no comment, behind which more could hide.
func archiveStart(src checkpoint.Source, end int64) (int64, error) {
	tail := make([]byte, min(end, lenEnd64+lenEnd64Locator+lenEnd))
	if err := readFull(src, tail, end-int64(len(tail))); err != nil {
		return -1, err
	}
	small := len(tail) - lenEnd
	if small < 0 || le32(tail[small:], 0) != sigEnd || le16(tail[small:], 20) != 0 || le16(tail[small:], 10) == 0 {
		return -1, nil
	}
	directoryEnd := end - lenEnd
	size, offset := int64(le32(tail[small:], 12)), int64(le32(tail[small:], 16))
	if locator := small - lenEnd64Locator; locator >= 0 && le32(tail[locator:], 0) == sigEnd64Locator {
		if locator < lenEnd64 || le32(tail, 0) != sigEnd64 {
			return -1, nil
		}
		directoryEnd = end - int64(len(tail))
		size, offset = le64(tail, 40), le64(tail, 48)
	}
	if size < 0 || offset < 0 || size > directoryEnd || offset > directoryEnd-size {
		return -1, nil
	}
	return directoryEnd - size - offset, nil
}

// distributedParts are the archives that a .distcp file is put together of, from
// its end to its beginning; nil for every other file.
func (s *scan) distributedParts(src checkpoint.Source) ([]span, error) {
	if !isDistributedPart(src.Name()) {
		return nil, nil
	}
	return archiveChain(src, s.env.Limits)
}

// archivePrice is what looking for the end of one archive of many costs, in
// bytes of pickles. Those of torch have more than a thousand bytes.
const archivePrice = 4 << 10

// zips scans a zip archive, or all that a .distcp file is put together of.
func (s *scan) zips(src checkpoint.Source, within string, depth int) error {
	parts, err := s.distributedParts(src)
	if err != nil || len(parts) == 0 {
		return errors.Join(err, s.zip(src, within, depth))
	}
	var faults []error
	for i := len(parts) - 1; i >= 0 && s.ctx.Err() == nil; i-- {
		p := parts[i]
		if err := s.spend(archivePrice); err != nil {
			return errors.Join(append(faults, err)...)
		}
		name := within
		if len(parts) > 1 {
			name = nestedRecord(within, archiveAt(p.from))
		}
		part := p.within(src)
		if err := fault.InRecord(errors.Join(s.zip(part, name, depth), s.gapless(part, name, depth)), name); err != nil {
			faults = append(faults, err)
		}
	}
	return cmp.Or(s.ctx.Err(), errors.Join(faults...))
}

func archiveAt(offset int64) string { return "archive at 0x" + strconv.FormatInt(offset, 16) }

// maxDescriptor is the longest data descriptor: signature, CRC and two sizes of
// 64 bits.
const maxDescriptor = 24

// gapless fails for a sound archive that has bytes between its records: the
// ranges in .metadata, which only the folder has, may point at them.
func (s *scan) gapless(src checkpoint.Source, within string, depth int) error {
	a, err := readArchive(src, s.env.Limits)
	if err == nil {
		err = a.prove()
	}
	if err != nil {
		return nil //nolint:nilerr // the scan of its records has said so
	}
	at := int64(0)
	for k, i := range a.byPlace {
		e := &a.entries[i]
		if err := a.usable(e); err != nil {
			return err
		}
		if e.header-at > maxDescriptor || k == 0 && e.header > 0 {
			break
		}
		at = a.data(e) + e.stored
	}
	if a.directory-at <= maxDescriptor {
		return nil
	}
	return errors.Join(fault.New(fault.Malformed, "bytes that belong to no record of the archive").At(at).
		Needs("records one after the other", "the file is damaged or was made to deceive"), s.loose(src, within, depth))
}

// ranges scans what the .metadata of a distributed checkpoint lets a loader read
// of the files beside it, where that is none of the archives that those are put
// together of: torch.load gets whatever lies in a range.
func (s *scan) ranges(src checkpoint.Source, depth int) error {
	near, ok := src.(checkpoint.Siblings)
	if !ok || path.Base(src.Name()) != metadataName || s.instead != nil {
		return nil
	}
	chunks, err := s.chunks(src)
	if err != nil {
		return err
	}
	byFile := map[string]map[span]bool{}
	for _, list := range chunks {
		for _, c := range list {
			if byFile[c.file] == nil {
				byFile[c.file] = map[span]bool{}
			}
			byFile[c.file][span{c.offset, c.offset + c.length}] = true
		}
	}
	var faults []error
	for _, file := range slices.Sorted(maps.Keys(byFile)) {
		faults = append(faults, s.rangesOf(near, file, byFile[file], depth))
	}
	return errors.Join(faults...)
}

// chunks are the ranges that a .metadata names, none if it is another pickle.
func (s *scan) chunks(src checkpoint.Source) (map[string][]chunk, error) {
	l := &loader{limits: s.env.Limits, record: metadataName, present: src.Size()}
	v, err := l.load(pickle.NewStream(&contextReader{s.ctx, sectionReader(src)}))
	if err != nil || nested.TypeName(v) != "torch.distributed.checkpoint.metadata.Metadata" {
		return nil, err
	}
	meta, ok := attrsOf(v)
	if !ok {
		return nil, badMetadata("a Metadata without its state")
	}
	return (&distributedOpener{env: s.env}).entries(meta)
}

// rangesOf scans the ranges of one file.
func (s *scan) rangesOf(near checkpoint.Siblings, name string, spans map[span]bool, depth int) error {
	f, err := near.Sibling(name)
	if fault.KindOf(err) == fault.NotFound {
		return nil // nothing of it can be loaded
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	chain, err := archiveChain(f, s.env.Limits)
	if err != nil {
		return err
	}
	for _, p := range chain {
		delete(spans, p)
	}
	s.work += 16 * min(f.Size(), 1<<58) // what is read is this file's
	var faults []error
	for _, p := range slices.SortedFunc(maps.Keys(spans), func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) }) {
		faults = append(faults, s.rangeOf(f, p, name, len(chain) > 0, depth))
	}
	return errors.Join(faults...)
}

// rangeOf scans a range that is no archive of its file. In a file of archives no
// writer makes such a one.
func (s *scan) rangeOf(f checkpoint.Source, p span, name string, isChain bool, depth int) error {
	within := nestedRecord(name, "range at 0x"+strconv.FormatInt(p.from, 16))
	if p.to < p.from || p.to > f.Size() {
		return fault.New(fault.Malformed, "a chunk that ends behind its file").InRecord(name).At(p.from).
			Needs("the whole file", "the file is cut off: get it again")
	}
	err := s.source(p.within(f), within, depth+1)
	if isChain {
		return fault.New(fault.Malformed, "a range that is none of the archives of its file").InRecord(name).At(p.from).
			Needs("where one of them begins and ends", "the folder is damaged or was made to deceive")
	}
	if fault.KindOf(err) == fault.Unsupported {
		return nil // the scan of the file itself tells
	}
	return err
}
