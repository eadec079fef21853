package arith

import (
	"context"
	"encoding/binary"
	"io"
	"math"

	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// Dequantize returns the real numbers that a quantized tensor stands for, as
// float32, computed whenever they are read. The values are those of torch's
// Tensor.dequantize: per tensor float32(q - zero point) * float32(scale); per
// channel in float64 and then rounded (aten/src/ATen/native/quantized/
// AffineQuantizer.cpp and its kernels); with float parameters in float32. limits
// bounds the floats, though none is computed here: whoever reads them sees no more
// that they are made of few bytes.
//
// It fails with [fault.ErrUsage] on a tensor that is not quantized and with
// [fault.ErrLimit] on a result out of proportion. Reading the floats fails with
// [fault.ErrUnsupported] on a scheme it does not know.
func Dequantize(t *nested.Tensor, limits Limits) (*nested.Tensor, error) {
	return newBudget(limits).dequantize(t)
}

func (b *budget) dequantize(t *nested.Tensor) (*nested.Tensor, error) {
	if t.Quant == nil || t.DType().Class() != tensor.QuantClass {
		return nil, fault.New(fault.Usage, "dequantizing "+t.DType().String()).Needs("a quantized tensor", "")
	}
	if err := t.Err(); err != nil {
		return nil, err
	}
	if t.Quant.Scales != nil && t.Quant.Axis >= t.Dims() {
		return nil, fault.New(fault.Malformed, "a channel axis that the tensor does not have")
	}
	size := 4 * min(t.Len(), math.MaxInt64/4)
	if err := b.take(size, t.Tensor); err != nil {
		return nil, err
	}
	d, err := tensor.New(tensor.Spec{Storage: dequantized(t, size, b.limits), DType: tensor.F32, Shape: longs(t.Shape())})
	if err != nil {
		return nil, err
	}
	return &nested.Tensor{Tensor: d, Class: t.Class, RequiresGrad: t.RequiresGrad, Device: t.Device, Attrs: t.Attrs}, nil
}

// dequantized is the floats of t, size bytes that are computed when they are read.
func dequantized(t *nested.Tensor, size int64, limits Limits) *tensor.Storage {
	return tensor.NewStorage(tensor.StorageSpec{
		Name: "dequantized", Size: size,
		Open: func(ctx context.Context) (io.ReadCloser, error) { return openDequantized(ctx, t, limits) },
	})
}

// dequantizer turns packed integers, as they come, into floats.
type dequantizer struct {
	source io.ReadCloser
	dtype  tensor.DType
	real   func(element, q int64) float32
	left   int64 // elements still to come
	next   int64 // index of the next element
	in     [4096]byte
	out    []byte // floats that were computed and not read
	floats [4096 * 4 * 4]byte
}

func openDequantized(ctx context.Context, t *nested.Tensor, limits Limits) (io.ReadCloser, error) {
	real, err := formula(ctx, t, limits)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() {
		_, err := tensor.Run(ctx, []tensor.Move{{From: t.Tensor, To: tensor.Stream(w)}},
			tensor.Workers(1), tensor.MaxMemory(1<<20), tensor.Expansion(0, t.Bytes())) // the budget allowed it
		w.CloseWithError(err) // a nil error is the end of the stream
	}()
	return &dequantizer{source: r, dtype: t.DType(), real: real, left: t.Len()}, nil
}

// formula returns how torch computes the element at a row-major index.
func formula(ctx context.Context, t *nested.Tensor, limits Limits) (func(element, q int64) float32, error) {
	if t.Quant.Scales != nil {
		return channelFormula(ctx, t, limits)
	}
	scale, zero := float32(t.Quant.Scale), t.Quant.ZeroPoint
	return func(_, q int64) float32 { return float32(q-zero) * scale }, nil
}

// channelFormula is [formula] for a scale and a zero point for each channel.
func channelFormula(ctx context.Context, t *nested.Tensor, limits Limits) (func(element, q int64) float32, error) {
	quant := t.Quant
	scales, err := tensor.Values[float64](ctx, quant.Scales.Tensor, limits.expansion())
	if err != nil {
		return nil, err
	}
	zeros, err := tensor.Values[float64](ctx, quant.ZeroPoints.Tensor, limits.expansion())
	if err != nil {
		return nil, err
	}
	shape := t.Shape()
	channels, inner := int64(shape[quant.Axis]), int64(1)
	for _, n := range shape[quant.Axis+1:] {
		inner *= int64(n)
	}
	if int64(len(scales)) < channels || int64(len(zeros)) < channels {
		return nil, fault.New(fault.Malformed, "fewer scales than channels").Needs("one for each channel", "the file is damaged")
	}
	channel := func(element int64) int64 { return element / max(inner, 1) % channels }
	switch quant.Scheme {
	case "per_channel_affine", "per_channel_symmetric":
		return func(element, q int64) float32 {
			c := channel(element)
			return float32((float64(q) - zeros[c]) * scales[c])
		}, nil
	case "per_channel_affine_float_qparams":
		return func(element, q int64) float32 {
			c := channel(element)
			return (float32(q) - float32(zeros[c])) * float32(scales[c])
		}, nil
	default:
		return nil, fault.New(fault.Unsupported, "the quantization scheme "+quant.Scheme).Needs("an affine one", "")
	}
}

// Read computes as many floats as p takes.
func (d *dequantizer) Read(p []byte) (int, error) {
	if len(d.out) == 0 {
		if err := d.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, d.out)
	d.out = d.out[n:]
	return n, nil
}

// Close ends the reading of the integers.
func (d *dequantizer) Close() error { return d.source.Close() }

// fill computes the next block. A block is a whole number of elements and, for
// the dtypes of less than a byte, of bytes.
func (d *dequantizer) fill() error {
	if d.left == 0 {
		return io.EOF
	}
	perBlock := int64(len(d.in)) * 8 / int64(d.dtype.Bits())
	n := min(perBlock, d.left)
	size, _ := d.dtype.Bytes(n)
	if _, err := io.ReadFull(d.source, d.in[:size]); err != nil {
		return err
	}
	d.out = d.floats[:0]
	for i := range n {
		f := d.real(d.next+i, integer(d.dtype, d.in[:], i))
		d.out = binary.LittleEndian.AppendUint32(d.out, math.Float32bits(f))
	}
	d.next += n
	d.left -= n
	return nil
}

// integer returns element i of packed little-endian integers. Dtypes of less
// than a byte fill it from the low bits (c10/util/quint4x2.h).
func integer(t tensor.DType, b []byte, i int64) int64 {
	switch t {
	case tensor.QI8:
		return int64(int8(b[i]))
	case tensor.QI32:
		return int64(int32(binary.LittleEndian.Uint32(b[4*i:])))
	case tensor.QU4x2:
		return int64(b[i/2] >> (4 * (i % 2)) & 15)
	case tensor.QU2x4:
		return int64(b[i/4] >> (2 * (i % 4)) & 3)
	default:
		return int64(b[i])
	}
}
