package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDisasmOutput(t *testing.T) {
	for name, args := range map[string][]string{
		"disasm-zip.golden":    {fixture("state-dict/data_parallel-torch2.15.pt")},
		"disasm-legacy.golden": {fixture("legacy/storage-torch1.13.pt")},
		"disasm-json.golden":   {"--json", "--record", "data.pkl", fixture("nested-tree/bare_scalar-torch2.15.pt")},
		"disasm-jsonl.golden":  {"--jsonl", fixture("protocols/protocol0-torch1.13.pt")},
	} {
		t.Run(name, func(t *testing.T) {
			got := runFiles(t, append([]string{"disasm"}, args...)...)
			if got.code != 0 || got.err != "" {
				t.Fatalf("exit %d: %s", got.code, got.err)
			}
			golden(t, name, got.out)
		})
	}
}

// What a pickle would call is named, whatever it does; nothing of it can change
// a terminal; and what comes before a fault is printed.
func TestDisasmHostile(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, pickle string
		code         int
		says         []string
	}{
		{"calls", "\x80\x02cposix\nsystem\nX\x02\x00\x00\x00id\x85R.", 0, []string{"import posix.system", "call posix.system with ('id',)", "end: the value is <posix.system>"}},
		{"by name", "\x80\x04\x8c\x05posix\x8c\x06system\x93.", 0, []string{"import posix.system"}},
		{"protocol 0", "cos\nsystem\n(S'id'\ntR.", 0, []string{"import os.system", "call os.system with ('id',)"}},
		{"escapes", "\x80\x02X\x05\x00\x00\x00\x1b[2Jx.", 0, []string{`'\x1b[2Jx'`}},
		{"name with escapes", "\x80\x02cos\x1b[2J\nsystem\n.", 0, []string{`os\x1b[2J system`}},
		{"empty stack", "\x80\x02R0ub.", 0, []string{"call ? with ?", "give ? the state ?"}},
		{"cut off", "\x80\x02K\x01K", 3, []string{"BININT1           1"}},
		{"no opcode", "\x80\x02K\x01\xff.", 3, []string{"BININT1           1"}},
		{"a length", "\x80\x02K\x01B\x40\x00\x00\x00abc", 3, []string{"BININT1           1"}},
		{"a bad number", "\x80\x02I12x\n.", 3, []string{"PROTO"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(dir, "x.pkl")
			if err := os.WriteFile(file, []byte(c.pickle), 0o600); err != nil {
				t.Fatal(err)
			}
			got := runFiles(t, "disasm", file)
			if got.code != c.code || (got.err == "") != (c.code == 0) || strings.Count(got.err, "\n") > 1 {
				t.Errorf("exit %d: %s", got.code, got.err)
			}
			for _, want := range c.says {
				if !strings.Contains(got.out, want) {
					t.Errorf("no %q in\n%s", want, got.out)
				}
			}
			if strings.Contains(got.out+got.err, "\x1b") {
				t.Errorf("an escape in %q", got.out+got.err)
			}
			asJSON := runFiles(t, "disasm", "--json", file)
			var doc struct{ Instructions []struct{ Opcode string } }
			if err := json.Unmarshal([]byte(asJSON.out), &doc); err != nil || len(doc.Instructions) == 0 || asJSON.code != c.code {
				t.Errorf("exit %d, %v: %s", asJSON.code, err, asJSON.out)
			}
		})
	}
}

// A long argument is cut, and JSON says how long it is.
func TestDisasmLong(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.pkl")
	pickle := append([]byte("\x80\x02X\x40\x42\x0f\x00"), bytes.Repeat([]byte("é"), 500_000)...)
	if err := os.WriteFile(file, append(pickle, '.'), 0o600); err != nil {
		t.Fatal(err)
	}
	got := runFiles(t, "disasm", "--jsonl", file)
	if got.code != 0 || len(got.out) > 40_000 || !strings.Contains(got.out, `"arg_bytes":1000000`) || strings.Contains(got.out, "latin1") {
		t.Errorf("exit %d, %d bytes: %s", got.code, len(got.out), got.err)
	}
	for _, line := range strings.Split(runFiles(t, "disasm", file).out, "\n") {
		if len(line) > 400 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

func TestDisasmRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"disasm"}, 2, "disasm needs FILE"},
		{[]string{"disasm", "none.pt"}, 2, "no such file"},
		{[]string{"disasm", "--record", "none", fixture("legacy/storage-torch1.13.pt")}, 2, "no record with a pickle is called none"},
		{[]string{"disasm", fixture("safetensors/order-torch2.15.safetensors")}, 4, "safetensors"},
		{[]string{"disasm", "--limit", "opcodes=5", fixture("legacy/storage-torch1.13.pt")}, 4, "opcodes"},
	} {
		got := runFiles(t, c.args...)
		if got.code != c.code || !strings.Contains(got.err, c.says) || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%v: exit %d, %s", c.args, got.code, got.err)
		}
	}
}

// A folder's files are gone through one by one, and so is standard input.
func TestDisasmFolderAndStdin(t *testing.T) {
	got := runFiles(t, "disasm", fixture("folders/no_index_bin-torch2.15"))
	if got.code != 0 || strings.Count(got.out, ".bin: ") < 2 {
		t.Errorf("exit %d: %s\n%.300s", got.code, got.err, got.out)
	}
	got = runFiles(t, "disasm", fixture("distributed/single-torch2.15"))
	if got.code != 0 || strings.Count(got.out, "__0_0.distcp: archive at 0x") != 13 { // as many entries as storage_data has
		t.Errorf("exit %d: %s\n%.300s", got.code, got.err, got.out)
	}
	b, err := os.ReadFile(fixture("state-dict/data_parallel-torch2.15.pt"))
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := Run(t.Context(), []string{"disasm", "-"}, bytes.NewReader(b), &out, &errs)
	if want := read(t, filepath.Join("testdata", "disasm-zip.golden")); code != 0 || out.String() != want {
		t.Errorf("exit %d: %s%s", code, out.String(), errs.String())
	}
}
