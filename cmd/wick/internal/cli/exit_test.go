package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		code int
	}{
		{"done", nil, 0},
		{"no", errNo, 1},
		{"mismatch", fault.New(fault.Mismatch, ""), 1},
		{"usage", fault.New(fault.Usage, ""), 2},
		{"ambiguous", fault.New(fault.Ambiguous, ""), 2},
		{"name not found", fault.New(fault.NotFound, ""), 2},
		{"record not found", fault.New(fault.NotFound, "").InRecord("data/1"), 3},
		{"io", fault.Wrap(fault.IO, "", syscall.EIO), 2},
		{"changed", fault.New(fault.Changed, ""), 2},
		{"closed", fault.New(fault.Closed, ""), 2},
		{"no such file", &fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, 2},
		{"permission", &fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, 2},
		{"disk full", &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, 2},
		{"unknown", errors.New("anything"), 2},
		{"malformed", fault.New(fault.Malformed, ""), 3},
		{"checksum", fault.New(fault.Checksum, ""), 3},
		{"limit", fault.NewLimit("paths", 2, 1), 4},
		{"unsupported", fault.New(fault.Unsupported, ""), 4},
		{"collision", fault.New(fault.Collision, ""), 4},
		{"interrupted", context.Canceled, 130},
		{"wrapped", fmt.Errorf("opening: %w", fault.New(fault.Malformed, "")), 3},
		{"joined", errors.Join(fault.New(fault.Limit, ""), nil), 4},
		{"broken pipe", &fs.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}, 0},
		{"broken pipe of a run", fault.Wrap(fault.IO, "write failed", syscall.EPIPE), 0},
		{"interrupted run", fault.Wrap(fault.IO, "read failed", context.Canceled), 130},
	} {
		if got := exitCode(c.err); got != c.code {
			t.Errorf("%s: exit %d, want %d", c.name, got, c.code)
		}
	}
}

func TestErrorJSON(t *testing.T) {
	e := fault.New(fault.Malformed, "size 5").In("größe.pt").InRecord("a/data.pkl").At(0).OnPath("x.y").Needs("6", "get it again")
	const want = `{"error":{"kind":"malformed","file":"gr\u00f6\u00dfe.pt","record":"a/data.pkl","offset":0,"path":"x.y","found":"size 5","need":"6","cure":"get it again"}}` + "\n"
	if got := string(errorJSON(e)); got != want {
		t.Errorf("got %s want %s", got, want)
	}
	const bare = `{"error":{"kind":"io","file":"x","record":null,"offset":null,"path":null,"found":"permission denied","need":null,"cure":null}}` + "\n"
	if got := string(errorJSON(&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES})); got != bare {
		t.Errorf("got %s want %s", got, bare)
	}
}

func TestErrorLines(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&fs.PathError{Op: "open", Path: "a\nb", Err: syscall.EACCES}, `wick: a\nb: permission denied`},
		{fault.New(fault.Usage, "--sort x").Needs("", "one of a, b"), "wick: --sort x (one of a, b)"},
		{fault.New(fault.Malformed, "bad\x1b[31m").In("m.pt"), `wick: m.pt: malformed: bad\x1b[31m`},
		{fault.NewLimit("string bytes", 9, 5).In("m.pt"), "wick: m.pt: over a limit: string bytes 9; need at most 5 (if you trust the file: --limit string_bytes=10)"},
		{context.Canceled, "wick: interrupted"},
		{errors.New("two\nlines"), `wick: two\nlines`},
	} {
		if got := errorLine(c.err); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// Usage errors are one line, exit 2, and say what to do.
func TestUsage(t *testing.T) {
	one := lazy(tensor.Of([]float32{1}))
	trees := map[string]nested.Value{
		"m.pt":    mapOf(t, str("w"), one),
		"deep.pt": mapOf(t, str("state_dict"), mapOf(t, str("fc.weight"), one)),
		"f.pt":    mapOf(t, str("fc"), mapOf(t, str("weight"), one, str("bias"), one), str("block"), nested.NewList("list", one, one, one, one, one, one)),
	}
	for _, c := range []struct{ args, want string }{
		{"lss m.pt", "did you mean ls?"},
		{"xyzzy", "unknown command xyzzy (see wick help)"},
		{"ls", "ls needs FILE"},
		{"ls --jsno m.pt", "did you mean --json?"},
		{"ls --sort up m.pt", "--sort up"},
		{"ls --color blue m.pt", "--color blue"},
		{"ls --limit pahts=3 m.pt", "did you mean paths?"},
		{"ls --limit paths=x m.pt", "--limit paths=x"},
		{"ls --limit paths=-1 m.pt", "--limit paths=-1"},
		{"ls nosuch.pt", "nosuch.pt: no such file or folder"},
		{"info m.pt other.pt", "info takes FILE and nothing more"},
		{"verify", "verify needs FILE"},
		{"version x", "version takes no arguments"},
		{"diff --tol abc m.pt m.pt", `invalid argument "abc" for "--tol" flag (see wick diff --help)`},
		{"tree --depth x m.pt", `invalid argument "x" for "-d, --depth" flag (see wick tree --help)`},
		{"diff --tol nan m.pt m.pt", "--tol NaN (give a number"},
		{"show --slice 7 m.pt w", "wick: --slice 7: index 7 is outside of a dimension of 1 (write"},
		{"show --slice ::2 m.pt w", "a step, which wick does not take"},
		{"show f.pt fc", "no tensor is called fc (below it: fc.weight, fc.bias)"},
		{"show f.pt block", "(below it: block.0, block.1, block.2, block.3 and 2 more)"},
		{"ls m.pt exit_test.go", "that is a file: give one file"},
		{"convert --to safetensor m.pt out", "did you mean safetensors?"},
		{"convert --include state.fc.weigth f.pt out.safetensors", "no tensor is left to write (nothing in the file matches: --include state.fc.weigth)"},
		{"convert --include fc.weigth f.pt out.safetensors", "nothing in the file matches: --include fc.weigth; did you mean fc.weight?"},
		{"ls deep.pt fc", "nothing is called fc (did you mean **.fc?)"},
		{"convert --include fc deep.pt out.safetensors", "--include fc; did you mean **.fc?"},
		{"diff - -", "standard input can be read once"},
		{"verify - -", "standard input can be read once"},
		{"report - -", "standard input can be read once"},
		{"ls --limit foo=3 m.pt", "one of depth, expand, "},
		{"help nope", "unknown command nope (one of ls, "},
		{"help dif", "did you mean diff?"},
		{"completion", "completion needs a shell: bash, "},
		{"completion tcsh", "unknown command completion tcsh (did you mean bash?)"},
	} {
		got := runTrees(t.Context(), trees, strings.Fields(c.args)...)
		if got.code != 2 || got.out != "" || !strings.HasPrefix(got.err, "wick: ") || strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, c.want) {
			t.Errorf("wick %s: exit %d, stdout %q, stderr %q", c.args, got.code, got.out, got.err)
		}
		got = runTrees(t.Context(), trees, append(strings.Fields(c.args), "--json")...)
		if got.code != 2 || got.out != "" || errorKind(t, got.err) == "" {
			t.Errorf("wick %s --json: exit %d, stdout %q, stderr %q", c.args, got.code, got.out, got.err)
		}
	}
}

func TestMissingFileHasNearMiss(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "resnet18.pt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := runTrees(t.Context(), nil, "ls", filepath.Join(dir, "resnet-18.pt"))
	if got.code != 2 || !strings.Contains(got.err, "did you mean "+filepath.Join(dir, "resnet18.pt")+"?") {
		t.Errorf("exit %d, %s", got.code, got.err)
	}
}

// What a limit refuses is a matter of the flag that the error names.
func TestLimitFlag(t *testing.T) {
	huge := strided(t, storage("data/0", 8), []int64{1 << 13, 1 << 14}, []int64{0, 0}, 0) // 512 MiB of 32 bytes
	trees := map[string]nested.Value{"m.pt": mapOf(t, str("a"), nested.Int(1), str("b"), nested.Int(2), str("w"), huge)}
	got := runTrees(t.Context(), trees, "ls", "--limit", "paths=2", "m.pt")
	if got.code != 4 || !strings.Contains(got.err, "--limit paths=4") {
		t.Errorf("exit %d, %s", got.code, got.err)
	}
	if got = runTrees(t.Context(), trees, "ls", "--sha256", "m.pt"); got.code != 4 || !strings.Contains(got.err, "--limit expansion=536870912") {
		t.Errorf("exit %d, %s", got.code, got.err)
	}
}

// No cure asks for more than the limit can be.
func TestLimitCureStaysInRange(t *testing.T) {
	for _, c := range []struct {
		name       string
		value, max int64
		want       string
	}{
		{"ndim", 65, 64, "(64 is the most that wick reads, whatever --limit says)"},
		{"ndim", 40, 33, "--limit ndim=64)"},
		{"ndim", 10, 8, "--limit ndim=16)"},
		{"depth", 60_001, 60_000, "--limit depth=100000)"},
	} {
		if got := errorLine(fault.NewLimit(c.name, c.value, c.max)); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s %d over %d: %s", c.name, c.value, c.max, got)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	trees := map[string]nested.Value{"m.pt": mapOf(t, str("w"), lazy(tensor.Of([]float32{1})))}
	got := runTrees(ctx, trees, "ls", "--json", "--sha256", "m.pt")
	if got.code != 130 || got.out != "" || errorKind(t, got.err) != "interrupted" {
		t.Errorf("exit %d, stdout %q, stderr %q", got.code, got.out, got.err)
	}
}

// A panic is a fault of wick: one line, no trace.
func TestPanicIsOneLine(t *testing.T) {
	var out, errs bytes.Buffer
	a := &app{streams: newStreams(strings.NewReader(""), &out, &errs), getenv: os.Getenv}
	a.open = func(context.Context, string, openOptions) (*checkpoint.Checkpoint, error) {
		panic("impossible")
	}
	code := a.run(t.Context(), []string{"ls", "m.pt"})
	if code != 2 || strings.Count(errs.String(), "\n") != 1 || !strings.Contains(errs.String(), "BUG") || strings.Contains(errs.String(), "goroutine") {
		t.Errorf("exit %d, %q", code, errs.String())
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestOutputThatFails(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		out  interface{ Write([]byte) (int, error) }
		code int
		err  string
	}{
		{"reader of a table gone", []string{"ls", "m.pt"}, brokenPipe{}, 0, ""},
		{"reader of a tensor gone", []string{"extract", "m.pt", "state.bias", "-o", "-", "--to", "raw"}, brokenPipe{}, 141, ""},
		{"reader of a checkpoint gone", []string{"convert", "--include", "state.bias", "--to", "safetensors", "m.pt", "-"}, brokenPipe{}, 141, ""},
		{"disk full", []string{"ls", "m.pt"}, fullDisk{}, 2, "wick: no space left on device\n"},
		{"disk full of bytes", []string{"extract", "m.pt", "state.bias", "-o", "-", "--to", "raw"}, fullDisk{}, 2, "wick: input/output error: write failed: no space left on device\n"},
	} {
		var errs bytes.Buffer
		a := &app{streams: newStreams(strings.NewReader(""), c.out, &errs), getenv: os.Getenv}
		a.open = func(context.Context, string, openOptions) (*checkpoint.Checkpoint, error) {
			return checkpoint.New(model(t), checkpoint.Info{}, &checkpoint.Env{}, nil)
		}
		if code := a.run(t.Context(), c.args); code != c.code || errs.String() != c.err {
			t.Errorf("%s: exit %d, %q", c.name, code, errs.String())
		}
	}
}
