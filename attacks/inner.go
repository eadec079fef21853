package attacks

// Inners returns checkpoints in byte strings, which torch.storage._load_from_bytes
// opens, and tensors of too many dimensions.
func Inners() []Case {
	load := func(data string) string {
		return "ctorch.storage\n_load_from_bytes\nB" + u32(uint32(len(data))) + data + "\x85R"
	}
	again := func(data string, times int) string {
		return "\x80\x03ctorch.storage\n_load_from_bytes\nq\x00B" + u32(uint32(len(data))) + data + "q\x0100](" + repeat("h\x00h\x01\x85R", times) + "e."
	}
	nest := func(levels int) string {
		data := stacked("\x80\x02}.")
		for range levels {
			data = stacked("\x80\x03" + load(data) + ".")
		}
		return "\x80\x03" + load(data) + "."
	}
	ones := func(n int) []int64 {
		list := make([]int64, n)
		for i := range list {
			list[i] = 1
		}
		return list
	}
	return []Case{
		inZip("inner checkpoint 100,000 times", Any, func() string { return again(stacked(dict("x", text(repeat("y", 1000)))), 100_000) }),
		inZip("inner checkpoint of half a megabyte 60,000 times", Any, func() string { return again(stacked(dict("x", text(repeat("y", 1<<19)))), 60_000) }),
		inZip("inner checkpoint 2,000 deep", Any, func() string { return nest(2_000) }), inZip("inner checkpoint 40 deep", Any, func() string { return nest(40) }),
		inZip("inner zip of a bomb", Any, func() string {
			return "\x80\x03" + load(string(Zip{Records: []Record{{Name: "m/data.pkl", Data: repeat("N0", 20<<20) + "N.", Deflate: true}}}.Bytes())) + "."
		}),
		inZip("inner zips of bombs", Any, func() string {
			bomb := string(Zip{Records: []Record{{Name: "m/data.pkl", Data: "\x80\x02](" + repeat("}", 1<<20) + "e.", Deflate: true}}}.Bytes())
			return again(bomb, 10_000)
		}),
		inZip("inner checkpoint cut off", Any, func() string { return "\x80\x03" + load(stacked("\x80\x02}.")[:30]) + "." }),
		inZip("inner bytes that are none", Any, func() string { return "\x80\x03" + load(repeat("\x00", 1<<20)) + "." }),
		inZip("inner checkpoint with a hostile call", Any, func() string {
			return "\x80\x03" + load(stacked("\x80\x02cos\nsystem\n"+text("touch /tmp/wick-climbed")+"\x85R.")) + "."
		}),
		inZip("a long text 60,000 times", Any, func() string {
			return "\x80\x02" + text(repeat("y", 1<<19)) + "q\x000](" + repeat("h\x00", 60_000) + "e."
		}),
		inZip("a long name over many numbers", Any, func() string { return dict(repeat("y", 1<<19), "]("+repeat("K\x01", 200_000)+"e") }),
		inZip("a long name over many tensors", Any, func() string {
			return dict(repeat("y", 1<<19), tensor(storage("0", 16), 0, []int64{16}, []int64{1})+"q\x010]("+repeat("h\x01", 60_000)+"e")
		}),
		inZip("65 dimensions", []int{4}, func() string { return "\x80\x02" + tensor(storage("0", 16), 0, ones(65), ones(65)) + "." }),
		inZip("50,000 dimensions", []int{4}, func() string { return "\x80\x02" + tensor(storage("0", 16), 0, ones(50_000), ones(50_000)) + "." }),
		inZip("50,000 dimensions again and again", []int{4}, func() string {
			dims := ints(ones(50_000))
			one := "ctorch._utils\n_rebuild_tensor_v2\nq\x02" + storage("0", 16) + "q\x03" + dims + "q\x04000"
			return "\x80\x02" + one + "](" + repeat("h\x02(h\x03K\x00h\x04h\x04\x89NtR", 3_000) + "e."
		}),
	}
}

// stacked is a file of stacked pickles around an object without storages.
func stacked(object string) string {
	return "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19." + "\x80\x02M\xe9\x03." + "\x80\x02}." + object + "\x80\x02]."
}
