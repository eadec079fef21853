package pytorch_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/pytorch"
	"github.com/wick-ml/wick/tensor"
)

const resnet = "../pytorch-tests/demo-resnet/demo-resnet-torch2.15.pt"

var ctx = context.Background() // of a command or a request

func try[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// Open knows PyTorch's own formats; the front door, package wick, knows more.
func ExampleOpen() {
	c := try(pytorch.Open(ctx, resnet))
	defer c.Close()
	fmt.Println(c.Info.Format, c.Len(), c.Info.Globals[0].Module, c.Info.Globals[0].Name)
	// Output: zip 122 collections OrderedDict
}

func ExampleOpenFS() {
	c := try(pytorch.OpenFS(ctx, os.DirFS("../pytorch-tests"), "legacy/views-torch1.13.pt"))
	defer c.Close()
	fmt.Println(c.Info.Format)
	// Output: legacy
}

func ExampleOpenBytes() {
	c := try(pytorch.OpenBytes(ctx, "resnet.pt", try(os.ReadFile(resnet))))
	defer c.Close()
	fmt.Println(c.Len())
	// Output: 122
}

func ExampleOpenReaderAt() {
	f := try(os.Open(resnet))
	defer f.Close()
	c := try(pytorch.OpenReaderAt(ctx, "resnet.pt", f, try(f.Stat()).Size()))
	defer c.Close()
	fmt.Println(c.Len())
	// Output: 122
}

// Options say how a file is opened, and what it may ask for.
func ExampleWithLimits() {
	c := try(pytorch.Open(ctx, resnet, pytorch.WithLimits(checkpoint.Limits{Tensors: 1000}), pytorch.Mmap(), pytorch.Salvage()))
	defer c.Close()
	fmt.Println(c.Len())
	// Output: 122
}

// A pipe is read in one pass: first the tree, then every byte once.
func ExampleNewDecoder() {
	pipe := try(os.Open(resnet))
	defer pipe.Close()
	d := try(pytorch.NewDecoder(pipe, pytorch.SpoolMemory(1<<20), pytorch.Spool(os.TempDir())))
	defer d.Close()
	bias := try(d.Checkpoint().Lookup("state_dict.fc.bias"))
	values := make([]float32, bias.Len())
	try(d.Run(ctx, []tensor.Move{{From: bias.Tensor, To: tensor.Into(values)}}))
	fmt.Println(values[:2])
	// Output: [0.12175137 0.12940642]
}

// OpenStream gives other formats the same pass.
func ExampleOpenStream() {
	data := try(os.ReadFile(resnet))
	c := try(pytorch.OpenStream(ctx, "standard input", bytes.NewReader(data), pytorch.Formats(), checkpoint.Options{}))
	defer c.Close()
	fmt.Println(c.Len())
	// Output: 122
}

func ExampleFormats() {
	for _, f := range pytorch.Formats() {
		if f.Name() == "zip" || f.Name() == "legacy" {
			fmt.Println(f.Name())
		}
	}
	// Output:
	// zip
	// legacy
}

// Scan lists what a plain torch.load would import, and imports none of it.
func ExampleScan() {
	src := checkpoint.NewBytes("evil.pt", []byte("\x80\x02cposix\nsystem\nX\x02\x00\x00\x00id\x85R."))
	report := try(pytorch.Scan(ctx, src))
	for _, g := range report.Globals {
		fmt.Println(g.Module, g.Name, g.Grade, g.Called)
	}
	fmt.Println(report.Found())
	// Output:
	// posix system dangerous true
	// true
}

// What an open checkpoint would have imported is known without another look at it.
func ExampleGraded() {
	for _, g := range []checkpoint.Global{{Module: "collections", Name: "OrderedDict"}, {Module: "os", Name: "system"}} {
		fmt.Println(g.Module, g.Name, pytorch.Graded(g).Grade)
	}
	// Output:
	// collections OrderedDict allowed
	// os system dangerous
}

// Hold keeps a pipe, which comes once, for what reads in any order.
func ExampleHold() {
	pipe := strings.NewReader("\x80\x02cposix\nsystem\nX\x02\x00\x00\x00id\x85R.")
	src := try(pytorch.Hold(ctx, "standard input", pipe, pytorch.Spool(os.TempDir())))
	defer src.Close()
	fmt.Println(try(pytorch.Scan(ctx, src)).Found())
	// Output: true
}

// Disassemble visits every instruction of every pickle, and carries none out.
func ExampleDisassemble() {
	src := checkpoint.NewBytes("evil.pt", []byte("\x80\x02cposix\nsystem\nX\x02\x00\x00\x00id\x85R."))
	err := pytorch.Disassemble(ctx, src, func(in *pytorch.Instruction) error {
		fmt.Println(in.Offset, in.Opcode, in.Meaning)
		return nil
	})
	fmt.Println(err)
	// Output:
	// 0 PROTO protocol 2
	// 2 GLOBAL import posix.system
	// 16 BINUNICODE push a str
	// 23 TUPLE1 make a tuple of 1
	// 24 REDUCE call posix.system with ('id',)
	// 25 STOP end: the value is <posix.system>
	// <nil>
}
