// Package bigzip makes checkpoints of any size without holding them, for tests
// of readers that must get by with little of a file. They are laid out as
// torch.save lays them out (caffe2/serialize/inline_container.cc): records with
// data descriptors, storages on 64 bytes, a zip64 directory at the end.
package bigzip

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"sort"
	"strconv"

	"github.com/wick-ml/wick/internal/crc"
)

// File is a state dict of equal float32 tensors called layer.0, layer.1 …. All
// bytes of a tensor are the same, see [Byte]. It is safe for concurrent use.
type File struct {
	parts []part
	size  int64
}

// part is a run of bytes: text, or n times fill.
type part struct {
	at, n int64
	text  []byte
	fill  byte
}

// Byte is what all bytes of the i-th tensor are.
func Byte(i int) byte { return byte(i%250 + 1) }

// New lays out a file of so many tensors of so many elements each.
func New(tensors int, elements int64) *File {
	z := &layout{}
	z.record("model/data.pkl", part{text: pickle(tensors, elements)})
	z.record("model/byteorder", part{text: []byte("little")})
	for i := range tensors {
		z.record("model/data/"+strconv.Itoa(i), part{n: 4 * elements, fill: Byte(i)})
	}
	z.record("model/version", part{text: []byte("3\n")})
	z.end()
	return &z.File
}

// Size is the number of bytes.
func (f *File) Size() int64 { return f.size }

// ReadAt makes bytes as [io.ReaderAt] reads them.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) && off < f.size {
		k := sort.Search(len(f.parts), func(k int) bool { return f.parts[k].at > off }) - 1
		s := &f.parts[k]
		n := int(min(int64(len(p)-done), s.at+s.n-off))
		if s.text != nil {
			copy(p[done:done+n], s.text[off-s.at:])
		} else {
			for i := range n {
				p[done+i] = s.fill
			}
		}
		done, off = done+n, off+int64(n)
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// layout is a file in the making.
type layout struct {
	File
	directory []byte
	records   int64
}

func (z *layout) add(p part) {
	if p.text != nil {
		p.n = int64(len(p.text))
	}
	if p.at = z.size; p.n > 0 {
		z.parts = append(z.parts, p)
		z.size += p.n
	}
}

var le = binary.LittleEndian

const (
	flags     = 1<<3 | 1<<11 // sizes follow the data; names are UTF-8
	alignment = 64
	lenLocal  = 30
)

// record adds a local header, padded so that the data are aligned, the data, and
// their descriptor.
func (z *layout) record(name string, data part) {
	header := z.size
	z.add(part{text: localHeader(name, header)})
	start := z.size
	z.add(data)
	n := z.size - start
	sum := data.sum(n)
	descriptor := le.AppendUint32(le.AppendUint32(nil, 0x08074b50), sum)
	z.add(part{text: le.AppendUint64(le.AppendUint64(descriptor, uint64(n)), uint64(n))})
	z.directory = append(z.directory, directoryEntry(name, sum, n, header)...)
	z.records++
}

// localHeader is the header of a record at an offset, padded so that the data
// behind it are aligned.
func localHeader(name string, offset int64) []byte {
	pad := int(-(offset + lenLocal + int64(len(name)) + 4) & (alignment - 1))
	local := le.AppendUint32(nil, 0x04034b50)
	local = le.AppendUint16(local, 0)
	local = le.AppendUint16(local, flags)
	local = append(local, make([]byte, 18)...) // stored, no time, no sizes
	local = le.AppendUint16(local, uint16(len(name)))
	local = le.AppendUint16(local, uint16(4+pad))
	local = append(append(local, name...), 'F', 'B', byte(pad), 0)
	for range pad {
		local = append(local, 'Z')
	}
	return local
}

// directoryEntry is what the directory says of a record of n bytes whose local header
// is at an offset: all sizes are in the extra field of zip64.
func directoryEntry(name string, sum uint32, n, offset int64) []byte {
	d := le.AppendUint32(nil, 0x02014b50)
	d = le.AppendUint16(le.AppendUint16(d, 0), 0)
	d = le.AppendUint16(d, flags)
	d = append(d, make([]byte, 6)...)
	d = le.AppendUint32(d, sum)
	d = append(d, "\xff\xff\xff\xff\xff\xff\xff\xff"...)
	d = le.AppendUint16(d, uint16(len(name)))
	d = le.AppendUint16(d, 28)
	d = append(d, make([]byte, 10)...)
	d = append(d, "\xff\xff\xff\xff"...)
	d = append(d, name...)
	d = append(d, 1, 0, 24, 0)
	d = le.AppendUint64(le.AppendUint64(d, uint64(n)), uint64(n))
	return le.AppendUint64(d, uint64(offset))
}

// sum is the CRC-32 of n bytes.
func (p *part) sum(n int64) uint32 {
	if p.text != nil {
		return crc32.ChecksumIEEE(p.text)
	}
	one, total := crc32.ChecksumIEEE([]byte{p.fill}), uint32(0)
	for bit := int64(1); bit <= n; bit *= 2 {
		if n&bit != 0 {
			total = crc.Combine(total, one, bit)
		}
		one = crc.Combine(one, one, bit)
	}
	return total
}

// end adds the directory and its end records.
func (z *layout) end() {
	start, size := z.size, int64(len(z.directory))
	z.add(part{text: z.directory})
	end64 := z.size
	b := le.AppendUint32(nil, 0x06064b50)
	b = le.AppendUint64(b, 44)
	b = append(b, make([]byte, 12)...)
	for _, n := range []int64{z.records, z.records, size, start} {
		b = le.AppendUint64(b, uint64(n))
	}
	b = le.AppendUint32(b, 0x07064b50)
	b = le.AppendUint64(le.AppendUint32(b, 0), uint64(end64))
	b = le.AppendUint32(b, 1)
	b = le.AppendUint32(b, 0x06054b50)
	b = append(b, 0, 0, 0, 0)
	b = append(b, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00"...)
	z.add(part{text: b})
}

// pickle is the state dict, in protocol 2.
func pickle(tensors int, elements int64) []byte {
	b := []byte("\x80\x02}(")
	text := func(s string) {
		b = append(binary.LittleEndian.AppendUint32(append(b, 'X'), uint32(len(s))), s...)
	}
	number := func(n int64) { // LONG1
		b = binary.LittleEndian.AppendUint64(append(b, 0x8a, 8), uint64(n))
	}
	for i := range tensors {
		text("layer." + strconv.Itoa(i))
		b = append(b, "ctorch._utils\n_rebuild_tensor_v2\n(("...)
		text("storage")
		b = append(b, "ctorch\nFloatStorage\n"...)
		text(strconv.Itoa(i))
		text("cpu")
		number(elements)
		b = append(b, "tQK\x00("...)
		number(elements)
		b = append(b, "t(K\x01t\x89ccollections\nOrderedDict\n)RtR"...)
	}
	return append(b, "u."...)
}
