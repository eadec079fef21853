//go:build unix

package attacks

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	bigBytes = 128 << 20
	oldText  = "what was there before"
)

// bigModel is a safetensors file of zeros, which takes no room on most file
// systems, beside an output that exists.
func bigModel(t *testing.T) (in, out string) {
	t.Helper()
	in, out = filepath.Join(t.TempDir(), "in.safetensors"), filepath.Join(t.TempDir(), "out.safetensors")
	head := header(fmt.Sprintf(`{"w":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}`, bigBytes, bigBytes), "")()
	if err := os.WriteFile(in, head, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(in, int64(len(head)+bigBytes)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out, []byte(oldText), 0o600); err != nil {
		t.Fatal(err)
	}
	return in, out
}

// drafts are the unfinished files beside an output.
func drafts(t *testing.T, out string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(out), ".wick-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func isOld(t *testing.T, out string) bool {
	t.Helper()
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(b) == oldText
}

// A file system that takes no more is an error of one line and exit code 2; the
// old output is as it was, and nothing is left. A limit on the size of files
// stands for the full disk.
func TestFullDisk(t *testing.T) {
	in, out := bigModel(t)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -f 1000; exec "$0" convert --force "$1" "$2"`, program, in, out)
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("%v: %s", err, text)
	}
	if !isOld(t, out) || len(drafts(t, out)) > 0 {
		t.Errorf("the output is not as it was, or %q is left", drafts(t, out))
	}
}

// A process that is killed while it writes leaves the old output as it was, and
// what it left beside it the next run removes.
func TestKilledWhileWriting(t *testing.T) {
	in, out := bigModel(t)
	if !killWhileWriting(t, in, out) {
		t.Fatal("no process could be killed before it was done")
	}
	if !isOld(t, out) {
		t.Error("the output is not as it was")
	}
	if text, err := exec.CommandContext(t.Context(), program, "convert", "--force", in, out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if left := drafts(t, out); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
	if text, err := exec.CommandContext(t.Context(), program, "verify", in, out).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
}

// killWhileWriting tries several times, for a fast machine can be done first.
func killWhileWriting(t *testing.T, in, out string) bool {
	t.Helper()
	for range 20 {
		cmd := exec.CommandContext(t.Context(), program, "convert", "--force", in, out)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for len(drafts(t, out)) == 0 && cmd.ProcessState == nil && isOld(t, out) {
			time.Sleep(100 * time.Microsecond)
		}
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed, which is an error
		if len(drafts(t, out)) > 0 {
			return true
		}
		if err := os.WriteFile(out, []byte(oldText), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return false
}

// Little memory for the collector makes a run slower, never wrong.
func TestLittleMemory(t *testing.T) {
	in, out := bigModel(t)
	for _, args := range [][]string{{"ls", "--json", "--sha256", in}, {"verify", in}, {"convert", "--force", in, out}} {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), "GOMEMLIMIT=32MiB")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", strings.Join(args, " "), err, text)
		}
	}
	if entries := drafts(t, out); !slices.Equal(entries, nil) {
		t.Errorf("%q is left", entries)
	}
}
