package pytorch

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/pytorch/internal/pickle"
)

// minFile is the least that a file can have and be anything.
const minFile = 8

// minGGUF is the size of a GGUF header: magic, version, two counts.
const minGGUF = 24

// foreignFormat takes what no other format took, and says what it is and what
// to do about it. Most reports of unreadable checkpoints are of such files.
type foreignFormat struct{}

// Name returns "foreign".
func (foreignFormat) Name() string { return "foreign" }

// Sniff takes everything.
func (foreignFormat) Sniff([]byte, checkpoint.Source) bool { return true }

// Open fails with the best explanation there is.
func (foreignFormat) Open(_ context.Context, src checkpoint.Source, env *checkpoint.Env) (*checkpoint.Checkpoint, error) {
	if f, ok := src.(checkpoint.Folder); ok {
		return nil, explainFolder(f)
	}
	head, err := checkpoint.Head(src)
	if err != nil {
		return nil, err
	}
	return nil, explain(head, src, env.Limits)
}

func explainFolder(f checkpoint.Folder) error {
	files, err := f.List()
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(files, isDistributedPart); i >= 0 {
		return fault.New(fault.Malformed, "a distributed checkpoint without its "+metadataName).
			Needs("the file that says what is in "+path.Base(files[i])+", which is written last", "copy the hidden file too, or take the step before: this save did not finish")
	}
	return fault.New(fault.Unsupported, "a folder of "+count(len(files), "file")+" without a checkpoint").
		Needs("data.pkl and data/ as a zip archive has them, or shards", "open the checkpoint's file itself")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// foreign is a kind of file that is no checkpoint.
type foreign struct {
	what  string
	sniff func(head []byte) bool
	cure  string
}

// The cures that many share.
const (
	cureDownload = "the download got something else than the file; check the address and the access rights, and get it again"
	cureRename   = "give the path of the checkpoint itself"
	cureTorch    = "load it with the program that it was made for, and save the tensors with torch.save or as safetensors"
	cureUnpack   = "unpack it first and open the checkpoint inside"
	cureFolder   = "open the folder that it lies in"
)

// foreigners are tried in order; text kinds come behind those with a magic
// number.
var foreigners = []foreign{
	{"a Git LFS pointer, not the file that it points to", startsLike("version https://git-lfs.github.com/spec/", "version https://hawser.github.com/spec/"),
		"run git lfs pull in the repository, or download the file itself"},
	{"a pointer of DVC, not the file that it points to", at(0, "outs:\n- "), "run dvc pull"},
	{"the text of a link into a hub's cache, not the file that it points to", at(0, "../../blobs/"), "copy the folder with its links, or open the file in blobs"},
	{"a pointer of git-annex, not the file that it points to", anyOf(at(0, "/annex/objects/"), at(0, "../.git/annex/objects/")), "run git annex get"},
	{"a safetensors file", isSafetensors, "open it with the package wick, which reads it"},
	{"a GGUF file", at(0, "GGUF"), "convert the original checkpoint instead; GGUF keeps tensors of llama.cpp, mostly quantized"},
	{"a GGML file of llama.cpp before GGUF", anyOf(at(0, "lmgg"), at(0, "tjgg"), at(0, "fmgg")), "convert the original checkpoint instead"},
	{"an HDF5 file, as Keras writes", at(0, "\x89HDF\r\n\x1a\n"), cureTorch},
	{"the metadata of a distributed checkpoint", contains("torch.distributed.checkpoint.metadata"), cureFolder},
	{"a TensorFlow Lite model", at(4, "TFL3"), cureTorch},
	{"a mobile TorchScript model (.ptl, a flatbuffer)", at(4, "PTMF"), "export the model again with torch.jit.save, or use the checkpoint it came from"},
	{"an ExecuTorch program (.pte, a flatbuffer)", anyOf(at(4, "ET12"), at(4, "ET13")), "use the checkpoint it came from"},
	{"an ONNX model", isONNX, "use the checkpoint that it was exported from"},
	{"a Core ML model", isCoreML, "use the checkpoint that it was converted from"},
	{"a NumPy array (.npy)", at(0, "\x93NUMPY"), "save it with torch.save, or as safetensors"},
	{"a Flax or msgpack file", isFlax, cureTorch},
	{"a MATLAB file", at(0, "MATLAB 5.0 MAT-file"), cureTorch},
	{"a PNG image", at(0, "\x89PNG\r\n\x1a\n"), cureRename},
	{"a JPEG image", at(0, "\xff\xd8\xff"), cureRename},
	{"a GIF image", anyOf(at(0, "GIF87a"), at(0, "GIF89a")), cureRename},
	{"a PDF document", at(0, "%PDF-"), cureRename},
	{"an SQLite database", at(0, "SQLite format 3\x00"), cureRename},
	{"a Parquet file", at(0, "PAR1"), cureRename},
	{"an xz archive", at(0, "\xfd7zXZ\x00"), "unpack it first with xz -d"},
	{"an lz4 archive", at(0, "\x04\x22\x4d\x18"), "unpack it first with lz4 -d"},
	{"a 7-Zip archive", at(0, "7z\xbc\xaf\x27\x1c"), cureUnpack},
	{"a zlib stream, as joblib writes", anyOf(at(0, "\x78\x01"), at(0, "\x78\x9c"), at(0, "\x78\xda")), cureUnpack},
	{"a RAR archive", at(0, "Rar!\x1a\x07"), cureUnpack},
	{"an ELF program or library", at(0, "\x7fELF"), cureRename},
	{"a Windows program", at(0, "MZ"), cureRename},
	{"a Mach-O program or library", anyOf(at(0, "\xcf\xfa\xed\xfe"), at(0, "\xca\xfe\xba\xbe")), cureRename},
	{"the first volume of a split zip archive", anyOf(at(0, "PK\x07\x08PK\x03\x04"), at(0, "PK00PK\x03\x04")), "join its volumes first, for example with zip -s 0"},
	{"what macOS keeps beside a file (AppleDouble), not the file itself", at(0, "\x00\x05\x16\x07\x00"), "open the file without ._ in front of its name"},
	{"a Torch7 file of Lua", both(at(0, "\x04\x00\x00\x00"), at(12, "V 1")), "load it with a program that reads .t7, and save the tensors with torch.save or as safetensors"},
	{"data of R (RDS), as torch for R writes", anyOf(at(0, "X\n\x00\x00\x00"), at(0, "A\n2\n"), at(0, "A\n3\n")), cureTorch},
	{"a Windows shortcut, not the file that it points to", at(0, "L\x00\x00\x00\x01\x14\x02\x00"), "give the path that it points to"},
	{"a macOS property list", at(0, "bplist00"), cureRename},
	{"an HTML page", startsLike("<!doctype html", "<html", "<head", "<script", "<body", "<!--"), cureDownload},
	{"an XML document, as storage services answer with errors", startsLike("<?xml", "<error"), cureDownload},
	{"a shell or Python script", at(0, "#!"), cureRename},
	{"an index of shards without their folder", both(startsLike("{"), contains(`"weight_map"`)), "open the folder, or keep the shards beside the index"},
	{"a JSON document", startsLike("{", "["), cureDownload},
}

// explain says what a file is that is no checkpoint.
func explain(head []byte, src checkpoint.Source, limits checkpoint.Limits) error {
	const need = "a checkpoint of PyTorch"
	switch {
	case len(head) == 0:
		return fault.New(fault.Malformed, "an empty file").Needs(need, "the download or the save failed; get it again")
	case len(head) < minFile:
		return fault.New(fault.Malformed, "a file of "+count(len(head), "byte")+", too short to be anything").
			Needs(need, "the download or the save was cut short; get it again")
	case len(bytes.Trim(head, "\x00")) == 0:
		return fault.New(fault.Malformed, "zero bytes only").Needs(need, "the download or the save did not finish; get it again")
	}
	if hasPrefix(head, "GGUF") && len(head) < minGGUF {
		return fault.New(fault.Malformed, "a GGUF file that is cut short").Needs("its header", "the download is incomplete or was truncated; get it again")
	}
	for _, f := range foreigners {
		if f.sniff(head) {
			return fault.New(fault.Unsupported, f.what).Needs(need, f.cure)
		}
	}
	if how := convertedText(head); how != "" && contains("torch")(head) {
		return errConverted("a checkpoint", how)
	}
	if err := explainPickle(head, src, limits); err != nil {
		return err
	}
	if isTable(src) {
		return fault.New(fault.Unsupported, "the index of a TensorFlow checkpoint, or another LevelDB table").Needs(need, cureTorch)
	}
	if err := explainZipEnd(src); err != nil {
		return err
	}
	if isText(head) {
		return fault.New(fault.Unsupported, "a text: "+firstLine(head)).Needs(need, cureDownload)
	}
	return fault.New(fault.Unsupported, "no format that wick knows; it begins with "+strconv.QuoteToASCII(string(head[:minFile]))).
		Needs(need, "check that the file is whole and is what its name says")
}

// convertedText says how a binary file was taken for text on its way here, "" if
// nothing shows that. Torch's pickles have many line ends and bytes beyond ASCII.
func convertedText(head []byte) string {
	const sure = 4
	if isText(head) {
		return ""
	}
	lines := bytes.Count(head, []byte("\n"))
	wide := 0
	for rest := head; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 && len(rest) >= utf8.UTFMax {
			wide = 0
			break
		}
		if r >= utf8.RuneSelf {
			wide++
		}
		rest = rest[n:]
	}
	switch {
	case wide >= sure:
		return "its bytes were converted to UTF-8"
	case lines >= sure && bytes.Count(head, []byte("\r\n")) == lines:
		return "its line ends were converted to CR LF"
	default:
		return ""
	}
}

// convertedZip explains why an archive has no directory where it says, if it was
// taken for text.
func convertedZip(src checkpoint.Source, err error) error {
	if fault.KindOf(err) != fault.Malformed {
		return err
	}
	head, headErr := checkpoint.Head(src)
	if how := convertedText(head); headErr == nil && how != "" {
		return errConverted("a zip archive", how)
	}
	return err
}

func errConverted(what, how string) error {
	return fault.New(fault.Malformed, what+" that was taken for text: "+how).
		Needs("the bytes as they were saved", "copy or download it again as a binary file")
}

// explainPickle tells a pickle by its instructions: one that names storages was
// taken out of an archive, any other was never a checkpoint.
func explainPickle(head []byte, src checkpoint.Source, limits checkpoint.Limits) error {
	sure := head[0] == 0x80 && head[1] <= 5
	whole, persistent := scanPickle(src, limits)
	switch {
	case persistent && (sure || whole):
		return fault.New(fault.Unsupported, "a bare data.pkl: it names storages that are kept elsewhere").
			Needs("the whole zip archive, or the folder with data.pkl and data/", "open the archive that it was taken from, or the folder that it lies in")
	case contains("joblib.numpy_pickle")(head):
		return fault.New(fault.Unsupported, "a pickle of joblib, as scikit-learn uses it").Needs("a checkpoint of PyTorch", cureTorch)
	case sure || whole:
		return fault.New(fault.Unsupported, "a plain pickle without torch's magic number: not made by torch.save").
			Needs("a checkpoint of PyTorch", "load it with Python's pickle if you trust it, and save its tensors with torch.save")
	}
	return nil
}

// maxScan is how many instructions tell a pickle from a text that begins like
// one.
const maxScan = 1 << 20

// scanPickle reads instructions, and reports whether they end where the file
// does and whether one of them is a persistent id.
func scanPickle(src checkpoint.Source, limits checkpoint.Limits) (whole, persistent bool) {
	cursor := pickle.NewStream(io.NewSectionReader(src, 0, src.Size()))
	s := pickle.NewScanner(cursor, limits)
	var op pickle.Op
	for s.Count() < maxScan {
		more, err := s.Next(&op)
		if err != nil {
			return false, persistent
		}
		if !more {
			break
		}
		persistent = persistent || op.Code == pickle.PERSID || op.Code == pickle.BINPERSID
	}
	return cursor.Offset() == src.Size() && s.Count() > 1, persistent
}

// explainZipEnd tells an archive by its end, where its beginning is not that of
// one.
func explainZipEnd(src checkpoint.Source) error {
	if _, _, err := smallEnd(src); fault.KindOf(err) == fault.Unsupported {
		return err
	}
	shift, ok := archiveShift(src)
	const need = "a file that begins with its first record"
	switch {
	case !ok || !hasDirectory(src):
		return nil
	case shift > 0:
		return fault.New(fault.Malformed, "a zip archive behind "+count(int(min(shift, 1<<30)), "byte")+" of something else").At(shift).
			Needs(need, "the file was joined with another; get it again")
	case shift < 0:
		return fault.New(fault.Malformed, "a zip archive without its first "+count(int(min(-shift, 1<<30)), "byte")).
			Needs(need, "the download began in the middle; get it again")
	default:
		return fault.New(fault.Malformed, "a zip archive whose beginning is overwritten").At(0).Needs(need, fault.GetAgain)
	}
}

// hasDirectory reports whether a directory entry stands near the end of src, so
// that an end record there is no accident.
func hasDirectory(src checkpoint.Source) bool {
	tail := make([]byte, min(src.Size(), 1<<17))
	err := readFull(src, tail, src.Size()-int64(len(tail)))
	return err == nil && bytes.Contains(tail, []byte("PK\x01\x02"))
}

func at(off int, magic string) func([]byte) bool {
	return func(head []byte) bool {
		return len(head) >= off+len(magic) && string(head[off:off+len(magic)]) == magic
	}
}

func anyOf(sniffs ...func([]byte) bool) func([]byte) bool {
	return func(head []byte) bool {
		for _, sniff := range sniffs {
			if sniff(head) {
				return true
			}
		}
		return false
	}
}

func both(a, b func([]byte) bool) func([]byte) bool {
	return func(head []byte) bool { return a(head) && b(head) }
}

func contains(text string) func([]byte) bool {
	return func(head []byte) bool { return bytes.Contains(head, []byte(text)) }
}

// startsLike compares the first text behind spaces and a byte order mark,
// whatever its case.
func startsLike(texts ...string) func([]byte) bool {
	return func(head []byte) bool {
		head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
		for _, text := range texts {
			if len(head) >= len(text) && strings.EqualFold(string(head[:len(text)]), text) {
				return true
			}
		}
		return false
	}
}

// isSafetensors tells the eight bytes of a header's length and the header.
func isSafetensors(head []byte) bool {
	if len(head) < 10 {
		return false
	}
	n := binary.LittleEndian.Uint64(head)
	return n < 1<<40 && head[8] == '{' && (head[9] == '"' || head[9] == '}' || head[9] == ' ' || head[9] == '\n')
}

// isONNX tells a protobuf that begins as ModelProto does: ir_version, then the
// producer's name or a set of operators.
func isONNX(head []byte) bool {
	return head[0] == 0x08 && head[1] > 0 && head[1] < 0x20 && (head[2] == 0x12 || head[2] == 0x3a || head[2] == 0x42)
}

// isCoreML tells a protobuf that begins with a specification version and a
// description.
func isCoreML(head []byte) bool {
	return head[0] == 0x08 && head[1] > 0 && head[1] < 0x20 && head[2] == 0x12 && contains("CoreML")(head)
}

// isFlax tells a map of msgpack with a text as its first key.
func isFlax(head []byte) bool {
	isMap := head[0]&0xf0 == 0x80 && head[0] > 0x80 || head[0] == 0xde
	key := head[1]
	if head[0] == 0xde {
		key = head[3]
	}
	return isMap && key&0xe0 == 0xa0 && key > 0xa0 && contains("\xc7")(head)
}

// isTable tells a table of LevelDB by its last eight bytes (format.h, kTableMagicNumber).
func isTable(src checkpoint.Source) bool {
	const magic = "\x57\xfb\x80\x8b\x24\x75\x47\xdb"
	var end [len(magic)]byte
	n, _ := src.ReadAt(end[:], src.Size()-int64(len(magic))) // what cannot be read is no such table
	return string(end[:n]) == magic
}

// isText reports whether a head is readable text.
func isText(head []byte) bool {
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		if (r == utf8.RuneError && len(head) > utf8.UTFMax) || (r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != '\f' && r != 0x1b) {
			return false
		}
		head = head[n:]
	}
	return true
}

func firstLine(head []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(head)), "\n")
	return strconv.Quote(fault.Clean(line, 80))
}
