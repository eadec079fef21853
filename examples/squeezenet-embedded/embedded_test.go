package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha3"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/examples/internal/logits"
	"github.com/wick-ml/wick/examples/internal/swaps"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/tensor"
)

// What torchvision's SqueezeNet 1.1 has: logits, tensors, and bytes of 1,235,496 parameters in half precision.
const (
	classes = 1000
	tensors = 52
	weights = 2 * 1235496
)

// expected is what generate.py wrote of torchvision's network.
type expected struct {
	Seed       string
	Parameters []parameter
	SHA256     string // of the halfs of all parameters

	// Logits that PyTorch computes from the same weights, in float32 and in its own half precision.
	HalfWeights []float32 `json:"half weights"`
	Half        []float32
}

type parameter struct {
	Name  string
	Shape []int
	Scale float32
}

func expect(t *testing.T) *expected {
	t.Helper()
	b, err := os.ReadFile("testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	want := new(expected)
	if err := json.Unmarshal(b, want); err != nil {
		t.Fatal(err)
	}
	return want
}

// agree compares with PyTorch's logits.
func (e *expected) agree(t *testing.T, got []float32) {
	t.Helper()
	if err := logits.Same(got, e.HalfWeights, classes, logits.Float32); err != nil {
		t.Errorf("half weights: %v", err)
	}
	if err := logits.Same(got, e.Half, classes, logits.Half); err != nil {
		t.Errorf("half arithmetic: %v", err)
	}
}

// stateDict makes the weights that generate.py gave to the network: numbers of 11 bits, times the scale of their
// parameter, in the stream that SHAKE128 makes of the seed.
func (e *expected) stateDict(t *testing.T) *nested.Map {
	t.Helper()
	dict, stream := nested.NewMap("dict"), sha3.SumSHAKE128([]byte(e.Seed), weights)
	for _, p := range e.Parameters {
		halfs := make([]tensor.Float16, p.elements())
		for i := range halfs {
			number := int16(binary.LittleEndian.Uint16(stream[2*i:])) >> 5
			halfs[i] = tensor.Float16From(float32(number) * p.Scale)
		}
		stream = stream[2*len(halfs):]
		leaf := nested.F16s{Array: tensor.Array[tensor.Float16]{Shape: p.Shape, Data: halfs}}
		if err := dict.Set(nested.String(p.Name), leaf); err != nil {
			t.Fatal(err)
		}
	}
	return dict
}

func (p *parameter) elements() int {
	n := 1
	for _, size := range p.Shape {
		n *= size
	}
	return n
}

// pack lets wick pack the weights, and returns the folder with weights.go and the record.
func (e *expected) pack(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	checkpoint := filepath.Join(dir, "squeezenet1_1.safetensors")
	plan, err := wick.PlanTree(e.stateDict(t), wick.Limits{}, checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", "-C", "../..", "./cmd/wick", "pack", "--dtype", "float16", "--type", "SqueezeNet",
		"--package", "main", checkpoint, filepath.Join(dir, "weights.go"))
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if got := e.digest(t, filepath.Join(dir, "weights.safetensors")); got != e.SHA256 {
		t.Fatalf("the packed halfs have the SHA-256 %s; those of generate.py have %s", got, e.SHA256)
	}
	return dir
}

// digest returns the SHA-256 of the parameters in a file, one after another.
func (e *expected) digest(t *testing.T, file string) string {
	t.Helper()
	ckpt, err := wick.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer ckpt.Close()
	sum := sha256.New()
	for _, p := range e.Parameters {
		leaf, err := ckpt.Lookup(p.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := leaf.WriteTo(sum); err != nil {
			t.Fatal(err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
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

// The programs as they are shipped, with weights that wick pack put into them.
func TestPacked(t *testing.T) {
	want := expect(t)
	dir := want.pack(t)
	t.Run("linux/amd64", func(t *testing.T) {
		if !runsHere("linux", "amd64") {
			t.Skip("this machine does not run programs of linux/amd64")
		}
		weightsStay(t, want, native(t, built(t, dir, "linux", "amd64"), measuring...))
	})
	t.Run("wasip1/wasm", func(t *testing.T) {
		weightsStay(t, want, wasm(t, built(t, dir, "wasip1", "wasm"), measuring...))
	})
	t.Run("prints classes", func(t *testing.T) {
		out := string(native(t, built(t, dir, runtime.GOOS, runtime.GOARCH), "-image", "testdata/picture.png"))
		if lines := strings.Count(out, " %  "); lines != 5 {
			t.Errorf("%d classes were printed:\n%s", lines, out)
		}
	})
}

// measuring are the arguments for what weightsStay reads.
var measuring = []string{"-measure", "-whole", "-image", "testdata/picture.png"}

// weightsStay makes sure that a program agrees with PyTorch, copies no byte of a tensor, and allocates next to nothing
// while it loads.
func weightsStay(t *testing.T, want *expected, out []byte) {
	t.Helper()
	const mostAllocated = 64 << 10
	m := measured(t, out)
	if m.Tensors != tensors || m.Copied != 0 || m.Aliased != weights {
		t.Errorf("of %d tensors %d bytes were copied and %d aliased; want %d, 0 and %d", m.Tensors, m.Copied, m.Aliased, tensors, weights)
	}
	if m.Load > mostAllocated {
		t.Errorf("the load allocated %d bytes, more than %d", m.Load, mostAllocated)
	}
	want.agree(t, m.Logits)
}

// runsHere reports whether this machine's Go makes programs of that system by default.
func runsHere(goos, goarch string) bool {
	out, err := exec.Command("go", "env", "GOHOSTOS", "GOHOSTARCH").Output()
	return err == nil && slices.Equal(strings.Fields(string(out)), []string{goos, goarch})
}

// built compiles the program for a system, with the weights that were packed into dir.
func built(t *testing.T, dir, goos, goarch string) string {
	t.Helper()
	overlay, out := overlaid(t, dir, "weights.go", "weights.safetensors"), filepath.Join(t.TempDir(), "program.exe") // Windows wants the suffix
	cmd := exec.Command("go", "build", "-tags", "weights", "-overlay", overlay, "-o", out, ".")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// overlaid returns the file by which go build takes files of dir as if they lay here.
func overlaid(t *testing.T, dir string, names ...string) string {
	t.Helper()
	replace := map[string]string{}
	for _, name := range names {
		here, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		replace[here] = filepath.Join(dir, name)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func native(t *testing.T, program string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
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
	rt := wazero.NewRuntime(ctx)
	defer rt.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	var out bytes.Buffer
	config := wazero.NewModuleConfig().WithArgs(append([]string{"squeezenet"}, args...)...).WithStdout(&out).WithStderr(t.Output()).
		WithSysWalltime().WithSysNanotime().WithFSConfig(wazero.NewFSConfig().WithReadOnlyDirMount(".", "/"))
	if _, err := rt.InstantiateWithConfig(ctx, code, config); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A field of float32 must be filled by a copy: what counts copies can count.
func TestCopiesAreCounted(t *testing.T) {
	wide := struct {
		Bias []float32 `torch:"features.0.bias"`
	}{}
	report, err := serde.Unmarshal(t.Context(), expect(t).stateDict(t), &wide, serde.Alias(), serde.AllowUnexpected())
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
	compute := func(root nested.Value) []float32 {
		net := new(SqueezeNet)
		if _, err := serde.Unmarshal(t.Context(), root, net, serde.Alias()); err != nil {
			t.Fatal(err)
		}
		return net.Logits(x)
	}
	want := expect(t)
	dict := want.stateDict(t)
	right := compute(dict)
	want.agree(t, right)
	pairs := 0
	for names, root := range swaps.All(dict) {
		if logits.Same(compute(root), right, classes, logits.Float32) == nil {
			t.Errorf("exchanging %s makes no difference", names)
		}
		pairs++
	}
	if pairs < 25 {
		t.Errorf("only %d pairs were exchanged", pairs)
	}
}

func TestNoPicture(t *testing.T) {
	if err := run(t.Context(), []string{"-image", "absent.png"}, io.Discard); err == nil {
		t.Error("a picture that is not there was classified")
	}
}
