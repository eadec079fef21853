package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/examples/internal/logits"
	"github.com/wick-ml/wick/examples/internal/swaps"
	"github.com/wick-ml/wick/serde"
)

// classes is the number of logits that torchvision's SqueezeNet has.
const classes = 1000

// agree compares with what generate.py wrote of PyTorch's logits: those it computes from the same half weights in
// float32, and those of its own arithmetic in half precision.
func agree(t *testing.T, got []float32) {
	t.Helper()
	b, err := os.ReadFile("testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]float32{}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if err := logits.Same(got, want["half weights"], classes, logits.Float32); err != nil {
		t.Errorf("half weights: %v", err)
	}
	if err := logits.Same(got, want["half"], classes, logits.Half); err != nil {
		t.Errorf("half arithmetic: %v", err)
	}
}

// measured is what a program that was run with -measure printed.
func measured(t *testing.T, out []byte) Measured {
	t.Helper()
	var m Measured
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatalf("%v: %.200s", err, out)
	}
	t.Logf("%d tensors: %d bytes copied, %d aliased; the load allocated %d bytes, the network %d", m.Tensors, m.Copied, m.Aliased, m.Load, m.Forward)
	return m
}

// Both programs as they are shipped: they agree with PyTorch, copy no byte of a tensor, and allocate next to nothing
// while they load.
func TestWeightsStayWhereTheyAre(t *testing.T) {
	const tensors, weights, mostAllocated = 52, 2 * 1235496, 64 << 10 // torchvision's SqueezeNet 1.1 has 1,235,496 parameters
	for system, run := range map[string]func(*testing.T, string, ...string) []byte{"linux/amd64": native, "wasip1/wasm": wasm} {
		t.Run(system, func(t *testing.T) {
			if system == "linux/amd64" && !runsHere("linux", "amd64") {
				t.Skip("this machine does not run programs of linux/amd64")
			}
			m := measured(t, run(t, built(t, system), "-measure", "-whole", "-image", "testdata/picture.png"))
			if m.Tensors != tensors || m.Copied != 0 || m.Aliased != weights {
				t.Errorf("of %d tensors %d bytes were copied and %d aliased; want %d, 0 and %d", m.Tensors, m.Copied, m.Aliased, tensors, weights)
			}
			if m.Load > mostAllocated {
				t.Errorf("the load allocated %d bytes, more than %d", m.Load, mostAllocated)
			}
			agree(t, m.Logits)
		})
	}
}

// runsHere reports whether this machine's Go makes programs of that system by default.
func runsHere(goos, goarch string) bool {
	out, err := exec.Command("go", "env", "GOHOSTOS", "GOHOSTARCH").Output()
	return err == nil && slices.Equal(strings.Fields(string(out)), []string{goos, goarch})
}

// built compiles the program for a system.
func built(t *testing.T, system string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	goos, goarch, _ := strings.Cut(system, "/")
	cmd := exec.Command("go", "build", "-o", out, ".")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

func native(t *testing.T, program string, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func wasm(t *testing.T, program string, args ...string) []byte {
	t.Helper()
	code, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	runtime := wazero.NewRuntime(ctx)
	defer runtime.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, runtime)
	var out, errs bytes.Buffer
	config := wazero.NewModuleConfig().WithArgs(append([]string{"squeezenet"}, args...)...).WithStdout(&out).WithStderr(&errs).
		WithSysWalltime().WithSysNanotime().WithFSConfig(wazero.NewFSConfig().WithReadOnlyDirMount(".", "/"))
	if _, err := runtime.InstantiateWithConfig(ctx, code, config); err != nil {
		t.Fatalf("%v\n%s", err, errs.Bytes())
	}
	return out.Bytes()
}

// A record of float32 must be filled by copies: what counts copies can count.
func TestCopiesAreCounted(t *testing.T) {
	wide := struct {
		Bias []float32 `torch:"features.0.bias"`
	}{}
	ckpt, err := wick.OpenBytes(t.Context(), "weights.safetensors", squeezeNetRecord)
	if err != nil {
		t.Fatal(err)
	}
	defer ckpt.Close()
	report, err := serde.Unmarshal(t.Context(), ckpt.Root, &wide, serde.Alias(), serde.AllowUnexpected())
	if err != nil {
		t.Fatal(err)
	}
	if report.Copied != 4*64 || report.Aliased != 0 {
		t.Errorf("%d bytes were copied and %d aliased", report.Copied, report.Aliased)
	}
}

// Two weights of the same shape that were exchanged are no detail.
func TestSwappedWeights(t *testing.T) {
	x, err := open("testdata/picture.png", true)
	if err != nil {
		t.Fatal(err)
	}
	ckpt, err := wick.OpenBytes(t.Context(), "weights.safetensors", squeezeNetRecord)
	if err != nil {
		t.Fatal(err)
	}
	defer ckpt.Close()
	forward := func(net *SqueezeNet) []float32 { return net.Logits(x) }
	right := new(SqueezeNet)
	if _, err := serde.Unmarshal(t.Context(), ckpt.Root, right, serde.Alias()); err != nil {
		t.Fatal(err)
	}
	want := forward(right)
	agree(t, want)
	pairs := 0
	for names, root := range swaps.All(ckpt.Root) {
		net := new(SqueezeNet)
		if _, err := serde.Unmarshal(t.Context(), root, net, serde.Alias()); err != nil {
			t.Fatal(err)
		}
		if logits.Same(forward(net), want, classes, logits.Float32) == nil {
			t.Errorf("exchanging %s makes no difference", names)
		}
		pairs++
	}
	if pairs < 25 {
		t.Errorf("only %d pairs were exchanged", pairs)
	}
}

func TestCommandPrintsClasses(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"-image", "testdata/picture.png"}, &out); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(out.String(), " %  "); lines != 5 {
		t.Errorf("%d classes were printed:\n%s", lines, out.String())
	}
	if err := run(t.Context(), []string{"-image", "absent.png"}, io.Discard); err == nil {
		t.Error("a picture that is not there was classified")
	}
}
