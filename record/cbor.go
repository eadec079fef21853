package record

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/record/meta"
)

// The members of a record, in their order.
const (
	keyRecord = "wick"  // version, type, precision, writer
	keyRoot   = "root"  // the tree
	keySums   = "crc32" // of each tensor's bytes in their order, then of all other bytes
)

// nameTensor is the object for tensors of dtypes that RFC 8746 does not know.
const nameTensor = "wick.tensor"

// Compression is a filter around a record.
type Compression string

// The filters.
const (
	Plain Compression = ""
	Gzip  Compression = "gz"
	Zstd  Compression = "zst"
)

// CBORTarget writes CBOR records, plain or compressed. They hold the whole tree
// always; the order of the tensors is the tree's.
type CBORTarget struct{ Compression Compression }

// Name returns "cbor", "cbor.gz" or "cbor.zst".
func (t CBORTarget) Name() string { return t.Extensions()[0][1:] }

// Extensions returns the one ending that asks for this compression.
func (t CBORTarget) Extensions() []string {
	if t.Compression == Plain {
		return []string{".cbor"}
	}
	return []string{".cbor." + string(t.Compression)}
}

// zstdWindow is how far back zstd looks for what repeats, bytes: weights hardly
// repeat, and the default window takes 20 MB of memory.
const zstdWindow = 1 << 20

// Plan lays one file out.
func (t CBORTarget) Plan(root nested.Value, opts checkpoint.TargetOptions) (*checkpoint.Output, error) {
	h, root, err := prepare(root, opts)
	if err != nil {
		return nil, err
	}
	w := cborWriter{tour: meta.NewTour(opts.Limits)}
	if err := w.record(h, root); err != nil {
		return nil, err
	}
	switch t.Compression {
	case Plain:
	case Gzip:
		w.layout.Through(func(out io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(out), nil })
	case Zstd:
		w.layout.Through(func(out io.Writer) (io.WriteCloser, error) {
			return zstd.NewWriter(out, zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true), zstd.WithEncoderConcurrency(2))
		})
	default:
		return nil, fault.New(fault.Usage, "compression "+string(t.Compression)).Needs("gz or zst", "")
	}
	return &checkpoint.Output{Files: []checkpoint.OutputFile{{Layout: &w.layout}}, Report: w.report}, nil
}

// prepare returns the header and the tree to write: those that were asked for, with
// their quantized tensors taken apart. A file that is a record only because its
// format knows no other says that wick wrote it.
func prepare(root nested.Value, opts checkpoint.TargetOptions) (h checkpoint.RecordHeader, plain nested.Value, err error) {
	if err := oneFile(opts); err != nil {
		return h, nil, err
	}
	h.Writer = "wick"
	if opts.Record != nil {
		h = *opts.Record
	}
	if h, err = meta.Complete(h, root, opts.Limits); err != nil {
		return h, nil, err
	}
	plain, err = meta.Plain(root)
	return h, plain, err
}

// oneFile refuses what records do not do.
func oneFile(opts checkpoint.TargetOptions) error {
	if opts.ShardBytes > 0 {
		return fault.New(fault.Usage, "a record in several files").Needs("one file", "write .safetensors, whose index of shards is a record too")
	}
	if opts.Align > 1 {
		return fault.New(fault.Usage, "an aligned record of this format").Needs("safetensors", "write .safetensors")
	}
	return nil
}

// CBOR reads CBOR files that begin with the tag for CBOR (55799): records, and
// any others whose tensors are typed arrays of RFC 8746. Tensors are found
// where they lie in the file and not read.
type CBOR struct{}

// Name returns "cbor".
func (CBOR) Name() string { return "cbor" }

// Sniff recognises the tag for CBOR.
func (CBOR) Sniff(head []byte, _ checkpoint.Source) bool {
	return len(head) >= len(selfDefined) && string(head[:len(selfDefined)]) == selfDefined
}

// Open reads everything but the tensors.
func (CBOR) Open(ctx context.Context, src checkpoint.Source, env *checkpoint.Env) (*checkpoint.Checkpoint, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &cborReader{cursor: newCursor(src, src.Size()), source: src, limits: env.Limits.Default()}
	info := checkpoint.Info{Name: src.Name(), Format: "cbor"}
	root, sums, err := r.file(&info, env.Salvage)
	if err != nil {
		return nil, err
	}
	if err := r.settle(root, sums, &info); err != nil {
		return nil, err
	}
	if r.parts {
		if root, err = meta.Quantized(root); err != nil {
			return nil, err
		}
	}
	return checkpoint.New(root, info, env, src.Close)
}

// file reads the one value of a file: a record if its first key says so.
func (r *cborReader) file(info *checkpoint.Info, salvage bool) (root nested.Value, sums []uint32, err error) {
	if _, err := r.head(); err != nil { // the tag, says Sniff
		return nil, nil, err
	}
	h, err := r.head()
	if err != nil {
		return nil, nil, err
	}
	if h.major == majorMap && h.n > 0 {
		root, sums, err = r.fileMap(h.n, info, salvage)
	} else {
		root, err = r.valueOf(h)
	}
	if err == nil && r.left() > 0 {
		err = r.broken(strconv.FormatUint(r.left(), 10)+" bytes behind the value", "nothing", fault.GetAgain)
	}
	return root, sums, err
}

// fileMap reads a map as a record or, if it is none, as the tree itself.
func (r *cborReader) fileMap(n uint64, info *checkpoint.Info, salvage bool) (root nested.Value, sums []uint32, err error) {
	m := nested.NewMap("dict")
	for i := range n {
		key, err := r.value()
		if err != nil {
			return nil, nil, err
		}
		if i == 0 && key == nested.Value(nested.String(keyRecord)) {
			return r.record(n, info, salvage)
		}
		if _, twice := m.Get(key); twice {
			return nil, nil, r.broken("the key "+nested.Repr(key)+" twice in one map", "each key once", "write the file with a tool that follows RFC 8949")
		}
		v, err := r.value()
		if err != nil {
			return nil, nil, err
		}
		if err := m.Set(key, v); err != nil {
			return nil, nil, err
		}
	}
	_, hasRoot := m.Lookup(keyRoot)
	if _, hasSums := m.Lookup(keySums); n == 3 && hasRoot && hasSums {
		return nil, nil, r.broken("a record without its header", `"`+keyRecord+`" as its first key`, fault.GetAgain)
	}
	return m, nil, nil
}

// record reads the members of a record behind the first key. Members that a
// later wick may add are passed over.
func (r *cborReader) record(n uint64, info *checkpoint.Info, salvage bool) (root nested.Value, sums []uint32, err error) {
	h, err := r.recordHeader()
	if err != nil {
		return nil, nil, err
	}
	meta.Tell(h, info)
	for range n - 1 {
		key, err := r.value()
		if err != nil {
			return nil, nil, err
		}
		var v nested.Value
		if key == nested.Value(nested.String(keySums)) {
			sums, err = r.sums(salvage)
		} else {
			v, err = r.value()
		}
		if err != nil {
			return nil, nil, err
		}
		if key == nested.Value(nested.String(keyRoot)) {
			root = v
		}
	}
	if root == nil || sums == nil {
		return nil, nil, r.broken("a record without root or crc32", "both", fault.GetAgain)
	}
	if salvage && len(sums) != len(r.leaves) {
		sums = nil
	}
	return root, sums, nil
}

func (r *cborReader) recordHeader() (h checkpoint.RecordHeader, err error) {
	at := r.at
	v, err := r.value()
	if err != nil {
		return h, err
	}
	m, ok := v.(*nested.Map)
	if !ok {
		return h, r.broken("a record whose header is a "+nested.TypeName(v), "a map", fault.GetAgain)
	}
	version, _ := m.Lookup("version")
	number, _ := version.(nested.Int)
	h.Version = int(min(max(number, 0), 1<<30))
	for _, member := range meta.Members(&h) {
		v, _ := m.Lookup(member.Key)
		text, _ := v.(nested.String)
		*member.Text = string(text)
	}
	return h, fault.At(meta.CheckVersion(h), at)
}

// sums reads the checksums at the end and compares the last, which is that of
// all bytes read so far.
func (r *cborReader) sums(salvage bool) ([]uint32, error) {
	h, err := r.head()
	if err != nil {
		return nil, err
	}
	if h.major != majorArray || h.n != uint64(len(r.leaves)+1) && !salvage {
		return nil, r.broken("checksums for "+strconv.FormatUint(h.n, 10)+" parts", strconv.Itoa(len(r.leaves)+1), fault.GetAgain)
	}
	sums := []uint32{}
	for i := range h.n {
		before := r.sum
		s, err := r.head()
		if err != nil {
			return nil, err
		}
		if len(s.raw) != 5 || s.major != majorUint {
			return nil, r.broken("a checksum of another form", "four bytes", fault.GetAgain)
		}
		if i < h.n-1 {
			sums = append(sums, uint32(s.n))
			continue
		}
		if got := crc32Of(before, s.raw[:1]); uint64(got) != s.n && !salvage {
			return nil, fault.New(fault.Checksum, fmt.Sprintf("CRC-32 of all but the tensors is %08x", got)).At(r.at).
				Needs(fmt.Sprintf("%08x", s.n), fault.GetAgain)
		}
	}
	return sums, nil
}
