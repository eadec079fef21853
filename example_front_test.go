package wick_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wick-ml/wick"
	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/rules"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/tensor"
)

// What the examples open: torch.save of a training script.
const resnet = "pytorch-tests/demo-resnet/demo-resnet-torch2.15.pt"

var ctx = context.Background() // of a command or a request

func try[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// Opening reads names, dtypes and shapes; a tensor's bytes are read when they
// are asked for.
func Example() {
	c, err := wick.Open(ctx, resnet)
	if err != nil {
		log.Fatal(err) // says what is wrong, where, and what to do
	}
	defer c.Close()
	for name, t := range c.Tensors() {
		if strings.HasPrefix(name, "state_dict.fc.") {
			values := try(tensor.Values[float32](ctx, t.Tensor))
			fmt.Println(name, t.DType(), t.Shape(), values[:2])
		}
	}
	// Output:
	// state_dict.fc.weight float32 [10 16] [-0.00077176094 0.042568386]
	// state_dict.fc.bias float32 [10] [0.12175137 0.12940642]
}

func ExampleOpen() {
	c := try(wick.Open(ctx, resnet))
	defer c.Close()
	fmt.Println(c.Info.Format, c.Len(), "tensors")
	t := try(c.Lookup("state_dict.conv1.weight"))
	fmt.Println(t.DType(), t.Shape())

	_, err := wick.Open(ctx, "pytorch-tests/broken/html-torch2.15.pt")
	var e *fault.Error
	fmt.Println(errors.Is(err, fault.ErrUnsupported), errors.As(err, &e) && e.Cure != "")
	// Output:
	// zip 122 tensors
	// float32 [2 3 7 7]
	// true true
}

// Limits bound what a file may ask for. The error says which one, and how far.
func ExampleWithLimits() {
	_, err := wick.Open(ctx, resnet, wick.WithLimits(wick.Limits{Tensors: 100}))
	var e *fault.Error
	if errors.As(err, &e) {
		fmt.Println(e.Kind, e.Limit, e.Max)
	}
	// Output: limit tensors 100
}

// A mapped file lends its memory: views cost nothing, until Close.
func ExampleMmap() {
	c := try(wick.Open(ctx, resnet, wick.Mmap()))
	defer c.Close()
	t := try(c.Lookup("state_dict.fc.bias"))
	view, err := tensor.View[float32](t.Tensor)
	if errors.Is(err, tensor.ErrNotViewable) { // such as on a big-endian machine
		view, err = tensor.Values[float32](ctx, t.Tensor)
	}
	fmt.Println(len(view), err)
	// Output: 10 <nil>
}

// A wrong checksum is an error. Salvage opens a file all the same, and a run
// with it goes on; its statistics say where the checksum was wrong.
func ExampleSalvage() {
	c := try(wick.Open(ctx, "pytorch-tests/broken/bad_crc-torch2.15.pt", wick.Salvage()))
	defer c.Close()
	var moves []tensor.Move
	for _, t := range c.Tensors() {
		moves = append(moves, tensor.Move{From: t.Tensor, To: tensor.Stream(io.Discard)})
	}
	_, err := tensor.Run(ctx, moves)
	fmt.Println(errors.Is(err, fault.ErrChecksum))
	stats := try(tensor.Run(ctx, moves, tensor.Salvage()))
	fmt.Println(slices.Contains(stats.Checks, tensor.Failed))
	// Output:
	// true
	// true
}

func ExampleOpenFS() {
	c := try(wick.OpenFS(ctx, os.DirFS("pytorch-tests"), "demo-resnet/demo-resnet-torch2.15.pt"))
	defer c.Close()
	fmt.Println(c.Len())
	// Output: 122
}

func ExampleOpenReaderAt() {
	f := try(os.Open(resnet))
	defer f.Close()
	info := try(f.Stat())
	c := try(wick.OpenReaderAt(ctx, "resnet.pt", f, info.Size()))
	defer c.Close() // f stays the caller's
	fmt.Println(c.Len())
	// Output: 122
}

func ExampleOpenBytes() {
	data := try(os.ReadFile(resnet)) // or go:embed
	c := try(wick.OpenBytes(ctx, "resnet.pt", data))
	defer c.Close()
	fmt.Println(c.Len())
	// Output: 122
}

func ExampleOpenSource() {
	src := try(checkpoint.OpenFile(resnet))
	c := try(wick.OpenSource(ctx, src)) // which closes src
	defer c.Close()
	fmt.Println(c.Len())
	// Output: 122
}

// A checkpoint from a pipe: the tree comes first, then every byte once, in one
// run, here a conversion.
func ExampleOpenStream() {
	pipe := try(os.Open(resnet)) // or os.Stdin, or the body of an HTTP response
	defer pipe.Close()
	c := try(wick.OpenStream(ctx, "standard input", pipe))
	defer c.Close()
	v := try(wick.PlanConversion(c, "out.safetensors"))
	var out bytes.Buffer
	try(v.RunTo(ctx, &out))
	fmt.Println(out.Len() > 40_000)
	// Output: true
}

// What cannot be used as it comes is held in memory as far as SpoolMemory
// allows, then in a file of the folder that Spool names.
func ExampleSpool() {
	pipe := try(os.Open(resnet))
	defer pipe.Close()
	c := try(wick.OpenStream(ctx, "standard input", pipe, wick.Spool(os.TempDir()), wick.SpoolMemory(1<<20)))
	defer c.Close()
	fmt.Println(c.Len())
	// Output: 122
}

// Checkpoint is what the training script saved.
type Checkpoint struct {
	Epoch int
	Model ResNet `torch:"state_dict"`
}

// ResNet is any ResNet of basic blocks. "wick gen" writes such types.
type ResNet struct {
	Conv1  nn.Conv2d[float32]
	BN1    nn.BatchNorm2d[float32]
	Layer1 []Block
	Layer2 []Block
	Layer3 []Block
	Layer4 []Block
	FC     nn.Linear[float32]
}

// Block has a third convolution where the shape changes.
type Block struct {
	Conv1, Conv2 nn.Conv2d[float32]
	BN1, BN2     nn.BatchNorm2d[float32]
	Downsample   *struct {
		Conv nn.Conv2d[float32]      `torch:"0"`
		BN   nn.BatchNorm2d[float32] `torch:"1"`
	}
}

// Load fills a struct from a file, all or nothing. The error lists everything
// that is missing, unexpected or mismatched.
func ExampleLoad() {
	var model Checkpoint
	report := try(wick.Load(ctx, resnet, &model))
	fmt.Println(model.Epoch, len(model.Model.Layer1), model.Model.FC.Weight.Shape, report.Checks.Verified)

	var wrong struct {
		Conv1 nn.Conv2d[float32]
		Head  nn.Linear[float32]
	}
	_, err := wick.Load(ctx, resnet, &wrong, serde.Key("state_dict"))
	var misfit *serde.FitError
	if errors.As(err, &misfit) {
		fmt.Println(misfit.Missing[0].Name, len(misfit.Unexpected) > 0)
	}
	// Output:
	// 90 2 [10 16] 122
	// head.weight true
}

// Unmarshal is Load for a checkpoint that is open already. Fields that stay lazy
// need that.
func ExampleUnmarshal() {
	c := try(wick.Open(ctx, resnet))
	defer c.Close()
	var head struct {
		Weight *tensor.Tensor // not read
		Bias   []float32
	}
	try(wick.Unmarshal(ctx, c, &head, serde.Key("state_dict.fc")))
	fmt.Println(head.Weight.Shape(), len(head.Bias))
	// Output: [10 16] 10
}

// folder makes a folder for an example, and says how to remove it.
func folder() (dir string, remove func()) {
	dir = try(os.MkdirTemp("", "wick-example-"))
	return dir, func() { try(0, os.RemoveAll(dir)) }
}

func ExampleConvert() {
	dir, remove := folder()
	defer remove()
	c := try(wick.Open(ctx, resnet))
	defer c.Close()
	set := try(rules.Parse("example", "key state_dict; drop **.num_batches_tracked"))
	report := try(wick.Convert(ctx, c, filepath.Join(dir, "resnet.safetensors"), wick.WithRules(set), wick.Metadata(map[string]string{"license": "MIT"})))
	fmt.Println(report.Format, report.Tensors, "tensors", len(report.LeftOut), "left out")
	// Output: safetensors 102 tensors 0 left out
}

// A plan knows all that will be written, and everything that is wrong, before a
// byte moves.
func ExamplePlanConversion() {
	dir, remove := folder()
	defer remove()
	c := try(wick.Open(ctx, resnet))
	defer c.Close()
	v := try(wick.PlanConversion(c, filepath.Join(dir, "half.safetensors"), wick.Precision(tensor.F16), wick.ShardBytes(10_000), wick.Overwrite(), wick.Sync()))
	fmt.Println(v.Format, len(v.Output.Files), "files", v.Output.Report.Tensors, "tensors")
	stats := try(v.Run(ctx))
	fmt.Println(stats.Moves > 0, stats.Loss.Overflow)
	// Output:
	// safetensors 4 files 122 tensors
	// true 0
}

// PlanTree writes trees that no file has.
func ExamplePlanTree() {
	root := nested.NewMap("dict")
	if err := root.Set(nested.String("w"), tensorOf(1, 2, 3)); err != nil {
		log.Fatal(err)
	}
	v := try(wick.PlanTree(root, wick.Limits{}, "-", wick.As("safetensors"), wick.Align(64)))
	var out bytes.Buffer
	try(v.RunTo(ctx, &out))
	fmt.Println(strings.Contains(out.String(), `"w":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}`))
	// Output: true
}

func tensorOf(values ...float32) nested.Leaf {
	return nested.F32s{Array: tensor.Array[float32]{Shape: []int{len(values)}, Data: values}}
}

// A record keeps the whole tree, with scalars, and checksums.
func ExampleAsRecord() {
	dir, remove := folder()
	defer remove()
	c := try(wick.Open(ctx, resnet))
	defer c.Close()
	out := filepath.Join(dir, "resnet.cbor")
	try(wick.Convert(ctx, c, out, wick.AsRecord(checkpoint.RecordHeader{Writer: "example"})))
	var model Checkpoint
	try(wick.Load(ctx, out, &model))
	fmt.Println(model.Epoch)
	// Output: 90
}

// Changing is for what is arithmetic and no view; package arith has the usual
// kinds.
func ExampleChanging() {
	dir, remove := folder()
	defer remove()
	c := try(wick.Open(ctx, resnet))
	defer c.Close()
	only := func(root nested.Value) (nested.Value, error) {
		t, err := c.Lookup("state_dict.fc.bias")
		if err != nil {
			return nil, err
		}
		out := nested.NewMap("dict")
		return out, out.Set(nested.String("bias"), t)
	}
	report := try(wick.Convert(ctx, c, filepath.Join(dir, "b.safetensors"), wick.Changing(only), wick.Running(tensor.Workers(1))))
	fmt.Println(report.Tensors)
	// Output: 1
}

// Without writing anything: the tree that a conversion would write.
func ExampleChanged() {
	c := try(wick.Open(ctx, resnet))
	defer c.Close()
	set := try(rules.Parse("fc", "key state_dict\nselect fc\nstrip fc."))
	fc, reports, err := wick.Changed(c, wick.WithRules(set), wick.Precision(tensor.F16))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fc.Close()
	for name, t := range fc.Tensors() {
		fmt.Println(name, t.DType(), t.Shape())
	}
	fmt.Println(len(reports[0].Unmatched))
	// Output:
	// weight float16 [10 16]
	// bias float16 [10]
	// 0
}

// The shards of one output can be written by many machines: each its part, and
// one of them, at the end, the index.
func ExamplePart() {
	dir, remove := folder()
	defer remove()
	c := try(wick.Open(ctx, resnet))
	defer c.Close()
	out := filepath.Join(dir, "resnet.safetensors")
	for i := 1; i <= 2; i++ {
		try(wick.Convert(ctx, c, out, wick.ShardBytes(20_000), wick.Part(i, 2)))
	}
	try(wick.Convert(ctx, c, out, wick.ShardBytes(20_000), wick.PartIndex()))
	back := try(wick.Open(ctx, out+".index.json"))
	defer back.Close()
	fmt.Println(back.Len())
	// Output: 122
}

// Meta's shards of a Llama are joined, and get the names of transformers.
func ExampleNames() {
	dir, remove := folder()
	defer remove()
	c := try(wick.Open(ctx, "pytorch-tests/llama/meta-2shards"))
	defer c.Close()
	out := filepath.Join(dir, "llama.safetensors")
	try(wick.Convert(ctx, c, out, wick.Names("hf")))
	back := try(wick.Open(ctx, out))
	defer back.Close()
	t := try(back.Lookup("model.layers.0.self_attn.q_proj.weight"))
	fmt.Println(t.Shape())

	apart := try(wick.PlanConversion(c, filepath.Join(dir, "apart.cbor"), wick.KeepShards()))
	fmt.Println(apart.Output.Report.Tensors > back.Len())
	// Output:
	// [16 16]
	// true
}

// Meta's shards can be opened as the one state dict that they were cut from, and
// a struct is always filled from that.
func ExampleJoin() {
	c := try(wick.Open(ctx, "pytorch-tests/llama/meta-2shards", wick.Join()))
	defer c.Close()
	t := try(c.Lookup("layers.0.attention.wo.weight"))
	fmt.Println(c.Info.Format, t.Shape())

	var m struct {
		Norm []tensor.BFloat16 `torch:"norm.weight"`
	}
	try(wick.Load(ctx, "pytorch-tests/llama/meta-2shards", &m, serde.AllowUnexpected()))
	fmt.Println(len(m.Norm))
	// Output:
	// joined [16 16]
	// 16
}

// Quantize writes a GGUF file in eight bits; the model's configuration may come
// from elsewhere than beside the weights.
func ExampleQuantize() {
	c := try(wick.Open(ctx, "pytorch-tests/llama/meta-q8"))
	defer c.Close()
	config := try(os.ReadFile("pytorch-tests/llama/meta-q8/params.json"))
	v := try(wick.PlanConversion(c, "llama.gguf", wick.Quantize("q8_0"), wick.Config(config)))
	fmt.Println(v.Format)
	// Output: gguf
}

func ExampleFormats() {
	for _, f := range wick.Formats() {
		if f.Name() == "safetensors" {
			fmt.Println("reads safetensors")
		}
	}
	// Output: reads safetensors
}

func ExampleTargets() {
	for _, t := range wick.Targets() {
		fmt.Println(t.Name(), t.Extensions()[0])
	}
	// Output:
	// safetensors .safetensors
	// gguf .gguf
	// cbor .cbor
	// cbor.gz .cbor.gz
	// cbor.zst .cbor.zst
	// json .json
}
