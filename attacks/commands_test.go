package attacks

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// command is a command line in which IN is the attack, OUT a file beside it that
// does not exist, and DIR the folder of the helpers.
type command struct {
	Args []string
	Pipe bool  // the attack comes through standard input
	More []int // exits beyond those of opening, where the file opens
}

// Name is the command's own name and flags.
func (c command) Name() string {
	name := strings.Join(c.Args, " ")
	if c.Pipe {
		name += " < IN"
	}
	return name
}

func (c command) args(in, out, dir string) []string {
	args := slices.Clone(c.Args)
	for i, arg := range args {
		if arg == "IN" {
			args[i] = in
		} else {
			args[i] = strings.NewReplacer("OUT", out, "DIR", dir).Replace(arg)
		}
	}
	return args
}

// isCode tells commands that print code, which is indented by tabs.
func (c command) isCode() bool { return c.Args[0] == "gen" || c.Args[0] == "report" }

const output = "out"

// sieve looks through what a process prints, which can be a hundred megabytes,
// and keeps the beginning: a process that held all of it would pass its own peak
// of memory on to the next one that it starts.
type sieve struct {
	tabs bool
	head []byte
	rest []byte // of a rune
	bad  string
}

// Write takes everything.
func (s *sieve) Write(p []byte) (int, error) {
	const most = 16 << 10
	s.head = append(s.head, p[:min(len(p), most-len(s.head))]...)
	for text := slices.Concat(s.rest, p); ; {
		r, n := utf8.DecodeRune(text)
		if n == 0 || n == 1 && r == utf8.RuneError && !utf8.FullRune(text) {
			s.rest = append(s.rest[:0:0], text...)
			return len(p), nil
		}
		if s.bad == "" && isControl(r) && !(s.tabs && r == '\t') {
			s.bad = strconv.Quote(string(text[:min(len(text), 20)]))
		}
		text = text[n:]
	}
}

// found is the first control and what follows it.
func (s *sieve) found() string {
	if s.bad == "" && len(s.rest) > 0 {
		return strconv.Quote(string(s.rest))
	}
	return s.bad
}

// isControl tells what can take over a terminal: controls of seven and eight
// bits, bytes that are no UTF-8, and what turns the direction of a line.
func isControl(r rune) bool {
	return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r == '\ufffd' || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x2028 || r == 0x2029
}

func line(text string, more ...int) command { return command{Args: strings.Fields(text), More: more} }

func pipe(text string, more ...int) command {
	return command{Args: strings.Fields(text), More: more, Pipe: true}
}

// most are run on every attack; of the opcodes those of few, one for each of the
// two ways in which wick reads pickles.
var (
	few  = []command{line("ls --json --sha256 IN"), line("scan IN")}
	most = append(slices.Clone(few), line("ls IN"), line("info IN"), line("verify IN", 3), line("convert IN OUT.safetensors", 4))
)

// others take turns. 2 is for a tensor that is not there, for the config of a
// model that GGUF needs, and for a folder where a file is meant; 0 for what shows a
// tensor's fault as a fact among others, or ends before a pipe comes to the fault.
var others = []command{
	line("ls --jsonl --all IN"), line("ls --long --all --sort size IN"), line("ls IN **.w /a.*b/", 2, 4), line("tree IN", 4), line("tree --json --unfold IN", 4), line("info --json IN"),
	line("show IN w", 2, 3, 4), line("show --json --slice 0 IN w", 2, 3, 4), line("extract -o OUT.npy IN w", 2, 3, 4), line("extract --dtype float64 -o OUT.raw IN w", 2, 3, 4),
	line("diff IN IN", 3, 4), line("diff --json DIR/sound.pt IN", 1, 3, 4), line("diff IN DIR/sound.pt", 1, 3, 4), line("verify --json IN IN", 3, 4),
	line("plan --struct DIR/model.go IN", 0, 1, 4), line("plan --json --rules DIR/model.rules IN", 0, 1, 4), line("convert --rules DIR/model.rules IN OUT.safetensors", 1, 2, 3, 4),
	line("pack --package p IN OUT.go", 2, 3, 4), line("gen --package p -o - IN", 0, 4), line("report -o OUT.html IN", 0, 3, 4), line("report --quick -o - IN", 0, 3, 4),
	line("disasm IN", 3, 4), line("disasm --json IN", 3, 4), line("disasm --jsonl --record data.pkl IN", 2, 3, 4),
	line("convert IN OUT.cbor", 3, 4), line("convert IN OUT.json", 3, 4), line("convert IN OUT.gguf", 2, 3, 4), line("convert --shard-size 1KB IN OUT.safetensors.index.json", 2, 3, 4),
	line("convert --dtype float16 --densify --dequantize IN OUT.safetensors", 3, 4), line("scan --json IN"),
	pipe("ls --json -", 0, 4), pipe("ls --json --sha256 -", 3, 4), pipe("convert - OUT.safetensors", 3, 4), pipe("scan -"), pipe("disasm -", 3, 4), pipe("info -", 0, 4), pipe("verify -", 3, 4),
}

var every = slices.Concat(most, others)

// everyVariable makes TestAttacks run all commands on all attacks, which takes
// hours.
const everyVariable = "WICK_ATTACKS_EVERY"

// chosen returns what is run on the next attack: 1 of the others if it is to be
// brief, 5 on what is unlike its neighbours.
func chosen(isBrief bool, turn int) (list []command, next int) {
	if os.Getenv(everyVariable) != "" {
		return every, turn
	}
	list, n := slices.Clone(most), 5
	if isBrief {
		list, n = slices.Clone(few), 1
	}
	for range n {
		list = append(list, others[turn%len(others)])
		turn++
	}
	return list, turn
}

// fitting leaves out what a folder cannot be: piped.
func fitting(list []command, file string) []command {
	info, err := os.Stat(file)
	return slices.DeleteFunc(slices.Clone(list), func(c command) bool { return c.Pipe && (err != nil || info.IsDir()) })
}

// writeHelpers writes what commands need beside an attack.
func writeHelpers(t *testing.T, dir string) {
	t.Helper()
	for name, text := range map[string]string{
		"sound.pt":    string(Checkpoint(model)),
		"model.rules": "drop **.bias\nrename w -> v.w\nrename /(.*)x(.*)/ -> \"${1}y$2\"\nadd z.\nrest keep\n",
		"model.go":    "package p\n\ntype Inner struct{ B []float32 `torch:\"b\"` }\n\ntype Model struct {\n\tW []float32 `torch:\"w\"`\n\tA Inner `torch:\"a\"`\n\tL []Inner `torch:\"l\"`\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// exits are the codes that a command may end with: what opens can be refused
// later by what a command does with it.
func exits(c Case, name string) []int {
	i := slices.IndexFunc(every, func(c command) bool { return c.Name() == name })
	if i < 0 { // a command of another test
		return c.Exits
	}
	codes := append(slices.Clone(c.Exits), every[i].More...)
	switch every[i].Args[0] {
	case "scan":
		return scanExits(c)
	case "disasm": // it shows what does not open
		return append(codes, 0, 3, 4)
	default:
		return codes
	}
}

// hostile are bytes that name what no list of harmless names has.
var hostile = [][]byte{[]byte("ca\nB\n"), []byte("cos\nsystem\n"), []byte("ios\nsystem\n")}

// scanExits are what a scan may say: never 0 where a name was asked for that may
// do anything, and never that it cannot tell of a sound file.
func scanExits(c Case) []int {
	if c.Scan != nil {
		return c.Scan
	}
	for _, data := range c.Files() {
		if slices.ContainsFunc(hostile, func(name []byte) bool { return bytes.Contains(data, name) }) {
			return []int{1, 3, 4}
		}
	}
	switch {
	case slices.Equal(c.Exits, Sound):
		return []int{0}
	case slices.Contains(c.Exits, 0):
		return []int{0, 1, 3, 4}
	default: // a tree may be there whose tensors are not
		return []int{0, 3, 4}
	}
}

// checkScan holds the scan of a file to its listing: what no tree could be built
// of is never clean.
func checkScan(t *testing.T, all []outcome) {
	t.Helper()
	opened := slices.ContainsFunc(all, func(o outcome) bool { return o.Command == few[0].Name() && len(o.Head) > 0 })
	for _, o := range all {
		if strings.HasPrefix(o.Command, "scan") && o.Code == 0 && !opened {
			t.Errorf("%s: clean, and does not open: %s", o.Command, cut(all[0].Err))
		}
	}
}
