package pytorch

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
)

// The fields of a tar header (POSIX.1-1988, as Python's tarfile reads them) and
// the kinds of members that matter.
const (
	tarBlock = 512

	tarSize, tarSizeEnd     = 124, 136
	tarSum, tarSumEnd       = 148, 156
	tarKind                 = 156
	tarMagic, tarMagicEnd   = 257, 263
	tarPrefix, tarPrefixEnd = 345, 500
	tarNameEnd              = 100

	tarPlain    = '0'
	tarOldPlain = 0 // of tar before POSIX
	tarFolder   = '5'
	tarExtended = 'x' // records of text about the member that follows
	tarLongName = 'L' // of GNU: the name of the member that follows

	tarEmpty = "12346" // the kinds of links, devices and pipes, whose size counts nothing
)

// tarHeader is one member of a tar.
type tarHeader struct {
	name      string
	off, size int64 // of its bytes in the file
	// odd says why readers differ on the member, or take another one for it. Python
	// follows links, gives members of unknown kinds as files and lets extended
	// headers rename them; torch asks it for members by name.
	odd string
}

// tarReader goes through the headers of a tar. The standard library's reader is
// not used because it passes over what Python does not: headers for all members,
// names of sparse files, and kinds that nobody knows.
type tarReader struct {
	src  checkpoint.Source
	most int64 // bytes of a text about a member
	at   int64 // of the next header

	// What headers of their own said of the member that comes.
	told bool
	name string // "" for nothing
	size int64  // -1 for nothing
	odd  string
}

func newTarReader(src checkpoint.Source, limits checkpoint.Limits) *tarReader {
	return &tarReader{src: src, most: limits.HeaderBytes, size: -1}
}

// next returns the next member that stands for something, nil at the end.
func (r *tarReader) next() (*tarHeader, error) {
	for {
		var b [tarBlock]byte
		n, err := r.src.ReadAt(b[:], r.at)
		switch {
		case n == 0 && err == io.EOF: //nolint:errorlint // the bare EOF is the end
			return nil, nil
		case n < tarBlock && err == io.EOF: //nolint:errorlint // as above
			return nil, badTar(io.ErrUnexpectedEOF)
		case n < tarBlock:
			return nil, readError(err, r.at+int64(n))
		case b == [tarBlock]byte{}:
			return nil, nil
		}
		h, err := r.header(b[:])
		if err != nil || h != nil {
			return h, fault.At(err, r.at)
		}
	}
}

// header reads one header and what it says of others; nil if that is all.
func (r *tarReader) header(b []byte) (*tarHeader, error) {
	size, ok := tarNumber(b[tarSize:tarSizeEnd])
	if !ok || !isTar(b) {
		return nil, badTar(nil)
	}
	h := &tarHeader{name: cString(b[:tarNameEnd]), off: r.at + tarBlock, size: size, odd: r.odd}
	kind := b[tarKind]
	if kind == tarOldPlain && strings.HasSuffix(h.name, "/") {
		kind = tarFolder
	}
	if kind == tarExtended || kind == tarLongName {
		return nil, r.about(h, kind)
	}
	if prefix := cString(b[tarPrefix:tarPrefixEnd]); prefix != "" {
		h.name = prefix + "/" + h.name
		if string(b[tarMagic:tarMagicEnd]) != "ustar\x00" {
			h.odd = "with a name that readers put together in two ways"
		}
	}
	if r.name != "" {
		h.name = r.name
	}
	if r.size >= 0 {
		h.size = r.size
	}
	return h, r.settle(h, kind)
}

// settle looks at the kind of a member, and goes on behind it.
func (r *tarReader) settle(h *tarHeader, kind byte) error {
	r.told, r.name, r.size = false, "", -1
	switch {
	case kind == tarFolder:
		h.size = 0
	case strings.IndexByte(tarEmpty, kind) >= 0:
		h.size, h.odd = 0, "that is no file of its own"
	case kind != tarPlain && kind != tarOldPlain:
		h.odd = "of the kind " + strconv.QuoteRune(rune(kind))
		r.odd = "behind one " + h.odd // which may say something of all that follow
	}
	return r.pass(h)
}

// pass goes on behind the bytes of a member, which must be there.
func (r *tarReader) pass(h *tarHeader) error {
	if h.size > r.src.Size()-h.off {
		return badTar(io.ErrUnexpectedEOF)
	}
	r.at = h.off + (h.size+tarBlock-1)/tarBlock*tarBlock
	return nil
}

// about reads a header that says something of the next member.
func (r *tarReader) about(h *tarHeader, kind byte) error {
	if err := checkpoint.At("header bytes", h.size, r.most); err != nil {
		return err
	}
	if err := r.pass(h); err != nil {
		return err
	}
	text := make([]byte, h.size)
	if err := readFull(r.src, text, h.off); err != nil {
		return err
	}
	if r.told {
		r.odd = "with several headers"
	}
	r.told = true
	if kind == tarLongName {
		r.name, r.odd = cString(text), "with a name of GNU's own"
		return nil
	}
	return r.records(string(text))
}

// records reads the lines "LENGTH KEY=VALUE\n" of an extended header.
func (r *tarReader) records(text string) error {
	for text != "" {
		digits, _, _ := strings.Cut(text, " ")
		n, err := strconv.Atoi(digits)
		if err != nil || digits[0] == '+' || n <= len(digits)+1 || n > len(text) || text[n-1] != '\n' {
			return badTar(nil)
		}
		key, value, ok := strings.Cut(text[len(digits)+1:n-1], "=")
		if text = text[n:]; !ok {
			return badTar(nil)
		}
		switch {
		case key == "path":
			r.name = value
		case key == "size":
			if r.size, err = strconv.ParseInt(value, 10, 64); err != nil || r.size < 0 {
				return badTar(nil)
			}
		case strings.HasPrefix(key, "GNU.sparse."):
			r.odd = "of a sparse file"
		}
	}
	return nil
}

// cString is a text up to its first NUL.
func cString(b []byte) string {
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(text)
}

// tarNumber reads octal digits as every reader does: blanks before them, blanks
// and NULs behind them, nothing else; or, for sizes beyond, 0x80 and a
// big-endian number.
func tarNumber(field []byte) (int64, bool) {
	if field[0] == 0x80 {
		n := int64(0)
		for _, c := range field[1:] {
			if n >= 1<<(62-8) {
				return 0, false
			}
			n = n<<8 | int64(c)
		}
		return n, true
	}
	text := bytes.TrimLeft(field, " ")
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '7' {
		end++
	}
	if len(bytes.Trim(text[end:], " \x00")) > 0 {
		return 0, false
	}
	n, err := strconv.ParseInt("0"+string(text[:end]), 8, 64)
	return n, err == nil
}

// isTar tells the first block of a tar by its checksum, which is read as
// generously as Python reads it: what opens there must not pass for something
// else here.
func isTar(head []byte) bool {
	if len(head) < tarBlock {
		return false
	}
	unsigned, signed := int64(0), int64(0)
	for i, c := range head[:tarBlock] {
		if i >= tarSum && i < tarSumEnd {
			c = ' '
		}
		unsigned, signed = unsigned+int64(c), signed+int64(int8(c)) //nolint:gosec // the sign is meant
	}
	sum, ok := looseNumber(head[tarSum:tarSumEnd])
	return ok && (sum == unsigned || sum == signed)
}

// looseNumber is what Python's int makes of a field (tarfile.nti).
func looseNumber(field []byte) (int64, bool) {
	switch field[0] {
	case 0x80:
		return tarNumber(field)
	case 0xff: // a negative number, of the seven bytes behind it
		n := int64(-1)
		for _, c := range field[1:] {
			n = n<<8 | int64(c)
		}
		return n, true
	}
	text := strings.ReplaceAll(strings.TrimSpace(cString(field)), "_", "")
	text = strings.TrimPrefix(text, "+")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "0o"), "0O")
	n, err := strconv.ParseInt(text, 8, 64)
	return n, err == nil
}
