package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	shardBinFolder = "../../../../pytorch-tests/folders/index_bin-torch2.15"
	shardBin       = "pytorch_model-00002-of-00002.bin"
	shardBinIndex  = "pytorch_model.bin.index.json"
)

// reads are the command lines by which each command reads: @ stands for the input,
// OUT for a file in a new folder. A command that reads nothing has none.
var reads = map[string][]string{
	"ls":      {"ls @", "ls --json --sha256 @", "ls --long --sort offset @"},
	"tree":    {"tree @", "tree --json @"},
	"info":    {"info @"},
	"show":    {"show @ lm_head.weight", "show --json @ lm_head.weight"},
	"diff":    {"diff @ OTHER", "diff OTHER @"},
	"extract": {"extract -o OUT.npy @ lm_head.weight"},
	"convert": {"convert @ OUT.safetensors", "convert --json @ OUT.cbor"},
	"pack":    {"pack --type Net --package p @ OUT.go"},
	"verify":  {"verify @", "verify @ OTHER", "verify OTHER @"},
	"scan":    {"scan @", "scan --json @"},
	"disasm":  {"disasm @", "disasm --jsonl @"},
	"plan":    {"plan --json --rename lm_head.weight->b @"},
	"gen":     {"gen --package p --type Net -o OUT.go @"},
	"report":  {"report --quiet --quick -o OUT.html @", "report --quiet -o OUT.html @ OTHER", "report --quiet -o OUT.html OTHER @"},
	"demo":    nil,
	"version": nil,
}

// TestEveryCommandReadsEverything runs every command on a file, a folder, an index,
// a pipe and URLs of servers with and without ranges, and compares what it says and
// writes: of one file always the same, of a folder what it says of its index.
func TestEveryCommandReadsEverything(t *testing.T) {
	with, without := serveFolder(t, shardBinFolder, nil), serveFolder(t, shardBinFolder, withoutRanges)
	file, index := filepath.Join(shardBinFolder, shardBin), filepath.Join(shardBinFolder, shardBinIndex)
	groups := [][]string{
		{file, "-", with.URL + "/" + shardBin, without.URL + "/" + shardBin},
		{index, shardBinFolder, with.URL + "/" + shardBinIndex, without.URL + "/" + shardBinIndex},
	}
	for _, build := range commands {
		name := build(&app{}).Name()
		lines, known := reads[name]
		if !known {
			t.Errorf("no line says how wick %s reads", name)
		}
		for _, line := range lines {
			for _, inputs := range groups {
				want := readInput(t, line, inputs[0])
				for _, input := range inputs[1:] {
					if got := readInput(t, line, input); got != want {
						t.Errorf("wick %s\n%s\nsays\n%s\nand of\n%s\n%s", line, input, got, inputs[0], want)
					}
				}
			}
		}
	}
}

// readInput runs a line of reads and returns its exit code, what it says, and
// what it writes, without the input's name. Pages and Go files name it, and
// are looked at for their length alone.
func readInput(t *testing.T, line, input string) string {
	t.Helper()
	dir := t.TempDir()
	var args []string
	for _, arg := range strings.Fields(line) {
		arg = strings.Replace(arg, "OTHER", filepath.Join(shardBinFolder, shardBin), 1)
		if arg = strings.Replace(arg, "OUT", filepath.Join(dir, "out"), 1); arg == "@" {
			arg = input
		}
		args = append(args, arg)
	}
	var stdin io.Reader = strings.NewReader("")
	if input == "-" {
		f, err := os.Open(filepath.Join(shardBinFolder, shardBin))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }() // only read from
		stdin = f
	}
	var out, errs bytes.Buffer
	code := Run(context.Background(), args, stdin, &out, &errs)
	if code != exitDone && code != exitNo {
		t.Errorf("wick %s: exit %d, %s", strings.Join(args, " "), code, errs.String())
	}
	where := shardBinFolder
	if i := strings.LastIndexByte(input, '/'); strings.HasPrefix(input, "http:") {
		where = input[:i]
	}
	text := strings.NewReplacer(dir, "DIR", where+"/", "", shardBinFolder+"/", "", where, shardBinIndex,
		stdinName, shardBin, `"file":"-"`, `"file":"`+shardBin+`"`).Replace(out.String() + errs.String())
	return notOfAll.ReplaceAllString(text, "") + written(t, dir)
}

// notOfAll is what inputs do not have in common: records that lie behind the tensors
// are not known of a stream yet, and a folder has more files than its index names.
var notOfAll = regexp.MustCompile(`(?m)^ +(serialization_id|version): .*\n|: \d files, .*`)

// written lists the files that a command wrote, and their content where it does
// not name its input.
func written(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, e := range entries {
		text.WriteString(e.Name() + "\n")
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil || len(b) == 0 {
			t.Errorf("%s: %d bytes, %v", e.Name(), len(b), err)
		}
		if ext := filepath.Ext(e.Name()); ext != ".html" && ext != ".go" {
			text.Write(b)
		}
	}
	return text.String()
}
