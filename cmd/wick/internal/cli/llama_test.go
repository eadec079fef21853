package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	llamas = fixtures + "/llama"
	glm    = fixtures + "/glm"
)

// torchRow is a tensor as torch says it.
type torchRow struct {
	DType, SHA256 string
	Shape         []int
}

func torchRows(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

// convert runs the command, which must succeed, and returns what it says on stderr.
func convert(t *testing.T, args ...string) string {
	t.Helper()
	got := runFiles(t, append([]string{"convert"}, args...)...)
	if got.code != 0 || got.out != "" {
		t.Fatalf("%v: exit %d, stdout %q, stderr %q", args, got.code, got.out, got.err)
	}
	return got.err
}

// holds checks that a file, or a folder of Meta's shards joined, has exactly these tensors, bit for bit.
func holds(t *testing.T, file string, want map[string]torchRow) {
	t.Helper()
	var doc struct {
		Tensors []struct {
			torchRow

			Name string
		}
	}
	if err := json.Unmarshal([]byte(runFiles(t, "ls", "--join", "--json", "--sha256", file).out), &doc); err != nil {
		t.Fatal(err)
	}
	rows := doc.Tensors
	for _, r := range rows {
		w, ok := want[r.Name]
		if !ok || r.SHA256 != w.SHA256 || r.DType != w.DType || fmt.Sprint(r.Shape) != fmt.Sprint(w.Shape) {
			t.Errorf("%s: %s %v %s, torch has %v", r.Name, r.DType, r.Shape, r.SHA256, w)
		}
	}
	if len(rows) != len(want) || len(want) == 0 {
		t.Errorf("%d tensors, want %d", len(rows), len(want))
	}
}

type llamaFolder struct{ Meta, HF map[string]torchRow }

func llamaFolders(t *testing.T) map[string]llamaFolder {
	t.Helper()
	var all struct{ Folders map[string]llamaFolder }
	torchRows(t, llamas+"/expected.json", &all)
	if len(all.Folders) != 6 {
		t.Fatalf("%d folders", len(all.Folders))
	}
	return all.Folders
}

// Meta's shards become one file by default; --names gives what transformers' own
// script gives, and leads back.
func TestConvertLlama(t *testing.T) {
	for name, want := range llamaFolders(t) {
		t.Run(name, func(t *testing.T) {
			dir, in := t.TempDir(), filepath.Join(llamas, name)
			joined, hf, back := filepath.Join(dir, "joined.safetensors"), filepath.Join(dir, "hf.safetensors"), filepath.Join(dir, "back.safetensors")
			convert(t, in, joined)
			holds(t, joined, want.Meta)
			convert(t, "--names", "hf", "--dtype", "bfloat16", in, hf)
			holds(t, hf, want.HF)
			convert(t, "--names", "hf", "--force", in, hf)
			convert(t, "--names", "meta", "--config", filepath.Join(in, "params.json"), hf, back)
			delete(want.Meta, "rope.freqs")
			holds(t, back, want.Meta)
		})
	}
}

// The folder that transformers' script wrote goes back to Meta's names by its own
// config.json.
func TestConvertHuggingFaceFolder(t *testing.T) {
	out := filepath.Join(t.TempDir(), "meta.safetensors")
	convert(t, "--names", "meta", llamas+"/hf-2shards", out)
	want := llamaFolders(t)["meta-2shards"].Meta
	delete(want, "rope.freqs")
	holds(t, out, want)
	convert(t, "--names", "meta", "--force", llamas+"/hf-2shards/model.safetensors", out) // the file itself has neighbours too
	holds(t, out, want)
}

func TestConvertKeepsShards(t *testing.T) {
	out := filepath.Join(t.TempDir(), "shards.safetensors")
	convert(t, "--keep-shards", llamas+"/meta-2shards", out)
	if got := runFiles(t, "verify", "--keep-shards", llamas+"/meta-2shards", out); got.code != 0 || !strings.Contains(got.out, "all 44 tensors are the same") {
		t.Errorf("exit %d, %q %q", got.code, got.out, got.err)
	}
}

// Shards with an index read back as what they were made from.
func TestConvertShardsAndBack(t *testing.T) {
	dir, want := t.TempDir(), llamaFolders(t)["meta-3style"].HF
	said := convert(t, "--names", "hf", "--shard-size", "4KB", llamas+"/meta-3style", filepath.Join(dir, "m.safetensors"))
	if !strings.Contains(said, "21 tensors, 14.2 KiB in 5 shards, which m.safetensors.index.json lists") {
		t.Errorf("said %q", said)
	}
	holds(t, dir, want)
	holds(t, filepath.Join(dir, "m.safetensors.index.json"), want)
	one := filepath.Join(t.TempDir(), "one.safetensors")
	convert(t, dir, one)
	holds(t, one, want)
}

// An index that is named is written, however few shards there are.
func TestConvertToIndex(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "m.safetensors.index.json")
	convert(t, "--shard-size", "1GB", llamas+"/meta-1shard", out)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
	holds(t, out, llamaFolders(t)["meta-1shard"].Meta)
	if got := runFiles(t, "convert", llamas+"/meta-1shard", filepath.Join(t.TempDir(), "m.safetensors.index.json")); got.code != 2 || !strings.Contains(got.err, "--shard-size") {
		t.Errorf("exit %d, %q", got.code, got.err)
	}
}

// Any N parts in a row and the index make, byte for byte, what one run makes.
func TestConvertParts(t *testing.T) {
	whole := t.TempDir()
	flags := []string{"--names", "hf", "--shard-size", "4KB"}
	in := llamas + "/meta-2shards"
	convert(t, append(flags, in, filepath.Join(whole, "m.safetensors"))...)
	want := contents(t, whole)
	for _, parts := range [][]string{{"0/1"}, {"1/1"}, {"0/2", "1/2"}, {"2/2", "1/2"}, {"1/3", "2/3", "3/3"}, {"0/9", "1/9", "2/9", "3/9", "4/9", "5/9", "6/9", "7/9", "8/9"}} {
		dir := t.TempDir()
		out := filepath.Join(dir, "m.safetensors")
		for _, p := range parts {
			if said := convert(t, append(flags, "--part", p, in, out)...); !strings.Contains(said, "; part "+p+" wrote ") {
				t.Errorf("said %q", said)
			}
			if _, err := os.Stat(out + ".index.json"); err == nil {
				t.Errorf("part %s wrote the index", p)
			}
		}
		convert(t, append(flags, "--part", "index", in, out)...)
		got := contents(t, dir)
		for name, b := range want {
			if !bytes.Equal(got[name], b) {
				t.Errorf("%v: %s differs from one run", parts, name)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%v: %d files, want %d", parts, len(got), len(want))
		}
	}
}

func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// The index is not written before all shards are there and right.
func TestConvertIndexOfParts(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "m.safetensors")
	flags := []string{"convert", "--shard-size", "4KB", "--part"}
	in := llamas + "/meta-2shards"
	index := func() outcome { return runFiles(t, append(flags, "index", in, out)...) }
	if got := runFiles(t, append(flags, "0/2", in, out)...); got.code != 0 {
		t.Fatal(got.err)
	}
	if got := index(); got.code != 2 || !strings.Contains(got.err, "m-00002-of-00005.safetensors: this shard is missing") {
		t.Errorf("exit %d, %q", got.code, got.err)
	}
	if got := runFiles(t, append(flags, "1/2", in, out)...); got.code != 0 {
		t.Fatal(got.err)
	}
	shard := filepath.Join(dir, "m-00002-of-00005.safetensors")
	good, err := os.ReadFile(shard)
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Replace(good, []byte("BF16"), []byte("F16 "), 1)
	for name, b := range map[string][]byte{"short": good[:len(good)-1], "of something else": bad} {
		if err := os.WriteFile(shard, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := index(); got.code != 1 || !strings.Contains(got.err, "m-00002-of-00005.safetensors: mismatch: not what this conversion writes") {
			t.Errorf("a shard that is %s: exit %d, %q", name, got.code, got.err)
		}
	}
	if _, err := os.Stat(out + ".index.json"); err == nil {
		t.Error("the index is there")
	}
	if got := runFiles(t, append(flags, "1/2", "--force", in, out)...); got.code != 0 {
		t.Error(got.err)
	}
	if got := index(); got.code != 0 {
		t.Errorf("exit %d, %q", got.code, got.err)
	}
}

// A family that wick knows nothing of converts by a rule file, to what
// transformers' own script makes of it, and back.
func TestConvertGLMByRules(t *testing.T) {
	var want struct {
		File                string
		Original, Converted map[string]torchRow
	}
	torchRows(t, glm+"/expected.json", &want)
	dir := t.TempDir()
	there, back := filepath.Join(dir, "there.safetensors"), filepath.Join(dir, "back.safetensors")
	convert(t, "--rules", glm+"/glm.rules", filepath.Join(glm, want.File), there)
	holds(t, there, want.Converted)
	convert(t, "--rules", glm+"/glm-back.rules", there, back)
	delete(want.Original, "transformer.rotary_pos_emb.inv_freq")
	holds(t, back, want.Original)
}

// What is wrong with a folder is one line that names it, and nothing is written.
func TestConvertLlamaRefuses(t *testing.T) {
	const good = `{"dim": 16, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2}`
	two := []string{"meta-2shards/consolidated.00.pth", "meta-2shards/consolidated.01.pth"}
	for _, c := range []struct {
		name, params string
		shards       []string
		flags        []string
		code         int
		want         string // what follows the folder's name
	}{
		{"no config", "", two, nil, 2, ": no params.json or config.json beside the weights; need the width of the model and the number of heads, for tok_embeddings.weight in consolidated.00.pth (put the model's own config beside them, or give it with --config)"},
		{"no config for names", "", two[:1], []string{"--keep-shards", "--key", "consolidated.00.pth", "--names", "hf"}, 2, ": no params.json or config.json beside the weights; need the width of the model and the number of heads, for tok_embeddings.weight in consolidated.00.pth (put the model's own config beside them, or give it with --config)"},
		{"broken config", "{", two, nil, 3, ": params.json: malformed: a config that is no JSON of a model: unexpected end of JSON input"},
		{"a shard few", good, two[:1], nil, 1, ": consolidated.00.pth: tok_embeddings.weight: mismatch: bfloat16 [32, 8] in the one shard; need a width of 16, or a share of it for each shard (look for missing shards, or for another model's params.json)"},
		{"other norms", good, []string{two[0], "broken-shards/norm.01.pth"}, nil, 1, ": consolidated.01.pth: layers.1.ffn_norm.weight: mismatch: other values than in consolidated.00.pth; need all shards of one model, and its config (download the folder again)"},
		{"other model", good, []string{two[0], "meta-3style/consolidated.01.pth"}, nil, 1, ": consolidated.01.pth: tok_embeddings.weight: mismatch: bfloat16 [16, 16], and in consolidated.00.pth bfloat16 [32, 8]; need all shards of one model, and its config (download the folder again)"},
		{"unknown parameter", good, []string{"broken-shards/unknown.00.pth", "broken-shards/unknown.01.pth"}, nil, 4, ": consolidated.00.pth: layers.0.attention.gate.weight: unsupported: a parameter that the rules of Llama do not know; need Meta's Llama, as params.json describes it (keep the shards apart with --keep-shards, and convert with rules of your own)"},
		{"uneven", good, []string{"broken-shards/uneven.00.pth", "broken-shards/uneven.01.pth", "broken-shards/uneven.02.pth"}, nil, 1, ": consolidated.02.pth: tok_embeddings.weight: mismatch: bfloat16 [32, 4], and in consolidated.00.pth bfloat16 [32, 6]; need all shards of one model, and its config (download the folder again)"},
		{"heads of another model", `{"dim": 16, "n_layers": 2, "n_heads": 8, "n_kv_heads": 8}`, two, nil, 1, ": consolidated.01.pth: layers.0.attention.wk.weight: mismatch: bfloat16 [8, 16] when 2 shards are joined; need [16, 16] (look for missing shards, or for another model's params.json)"},
		{"wrong names", good, two, []string{"--names", "fb"}, 2, ": no names of a Llama are called fb; need hf, meta or gguf"},
		{"no part", good, two, []string{"--part", "3/2"}, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, out := t.TempDir(), t.TempDir()
			for i, from := range c.shards {
				b, err := os.ReadFile(filepath.Join(llamas, filepath.FromSlash(from)))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(in, fmt.Sprintf("consolidated.%02d.pth", i)), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.params != "" {
				if err := os.WriteFile(filepath.Join(in, "params.json"), []byte(c.params), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{"o.safetensors", "o.gguf"} {
				got := runFiles(t, append(append([]string{"convert"}, c.flags...), in, filepath.Join(out, name))...)
				if got.code != c.code || got.out != "" || lastLines(got.err) != 1 || c.want != "" && got.err != "wick: "+in+c.want+"\n" {
					t.Errorf("%s: exit %d, stdout %q, stderr\n%q, want\n%q", name, got.code, got.out, got.err, "wick: "+in+c.want+"\n")
				}
			}
			if entries, err := os.ReadDir(out); err != nil || len(entries) != 0 {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}

// A part that there is none of is one line with the parts that there are; one of a
// single file says so.
func TestParts(t *testing.T) {
	out := filepath.Join(t.TempDir(), "m.safetensors")
	for part, want := range map[string]string{
		"5/3": "of 3 parts there are 1 to 3, or 0 to 2", "x": "need I/N such as", "1": "need I/N such as", "1/0": "need I/N such as", "-1/3": "need I/N such as", "": "need I/N such as",
	} {
		got := runFiles(t, "convert", "--shard-size", "2KB", "--part", part, llamas+"/meta-2shards", out)
		if got.code != 2 || lastLines(got.err) != 1 || !strings.Contains(got.err, want) {
			t.Errorf("%s: exit %d, %q", part, got.code, got.err)
		}
	}
	if said := convert(t, "--part", "1/1", llamas+"/meta-2shards", out); !strings.Contains(said, "warning: the output is one file, which one part writes; --shard-size makes several\n") {
		t.Errorf("%q", said)
	}
}

// What compares or makes a model takes Meta's shards joined, as convert does; what
// shows files takes them apart, unless it is asked.
func TestJoin(t *testing.T) {
	in, out := llamas+"/meta-2shards", filepath.Join(t.TempDir(), "joined.safetensors")
	convert(t, in, out)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"diff", in, out}, 0, "no difference, 22 tensors the same"},
		{[]string{"verify", in, out}, 0, "all 22 tensors are the same bit for bit"},
		{[]string{"verify", "--join", in}, 0, "joined, 22 tensors in 44 storages"},
		{[]string{"verify", in}, 0, "consolidated, 44 tensors in 44 storages"},
		{[]string{"ls", in}, 0, "consolidated.01.pth.layers.0.attention.wo.weight"},
		{[]string{"tree", "--join", in}, 0, "tok_embeddings.weight  bfloat16 [32, 16]"},
		{[]string{"show", "--join", in, "layers.0.attention.wo.weight"}, 0, "bfloat16 [16, 16]"},
		{[]string{"plan", "--key", "layers.0", in}, 0, "9 tensors left"},
		{[]string{"gen", "--type", "M", in}, 0, "// M is the checkpoint meta-2shards: 22 tensors"},
		{[]string{"diff", "--keep-shards", in, out}, 1, "66 differences"},
		{[]string{"ls", "--join", out}, 0, "22 tensors"},
		{[]string{"ls", "--join", "--keep-shards", in}, 2, ""},
		{[]string{"diff", fixtures + "/folders/consolidated-torch2.15", out}, 3, ""},
		{[]string{"verify", "--join", fixtures + "/folders/consolidated-torch2.15"}, 3, ""},
	} {
		if got := runFiles(t, c.args...); got.code != c.code || !strings.Contains(got.out, c.want) || c.want == "" && got.out != "" {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", c.args, got.code, got.out, got.err)
		}
	}
	for name, want := range llamaFolders(t) {
		holds(t, filepath.Join(llamas, name), want.Meta)
	}
}

// GGUF files are written, and what is missing beside the weights is said.
func TestConvertToGGUF(t *testing.T) {
	dir := t.TempDir()
	said := convert(t, "--dtype", "q8_0", llamas+"/meta-q8", filepath.Join(dir, "m.gguf"))
	const context = "warning: params.json does not say how long the context is: 4096 tokens were written, which goes with its rotary frequencies\n"
	if want := context + dir + "/m.gguf: gguf, 21 tensors, 46.0 KiB\n"; said != want {
		t.Errorf("said\n%s\nwant\n%s", said, want)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "m.gguf")); err != nil || !bytes.HasPrefix(b, []byte("GGUF\x03")) {
		t.Errorf("%v, %.8q", err, b)
	}
	got := runFiles(t, "convert", "--to", "gguf", "--dtype", "f16", llamas+"/hf-2shards", "-")
	if got.code != 0 || !strings.HasPrefix(got.out, "GGUF") || !strings.Contains(got.err, "warning: no tokenizer.model or tokenizer.json beside the weights: the file is without a tokenizer\n") {
		t.Errorf("exit %d, %.8q, %q", got.code, got.out, got.err)
	}
	got = runFiles(t, "convert", "--json", "--quiet", llamas+"/meta-tied", filepath.Join(dir, "tied.gguf"))
	var doc struct {
		Tensors int
		Notes   []string
	}
	if err := json.Unmarshal([]byte(got.out), &doc); err != nil || doc.Tensors != 20 || len(doc.Notes) != 2 || got.err != "" {
		t.Errorf("%v, %s, %s", err, got.out, got.err)
	}
	for flag, want := range map[string]string{"q4_0": "q4_0", "int8": "int8"} {
		if got := runFiles(t, "convert", "--dtype", flag, llamas+"/meta-q8", filepath.Join(dir, "no.gguf")); got.code != 2 || !strings.Contains(got.err, want) {
			t.Errorf("%s: exit %d, %q", flag, got.code, got.err)
		}
	}
}

// What wrappers put before names comes off by one set of rules; a folder of FSDP's
// converts as any file does, and both go on to other names in the same run.
func TestConvertLeftovers(t *testing.T) {
	const leftovers = fixtures + "/leftovers"
	var want struct {
		Compiled, FSDP string
		Plain          map[string]torchRow
	}
	torchRows(t, leftovers+"/plain.json", &want)
	dir := t.TempDir()
	config := filepath.Join(dir, "config.json")
	if err := os.WriteFile(config, []byte(`{"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"compiled": {"--rules", "torch-prefixes", filepath.Join(leftovers, want.Compiled)},
		"fsdp":     {"--key", "model", "--rules", "torch-prefixes", filepath.Join(leftovers, want.FSDP)},
	} {
		out := filepath.Join(dir, name+".safetensors")
		convert(t, append(args, out)...)
		holds(t, out, want.Plain)
		meta, back := filepath.Join(dir, name+"-meta.safetensors"), filepath.Join(dir, name+"-back.safetensors")
		convert(t, append([]string{"--names", "meta", "--config", config}, append(args, meta)...)...)
		convert(t, "--names", "hf", "--config", config, meta, back)
		holds(t, back, want.Plain)
		got := runFiles(t, append([]string{"convert", "--names", "meta", "--config", config}, args[len(args)-1], filepath.Join(dir, "no.safetensors"))...)
		if name == "compiled" && (got.code != 1 || !strings.Contains(got.err, "(--rules torch-prefixes takes off what wrappers put before them)")) {
			t.Errorf("exit %d, %q", got.code, got.err)
		}
	}
}

// Names that help offers are those that an error asks for, and all of them are taken,
// for GGUF too, whose own they need not be.
func TestNamesAreOneSet(t *testing.T) {
	got := runFiles(t, "convert", "--names", "mata", llamas+"/meta-2shards", filepath.Join(t.TempDir(), "x.gguf"))
	_, need, _ := strings.Cut(got.err, "; need ")
	names := regexp.MustCompile(`[a-z]+`).FindAllString(strings.ReplaceAll(strings.TrimSpace(need), " or ", " "), -1)
	if got.code != 2 || len(names) != 3 {
		t.Fatalf("exit %d, %s", got.code, got.err)
	}
	help := strings.Join(strings.Fields(runFiles(t, "help", "convert").out), " ")
	_, help, _ = strings.Cut(help, "--names whom ")
	help, _, _ = strings.Cut(help, " --")
	var files []string
	for _, name := range names {
		if !strings.Contains(help, " "+name) {
			t.Errorf("help has no %s: %s", name, help)
		}
		out := filepath.Join(t.TempDir(), "llama.gguf") // whose name is in it
		convert(t, "--quiet", "--names", name, llamas+"/meta-2shards", out)
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, string(b))
	}
	if len(slices.Compact(files)) != 1 {
		t.Error("one model in GGUF, from several names, is not one file")
	}
	out := filepath.Join(t.TempDir(), "llama.safetensors")
	convert(t, "--names", "gguf", llamas+"/meta-2shards", out)
	got = runFiles(t, "convert", "--names", "hf", "--config", llamas+"/meta-2shards/params.json", out, filepath.Join(t.TempDir(), "hf.safetensors"))
	if got.code != 4 || !strings.Contains(got.err, "the names of llama.cpp; need those of Meta or Hugging Face") {
		t.Errorf("exit %d, %s%s", got.code, got.out, got.err)
	}
}
