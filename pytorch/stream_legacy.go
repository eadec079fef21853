package pytorch

import (
	"encoding/binary"
	"io"
	"strconv"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// openLegacy reads the five pickles of a file of torch 0.2 to 1.5. The storages
// follow in the order of the last one, each behind its count.
func (s *stream) openLegacy() (*checkpoint.Checkpoint, error) {
	s.info.Format, s.record = "legacy", legacyName
	look := &lookReader{in: s.in}
	o := &legacyOpener{env: s.env, cursor: s.cursor(look), loader: s.loader}
	if err := o.readHeader(); err != nil {
		return nil, err
	}
	s.info.Metadata = o.info.Metadata
	root, err := o.load("")
	if err != nil {
		return nil, err
	}
	keys, err := o.readKeys()
	if err != nil {
		return nil, err
	}
	look.stop(o.cursor.Offset())
	for _, key := range keys {
		if s.storages[legacyName(key)] == nil {
			return nil, fault.New(fault.Malformed, "a storage that no tensor names").InRecord(legacyName(key)).
				Needs("a storage of the pickle", fault.MadeToDeceive)
		}
	}
	s.rest = func(f *tensor.Feed) error { return s.feedLegacy(f, keys) }
	return s.finish(root)
}

func (s *stream) feedLegacy(f *tensor.Feed, keys []string) error {
	for _, key := range keys {
		a := s.storages[legacyName(key)]
		if a.came {
			return fault.New(fault.Malformed, "a storage that stands twice").InRecord(a.storage.Name()).At(s.in.off).Needs("one", fault.MadeToDeceive)
		}
		if err := s.feedCounted(f, a); err != nil {
			return err
		}
	}
	if err := s.complete(); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, s.in) // a compression around it has a checksum at its end
	return s.in.ended(err)
}

// feedCounted takes one storage with its count of elements.
func (s *stream) feedCounted(f *tensor.Feed, a *arrival) error {
	a.came = true
	b, err := s.in.peek(8)
	if err != nil {
		return inRecord(s.in.ended(err), a.storage.Name(), s.in.off)
	}
	little, native := binary.LittleEndian.Uint64(b), binary.BigEndian.Uint64(b)
	if want := uint64(a.ref.Elements); little != want && native != want {
		return fault.New(fault.Malformed, strconv.FormatUint(little, 10)+" elements").InRecord(a.storage.Name()).At(s.in.off).
			Needs(strconv.FormatInt(a.ref.Elements, 10)+" as the pickle says", fault.MadeToDeceive)
	}
	s.in.take(8)
	if f.Wants(a.storage) {
		return f.Storage(a.storage, s.in)
	}
	_, err = io.CopyN(io.Discard, s.in, a.storage.Size())
	return inRecord(s.in.ended(err), a.storage.Name(), s.in.off)
}
