package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// expected is what torch answers to each glyph; generate.py wrote it.
type expected struct {
	Glyphs []string
	Logits [][]float32
}

func load(t *testing.T) expected {
	t.Helper()
	text, err := os.ReadFile("expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var want expected
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Glyphs) != 10 || len(want.Logits) != 10 {
		t.Fatalf("%d glyphs, %d rows of logits", len(want.Glyphs), len(want.Logits))
	}
	return want
}

// close1e4 compares logits by the largest one, as the sums differ in their order.
func close1e4(t *testing.T, what string, got, want []float32) {
	t.Helper()
	largest := 0.0
	for _, x := range want {
		largest = max(largest, math.Abs(float64(x)))
	}
	for i := range want {
		if len(got) != len(want) || math.Abs(float64(got[i]-want[i])) > 1e-4*largest {
			t.Fatalf("%s: got %v, torch says %v", what, got, want)
		}
	}
}

func TestDigitsAgreeWithTorch(t *testing.T) {
	net, _, err := LoadNet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := load(t)
	for digit, text := range want.Glyphs {
		logits := net.Logits(glyph(text))
		close1e4(t, text, logits, want.Logits[digit])
		if got := best(logits); got != digit {
			t.Errorf("%d is read as %d", digit, got)
		}
	}
}

// Two rows that change places change the answers: the comparison can fail.
func TestSwappedWeightsDisagree(t *testing.T) {
	net, _, err := LoadNet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := append([]float32(nil), net.FC2.Weight.Data...)
	for i := range 32 {
		w[i], w[32+i] = w[32+i], w[i]
	}
	net.FC2.Weight.Data = w // the embedded ones stay as they are
	want := load(t)
	if got := best(net.Logits(glyph(want.Glyphs[0]))); got == 0 {
		t.Error("nobody noticed")
	}
}

// The model's file is 4 KB, and what the load of it may take is twice as much.
const (
	mostFile  = 4 << 10
	mostAlloc = 8 << 10
	weights   = (15*32 + 32 + 32*10 + 10) * 4 // bytes
)

// built compiles the program for a system.
func built(t *testing.T, goos, goarch string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "tiny")
	cmd := exec.Command("go", "build", "-o", out, ".")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// runWASM runs a WASI program and returns what it prints.
func runWASM(t *testing.T, file string, args ...string) []byte {
	t.Helper()
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	defer rt.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	var out, errs bytes.Buffer
	config := wazero.NewModuleConfig().WithArgs(append([]string{"tiny"}, args...)...).WithStdout(&out).WithStderr(&errs).WithSysWalltime().WithSysNanotime()
	if _, err := rt.InstantiateWithConfig(ctx, code, config); err != nil && errs.Len() > 0 {
		t.Fatalf("%v\n%s", err, errs.Bytes())
	}
	return out.Bytes()
}

// The program, as it is shipped, on a machine and in a WebAssembly runtime: no
// byte of a tensor is copied and the load allocates next to nothing.
func TestWeightsStayWhereTheyAre(t *testing.T) {
	info, err := os.Stat("weights.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > mostFile {
		t.Errorf("the record has %d bytes, want at most %d", info.Size(), mostFile)
	}
	want := load(t)
	programs := map[string]func(t *testing.T, args ...string) []byte{
		"linux/amd64": func(t *testing.T, args ...string) []byte {
			out, err := exec.Command(built(t, "linux", "amd64"), args...).Output()
			if err != nil {
				t.Fatal(err)
			}
			return out
		},
		"wasip1/wasm": func(t *testing.T, args ...string) []byte { return runWASM(t, built(t, "wasip1", "wasm"), args...) },
	}
	for name, run := range programs {
		t.Run(name, func(t *testing.T) {
			var got struct {
				Allocated, Copied, Aliased int64
				Logits                     []float32
			}
			out := run(t, "-memory", want.Glyphs[4])
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			t.Logf("%s", out)
			if got.Copied != 0 || got.Aliased != weights {
				t.Errorf("%d bytes copied, %d used in place; want 0 and %d", got.Copied, got.Aliased, weights)
			}
			if got.Allocated > mostAlloc {
				t.Errorf("%d bytes allocated, want at most %d", got.Allocated, mostAlloc)
			}
			close1e4(t, name, got.Logits, want.Logits[4])
		})
	}
}

// What is committed is what wick pack makes of the checkpoint today.
func TestPackedAgain(t *testing.T) {
	dir := t.TempDir()
	abs, err := filepath.Abs("digits.pt")
	if err != nil {
		t.Fatal(err)
	}
	pack := exec.Command("go", "run", "-C", "../..", "./cmd/wick", "pack", "--type", "Net", "--package", "main", abs, filepath.Join(dir, "weights.go"))
	if text, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, name := range []string{"weights.go", "weights.safetensors"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what wick pack writes; run go generate", name)
		}
	}
}

func TestBadGlyph(t *testing.T) {
	for _, text := range []string{"", "101", strings.Repeat("2", pixels)} {
		if err := run(t.Context(), text, false); err == nil {
			t.Errorf("%q is a glyph", text)
		}
	}
}
