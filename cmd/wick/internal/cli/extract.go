package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/cmd/wick/internal/human"
	"github.com/wick-ml/wick/cmd/wick/internal/listing"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/tensor"
)

// extractFlags is what extract was asked for.
type extractFlags struct {
	output, path, slice, dtype, to string
	force                          bool
}

func newExtract(a *app) *cobra.Command {
	var f extractFlags
	cmd := &cobra.Command{
		Use:   "extract [FLAGS] -o OUT FILE NAME",
		Short: "Write one tensor to a .npy or .raw file",
		Long:  "extract writes a tensor as numpy's .npy, or its packed row-major little-endian bytes as .raw.",
		Example: "  wick extract model.pt conv1.weight -o conv1.npy\n" +
			"  wick extract model.pt conv1.weight -o - --to raw | xxd | head\n" +
			"  wick extract --dtype float32 --slice 0 half.pt fc.weight -o row.npy",
		Args: targetArgs(&f.path),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.extract(cmd.Context(), &f, args[0], targetOf(args, f.path))
		},
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "the `file` to write, - for standard output")
	cmd.Flags().StringVar(&f.to, "to", "", "npy or raw, whatever OUT's extension")
	cmd.Flags().StringVar(&f.slice, "slice", "", sliceHelp)
	cmd.Flags().StringVar(&f.dtype, "dtype", "", "convert to this `dtype`")
	cmd.Flags().StringVar(&f.path, "path", "", "the tensor's exact path, as `JSON`, in place of NAME")
	cmd.Flags().BoolVarP(&f.force, "force", "f", false, "replace OUT if it exists")
	return cmd
}

func (a *app) extract(ctx context.Context, f *extractFlags, file string, name target) error {
	if err := a.checkExtract(f); err != nil {
		return err
	}
	c, err := a.openArg(ctx, file, false)
	if err != nil {
		return err
	}
	defer a.close(c)
	l, err := listing.Of(c)
	if err != nil {
		return err
	}
	row, err := name.pick(l)
	if err != nil {
		return err
	}
	t, err := f.part(row)
	if err != nil {
		return listing.Locate(err, l.File, row.Name())
	}
	layout := &checkpoint.Layout{}
	if f.to == "npy" {
		head, err := npyHeader(t)
		if err != nil {
			return listing.Locate(err, l.File, row.Name())
		}
		layout.Bytes(head)
	}
	layout.Tensor(t)
	err = namedSum(a.writeLayout(ctx, f, layout, c), c)
	if fault.KindOf(err) == fault.Mismatch { // values that the dtype cannot hold
		return listing.Locate(err, l.File, row.Name())
	}
	if err == nil && f.output != "-" {
		a.note(fault.Clean(f.output, maxName) + ": " + f.to + ", " + t.String() + ", " + human.Bytes(t.Bytes()))
	}
	return err
}

// checkExtract settles the output's format.
func (a *app) checkExtract(f *extractFlags) error {
	if f.output == "" {
		return fault.New(fault.Usage, "extract needs an output").Needs("", "name it with -o")
	}
	if err := localOutput(f.output); err != nil {
		return err
	}
	for _, format := range []string{"npy", "raw"} {
		if f.to == "" && strings.HasSuffix(strings.ToLower(f.output), "."+format) {
			f.to = format
		}
	}
	switch {
	case f.to == "":
		return fault.New(fault.Usage, "an output name that says no format").In(f.output).Needs("one of .npy .raw", "name the format with --to")
	case f.to != "npy" && f.to != "raw":
		return fault.New(fault.Usage, "--to "+f.to).Needs("", "npy or raw")
	case f.output == "-" && a.outTTY:
		return fault.New(fault.Usage, "standard output is a terminal").Needs("", "name a file, or pipe it somewhere")
	}
	return nil
}

func (f *extractFlags) part(row *listing.Tensor) (*tensor.Tensor, error) {
	t := row.Tensor()
	if err := t.Err(); err != nil {
		return nil, err
	}
	t, err := slice(t, f.slice)
	if err != nil || f.dtype == "" {
		return t, err
	}
	d, ok := tensor.ParseDType(precision(f.dtype))
	if !ok {
		return nil, fault.New(fault.Usage, "no dtype is called "+f.dtype).Needs("", "such as float32, float16, int64")
	}
	return t.Cast(d)
}

func (a *app) writeLayout(ctx context.Context, f *extractFlags, layout *checkpoint.Layout, c *checkpoint.Checkpoint) error {
	p := a.progress("writing")
	defer p.done()
	limits := c.Limits()
	run := []tensor.RunOption{tensor.Progress(p.report), tensor.Expansion(limits.Expand, limits.ExpandFloor)}
	if f.output == "-" {
		a.bytesOut = true
		_, err := checkpoint.WriteStream(ctx, a.out, layout, run...)
		return err
	}
	_, err := checkpoint.WriteFile(ctx, f.output, layout, checkpoint.WriteOptions{Force: f.force, Run: run})
	return err
}

// npyTypes are numpy's names of the dtypes that it has, little-endian
// (numpy/lib/format.py, dtype_to_descr).
var npyTypes = map[tensor.DType]string{
	tensor.F64: "<f8", tensor.F32: "<f4", tensor.F16: "<f2", tensor.I8: "|i1", tensor.I16: "<i2", tensor.I32: "<i4", tensor.I64: "<i8",
	tensor.U8: "|u1", tensor.U16: "<u2", tensor.U32: "<u4", tensor.U64: "<u8", tensor.Bool: "|b1", tensor.C64: "<c8", tensor.C128: "<c16",
}

// npyCure says what to do with a dtype that numpy has not.
func npyCure(d tensor.DType) string {
	for _, to := range []tensor.DType{tensor.F32, tensor.C64, tensor.I8, tensor.U8, tensor.I32} {
		if tensor.Convertible(d, to) {
			return "convert it with --dtype " + to.String() + ", or write .raw"
		}
	}
	return "write .raw"
}

// npyHeader is the header of version 1.0 of numpy's format: magic, version,
// length, and a Python dict padded with spaces to a multiple of 64 bytes.
func npyHeader(t *tensor.Tensor) ([]byte, error) {
	descr, ok := npyTypes[t.DType()]
	if !ok {
		return nil, fault.New(fault.Unsupported, "a "+t.DType().String()+" array in numpy's format").
			Needs("a dtype that numpy has", npyCure(t.DType()))
	}
	shape := strings.Trim(tensor.ShapeString(t.Shape()), "[]")
	if t.Dims() == 1 {
		shape += ","
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape)
	const preamble = 10
	dict += strings.Repeat(" ", 63-(preamble+len(dict))%64) + "\n"
	if len(dict) > 1<<16-1 {
		return nil, errors.New("BUG: a header of 64 dimensions does not fit")
	}
	return append([]byte{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, byte(len(dict)), byte(len(dict) >> 8)}, dict...), nil
}
