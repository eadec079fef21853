package wick_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/safetensors"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/serde/serdetest"
	"github.com/wick-ml/wick/tensor"
)

// bottleneck is the block of the deep ResNets of torchvision.
type bottleneck[T tensor.Element] struct {
	Conv1, Conv2, Conv3 nn.Conv2d[T]
	BN1, BN2, BN3       nn.BatchNorm2d[T]
	Downsample          *struct {
		Conv nn.Conv2d[T]      `torch:"0"`
		BN   nn.BatchNorm2d[T] `torch:"1"`
	}
}

type resNet[T tensor.Element] struct {
	Conv1                          nn.Conv2d[T]
	BN1                            nn.BatchNorm2d[T]
	Layer1, Layer2, Layer3, Layer4 []bottleneck[T]
	FC                             nn.Linear[T]
}

// zeros is a file of zeros behind a header.
type zeros struct {
	head []byte
	size int64
}

func (z *zeros) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	if off < int64(len(z.head)) {
		n = copy(p, z.head[off:])
	}
	rest := p[n:min(int64(len(p)), max(z.size-off, int64(n)))]
	clear(rest)
	if n+len(rest) < len(p) {
		return n + len(rest), io.EOF
	}
	return len(p), nil
}

// stateDict has names and shapes, in torch's order, and zeros for values.
type stateDict struct {
	tb    testing.TB
	root  *nested.Map
	dtype tensor.DType
}

func (d *stateDict) add(name string, dtype tensor.DType, shape ...int64) {
	n := int64(dtype.Size())
	for _, s := range shape {
		n *= s
	}
	s := tensor.NewStorage(tensor.StorageSpec{Name: name, Size: n, File: &zeros{size: n}})
	t, err := tensor.New(tensor.Spec{Storage: s, DType: dtype, Shape: shape})
	if err != nil {
		d.tb.Fatal(err)
	}
	if err := d.root.Set(nested.String(name), &nested.Tensor{Tensor: t, Class: "torch.Tensor"}); err != nil {
		d.tb.Fatal(err)
	}
}

func (d *stateDict) conv(name string, out, in, kernel int64) {
	d.add(name+".weight", d.dtype, out, in, kernel, kernel)
}

func (d *stateDict) norm(name string, n int64) {
	for _, part := range []string{".weight", ".bias", ".running_mean", ".running_var"} {
		d.add(name+part, d.dtype, n)
	}
	d.add(name+".num_batches_tracked", tensor.I64)
}

// resNet152 is the state dict of torchvision's resnet152, 932 tensors of 60 million
// numbers.
func resNet152(tb testing.TB, dtype tensor.DType) nested.Value {
	tb.Helper()
	d := &stateDict{tb, nested.NewMap("collections.OrderedDict"), dtype}
	d.conv("conv1", 64, 3, 7)
	d.norm("bn1", 64)
	in := int64(64)
	for l, blocks := range []int{3, 8, 36, 3} {
		width := int64(64) << l
		for b := range blocks {
			name := "layer" + strconv.Itoa(l+1) + "." + strconv.Itoa(b)
			d.conv(name+".conv1", width, in, 1)
			d.norm(name+".bn1", width)
			d.conv(name+".conv2", width, width, 3)
			d.norm(name+".bn2", width)
			d.conv(name+".conv3", 4*width, width, 1)
			d.norm(name+".bn3", 4*width)
			if b == 0 {
				d.conv(name+".downsample.0", 4*width, in, 1)
				d.norm(name+".downsample.1", 4*width)
			}
			in = 4 * width
		}
	}
	d.add("fc.weight", dtype, 1000, 2048)
	d.add("fc.bias", dtype, 1000)
	return d.root
}

// headOf returns the first bytes of the record of a tree, up to the tensors, and
// the size of the whole.
func headOf(tb testing.TB, root nested.Value) *zeros {
	tb.Helper()
	out, err := safetensors.Target{}.Plan(root, checkpoint.TargetOptions{Record: &checkpoint.RecordHeader{Type: "wick_test.resNet"}, Align: 64})
	if err != nil {
		tb.Fatal(err)
	}
	layout := out.Files[0].Layout
	size, _ := layout.Size()
	head := &headWriter{most: int(size - out.Report.Bytes)}
	if _, err := checkpoint.WriteStream(tb.Context(), head, layout); err != nil {
		tb.Fatal(err)
	}
	return &zeros{head.Bytes(), size}
}

// headWriter keeps the first bytes.
type headWriter struct {
	bytes.Buffer
	most int
}

func (w *headWriter) Write(p []byte) (int, error) {
	keep := min(len(p), w.most-w.Len())
	w.Buffer.Write(p[:keep])
	return len(p), nil
}

// What ResNet-152 has.
const (
	floatsOf152 = 60_344_232
	countsOf152 = 155 // of batches: one int64 for each batch norm
)

func testCopying[T tensor.Element](t *testing.T) {
	dtype := tensor.DTypeOf[T]()
	file := headOf(t, resNet152(t, dtype))
	tensors := int64(floatsOf152*dtype.Size() + countsOf152*8)
	var report *serde.Report
	load := func() { // with two workers, whose buffers are in it
		var net resNet[T]
		c, err := wick.OpenReaderAt(t.Context(), "resnet152.safetensors", file, file.size)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if report, err = wick.Unmarshal(t.Context(), c, &net, serde.Mover(tensor.Workers(2))); err != nil {
			t.Fatal(err)
		}
	}
	most := tensors + tensors/50
	n := serdetest.Allocated(load)
	for try := 1; n > most && try < 3; try++ { // the runtime allocates too, which can only add
		n = min(n, serdetest.Allocated(load))
	}
	serdetest.Assert(t, report, serdetest.Memory{Read: tensors, Copied: tensors, Allocated: tensors})
	if n > most {
		t.Errorf("%d bytes allocated for %d of tensors, want at most %d", n, tensors, most)
	}
	if report.Plan.PeakBytes != tensors || report.Checks.Verified != 932 {
		t.Errorf("a peak of %d bytes is predicted, %+v", report.Plan.PeakBytes, report.Checks)
	}
	t.Logf("%d tensor bytes, %d allocated, ratio %.4f", tensors, n, float64(n)/float64(tensors))
}

// needViews skips a test in a build that never sees memory as another type: it
// stages what this one reads straight into its place.
func needViews(t *testing.T) {
	t.Helper()
	if _, err := tensor.View[float32](tensor.Of([]float32{1})); err != nil {
		t.Skip("this build copies instead of viewing: ", err)
	}
}

// ResNet-152 into records takes its own size and 2 % at most, also when halfs stay
// halfs.
func TestMemoryOfCopying(t *testing.T) {
	needViews(t)
	t.Run("float32", testCopying[float32])
	t.Run("float16", testCopying[tensor.Float16])
}

// Of a mapped file nothing is copied, whatever its size.
func TestMemoryOfMapping(t *testing.T) {
	z := headOf(t, resNet152(t, tensor.F32))
	name := filepath.Join(t.TempDir(), "resnet152.safetensors")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(z.head); err != nil {
		t.Fatal(err)
	}
	if err := file.Truncate(z.size); err != nil { // a hole: it takes no room on the disk
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err := wick.Open(t.Context(), name, wick.Mmap()); err != nil {
		t.Skip("no maps here: ", err)
	} else if _, err := tensor.View[float32](first(c)); err != nil { // the other byte order, or the build
		c.Close()
		t.Skip(err)
	} else {
		c.Close()
	}
	const most = 4 << 20
	var net resNet[float32]
	serdetest.AllocatesAtMost(t, most, func() {
		c, err := wick.Open(t.Context(), name, wick.Mmap())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		report, err := wick.Unmarshal(t.Context(), c, &net, serde.Alias())
		if err != nil {
			t.Fatal(err)
		}
		serdetest.InPlace(t, report)
	})
	if len(net.Layer3) != 36 || net.FC.Weight.Data[len(net.FC.Weight.Data)-1] != 0 {
		t.Errorf("%d blocks in layer 3", len(net.Layer3))
	}
}

// first is the first tensor of floats of a checkpoint.
func first(c *wick.Checkpoint) *tensor.Tensor {
	for _, x := range c.Tensors() {
		if x.DType() == tensor.F32 {
			return x.Tensor
		}
	}
	return nil
}

// Writing a record takes 8 MiB at most, whatever the record's size.
func TestMemoryOfWriting(t *testing.T) {
	needViews(t)
	type wide struct{ A, B, C, D []float32 }
	const each = 4 << 20 // elements, 16 MiB
	v := &wide{make([]float32, each), make([]float32, each), make([]float32, each), make([]float32, each)}
	for i := range v.A {
		v.A[i], v.C[i] = float32(i), float32(i%7)
	}
	for _, ext := range []string{".safetensors", ".cbor", ".cbor.gz", ".cbor.zst"} {
		t.Run(ext, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "wide"+ext)
			n := serdetest.Allocated(func() {
				if _, err := wick.Save(t.Context(), out, v); err != nil {
					t.Fatal(err)
				}
			})
			if most := int64(8 << 20); n > most {
				t.Errorf("%d bytes allocated, want at most %d", n, most)
			}
			t.Logf("%d bytes allocated", n)
		})
	}
}
