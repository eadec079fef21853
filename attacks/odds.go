package attacks

import (
	"fmt"
	"strings"
)

// Odds are what pickles of all protocols allow and no writer does, and files
// that grow, overlap or mean two things.
func Odds() []Case {
	return append(append(append(oddPickles(), oddTexts()...), oddTensors()...), oddArchives()...)
}

// oddPickles are frames, protocols, extensions, buffers and names in unusual places.
func oddPickles() []Case {
	odd := func(name string, exits []int, pickle string) Case {
		return inZip("odd: "+name, exits, func() string { return pickle })
	}
	return []Case{
		odd("a frame of 2^40", Malformed, "\x80\x04\x95"+u64(1<<40)+"}."),
		odd("a frame that is too short", Any, "\x80\x04\x95"+u64(1)+"}"+text("a")+"Ns."),
		odd("a frame in a frame", Any, "\x80\x04\x95"+u64(20)+"\x95"+u64(2)+"}."),
		odd("100,000 empty frames", Any, "\x80\x04"+repeat("\x95"+u64(0), deep)+"}."),
		odd("300,000 protocols", Any, repeat("\x80\x02", 300_000)+"}."),
		odd("another protocol in the middle", Any, "\x80\x02}\x80\x05"+text("a")+"Ns."),
		odd("a bytearray that is longer than the file", Refused, "\x80\x05\x96"+u64(1<<62)+"abc."),
		odd("a buffer from outside", []int{4}, "\x80\x05\x97."), odd("a buffer that is none, made read-only", Refused, "\x80\x05N\x98."),
		odd("the extension 1", []int{4}, "\x80\x02\x82\x01."), odd("the extension 0", []int{4}, "\x80\x02\x82\x00."), odd("the extension -1", []int{4}, "\x80\x02\x84\xff\xff\xff\xff."),
		odd("an integer of minus one byte", Malformed, "\x80\x02\x8b\xff\xff\xff\xff."), odd("an integer of -2^31 bytes", Malformed, "\x80\x02\x8b\x00\x00\x00\x80."),
		odd("a string of minus one byte", Malformed, "\x80\x02T\xff\xff\xff\xff."),
		odd("INST of os.system", Any, "(S'id'\nios\nsystem\n."), odd("OBJ of os.system", Any, "(cos\nsystem\nS'id'\no."),
		odd("os.system from the memo", Any, "\x80\x04\x8c\x02os\x94\x8c\x06system\x940h\x00h\x01\x93\x8c\x02id\x85R.").scanned(1),
		odd("os.system through an attribute", Any, "\x80\x04\x8c\x05torch\x8c\x17serialization.os.system\x93.").scanned(1),
		odd("os.system by getattr", Any, "\x80\x02cbuiltins\ngetattr\n(cos\nsystem\n"+text("__call__")+"tR."),
		odd("os.system behind STOP", Any, "\x80\x02}.cos\nsystem\n(S'id'\ntR.").scanned(0, 1),
		odd("os.system in the factory of a defaultdict", Any, "\x80\x02ccollections\ndefaultdict\ncos\nsystem\n\x85R."),
		odd("a mark at STOP", Any, "\x80\x02}(."), odd("two values at STOP", Any, "\x80\x02}}."),
		odd("the state of an int", Malformed, "\x80\x02K\x01}b."), odd("a torch.Size of 300,000", Any, "\x80\x02ctorch\nSize\n(("+repeat("K\x01", 300_000)+"ttR."),
		odd("an array of 2^62", Any, numpyArray(1<<62)), odd("an array of -8", Any, numpyArray(-8)),
		odd("a codec that is none for bytes", Any, "\x80\x02c_codecs\nencode\n("+text("x")+text("rot13")+"tR."),
		odd("a parameter of the dict that it is in", Any, "\x80\x02}q\x00"+text("w")+"ctorch._utils\n_rebuild_parameter\n(h\x00\x88ccollections\nOrderedDict\n)RtRs."),
		odd("tuples, a megabyte", Any, "\x80\x02]("+repeat(")", 1<<20)+"e."), odd("tuples of one, a megabyte", Any, "\x80\x02]("+repeat("N\x85", 1<<19)+"e."),
		odd("tuples of three, a megabyte", Any, "\x80\x02]("+repeat("NNN\x87", 1<<18)+"e."), odd("sets, a megabyte", Any, "\x80\x04]("+repeat("\x8f", 1<<20)+"e."),
		odd("letters, a megabyte", Any, "\x80\x04]("+repeat("\x8c\x01a", 1<<20/3)+"e."), odd("calls, a megabyte", Any, "\x80\x02](ca\nB\nq\x00"+repeat("h\x00)R", 1<<18)+"e."),
		odd("dicts of one, a megabyte", Any, "\x80\x02]("+repeat("}NNs", 1<<18)+"e."),
	}
}

// scanned sets what a scan may say.
func (c Case) scanned(exits ...int) Case {
	c.Scan = exits
	return c
}

// numpyArray is an array of n doubles whose bytes are eight.
func numpyArray(n int64) string {
	return "\x80\x03cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tC\x01btR(K\x01(" + integer(n) +
		"tcnumpy\ndtype\n(" + text("f8") + "K\x00K\x01tR\x89C\x08abcdefghtb."
}

// oddTexts are what protocol 0 spells: numbers, escapes, persistent ids.
func oddTexts() []Case {
	var cases []Case
	for pickle, exits := range map[string][]int{
		"S'\\x4'\n.": Malformed, "S'\n.": Malformed, "Sabc\n.": Malformed, "S'a\\'\n.": Malformed, "S'\\777\\0\\12'\n.": Sound, "V\\ud800\n.": Sound,
		"V\\U00110000\n.": Malformed, "V\\u12\n.": Malformed, "I1_000\n.": Malformed, "I0x10\n.": Malformed, "I\u0663\n.": Malformed, "L12LL\n.": Malformed,
		"F1e\n.": Malformed, "F1e999999999\n.": Malformed, "F0x1p4\n.": Malformed, "Ng-1\n.": Malformed, "Np-1\n.": Malformed, "Npabc\n.": Malformed,
		"Ng99999999999999999999999999\n.":                                              Malformed,
		"P('storage', torch.FloatStorage, '0\\', 'cpu', 16, 'x', 'cpu', 16)\n.":        Malformed,
		"P('storage',\ntorch.FloatStorage, '0', 'cpu', 16)\n.":                         Malformed,
		"P('storage', <class 'torch.FloatStorage'>, '0', 'cpu', 99999999999999999)\n.": Malformed,
	} {
		cases = append(cases, inZip(fmt.Sprintf("odd text: %.40q", pickle), exits, func() string { return pickle }))
	}
	for name, pickle := range map[string]string{
		"200,000 brackets in a persistent id": "P" + repeat("(", 200_000) + "\n.", "200,000 items in a persistent id": "P(" + repeat(",'a'", 200_000) + ")\n.",
		"800,000 backslashes": "S'" + repeat(`\\`, 400_000) + "'\n.", "100,000 surrogates": "V" + repeat(`\ud800`, 100_000) + "\n.", "900,000 digits of a float": "F0." + repeat("1", 900_000) + "\n.",
	} {
		cases = append(cases, inZip("odd text: "+name, Any, func() string { return pickle }))
	}
	return cases
}

// oddTensors are tensors whose sizes overflow where they are multiplied.
func oddTensors() []Case {
	of := func(class string, count int64) string {
		return tuple(text("storage"), "ctorch\n"+class+"\n", text("0"), text("cpu"), integer(count)) + "Q"
	}
	odd := func(name string, exits []int, object string) Case {
		return inZip("odd tensor: "+name, exits, func() string { return dict("w", object) })
	}
	one := []int64{1}
	two := func(a, b string) string { return tensor(a, 0, one, one) + "s" + text("v") + tensor(b, 0, one, one) }
	return []Case{
		odd("a storage of 2^65 bytes", Malformed, tensor(of("DoubleStorage", 1<<62), 0, one, one)),
		odd("a storage that wraps to 128 bytes", Malformed, tensor(of("DoubleStorage", 1<<61+16), 0, one, one)),
		odd("offset and stride that wrap", Malformed, tensor(storage("0", 16), 1<<63-1, []int64{2}, []int64{1<<63 - 1})),
		odd("strides that wrap to nothing", Malformed, tensor(storage("0", 16), 0, []int64{1 << 32, 1 << 32}, []int64{1 << 32, 1 << 32})),
		odd("a storage of two sizes", Any, two(storage("0", 16), storage("0", 17))), odd("a storage of two dtypes", Any, two(storage("0", 16), of("DoubleStorage", 8))),
		odd("a storage of an unknown class", Any, tensor(of("OddStorage", 8), 0, one, one)),
		odd("a size that is a float", Any, strings.Replace(tensor(storage("0", 16), 0, one, one), ints(one), "(G\x3f\xf0\x00\x00\x00\x00\x00\x00t", 1)),
		odd("a size that is True", Any, strings.Replace(tensor(storage("0", 16), 0, one, one), ints(one), "(\x88t", 1)),
		odd("a size that is None", Any, strings.Replace(tensor(storage("0", 16), 0, one, one), ints(one), "N", 1)),
		odd("a quantized one with an infinite scale", Any, "ctorch._utils\n_rebuild_qtensor\n("+of("QUInt8Storage", 16)+"K\x00"+ints(one)+ints(one)+
			"(ctorch\nper_tensor_affine\nG\xff\xf0\x00\x00\x00\x00\x00\x00K\x00t\x89NtR"),
		odd("a sparse one of nothing", Any, "ctorch._utils\n_rebuild_sparse_tensor\n(ctorch.serialization\n_get_layout\n"+text("torch.sparse_coo")+"\x85R(NNI-1\nttR"),
	}
}

// oddArchives are archives whose pickles lie in unusual places, or grow.
func oddArchives() []Case {
	nones := "\x80\x02(" + repeat("N", 1<<20) + "t."
	bomb := func() string {
		return string(Zip{Records: []Record{{Name: "m/data.pkl", Data: "\x80\x02(" + repeat("N", 100<<20) + "t.", Deflate: true}}}.Bytes())
	}
	header := "PK\x03\x04" + repeat("\x00", 22) + u16(5) + u16(0) + "a.pkl"
	cases := []Case{
		with("odd: a second checkpoint with os.system", Any, func(z *Zip) {
			z.Records = append(z.Records, Record{Name: "x/data.pkl", Data: "\x80\x02cos\nsystem\n."})
		}),
		with("odd: os.system under __MACOSX", Any, func(z *Zip) {
			z.Records = append(z.Records, Record{Name: "__MACOSX/m/._data.pkl", Data: "\x80\x02cos\nsystem\n."})
		}),
		with("odd: Python source", Any, func(z *Zip) {
			z.Records = append(z.Records, Record{Name: "m/code/__torch__.py", Data: "import os"})
		}).scanned(1),
		with("odd: os.system deflated", Any, func(z *Zip) { z.Records[0] = Record{Name: "m/data.pkl", Data: "\x80\x02cos\nsystem\n.", Deflate: true} }).scanned(1),
		with("odd: a key of 50 MB, deflated", Any, func(z *Zip) {
			z.Records[0] = Record{Name: "m/data.pkl", Data: dict(repeat("a", 50<<20), "N"), Deflate: true}
		}),
		with("odd: tuples of 40 MB, deflated", Any, func(z *Zip) {
			z.Records[0] = Record{Name: "m/data.pkl", Data: "\x80\x02](" + repeat("K\x01\x85", 40<<20/3) + "e.", Deflate: true}
		}),
		with("odd: 200 pickles of a megabyte, deflated", Any, func(z *Zip) {
			for i := range 200 {
				z.Records = append(z.Records, Record{Name: fmt.Sprintf("m/x%d.pkl", i), Data: nones, Deflate: true})
			}
		}),
		with("odd: 50 gzip files of 20 MB", Any, func(z *Zip) {
			gz := gzipped(repeat("\x00", 20<<20))
			for i := range 50 {
				z.Records = append(z.Records, Record{Name: fmt.Sprintf("m/x%d.bin", i), Data: gz})
			}
		}),
		single("odd: a bomb in a gzip", Refused, func() []byte { return []byte(gzipped(bomb())) }),
		single("odd: a bomb in a gzip in a gzip", Refused, func() []byte { return []byte(gzipped(gzipped(bomb()))) }),
		inZip("odd: bombs in byte strings", Any, func() string { b := bomb(); return "\x80\x03(" + repeat("B"+u32(uint32(len(b)))+b, 8) + "t." }),
		single("odd: headers over headers", Malformed, func() []byte { return []byte(repeat(header, 1<<20/len(header))) }),
		single("odd: headers over pickles", Malformed, func() []byte {
			long := header + "\x80\x02(" + repeat("N", 2000)
			return []byte(repeat(long, 1<<20/len(long)))
		}),
		single("odd: a picture and an archive", Any, func() []byte { return concat("GIF89a"+repeat("\x00", 50), string(Checkpoint(model))) }).scanned(1, 3, 4),
		single("odd: a pickle and an archive", Any, func() []byte { return concat("\x80\x02cos\nsystem\n(S'id'\ntR.", string(Checkpoint(model))) }).scanned(1, 3, 4),
		single("odd: zeros", Refused, func() []byte { return make([]byte, 100_000) }), single("odd: one byte", Refused, func() []byte { return []byte{0x80} }),
	}
	for name, json := range map[string]string{
		"metadata that is no text": `{"__metadata__":{"a":1},"w":%s}`, "metadata twice": `{"__metadata__":{},"__metadata__":{},"w":%s}`, "bytes behind the header's end": `{"w":%s}x`,
		"a mark of byte order": "\ufeff{\"w\":%s}", "an empty tensor beyond the end": `{"a":{"dtype":"F32","shape":[0],"data_offsets":[99,99]},"w":%s}`,
		"offsets that are floats": `{"w":{"dtype":"F32","shape":[4],"data_offsets":[0.0,16.0]}}`, "no offsets": `{"w":{"dtype":"F32","shape":[4]}}`, "a list": `[1]`,
	} {
		text := strings.Replace(json, "%s", `{"dtype":"F32","shape":[4],"data_offsets":[0,16]}`, 1)
		cases = append(cases, single("odd safetensors: "+name, Refused, headerOf(text)))
	}
	return cases
}

func headerOf(text string) func() []byte { return header(text, repeat(floats, 4)) }
