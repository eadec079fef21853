package attacks

import "fmt"

// system calls os.system, in protocol 0 and without anything that only pickles
// begin with.
const system = "cos\nsystem\n(S'id'\ntR."

// Disguises are files in which torch finds another checkpoint than a reader that
// looks no closer: it follows miniz, Python's tarfile and its pickle.
func Disguises() []Case {
	return append(append(disguisedZips(), disguisedTars()...), disguisedPickles()...)
}

// disguisedZips are archives with two main pickles: miniz looks names up without
// regard to their letters' case, takes the last end record whatever its comment
// says, and torch takes the folder of the directory's first record.
func disguisedZips() []Case {
	hidden := func(name string, exits []int, change func(z *Zip)) Case {
		return with("disguise: "+name, exits, change).scanned(1)
	}
	return []Case{
		hidden("a second pickle in capitals", Malformed, func(z *Zip) { z.Records = append(z.Records, Record{Name: "m/DATA.PKL", Data: system}) }),
		hidden("the pickle in capitals", Any, func(z *Zip) { z.Records[0] = Record{Name: "m/DATA.PKL", Data: system + repeat(" ", 5000)} }),
		hidden("a second folder in capitals", Malformed, func(z *Zip) { z.Records = append(z.Records, Record{Name: "M/data.pkl", Data: system}) }),
		hidden("a folder called data", Any, func(z *Zip) {
			z.Records = append([]Record{{Name: "data/data.pkl", Data: system}, {Name: "data.pkl", Data: model}}, z.Records[1:]...)
		}),
		hidden("a folder called constants", Any, func(z *Zip) {
			z.Records = append([]Record{{Name: "constants/data.pkl", Data: system}, {Name: "constants.pkl", Data: "\x80\x02)."}}, z.Records...)
		}),
		hidden("source in capitals", Any, func(z *Zip) { z.Records = append(z.Records, Record{Name: "m/code/__torch__.PY", Data: "x"}) }),
		single("disguise: a directory behind the directory", Malformed, func() []byte {
			first := Checkpoint(model)
			second := Zip{Records: []Record{{Name: "m/data.pkl", Data: system}, {Name: "m/version", Data: "3\n"}}}
			second.Prefix = string(first) // whose bytes its offsets do not count
			second.End = func(h []byte) { put32(16, uint32(len(first))+le32(h, 16))(h); put16(20, 1)(h) }
			for i := range second.Records {
				second.Records[i].Central = func(h []byte) { put32(42, uint32(len(first))+le32(h, 42))(h) }
			}
			return second.Bytes()
		}).scanned(3),
	}
}

func le32(b []byte, at int) uint32 {
	return uint32(b[at]) | uint32(b[at+1])<<8 | uint32(b[at+2])<<16 | uint32(b[at+3])<<24
}

// block is a header of a tar that can lie, and what lies behind it.
type block struct {
	name, data string
	kind       byte
	link       string // what it is a link to
	size       string // twelve bytes instead of the data's length
	old        bool   // of tar before POSIX, without a magic
	sum        func(sum int) string
}

func (b block) String() string {
	h := []byte(repeat("\x00", 512))
	copy(h, b.name)
	copy(h[100:], "0000600\x000000000\x000000000\x00")
	copy(h[124:], fmt.Sprintf("%011o", len(b.data)))
	copy(h[124:], b.size)
	copy(h[136:], "00000000000\x00        ")
	h[156] = b.kind
	copy(h[157:], b.link)
	if !b.old {
		copy(h[257:], "ustar\x0000")
	}
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	text := fmt.Sprintf("%06o\x00 ", sum)
	if b.sum != nil {
		text = b.sum(sum)
	}
	copy(h[148:156], text)
	return string(h) + b.data + repeat("\x00", (512-len(b.data)%512)%512)
}

// renamed is a line of an extended header: a key whose value is "pickle".
func renamed(key string) string {
	return fmt.Sprintf("%d %s=pickle\n", len(key)+len("00 =pickle\n"), key)
}

// disguisedTars have a sound pickle and, by another way, a second one: links,
// kinds that nobody knows, names from other headers, sizes that end at a NUL.
func disguisedTars() []Case {
	plain := func(name, data string) string { return block{name: name, data: data, kind: '0'}.String() }
	around := func(pickle string) string {
		return plain("sys_info", "\x80\x02}.") + plain("storages", "\x80\x02K\x00.\x80\x02].") + plain("tensors", "\x80\x02K\x00.") + plain("pickle", pickle)
	}
	sound := around("\x80\x02}.")
	// A size that for Python ends before its first digit: the next header follows at
	// once. For others it is inside of this member.
	inner := plain("pickle", system)
	short := block{name: "x", data: inner, kind: '0', size: fmt.Sprintf("\x00%010o\x00", len(inner))}.String()
	cases := []Case{single("disguise, tar: sound", Sound, func() []byte { return concat(sound, repeat("\x00", 1024)) })}
	for name, more := range map[string]string{
		"a link":                     plain("x", system) + block{name: "pickle", kind: '2', link: "x"}.String(),
		"a hard link":                plain("x", system) + block{name: "pickle", kind: '1', link: "x"}.String(),
		"a kind that nobody knows":   block{name: "pickle", data: system, kind: 'Z'}.String(),
		"a contiguous file":          block{name: "pickle", data: system, kind: '7'}.String(),
		"a name for all":             block{name: "g", data: renamed("path"), kind: 'g'}.String() + plain("x", system),
		"a name of Solaris":          block{name: "X", data: renamed("path"), kind: 'X'}.String() + plain("x", system),
		"a name of a sparse file":    block{name: "x", data: renamed("GNU.sparse.name"), kind: 'x'}.String() + plain("x", system),
		"a name of GNU":              block{name: "././@LongLink", data: "pickle\x00", kind: 'L'}.String() + plain("x", system),
		"a name from a header":       block{name: "x", data: renamed("path"), kind: 'x'}.String() + plain("x", system),
		"a size that ends at a NUL":  short,
		"a name with slash and size": block{name: "x/", data: inner}.String(),
		"a bad record":               block{name: "x", data: "+15 path=pickle\n", kind: 'x'}.String() + plain("x", system),
	} {
		cases = append(cases, single("disguise, tar: "+name, Malformed, func() []byte { return concat(sound, more, repeat("\x00", 1024)) }).scanned(1, 3))
	}
	return append(cases, tarAndPickles(sound, around(system))...)
}

// tarAndPickles are two files in one: the first member's name begins stacked
// pickles, of which a byte string covers the rest of the tar.
func tarAndPickles(members, evil string) []Case {
	both := func(first block, members, object string) []byte {
		const head = "\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."
		members += repeat("\x00", 1024)
		first.name = head + "\x80\x03B" + u32(uint32(512+len(members)-len(head)-7))
		return concat(first.String(), members, ".", object, "\x80\x02].")
	}
	base256 := func(sum int) string { return "\x80" + repeat("\x00", 5) + string([]byte{byte(sum >> 8), byte(sum)}) }
	two := func(name string, first block, members, object string) Case {
		return single("disguise, tar and pickles: "+name, Malformed, func() []byte { return both(first, members, object) }).scanned(1, 3)
	}
	return []Case{
		two("the pickles call", block{kind: '0'}, members, system), two("the tar calls", block{kind: '0'}, evil, "\x80\x02}."),
		two("the tar calls, without magic", block{kind: '0', old: true}, evil, "\x80\x02}."),
		two("the tar calls, with a checksum of 64 bits", block{kind: '0', old: true, sum: base256}, evil, "\x80\x02}."),
	}
}

// disguisedPickles lie in folders, under names that say nothing, and are cut where
// Python has called already.
func disguisedPickles() []Case {
	beside := func(name, pickle string) Case {
		return Case{Name: "disguise, in a folder: " + name, Exits: Any, Scan: []int{1}, Files: func() map[string][]byte {
			return map[string][]byte{"sound.pt": Checkpoint(model), "notes": []byte(pickle)}
		}}
	}
	return []Case{
		beside("protocol 0", system), beside("protocol 0, cut", system[:len(system)-1]), beside("names from the stack, cut", "\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R"),
		beside("names from the stack, then no opcode", "(\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R\xff"),
	}
}
