//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// program is one of the things that a task compares.
type program struct {
	name    string
	args    []string
	missing string // why it cannot be run; empty if it can
}

// task compares programs that do the same to one file.
type task struct {
	name     string
	about    string
	input    string    // made by scripts/make-checkpoints
	output   string    // removed before each program; empty if they write nothing
	programs []program // the first is the baseline
	long     bool      // runs only on demand
	series   string    // the title of a table that shows several tasks below each other; empty for a table of its own
}

// tasks returns what is measured. A program's place in its list is its place in a round.
func tasks(dir, output string, t tools) []task {
	k := kit{tools: t, dir: dir, output: output}
	return slices.Concat(k.loads(), k.lists(), k.conversions(), k.records(), k.growth())
}

// kit is what tasks are made with.
type kit struct {
	tools
	dir, output string
}

func (k kit) file(name string) string                     { return filepath.Join(k.dir, name) }
func (k kit) wickRun(name string, args ...string) program { return k.program(name, k.wick, args...) }
func (k kit) loadRun(name string, args ...string) program { return k.program(name, k.load, args...) }

func (k kit) loads() []task {
	resnet, half, many := k.file("resnet152.pt"), k.file("resnet152-half.pt"), k.file("tensors-100k.pt")
	return []task{
		{name: "load", about: "ResNet-152, float32, all values in memory", input: resnet, programs: []program{
			k.program("floor", k.floor, resnet),
			{name: "cat", args: []string{"cat", resnet}},
			k.loadRun("wick, nested structs", "struct", resnet),
			k.loadRun("wick, structs over the mapped file", "alias", resnet),
			k.loadRun("wick, all in one run", "run", resnet),
			k.loadRun("wick, tensor by tensor", "values", resnet),
			k.program("gopickle v0.3.0", k.gopickle, resnet),
			k.torch("torch.load, eager", "eager", resnet),
			k.torch("torch.load, weights_only", "weights_only", resnet),
			k.torch("torch.load, mmap", "mmap", resnet),
			k.program("candle-core", k.candle, resnet),
			k.program("pytorch-reader (Burn)", k.burn, resnet),
		}},
		{name: "load-half", about: "ResNet-152, float16 in the file, float32 in memory; the floor reads the float32 file", input: half, programs: []program{
			k.program("floor", k.floor, resnet),
			k.loadRun("wick, nested structs", "struct", half),
			k.program("gopickle v0.3.0", k.gopickle, half),
			k.torch("torch.load, eager, then float()", "float32", half),
		}},
		{name: "map", about: "ResNet-152, float32, opened with mmap, no value touched", input: resnet, programs: []program{
			k.loadRun("wick, mapped", "mapped", resnet),
			k.torch("torch.load, mmap", "names", resnet),
		}},
		{name: "many", about: "100,000 tensors of one element", input: many, programs: []program{
			k.program("floor", k.floor, many),
			k.loadRun("wick, all in one run", "run", many),
			k.loadRun("wick, tensor by tensor", "values", many),
			k.program("gopickle v0.3.0", k.gopickle, many),
			k.torch("torch.load, weights_only", "weights_only", many),
		}},
	}
}

func (k kit) lists() []task {
	const small = "pytorch-tests/demo-resnet/demo-resnet-torch2.15.pt"
	resnet, huge, million := k.file("resnet152.pt"), k.file("size-10g.pt"), k.file("tensors-1m.pt")
	return []task{
		{name: "start", about: "from start to finish on a small file", input: small, programs: []program{
			k.wickRun("wick version", "version"),
			k.wickRun("wick ls", "ls", small),
		}},
		{name: "list", about: "names, dtypes and shapes of ResNet-152", input: resnet, programs: []program{
			k.wickRun("wick ls", "ls", resnet),
			k.program("gopickle v0.3.0", k.gopickle, resnet),
			k.torch("torch.load, mmap", "names", resnet),
		}},
		{name: "list-million", long: true, about: "names, dtypes and shapes of 1,000,000 views of one storage", input: million, programs: []program{
			k.wickRun("wick ls", "ls", million),
			k.wickRun("wick ls --json", "ls", "--json", million),
			k.program("gopickle v0.3.0", k.gopickle, million),
			k.torch("torch.load, weights_only", "weights_only", million),
		}},
		{name: "list-huge", long: true, about: "names, dtypes and shapes in a file of 10 GB", input: huge, programs: []program{
			k.wickRun("wick ls", "ls", huge),
		}},
	}
}

func (k kit) conversions() []task {
	resnet, half, large, one, output := k.file("resnet152.pt"), k.file("resnet152-half.pt"), k.file("resnet152-x10.pt"), k.file("size-1g.pt"), k.output
	return []task{
		{name: "convert", about: "ResNet-152, float32, to safetensors", input: resnet, output: output, programs: []program{
			{name: "cp", args: []string{"cp", "--reflink=never", resnet, output}},
			k.wickRun("wick convert", "convert", resnet, output),
			k.torch("safetensors (Python)", "safetensors", resnet, output),
		}},
		{name: "convert-cast", about: "ResNet-152, float16 to float32 safetensors; cp copies the float32 file", input: half, output: output, programs: []program{
			{name: "cp", args: []string{"cp", "--reflink=never", resnet, output}},
			k.wickRun("wick convert", "convert", "--dtype", "float32", half, output),
		}},
		{name: "convert-transpose", about: "1 GB of float32 to safetensors, every matrix transposed", input: one, output: output, programs: []program{
			{name: "cp", args: []string{"cp", "--reflink=never", one, output}},
			k.wickRun("wick convert", "convert", "--rules", "scripts/internal/bench/transpose.rules", one, output),
		}},
		{name: "convert-large", about: "2.4 GB in 9,320 tensors to safetensors", input: large, output: output, programs: []program{
			{name: "cp", args: []string{"cp", "--reflink=never", large, output}},
			k.wickRun("wick convert", "convert", large, output),
		}},
		{name: "stream", about: "ResNet-152 through a pipe to safetensors", input: resnet, output: output, programs: []program{
			{name: "cat to cat", args: pipe("cat > %[2]q", resnet, output)},
			{name: "cat to wick convert", args: pipe(fmt.Sprintf("%q convert - %%[2]q", k.wick.path), resnet, output), missing: k.wick.missing},
		}},
		{name: "stream-large", about: "2.4 GB through a pipe to safetensors", input: large, output: output, programs: []program{
			{name: "cat to cat", args: pipe("cat > %[2]q", large, output)},
			{name: "cat to wick convert", args: pipe(fmt.Sprintf("%q convert - %%[2]q", k.wick.path), large, output), missing: k.wick.missing},
		}},
	}
}

// records returns the tasks that write records: from structs, whose tensors have no checksums yet, and from a checkpoint,
// whose zip file has them. The programs named save have loaded the structs first; their time in process is the record's alone.
func (k kit) records() []task {
	var list []task
	resnet := k.file("resnet152.pt")
	for _, form := range []string{"safetensors", "cbor"} {
		output := strings.TrimSuffix(k.output, filepath.Ext(k.output)) + "." + form
		t := task{name: "record-" + form, about: "ResNet-152, float32, to a record in " + form, input: resnet, output: output}
		t.programs = append([]program{{name: "cp", args: []string{"cp", "--reflink=never", resnet, output}}}, onCores(
			k.wickRun("wick convert --record", "convert", "--record", resnet, output),
			k.program("wick.Save, structs over the mapped file", k.save, "mapped", resnet, output),
			k.program("wick.Save, structs in memory", k.save, "copied", resnet, output),
		)...)
		list = append(list, t)
	}
	return list
}

// growth returns the tasks that show how time and memory grow with the bytes, the tensors and the cores.
func (k kit) growth() []task {
	var list []task
	for _, size := range []string{"10m", "100m", "1g", "10g"} {
		name := k.file("size-" + size + ".pt")
		t := task{name: "size-" + size, about: inWords.Replace(size) + " in 291 tensors", series: "bytes", input: name, output: k.output, long: true}
		t.programs = onCores(k.wickRun("wick ls", "ls", name), k.loadRun("opened with mmap", "mapped", name))
		if size != "10g" { // whose values do not fit into the memory of most machines
			t.programs = append(t.programs, onCores(k.loadRun("all values loaded", "run", name))...)
		}
		t.programs = append(t.programs, onCores(k.wickRun("wick convert", "convert", name, k.output))...)
		list = append(list, t)
	}
	for _, count := range []string{"views-10", "views-1k", "views-10k", "views-100k", "tensors-1m"} {
		name := k.file(count + ".pt")
		t := task{name: count, about: inWords.Replace(count) + " views of one storage", series: "tensors", input: name, long: true}
		t.programs = onCores(k.wickRun("wick ls", "ls", name), k.wickRun("wick ls --json", "ls", "--json", name), k.loadRun("all values loaded", "run", name))
		list = append(list, t)
	}
	return list
}

// inWords spells what the names of the files abbreviate.
var inWords = strings.NewReplacer("views-", "", "tensors-1m", "1,000,000", "1k", "1,000", "0k", "0,000", "g", " GB", "m", " MB")

// onCores returns programs on all cores and on one.
func onCores(programs ...program) []program {
	var list []program
	for _, p := range programs {
		one := program{name: p.name + ", one core", args: append([]string{"taskset", "--cpu-list", "0"}, p.args...), missing: p.missing}
		list = append(list, p, one)
	}
	return list
}

// pipe returns a command that feeds input to what reads its standard input.
func pipe(reader, input, output string) []string {
	return []string{"sh", "-c", fmt.Sprintf("cat %[1]q | "+reader, input, output)}
}
