package attacks

import (
	"archive/tar"
	"bytes"
	"fmt"
	"strings"
)

// magic begins a legacy checkpoint: its number, the protocol, the system.
const magic = "\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}."

func legacyStorage(key string, count int64) string {
	return tuple(text("storage"), "ctorch\nFloatStorage\n", text(key), text("cpu"), integer(count), "N") + "Q"
}

func legacyModel(count int64) string {
	return dict("w", tensor(legacyStorage("1", count), 0, []int64{4}, []int64{1}))
}

func keys(names ...string) string {
	s := "\x80\x02]("
	for _, n := range names {
		s += text(n)
	}
	return s + "e."
}

// Legacies are stacked pickles that lie.
func Legacies() []Case {
	four := u64(4) + repeat(floats, 4)
	cases := []Case{
		single("legacy: sound", Sound, func() []byte { return concat(magic, legacyModel(4), keys("1"), four) }),
		single("legacy: a key twice", Malformed, func() []byte { return concat(magic, legacyModel(4), keys("1", "1"), four, four) }),
		single("legacy: a key that no tensor has", Malformed, func() []byte { return concat(magic, legacyModel(4), keys("1", "2"), four, four) }),
		single("legacy: no key", Malformed, func() []byte { return concat(magic, legacyModel(4), keys()) }),
		single("legacy: keys that are no list", Malformed, func() []byte { return concat(magic, legacyModel(4), "\x80\x02K\x01.", four) }),
		single("legacy: keys that are no text", Any, func() []byte { return concat(magic, legacyModel(4), "\x80\x02](]e.", four) }),
		single("legacy: no storages", Malformed, func() []byte { return concat(magic, legacyModel(4), keys("1")) }),
		single("legacy: cut in a storage", Malformed, func() []byte { return concat(magic, legacyModel(4), keys("1"), four[:15]) }),
		single("legacy: another protocol", Refused, func() []byte {
			return concat("\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02K\x07.\x80\x02}.", legacyModel(4), keys("1"), four)
		}),
		single("legacy: a system that is none", Any, func() []byte {
			return concat("\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02].", legacyModel(4), keys("1"), four)
		}),
		single("legacy: 100,000 deep keys", Refused, func() []byte { return concat(magic, legacyModel(4), repeat("]", deep), repeat("a", deep-1), ".", four) }),
		single("legacy: an archive behind it", Any, func() []byte { return concat(magic, legacyModel(4), keys("1"), four, string(Checkpoint(model))) }),
	}
	for _, n := range hugeNumbers {
		cases = append(cases,
			single(numbered("legacy: a count of", n), Malformed, func() []byte { return concat(magic, legacyModel(4), keys("1"), u64(n), repeat(floats, 4)) }),
			single(numbered("legacy: a storage of", n), Malformed, func() []byte { return concat(magic, legacyModel(int64(n)), keys("1"), u64(n), repeat(floats, 4)) }))
	}
	for name, view := range map[string]string{
		"past the end": tuple(text("v"), "K\x03", "K\x04"), "negative": tuple(text("v"), integer(-1), "K\x04"), "huge": tuple(text("v"), integer(1<<62), integer(1<<62)),
		"no tuple": "K\x01", "short": tuple(text("v")), "nothing in it": ")",
	} {
		cases = append(cases, single("legacy: a view that is "+name, Any, func() []byte {
			id := tuple(text("storage"), "ctorch\nFloatStorage\n", text("1"), text("cpu"), "K\x04", view) + "Q"
			return concat(magic, dict("w", tensor(id, 0, []int64{4}, []int64{1})), keys("1"), four)
		}))
	}
	return cases
}

// tarOf writes members in order.
func tarOf(members ...string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i+1 < len(members); i += 2 {
		// A buffer takes everything, and names that are too long get a header of their own.
		_ = w.WriteHeader(&tar.Header{Name: members[i], Size: int64(len(members[i+1])), Mode: 0o600, Typeflag: tar.TypeReg})
		_, _ = w.Write([]byte(members[i+1]))
	}
	_ = w.Close()
	return b.Bytes()
}

// Tars are files of torch 0.1 that lie.
func Tars() []Case {
	const system = "\x80\x02}."
	entry := func(key int64, class string) string {
		return "\x80\x02" + tuple(integer(key), text("cpu"), "ctorch\n"+class+"\n") + "."
	}
	laid := func(ndim string, numbers ...int64) string {
		s := "\x80\x02K\x01." + "\x80\x02" + tuple(integer(1), integer(7), "ctorch\nFloatTensor\n") + "." + ndim + "\x00\x00\x00\x00"
		for _, n := range numbers {
			s += u64(uint64(n))
		}
		return s
	}
	kept := func(count uint64) string {
		return "\x80\x02K\x01." + entry(7, "FloatStorage") + u64(count) + repeat(floats, 4) + "\x80\x02]."
	}
	object := "\x80\x02}" + text("w") + text("1") + "Qs."
	tarCase := func(name string, exits []int, storages, tensors string) Case {
		return single("tar: "+name, exits, func() []byte {
			return tarOf("sys_info", system, "pickle", object, "tensors", tensors, "storages", storages)
		})
	}
	cases := []Case{
		tarCase("sound", Sound, kept(4), laid(u32(1), 4, 1, 0)),
		tarCase("2^31 dimensions", Malformed, kept(4), laid(u32(1<<31-1), 4, 1, 0)), tarCase("-1 dimensions", Malformed, kept(4), laid(u32(1<<32-1), 4, 1, 0)),
		tarCase("a tensor past the end", Malformed, kept(4), laid(u32(1), 5, 1, 0)), tarCase("a negative size", Malformed, kept(4), laid(u32(1), -4, 1, 0)),
		tarCase("a negative offset", Malformed, kept(4), laid(u32(1), 4, 1, -1)), tarCase("no views", Malformed, kept(4)[:len(kept(4))-4], laid(u32(1), 4, 1, 0)),
		tarCase("2^62 storages", Malformed, "\x80\x02"+integer(1<<62)+".", laid(u32(1), 4, 1, 0)), tarCase("a count of text", Malformed, "\x80\x02"+text("x")+".", ""),
		single("tar: no tensors", Malformed, func() []byte { return tarOf("sys_info", system, "pickle", object, "storages", kept(4)) }),
		single("tar: a member twice", Malformed, func() []byte {
			return tarOf("sys_info", system, "pickle", object, "pickle", object, "tensors", laid(u32(0), 0), "storages", kept(4))
		}),
		single("tar: a path that climbs", Any, func() []byte {
			return tarOf("sys_info", system, "../../tmp/wick-climbed", "x", "pickle", object, "tensors", laid(u32(1), 4, 1, 0), "storages", kept(4))
		}),
		single("tar: cut", Malformed, func() []byte { b := tarOf("sys_info", system, "pickle", object); return b[:700] }),
	}
	for _, n := range hugeNumbers {
		cases = append(cases, tarCase(numbered("a storage of", n), Malformed, kept(n), laid(u32(1), 4, 1, 0)))
	}
	return cases
}

// header is a safetensors file with a header and data.
func header(json, data string) func() []byte {
	return func() []byte { return concat(u64(uint64(len(json))), json, data) }
}

// Headers are safetensors, CBOR and JSON files that lie.
func Headers() []Case {
	one := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"w":{"dtype":%q,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
	}
	data := repeat(floats, 4)
	cases := []Case{
		single("safetensors: sound", Sound, header(one("F32", "[4]", "[0,16]"), data)),
		single("safetensors: past the end", Malformed, header(one("F32", "[5]", "[0,20]"), data)),
		single("safetensors: backwards", Malformed, header(one("F32", "[4]", "[16,0]"), data)),
		single("safetensors: negative", Malformed, header(one("F32", "[4]", "[-16,0]"), data)),
		single("safetensors: another size", Malformed, header(one("F32", "[3]", "[0,16]"), data)),
		single("safetensors: a negative shape", Malformed, header(one("F32", "[-4,-1]", "[0,16]"), data)),
		single("safetensors: a product of 2^66", Malformed, header(one("F32", "[8589934592,8589934592]", "[0,0]"), "")),
		single("safetensors: a shape of 10^30", Malformed, header(one("F32", "[1000000000000000000000000000000]", "[0,16]"), data)),
		single("safetensors: a shape of 1e2", Malformed, header(one("F32", "[4e0]", "[0,16]"), data)),
		single("safetensors: an unknown dtype", Refused, header(one("Q7", "[4]", "[0,16]"), data)),
		single("safetensors: a hole", Malformed, header(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[15,16]}}`, data)),
		single("safetensors: an overlap", Malformed, header(`{"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]},"b":{"dtype":"U8","shape":[9],"data_offsets":[7,16]}}`, data)),
		single("safetensors: a name twice", Malformed, header(`{"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"a":{"dtype":"U8","shape":[8],"data_offsets":[8,16]}}`, data)),
		single("safetensors: bytes behind the end", Malformed, header(one("U8", "[4]", "[0,4]"), data)),
		single("safetensors: no JSON", Malformed, header(`{"w":`, data)),
		single("safetensors: 100,000 deep", Refused, header(`{"w":`+repeat("[", deep)+repeat("]", deep)+"}", "")),
		single("safetensors: text that is no UTF-8", Malformed, header("{\"\xff\":{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[0,16]}}", data)),
		single("safetensors: a shape of 100,000 dimensions", Refused, header(one("U8", "["+repeat("1,", deep)+"16]", "[0,16]"), data)),
	}
	for _, n := range append(hugeNumbers, 100_000_000) {
		cases = append(cases, single(numbered("safetensors: a header of", n), Refused, func() []byte { return concat(u64(n), `{"w":`, data) }))
	}
	return append(cases, cbors()...)
}

// cbors are records of CBOR that lie.
func cbors() []Case {
	const self = "\xd9\xd9\xf7"
	cborCase := func(name, body string) Case {
		return single("CBOR: "+name, Refused, func() []byte { return concat(self, body) })
	}
	cases := []Case{
		cborCase("nothing", ""), cborCase("100,000 lists", repeat("\x81", deep)+"\x00"), cborCase("100,000 maps", repeat("\xa1\x00", deep)+"\x00"), cborCase("100,000 tags", repeat("\xc1", deep)+"\x00"),
		cborCase("a list without an end", "\x9f"+repeat("\x00", 1000)), cborCase("a key twice", "\xa2\x61a\x00\x61a\x01"), cborCase("a key that is a list", "\xa1\x80\x00"),
		cborCase("text that is no UTF-8", "\x61\xff"), cborCase("a break", "\xff"), cborCase("a reserved length", "\x1f"), cborCase("bytes behind the end", "\x00\x00"),
		cborCase("a tensor of no numbers", "\xd8\x28\x82\x81\x61a\xd8\x55\x44abcd"), cborCase("a tensor of another size", "\xd8\x28\x82\x81\x18\x64\xd8\x55\x44abcd"),
		cborCase("a tensor of 2^63", "\xd8\x28\x82\x81\x1b"+"\x80"+repeat("\x00", 7)+"\xd8\x55\x44abcd"),
	}
	for major := range byte(6) {
		for _, n := range []string{"\x1a\x80\x00\x00\x00", "\x1a\xff\xff\xff\xff", "\x1b\x80" + repeat("\x00", 7), "\x1b" + repeat("\xff", 8)} {
			head := string([]byte{major<<5 | n[0]}) + n[1:]
			if major < 2 { // a number, which is sound
				continue
			}
			cases = append(cases, cborCase(fmt.Sprintf("major type %d of length % x", major, n[1:]), head+"abcd"))
		}
	}
	return cases
}

// Indexes are index files that climb, turn in circles or lie.
func Indexes() []Case {
	folder := func(name string, exits []int, index string, more map[string]string) Case {
		return Case{Name: "index: " + name, Exits: exits, Files: func() map[string][]byte {
			files := map[string][]byte{"model.safetensors.index.json": []byte(index)}
			for n, data := range more {
				files[n] = []byte(data)
			}
			return files
		}}
	}
	shard := string(header(`{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`, repeat(floats, 4))())
	to := func(file string) string { return fmt.Sprintf(`{"weight_map":{"w":%q}}`, file) }
	found := []int{2, 3, 4}
	cases := []Case{
		folder("sound", Sound, to("a.safetensors"), map[string]string{"a.safetensors": shard}),
		folder("a missing shard", found, to("b.safetensors"), map[string]string{"a.safetensors": shard}),
		folder("a missing tensor", found, `{"weight_map":{"w":"a.safetensors","v":"a.safetensors"}}`, map[string]string{"a.safetensors": shard}),
		folder("itself", found, to("model.safetensors.index.json"), nil),
		folder("each other", found, to("other.index.json"), map[string]string{"other.index.json": to("model.safetensors.index.json")}),
		folder("no map", found, `{"weight_map":7}`, nil), folder("no JSON", found, `{"weight_map":`, nil), folder("100,000 deep", found, `{"weight_map":`+repeat("[", deep), nil),
		folder("a name twice", found, `{"weight_map":{"w":"a.safetensors","w":"b.safetensors"}}`, map[string]string{"a.safetensors": shard, "b.safetensors": shard}),
		folder("a shard that is text", found, to("a.safetensors"), map[string]string{"a.safetensors": "words and words and words"}),
		folder("100,000 shards", found, manyShards(), map[string]string{"a.safetensors": shard}),
	}
	for _, path := range []string{"../a.safetensors", "/etc/passwd", "..", ".", "", "x/../../a", "a\x00", "\\\\host\\a", "C:\\a", "sub/../../../a"} {
		cases = append(cases, folder(fmt.Sprintf("a shard at %q", path), found, to(path), nil))
	}
	return cases
}

// manyShards is an index of 100,000 files of which one exists.
func manyShards() string {
	var b strings.Builder
	b.WriteString(`{"weight_map":{"w":"a.safetensors"`)
	for i := range deep {
		fmt.Fprintf(&b, `,"w%d":"s%d"`, i, i)
	}
	return b.String() + "}}"
}

// Texts are names that would take over a terminal, or that no reader expects.
func Texts() []Case {
	var cases []Case
	for name, s := range map[string]string{
		"ANSI": "\x1b[31mred\x1b]0;title\x07", "CSI of eight bits": "\x9b31m", "control characters": "\x00\x01\x07\x08\x0b\x0c\r\x7f", "C1 as UTF-8": "\u0085\u009b31m",
		"line breaks": "a\nb\r\nc\u2028d", "right to left": "\u202eabc\u2066", "no UTF-8": "\xff\xfe\xc0\x80\xed\xa0\x80", "empty": "", "a megabyte": repeat("n", 1<<20), "a megabyte of escapes": repeat("\x1b[1m", 1<<18),
		"zero width": "\u200b\ufeff",
	} {
		cases = append(cases,
			inZip("text, a name: "+name, Any, func() string {
				return dict(s, tensor(storage("0", 16), 0, []int64{4, 4}, []int64{4, 1}))
			}),
			inZip("text, a value: "+name, Any, func() string { return "\x80\x02}" + text("v") + text(s) + "s." }),
			inZip("text, a class: "+name, Any, func() string { return "\x80\x04" + text(s) + text(s) + "\x93)R." }),
			inZip("text, a storage: "+name, Any, func() string { return dict("w", tensor(storage(s, 16), 0, []int64{4}, []int64{1})) }),
			inZip("text, a device: "+name, Any, func() string {
				return dict("w", tensor(tuple(text("storage"), "ctorch\nFloatStorage\n", text("0"), text(s), "K\x10")+"Q", 0, []int64{4}, []int64{1}))
			}),
			inZip("text, a bad number: "+name, Any, func() string { return "I" + s + "\n." }),
			inZip("text, a persistent id: "+name, Any, func() string { return "P" + s + "\n." }),
			with("text, a record: "+name, Any, func(z *Zip) {
				if len(s) < 1<<16 {
					z.Records = append(z.Records, Record{Name: "m/" + s, Data: "x"})
				}
			}),
			single("text, the whole file: "+name, Refused, func() []byte { return []byte(s + repeat(" words", 3)) }),
			single("text, a key of safetensors: "+name, Any, header(fmt.Sprintf(`{%q:{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`, s), repeat(floats, 4))),
			single("text, a dtype of safetensors: "+name, Refused, header(fmt.Sprintf(`{"w":{"dtype":%q,"shape":[4],"data_offsets":[0,16]}}`, s), repeat(floats, 4))),
		)
	}
	return cases
}
