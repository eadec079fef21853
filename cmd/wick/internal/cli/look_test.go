package cli

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

func TestColour(t *testing.T) {
	for _, c := range []struct {
		flag string
		env  map[string]string
		tty  bool
		want bool
	}{
		{"auto", nil, true, true},
		{"auto", nil, false, false},
		{"auto", map[string]string{"NO_COLOR": "1"}, true, false},
		{"auto", map[string]string{"CLICOLOR_FORCE": "1"}, false, true},
		{"auto", map[string]string{"CLICOLOR_FORCE": "0"}, false, false},
		{"auto", map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, true, false},
		{"auto", map[string]string{"TERM": "dumb"}, true, false},
		{"always", map[string]string{"NO_COLOR": "1"}, false, true},
		{"never", map[string]string{"CLICOLOR_FORCE": "1"}, true, false},
	} {
		s := &streams{outTTY: c.tty}
		s.colours(c.flag, func(name string) string { return c.env[name] })
		if s.colour != c.want {
			t.Errorf("--color %s, %v, terminal %v: %v", c.flag, c.env, c.tty, s.colour)
		}
	}
	got := runTrees(t.Context(), map[string]nested.Value{"m.pt": model(t)}, "ls", "--color", "always", "m.pt")
	if !strings.Contains(got.out, "\x1b[36mfloat32\x1b[0m") {
		t.Errorf("no colour in %q", got.out)
	}
}

func TestTableAligns(t *testing.T) {
	var out bytes.Buffer
	s := newStreams(nil, &out, nil)
	tab := table{head: []string{"NAME", "N", "EMPTY", "X"}, right: []bool{false, true, false, false}}
	for _, row := range [][4]string{{"層", "1", "", "x"}, {"abcdef", "100", "", ""}, {"é", "", "", "y"}} {
		tab.add(cell{row[0], plain}, cell{row[1], plain}, cell{row[2], plain}, cell{row[3], plain})
	}
	if err := tab.print(s); err != nil {
		t.Fatal(err)
	}
	if err := s.out.Flush(); err != nil {
		t.Fatal(err)
	}
	const want = "NAME      N  X\n層        1  x\nabcdef  100\né            y\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestHumanNumbers(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1 << 20: "1.0 MiB", 102 << 20: "102 MiB",
		1<<20 - 1: "1.0 MiB", 1<<63 - 1: "8.0 EiB",
	} {
		if got := human.Bytes(n); got != want {
			t.Errorf("human.Bytes(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 11_689_512: "11,689,512", -1234567: "-1,234,567"} {
		if got := human.Count(n); got != want {
			t.Errorf("human.Count(%d) = %s, want %s", n, got, want)
		}
	}
}

// TestTableFits: on a terminal columns are left out and names lose their middle, as
// far as that helps; elsewhere nothing is.
func TestTableFits(t *testing.T) {
	tab := func() *table {
		t := &table{right: []bool{false, true}, cut: []int{0}, spare: []int{2}}
		t.add(cell{"model.layers.10.self_attn.q_proj.weight", plain}, cell{"1.0 KiB", plain}, cell{"data/0", plain})
		t.add(cell{"層層層層層層層層層層層層層層層層", plain}, cell{"8 B", plain}, cell{"data/1", plain})
		return t
	}
	for _, c := range []struct {
		width int
		want  string
	}{
		{0, "model.layers.10.self_attn.q_proj.weight  1.0 KiB  data/0\n層層層層層層層層層層層層層層層層             8 B  data/1\n"},
		{56, "model.layers.10.self_attn.q_proj.weight  1.0 KiB  data/0\n層層層層層層層層層層層層層層層層             8 B  data/1\n"},
		{55, "model.layers.10.self_attn.q_proj.weight  1.0 KiB\n層層層層層層層層層層層層層層層層             8 B\n"},
		{30, "model.l…q_proj.weight  1.0 KiB\n層層層…層層層層層層層      8 B\n"},
		{10, "model.layers.10.self_attn.q_proj.weight  1.0 KiB\n層層層層層層層層層層層層層層層層             8 B\n"},
	} {
		var out bytes.Buffer
		s := newStreams(nil, &out, nil)
		s.width = c.width
		if err := errors.Join(tab().print(s), s.out.Flush()); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Errorf("width %d:\n%s\nwant\n%s", c.width, out.String(), c.want)
		}
		for line := range strings.Lines(out.String()) {
			if c.width >= 30 && textWidth(strings.TrimSuffix(line, "\n")) > c.width {
				t.Errorf("width %d: %s", c.width, line)
			}
		}
	}
}

// ls --long fits a usual terminal: what a tensor has in common with a new one is left
// blank, and shapes of many dimensions are cut.
func TestLongFits(t *testing.T) {
	s := storage("data/0", 64)
	deep := slices.Repeat([]int64{1}, 40)
	trees := map[string]nested.Value{
		"m.pt": mapOf(t, str("encoder.layers.0.fc.weight"), strided(t, s, []int64{4, 4, 4}, nil, 0),
			str("encoder.layers.0.t"), strided(t, storage("data/1", 16), []int64{4, 4}, []int64{1, 4}, 0)),
		"class.pt": mapOf(t, str("p"), &nested.Tensor{Tensor: tensor.Of([]float32{1}), Class: "torch.nn.parameter.Parameter"}),
		"deep.pt":  mapOf(t, str("deep"), strided(t, s, deep, nil, 0)),
	}
	for file, want := range map[string]string{
		"m.pt": `NAME                        DTYPE    SHAPE      BYTES  STORAGE  OFFSET  STRIDES
encoder.layers.0.fc.weight  float32  [4, 4, 4]    256  data/0        0
encoder.layers.0.t          float32  [4, 4]        64  data/1        0  [1, 4]
2 tensors, 80 elements, 320 B
`,
		"class.pt": `NAME  DTYPE    SHAPE  BYTES  STORAGE  OFFSET  CLASS
p     float32  [1]        4  memory        0  torch.nn.parameter.Parameter
1 tensor, 1 element, 4 B
`,
		"deep.pt": `NAME  DTYPE    SHAPE                       BYTES  STORAGE  OFFSET
deep  float32  [1, 1, 1…1, 1, 1, 1, 1, 1]      4  data/0        0  part of 256 B
1 tensor, 1 element, 4 B
`,
	} {
		got := runTreesAt(t.Context(), usualWidth, trees, "ls", "--long", file)
		if got.code != 0 || got.out != want {
			t.Errorf("%s: exit %d, %s got\n%swant\n%s", file, got.code, got.err, got.out, want)
		}
	}
}

// Help is no wider than 80 columns in a pipe, and a long example is still one command.
func TestHelpFits(t *testing.T) {
	for _, build := range commands {
		name := build(&app{}).Name()
		for line := range strings.Lines(runFiles(t, "help", name).out) {
			if line = strings.TrimSuffix(line, "\n"); textWidth(line) > usualWidth {
				t.Errorf("help %s, %d columns: %s", name, textWidth(line), line)
			}
		}
	}
	for line := range strings.Lines(runFiles(t, "help").out) {
		if textWidth(line) > usualWidth+1 {
			t.Errorf("help: %s", line)
		}
	}
	got := wrapShell("  wick convert --rename 'a b -> c' in.pt out.safetensors", 36)
	if want := []string{"  wick convert --rename 'a b -> c' \\", "      in.pt out.safetensors"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := wrapText("one two\nthree\n\n  a  four five six seven eight nine ten\n", 24); got != "one two three\n\n  a  four five six seven\n     eight nine ten\n" {
		t.Errorf("%q", got)
	}
}
