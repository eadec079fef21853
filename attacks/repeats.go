package attacks

import (
	"fmt"
	"strings"
)

// Repeats are files in which the memo hands one large value to a call, a key or a
// row again and again, at two bytes a time: whoever copies it, hashes it, or spells
// it for each of them needs gigabytes or minutes.
func Repeats() []Case {
	const most = 500_000
	memo := func(n int, value string) string { return value + "q" + string([]byte{byte(n)}) + "0" }
	numbers := strings.Builder{}
	for i := range uint32(50_000) {
		numbers.WriteString("J" + u32(i) + "N")
	}
	values := map[string]string{
		"a list of 100,000": "(" + repeat("K\x01", 100_000) + "l", "a tuple of 100,000": "(" + repeat("K\x01", 100_000) + "t", "a dict of 50,000": "}(" + numbers.String() + "u",
		"a text of 400 KB": text(repeat("1", 400_000)), "bytes of 400 KB": "B" + u32(400_000) + repeat("b", 400_000), "an integer of 400 KB": "\x8b" + u32(400_000) + repeat("\x7f", 400_000),
		"a tuple of texts": "(" + repeat(text(repeat("s", 100)), 30) + "t\x85", "texts": text(repeat("s", 50_000)),
	}
	call := func(module, name string) string { return "c" + module + "\n" + name + "\n" }
	var cases []Case
	add := func(what, value, prelude, unit string) {
		cases = append(cases, inZip("again and again: "+value+", "+what, Any, func() string {
			return "\x80\x04" + memo(0, values[value]) + prelude + "(" + repeat(unit, most/len(unit)) + "l."
		}))
	}
	for _, c := range []struct{ value, module, name string }{
		{"a list of 100,000", "builtins", "list"},
		{"a list of 100,000", "builtins", "bytearray"}, {"a tuple of 100,000", "torch", "Size"}, {"a dict of 50,000", "collections", "OrderedDict"},
		{"bytes of 400 KB", "builtins", "bytearray"},
		{"a text of 400 KB", "pathlib", "PosixPath"}, {"an integer of 400 KB", "builtins", "int"},
	} {
		add("for "+c.name, c.value, memo(1, call(c.module, c.name)), "h\x01h\x00\x85R")
	}
	for _, c := range []struct{ what, value, prelude, unit string }{
		{"for fractions", "an integer of 400 KB", memo(1, call("fractions", "Fraction")), "h\x01h\x00h\x00\x86R"},
		{"as Latin-1", "a text of 400 KB", memo(1, call("_codecs", "encode")) + memo(2, text("latin1")), "h\x01h\x00h\x02\x86R"},
		{"for attributes", "a text of 400 KB", memo(1, call("builtins", "getattr")) + memo(2, call("a", "B")), "h\x01h\x02h\x00\x86R"},
		{"for old sets", "a dict of 50,000", memo(1, call("sets", "Set")), "h\x01)Rh\x00\x85b"},
		{"all arguments of partial", "a tuple of 100,000", memo(1, call("functools", "partial")), "h\x01h\x00R"}, {"as a shape", "a tuple of 100,000", memo(1, call("torch._utils", "_rebuild_tensor_v2")) + memo(2, storage("0", 16)), "h\x01(h\x02K\x00h\x00h\x00\x89NtR"},
		{"for nested tensors", "a list of 100,000", memo(1, call("torch._utils", "_rebuild_nested_tensor")), "h\x01(h\x00h\x00h\x00h\x00tR"},
		{"as scales", "a tuple of 100,000", memo(1, call("torch._utils", "_rebuild_qtensor")) + memo(2, storage("0", 16)), "h\x01(h\x02K\x00K\x04\x85K\x01\x85(ctorch\nper_channel_affine\nh\x00h\x00K\x00t\x89NtR"},
		{"as state beside arguments", "a dict of 50,000", memo(1, call("a", "B")), "h\x01(NK\x01t\x81h\x00b"}, {"as state and slots", "a dict of 50,000", "h\x00h\x00\x86q\x020" + memo(1, call("a", "B")), "h\x01)\x81h\x02b"},
		{"as a module's parameters", "a dict of 50,000", memo(2, "}("+text("_parameters")+"h\x00"+text("_buffers")+"h\x00"+text("_modules")+"h\x00u") + memo(1, call("a", "B")), "h\x01)\x81h\x02b"},
		{"as module and name", "a text of 400 KB", "", "h\x00h\x00\x93"}, {"as a class", "a text of 400 KB", memo(1, "h\x00h\x00\x93"), "h\x01)R"}, {"as a value", "an integer of 400 KB", "", "h\x00"},
		{"as a key", "an integer of 400 KB", "", "}h\x00Ns"}, {"as a key", "a tuple of texts", "", "}h\x00Ns"},
		{"in frozensets", "texts", many(values["texts"]), "(h\x01h\x02h\x03h\x04h\x05h\x06h\x07h\x08h\x09\x91"},
	} {
		add(c.what, c.value, c.prelude, c.unit)
	}
	return append(append(cases, repeatedRows()...), sharedLists()...)
}

// sharedLists are pickles of a kilobyte in which a list holds one other twice, again
// and again, so that there are up to 2^60 ways to its number or its tensor, and each
// of them has hundreds of steps where a chain of lists leads there.
func sharedLists() []Case {
	var cases []Case
	add := func(ways, chain int, what, end string) {
		twice := map[string]string{"lists": "q\x00h\x00e", "dicts": "q\x00" + text("b") + "h\x00u"}[what]
		open, one := map[string]string{"lists": "](", "dicts": "}(" + text("a")}[what], map[string]string{"lists": "e", "dicts": "u"}[what]
		name := fmt.Sprintf("shared %s: %d ways in a chain of %d", what, ways, chain)
		if end == "" {
			end = "K\x01"
		} else {
			name += ", a tensor"
		}
		cases = append(cases, inZip(name, Any, func() string {
			return "\x80\x02" + repeat(open, ways+chain) + end + repeat(twice, ways) + repeat(one, chain) + "."
		}))
	}
	for _, ways := range []int{15, 16, 17, 18, 20, 23, 60} {
		for _, chain := range []int{0, 14, 236, 3000} {
			add(ways, chain, "lists", "")
		}
		add(ways, 0, "dicts", "")
		add(ways, 236, "dicts", "")
		add(ways, 0, "lists", tensor(storage("0", 16), 0, []int64{1}, []int64{1}))
		add(ways, 236, "lists", tensor(storage("0", 16), 0, []int64{1}, []int64{1}))
	}
	return cases
}

// many puts nine texts that differ in their last letter into the memo.
func many(text string) string {
	s := ""
	for i := range byte(9) {
		s += text[:len(text)-1] + string([]byte{'a' + i}) + "q" + string([]byte{i + 1}) + "0"
	}
	return s
}

// repeatedRows are tensors that share a long name of a storage or a device, and keys
// that share their parts until they are exponentially long.
func repeatedRows() []Case {
	rows := func(name, key, device string) Case {
		return single("again and again: "+name, Any, func() []byte {
			id := tuple(text("storage"), "ctorch\nFloatStorage\n", text(key), text(device), "K\x04", "N") + "Qq\x000"
			rebuild := "ctorch._utils\n_rebuild_tensor_v2\nq\x010(K\x04tq\x020(K\x01tq\x030ccollections\nOrderedDict\n)Rq\x040"
			object := "\x80\x02" + id + rebuild + "(" + repeat("h\x01(h\x00K\x00h\x02h\x03\x89h\x04tR", 20_000) + "l."
			return concat(magic, object, keys(key), u64(4), repeat(floats, 4))
		})
	}
	nested := text(repeat("a", 200)) + "q\x000(" + repeat("h\x00", 16) + "tq\x010"
	for i := range byte(5) {
		nested += "(" + repeat("h"+string([]byte{i + 1}), 16) + "tq" + string([]byte{i + 2}) + "0"
	}
	return []Case{
		rows("a storage's name", repeat("k", 200_000), "cpu"), rows("a device", "1", repeat("d", 400_000)),
		inZip("again and again: a tuple in a tuple in a key", Any, func() string { return "\x80\x02" + nested + "}h\x06Ns." }),
		inZip("again and again: a tuple in a tuple in keys", Any, func() string {
			s := strings.Builder{}
			for i := range uint32(90_000) {
				s.WriteString("h\x06J" + u32(i) + "\x86N")
			}
			return "\x80\x02" + nested + "}(" + s.String() + "u."
		}),
	}
}
