// Package attacks makes hostile checkpoints: files that claim, nest, repeat,
// overlap, point outside and spell names in ways that have cost readers of such
// files a crash, an endless loop, the machine's memory, or wrong weights. Each
// comes with what a reader may say of it. The test of this package runs the
// wick command over all of them, as processes.
//
// The files are made when they are asked for and hold nothing that does harm: a
// pickle that names os.system is never loaded by anything that would call it.
package attacks

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// Case is one attack.
type Case struct {
	Name string
	// Files makes the files by their slash-separated names; one that is called
	// "" is the checkpoint itself, else the folder of all is.
	Files func() map[string][]byte
	// Exits are the exit codes that opening the file may end with.
	Exits []int
	// Scan are the exit codes that a scan may end with; nil where the test knows by
	// the names in the file.
	Scan []int
	// Mentions are texts of which one is in the error, if there are any and
	// there is an error.
	Mentions []string
}

// The exit codes that classes of attacks may end with.
var (
	// Malformed is for what breaks its own format.
	Malformed = []int{3}
	// Refused is for what breaks its format or is over a limit.
	Refused = []int{3, 4}
	// Any is for attacks that a reader may survive with the right values.
	Any = []int{0, 3, 4}
	// Sound is for odd files that must be read.
	Sound = []int{0}
)

// All returns every attack, each kind by its names: the same order every time.
func All() []Case {
	var all []Case
	for _, part := range [][]Case{Opcodes(), Lengths(), Nesting(), Bombs(), Objects(), Geometry(), Zips(), Legacies(), Tars(), Headers(), Indexes(), Texts(), Inners(), Odds(), Disguises(), Repeats()} {
		slices.SortFunc(part, func(a, b Case) int { return strings.Compare(a.Name, b.Name) })
		all = append(all, part...)
	}
	return all
}

// single is a case of one file.
func single(name string, exits []int, file func() []byte, mentions ...string) Case {
	return Case{Name: name, Exits: exits, Mentions: mentions, Files: func() map[string][]byte { return map[string][]byte{"": file()} }}
}

// inZip is a case of a pickle as the object of a checkpoint with one storage.
func inZip(name string, exits []int, pickle func() string, mentions ...string) Case {
	return single(name, exits, func() []byte { return Checkpoint(pickle()) }, mentions...)
}

// Checkpoint returns a sound zip archive around a pickle, with a storage "0" of
// sixteen float32.
func Checkpoint(pickle string) []byte {
	return Zip{Records: []Record{
		{Name: "m/data.pkl", Data: pickle}, {Name: "m/byteorder", Data: "little"}, {Name: "m/data/0", Data: strings.Repeat("\x00\x00\x80\x3f", 16)}, {Name: "m/version", Data: "3\n"},
	}}.Bytes()
}

// u16, u32 and u64 are little-endian numbers.
func u16(n int) string    { return string(binary.LittleEndian.AppendUint16(nil, uint16(n))) }
func u32(n uint32) string { return string(binary.LittleEndian.AppendUint32(nil, n)) }
func u64(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }

// text is a string as protocol 2 writes it.
func text(s string) string { return "X" + u32(uint32(len(s))) + s }

// integer is an int of any size up to 64 bits.
func integer(n int64) string { return "\x8a\x08" + u64(uint64(n)) }

// tuple is a tuple of opcodes that each leave one value.
func tuple(items ...string) string { return "(" + strings.Join(items, "") + "t" }

// storage is a persistent id of count float32 under a key.
func storage(key string, count int64) string {
	return tuple(text("storage"), "ctorch\nFloatStorage\n", text(key), text("cpu"), integer(count)) + "Q"
}

func ints(numbers []int64) string {
	var items []string
	for _, n := range numbers {
		items = append(items, integer(n))
	}
	return tuple(items...)
}

// tensor is a tensor over a storage.
func tensor(storage string, offset int64, shape, strides []int64) string {
	return "ctorch._utils\n_rebuild_tensor_v2\n" + tuple(storage, integer(offset), ints(shape), ints(strides), "\x89", "ccollections\nOrderedDict\n)R") + "R"
}

// dict is a dict of one entry with a text key, as a pickle of its own.
func dict(key, value string) string { return "\x80\x02}" + text(key) + value + "s." }

// numbered returns name with a number.
func numbered(name string, n any) string { return fmt.Sprintf("%s %v", name, n) }

func repeat(s string, n int) string { return strings.Repeat(s, n) }

func concat(parts ...string) []byte {
	var b bytes.Buffer
	for _, p := range parts {
		b.WriteString(p)
	}
	return b.Bytes()
}
