package attacks

import "fmt"

// operands are what opcodes find on the stack: nothing, one value of each
// type, two, three, and marks.
var operands = map[string]string{
	"nothing": "", "None": "N", "an int": "K\x01", "a float": "G\x3f\xf0\x00\x00\x00\x00\x00\x00", "text": "X\x01\x00\x00\x00a", "bytes": "C\x01a",
	"a long": "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "a bool": "\x88", "a list": "]", "a dict": "}", "a tuple": ")", "a set": "\x8f", "a class": "ca\nB\n",
	"an object": "ca\nB\n)R", "a mark": "(", "two marks": "((", "two ints": "K\x01K\x02", "a list and an int": "]K\x01", "a dict and an int": "}K\x01",
	"a dict, a list and an int": "}]K\x01", "a class and an int": "ca\nB\nK\x01", "an int and a tuple": "K\x01)", "a list, a mark and ints": "](K\x01K\x02",
	"a dict, a mark and an int": "}(K\x01", "a dict, a mark, a list and an int": "}(]K\x01", "a set, a mark and a list": "\x8f(]", "an int, a mark and an int": "K\x01(K\x02",
	"text and an int": "X\x02\x00\x00\x00osK\x01", "two texts": "X\x02\x00\x00\x00osX\x06\x00\x00\x00system", "three tuples": ")))", "a class, a tuple and an int": "ca\nB\n)K\x01",
}

// arguments are what may follow an opcode: enough bytes of each kind, and none.
var arguments = map[string]string{
	"nothing": "", "zeros": repeat("\x00", 10), "ones": repeat("\xff", 10), "a line": "1\n", "two lines": "os\nsystem\n", "a line that is no number": "x'\n\n",
}

// opcodes are all bytes that Python's pickle knows.
const opcodes = "(.012FIJKLMNPQRSTUVXabcd}eghijl]opqrst)uGBC" +
	"\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97\x98"

// Opcodes are all opcodes with all operands and, for each, all arguments. Every
// pickle is in the same place of a checkpoint; those of one opcode are in one
// folder of files, see [Folder].
func Opcodes() []Case {
	var cases []Case
	for i := range len(opcodes) {
		op := opcodes[i : i+1]
		for name, stack := range operands {
			cases = append(cases, inZip(fmt.Sprintf("opcode %#02x on %s", op[0], name), Any, func() string {
				return "\x80\x02" + stack + op + repeat("\x00", 0) + "."
			}))
		}
		for name, argument := range arguments {
			cases = append(cases, inZip(fmt.Sprintf("opcode %#02x before %s", op[0], name), Any, func() string { return "\x80\x02}K\x01" + op + argument + "." }))
		}
	}
	return append(cases, inZip("a byte that is no opcode", Malformed, func() string { return "\x80\x02\xff" }, "opcode"),
		inZip("no STOP", Malformed, func() string { return "\x80\x02}" }), inZip("nothing", Malformed, func() string { return "" }),
		inZip("protocol 6", Refused, func() string { return "\x80\x06}." }), inZip("protocol 255", Refused, func() string { return "\x80\xff}." }))
}

// Lengths are the length fields of pickles at the ends of integers.
func Lengths() []Case {
	var cases []Case
	for _, n := range []uint32{0, 1 << 31, 1<<32 - 1} {
		for _, op := range []string{"X", "T", "B", "\x8b", "r", "j", "\x84"} {
			cases = append(cases, inZip(fmt.Sprintf("opcode %#02x with %d in four bytes", op[0], n), Any, func() string { return "\x80\x02" + op + u32(n) + "abcd." }))
		}
	}
	for _, n := range hugeNumbers {
		for _, op := range []string{"\x8d", "\x8e", "\x95", "\x96"} {
			cases = append(cases, inZip(fmt.Sprintf("opcode %#02x with %d", op[0], n), Refused, func() string { return "\x80\x04" + op + u64(n) + "abcd." }))
		}
		for _, op := range "pgIL" {
			cases = append(cases, inZip(fmt.Sprintf("opcode %q with %d", op, n), Any, func() string { return fmt.Sprintf("N%c%d\n.", op, n) }))
		}
	}
	return cases
}

const deep = 100_000

// Nesting is each container 100,000 deep.
func Nesting() []Case {
	nest := func(name, open, shut string) Case {
		// What holds no tensor is one opaque value, whatever its depth.
		return inZip("100,000 deep: "+name, Any, func() string { return "\x80\x04" + repeat(open, deep) + "N" + repeat(shut, deep) + "." })
	}
	return []Case{
		nest("lists", "]", "a"), nest("dicts", "}K\x01", "s"), nest("tuples", "", "\x85"), nest("marked tuples", "(", "t"), nest("marked lists", "(", "l"),
		nest("marked dicts", "(K\x01", "d"), nest("frozensets", "(", "\x91"), nest("sets", "\x8f(", "\x90"), nest("calls", "ca\nB\n", "\x85R"),
		nest("states", "ca\nB\n)\x81", "b"), nest("persistent ids", "", "Q"), nest("OrderedDicts", "ccollections\nOrderedDict\n)RK\x01", "s"),
		nest("classes of Python 2", "(ca\nB\n", "o"), nest("keys", "}", "\x85Ns\x85"), nest("parameters", "ctorch._utils\n_rebuild_parameter\n", "\x88N\x87R"),
		inZip("100,000 marks", Refused, func() string { return repeat("(", deep) + "." }),
	}
}

// Bombs are small pickles that stand for much.
func Bombs() []Case {
	doubled := func(name, start, step string) Case {
		return inZip("bomb: "+name, Any, func() string { return "\x80\x04" + start + repeat(step, 60) + "." })
	}
	return []Case{
		doubled("lists by memo", "]\x940", "](h\x00h\x00e\x94"), doubled("tuples by DUP", "N", "2\x86"), doubled("lists by DUP", "]", "2\x862\x862l"),
		inZip("bomb: a list twice in each", Any, func() string { return "\x80\x04" + twice("](h%sh%se") + "." }),
		inZip("bomb: a tuple twice in each", Any, func() string { return "\x80\x04" + twice("h%sh%s\x86") + "." }),
		inZip("bomb: a dict twice in each", Any, func() string { return "\x80\x04" + twice("}(K\x01h%sK\x02h%su") + "." }),
		inZip("bomb: a tuple twice in each as key", Any, func() string { return "\x80\x04}" + twice("h%sh%s\x86") + "Ns." }),
		inZip("bomb: an object twice in each", Any, func() string { return "\x80\x04" + twice("ca\nB\nh%sh%s\x86R") + "." }),
		inZip("bomb: a tensor many times", Any, func() string {
			return "\x80\x02" + tensor(storage("0", 16), 0, []int64{16}, []int64{1}) + "q\x00" + twiceFrom("](h%sh%se") + "."
		}),
		inZip("a million empty dicts", Any, func() string { return "\x80\x02](" + repeat("}", 1_000_000) + "e." }),
		inZip("a million pushes", Any, func() string { return "\x80\x02" + repeat("N", 1_000_000) + "." }),
		inZip("a million memo entries", Any, func() string { return "\x80\x04N" + repeat("\x94", 1_000_000) + "." }),
		inZip("a memo entry far away", Any, func() string { return "\x80\x02Nr\xff\xff\xff\xff." }),
		inZip("a memo entry that is none", Malformed, func() string { return "\x80\x02h\x07." }),
		inZip("a megabyte of text as key, many times", Any, func() string {
			return "\x80\x02}X" + u32(1<<20) + repeat("k", 1<<20) + "q\x00Ns" + repeat("h\x00Ns", 100_000) + "."
		}),
		inZip("an integer of a megabyte", Any, func() string { return "\x80\x02\x8b" + u32(1<<20) + repeat("\x7f", 1<<20) + "." }),
		inZip("an integer of 900 KB as text", Any, func() string { return "L" + repeat("9", 900_000) + "L\n." }),
		inZip("an integer of two megabytes", Refused, func() string { return "\x80\x02\x8b" + u32(2<<20) + repeat("\x7f", 2<<20) + "." }),
		inZip("many integers of 100 KB", Any, func() string {
			return "\x80\x02](" + repeat("\x8b"+u32(100_000)+repeat("\x7f", 100_000), 9) + "e."
		}),
	}
}

// twice repeats a step of two memo entries sixty times, from an empty tuple.
func twice(step string) string { return ")q\x00" + twiceFrom(step) }

func twiceFrom(step string) string {
	s := ""
	for i := range byte(60) {
		s += fmt.Sprintf(step, string([]byte{i}), string([]byte{i})) + "q" + string([]byte{i + 1})
	}
	return s
}

// Objects are values that contain themselves, keys that cannot be, persistent
// ids of every wrong shape, and names that lead out of the archive.
func Objects() []Case {
	cases := []Case{
		inZip("a list in itself", Any, func() string { return "\x80\x02]q\x00h\x00a." }),
		inZip("a dict in itself", Any, func() string { return "\x80\x02}q\x00K\x01h\x00s." }),
		inZip("a tuple in itself", Any, func() string { return "\x80\x02](q\x00]q\x01h\x01\x85q\x02a0h\x01h\x02a." }),
		inZip("a tuple with a list of itself", Any, func() string { return "\x80\x02]q\x00h\x00\x85q\x01h\x00h\x01a0." }),
		inZip("a set in itself", Any, func() string { return "\x80\x04\x8f\x94(h\x00\x90." }),
		inZip("a set with an object of itself", Any, func() string { return "\x80\x04\x8f\x94(ca\nB\nh\x00\x85R\x90." }),
		inZip("an object that is its state", Any, func() string { return "\x80\x02ca\nB\n)\x81q\x00h\x00b." }),
		inZip("an object in its state", Any, func() string { return "\x80\x02ca\nB\n)\x81q\x00}X\x01\x00\x00\x00ah\x00sb." }),
		inZip("a dict that is its state", Any, func() string { return "\x80\x02ccollections\nOrderedDict\n)Rq\x00h\x00b." }),
		inZip("a module in itself", Any, func() string {
			return "\x80\x02ctorch.nn.modules.linear\nLinear\n)\x81q\x00}(" + text("_modules") + "}" + text("me") + "h\x00s" + text("_parameters") + "}ub."
		}),
		inZip("a call of its own result", Any, func() string { return "\x80\x02ca\nB\n)Rq\x00h\x00\x85h\x00\x85R." }),
		inZip("os.system beside weights", Any, func() string {
			return "\x80\x02}(" + text("x") + "cos\nsystem\n" + text("id") + "\x85R" + text("w") + tensor(storage("0", 16), 0, []int64{16}, []int64{1}) + "u."
		}),
	}
	for name, key := range map[string]string{"a list": "]", "a dict": "}", "a set": "\x8f", "a bytearray": "\x96" + u64(1) + "a", "a tuple of a list": "]\x85"} {
		cases = append(cases, inZip("a key that is "+name, Any, func() string { return "\x80\x05}" + key + "Ns." }),
			inZip("a set of "+name, Any, func() string { return "\x80\x05\x8f(" + key + "\x90." }))
	}
	for name, id := range map[string]string{
		"None": "N", "an int": "K\x01", "a list": "]", "an empty tuple": ")", "text": text("0"), "a short tuple": tuple(text("storage"), "ctorch\nFloatStorage\n"),
		"no class": tuple(text("storage"), "K\x01", text("0"), text("cpu"), "K\x01"), "no key": tuple(text("storage"), "ctorch\nFloatStorage\n", "N", text("cpu"), "K\x01"),
		"no count": tuple(text("storage"), "ctorch\nFloatStorage\n", text("0"), text("cpu"), text("x")), "another kind": tuple(text("file"), "N", text("/etc/passwd"), "N", "N"),
		"a class of another": tuple(text("storage"), "cos\nsystem\n", text("0"), text("cpu"), "K\x01"),
		"itself":             "](" + "q\x00h\x00t",
	} {
		cases = append(cases, inZip("a persistent id that is "+name, Any, func() string { return "\x80\x02" + id + "Q." }))
	}
	for _, key := range []string{"../../../../../../etc/passwd", "/etc/passwd", "..", ".", "", "0/../0", "0\x00", "\\..\\0", "data.pkl", "../data.pkl", "0\n"} {
		cases = append(cases, inZip(fmt.Sprintf("a storage called %q", key), Any, func() string {
			return dict("w", tensor(storage(key, 4), 0, []int64{4}, []int64{1}))
		}))
	}
	return cases
}

// Geometry is tensors whose place or form cannot be.
func Geometry() []Case {
	var cases []Case
	add := func(name string, exits []int, count, offset int64, shape, strides []int64) {
		cases = append(cases, inZip("tensor: "+name, exits, func() string { return dict("w", tensor(storage("0", count), offset, shape, strides)) }))
	}
	add("past the end", Malformed, 16, 0, []int64{17}, []int64{1})
	add("strides past the end", Malformed, 16, 0, []int64{4, 4}, []int64{5, 1})
	add("offset past the end", Malformed, 16, 16, []int64{1}, []int64{1})
	add("nothing behind the end", Any, 16, 17, []int64{0}, []int64{1})
	add("a storage longer than its record", Malformed, 17, 0, []int64{16}, []int64{1})
	add("more strides", Malformed, 16, 0, []int64{4}, []int64{1, 1})
	add("fewer strides", Malformed, 16, 0, []int64{4, 4}, []int64{1})
	add("product of 2^66", Malformed, 16, 0, []int64{1 << 33, 1 << 33}, []int64{0, 0})
	add("expanded to 2^40", Any, 16, 0, []int64{1 << 40}, []int64{0})
	add("expanded to 2^62", Refused, 16, 0, []int64{1 << 31, 1 << 31}, []int64{0, 0})
	add("nothing times 2^62", Any, 16, 0, []int64{0, 1 << 62}, []int64{1, 1})
	for _, n := range []int64{-1, -(1 << 31), -(1 << 63), 1 << 31, 1<<32 - 1, 1<<62 + 1, 1<<63 - 1} {
		add(numbered("size", n), Refused, 16, 0, []int64{n}, []int64{1})
		add(numbered("size with a negative", n), Refused, 16, 0, []int64{n, -1}, []int64{1, 1})
		add(numbered("stride", n), Malformed, 16, 0, []int64{2}, []int64{n})
		add(numbered("offset", n), Malformed, 16, n, []int64{2}, []int64{1})
		add(numbered("storage", n), Malformed, n, 0, []int64{2}, []int64{1})
	}
	many := make([]int64, 10_000)
	for i := range many {
		many[i] = 1
	}
	add("10,000 dimensions", Any, 16, 0, many, many)
	return cases
}
