package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestStandardInputIsHeld scans and takes apart what comes through a pipe: in
// memory, then in the folder of --spool, else not at all.
func TestStandardInputIsHeld(t *testing.T) {
	dir := t.TempDir()
	run := func(in io.Reader, args ...string) outcome {
		var out, errs bytes.Buffer
		code := Run(context.Background(), args, in, &out, &errs)
		return outcome{code, out.String(), errs.String()}
	}
	long := func() io.Reader { // more than what is held
		return io.MultiReader(strings.NewReader(evilPickle), io.LimitReader(zeros{}, 33<<20))
	}
	none := filepath.Join(dir, "none")
	for _, c := range []struct {
		in   io.Reader
		args string
		code int
		want string
	}{
		{strings.NewReader(evilPickle), "scan -", 1, "dangerous  os.system"},
		{strings.NewReader(evilPickle), "disasm -", 0, "GLOBAL"},
		{long(), "scan -", 4, "--spool DIR"},
		{long(), "disasm -", 4, "--spool DIR"},
		{long(), "ls -", 4, "--spool DIR"},
		{long(), "convert - " + filepath.Join(dir, "out.safetensors"), 4, "--max-memory"},
		{long(), "scan --spool " + dir + " -", 1, "dangerous  os.system"},
		{long(), "scan --spool " + none + " -", 2, none},
		{long(), "ls --spool " + none + " -", 2, none},
	} {
		got := run(c.in, strings.Fields(c.args)...)
		if got.code != c.code || !strings.Contains(got.out+got.err, c.want) {
			t.Errorf("%s: exit %d, want %d and %q: %s%s", c.args, got.code, c.code, c.want, got.out, got.err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestStandardInput converts and lists what comes through a pipe, and leaves
// nothing of a stream that was cut off.
func TestStandardInput(t *testing.T) {
	file, err := filepath.Abs("../../../../pytorch-tests/broken/sound-torch2.15.pt")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(in []byte, args ...string) (int, string) {
		var out, errs bytes.Buffer
		code := Run(context.Background(), args, bytes.NewReader(in), &out, &errs)
		return code, out.String() + errs.String()
	}
	one, two := filepath.Join(dir, "one.safetensors"), filepath.Join(dir, "two.safetensors")
	if code, text := run(nil, "convert", file, one); code != 0 {
		t.Fatal(text)
	}
	if code, text := run(b, "convert", "-", two); code != 0 {
		t.Fatal(text)
	}
	want, err := os.ReadFile(one)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(two); err != nil || !bytes.Equal(got, want) {
		t.Errorf("another file than that of the file: %v", err)
	}
	if code, text := run(b, "ls", "--json", "--sha256", "-"); code != 0 || !bytes.Contains([]byte(text), []byte(`"sha256"`)) {
		t.Errorf("ls: %d %s", code, text)
	}
	three := filepath.Join(dir, "three.safetensors")
	if code, text := run(b[:len(b)-1], "convert", "-", three); code != 3 {
		t.Errorf("a stream without its last byte: %d %s", code, text)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestStandardInputOfQuantized holds that what a listing reads of a stream, scales
// and sums, it reads in the one pass that there is.
func TestStandardInputOfQuantized(t *testing.T) {
	files, err := filepath.Glob("../../../../pytorch-tests/quantized/*.pt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"ls", "--json"}, {"ls", "--json", "--sha256"}, {"tree", "--json"}, {"verify", "--json", file}} {
			want := runCLI(t, append(args, file)...)
			var out, errs bytes.Buffer
			code := Run(context.Background(), append(args, "-"), bytes.NewReader(b), &out, &errs)
			text := strings.ReplaceAll(out.String(), stdinName, file)
			if code != want.code || errs.String() != want.err || text != want.out {
				t.Errorf("%v %s: exit %d, %s%s\nwant exit %d, %s%s", args, file, code, errs.String(), text, want.code, want.err, want.out)
			}
		}
	}
}

// TestStreamsThatAreCut reads checkpoints from pipes that end early, at every
// length: whatever reads the tensors ends with 3, and prints no checksum of bytes
// that never came.
func TestStreamsThatAreCut(t *testing.T) {
	for _, name := range []string{"broken/sound_legacy-torch2.15.pt", "state-dict/bfloat16-torch2.15.ckpt"} {
		file, err := os.ReadFile(fixture(name))
		if err != nil {
			t.Fatal(err)
		}
		for cut := len(file) - 1; cut > len(file)/2; cut -= 1 + len(file)/64 {
			for _, args := range []string{"verify -", "ls --json --sha256 -", "convert --to safetensors - -"} {
				var out, errs bytes.Buffer
				if code := Run(t.Context(), strings.Fields(args), bytes.NewReader(file[:cut]), &out, &errs); code != 3 || strings.Contains(out.String(), "sha256") {
					t.Errorf("%s, cut at %d of %d, %s: exit %d: %.200s", name, cut, len(file), args, code, errs.String())
				}
			}
		}
	}
}
