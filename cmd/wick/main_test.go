package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const fixture = "../../pytorch-tests/demo-resnet/demo-resnet-torch2.15.pt"

// binary is the command as users have it; TestMain builds it.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "wick-test-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "wick")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		panic(string(out))
	}
	return m.Run()
}

// run runs the binary and returns its exit code and output.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestProcess(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.pt")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		stderr int // lines
	}{
		{"ls", []string{"ls", "--json", "--sha256", fixture}, 0, 0},
		{"verify", []string{"verify", fixture}, 0, 0},
		{"help", nil, 0, 0},
		{"no such file", []string{"ls", filepath.Join(dir, "none.pt")}, 2, 1},
		{"no such command", []string{"lss"}, 2, 1},
		{"empty", []string{"ls", empty}, 3, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := run(t, c.args...)
			if code != c.code || strings.Count(errs, "\n") != c.stderr || strings.Contains(errs, "goroutine") || (out == "") != (code != 0) {
				t.Errorf("exit %d, %d bytes of output, stderr %q", code, len(out), errs)
			}
		})
	}
}

// A reader that leaves early gets no complaint.
func TestBrokenPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "ls", "--json", fixture)
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &errs
	err = cmd.Run()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && (err != nil || errs.Len() > 0) {
		t.Errorf("%v, stderr %q", err, errs.String())
	}
}

func TestVersionOfTheBinary(t *testing.T) {
	code, out, _ := run(t, "version", "--json")
	var v struct{ Version, Go, Platform string }
	if err := json.Unmarshal([]byte(out), &v); code != 0 || err != nil || v.Version == "" || v.Go != runtime.Version() || v.Platform != runtime.GOOS+"/"+runtime.GOARCH {
		t.Errorf("exit %d, %s, %v", code, out, err)
	}
}

// An interrupted command ends with 130 even while it waits for somebody to read
// its output, and says so in one line or not at all.
func TestInterruptedProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGINT can be sent to a process there")
	}
	in := filepath.Join(t.TempDir(), "in.safetensors")
	header := `{"w":{"dtype":"U8","shape":[4194304],"data_offsets":[0,4194304]}}`
	header += strings.Repeat(" ", 72-len(header))
	file := append([]byte{72, 0, 0, 0, 0, 0, 0, 0}, header...)
	if err := os.WriteFile(in, append(file, make([]byte, 4<<20)...), 0o600); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(binary, "convert", "--to", "safetensors", in, "-")
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := r.Read(make([]byte, 1)); err != nil { // it writes by now
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || strings.Count(errs.String(), "\n") > 1 {
		t.Errorf("exit %d, %v, stderr %q", code, err, errs.String())
	}
}
