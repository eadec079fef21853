package record_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/record"
	"github.com/wick-ml/wick/safetensors"
	"github.com/wick-ml/wick/tensor"
)

var formats = []checkpoint.Format{safetensors.Format{}, record.CBOR{}, record.JSON{}}

// targets are the ways to write a record that keeps the whole tree.
var targets = []checkpoint.Target{
	safetensors.Target{}, record.CBORTarget{}, record.CBORTarget{Compression: record.Gzip},
	record.CBORTarget{Compression: record.Zstd}, record.JSONTarget{},
}

func save(t testing.TB, target checkpoint.Target, root nested.Value, h checkpoint.RecordHeader) []byte {
	t.Helper()
	out, err := target.Plan(root, checkpoint.TargetOptions{Record: &h})
	if err != nil {
		t.Fatalf("%s: %v", target.Name(), err)
	}
	var file bytes.Buffer
	if _, err := checkpoint.WriteStream(t.Context(), &file, out.Files[0].Layout); err != nil {
		t.Fatalf("%s: %v", target.Name(), err)
	}
	return file.Bytes()
}

// unpack takes the compression off, which is another format's work.
func unpack(t testing.TB, file []byte) []byte {
	t.Helper()
	var r io.Reader = bytes.NewReader(file)
	switch {
	case bytes.HasPrefix(file, []byte{0x1f, 0x8b}):
		gz, err := gzip.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		r = gz
	case bytes.HasPrefix(file, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		r = z
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func open(ctx context.Context, file []byte, opts ...checkpoint.Option) (*checkpoint.Checkpoint, error) {
	o, err := checkpoint.NewOptions(opts...)
	if err != nil {
		return nil, err
	}
	return checkpoint.Open(ctx, checkpoint.NewBytes("record", file), formats, o)
}

func mapOf(class string, pairs ...nested.Value) *nested.Map {
	m := nested.NewMap(class)
	for i := 0; i < len(pairs); i += 2 {
		if err := m.Set(pairs[i], pairs[i+1]); err != nil {
			panic(err)
		}
	}
	return m
}

func leafOf[T tensor.Element](data []T, shape ...int) *nested.Tensor {
	return &nested.Tensor{Class: "torch.Tensor", Tensor: tensor.Of(data, shape...)}
}

// everything is a tree of all kinds of values.
func everything() nested.Value {
	wide, _ := new(big.Int).SetString("-123456789012345678901234567890", 10)
	state := mapOf("collections.OrderedDict",
		nested.String("f32"), leafOf([]float32{1, -0.5, float32(math.Inf(1)), math.MaxFloat32, 1e-45, 3}, 2, 3),
		nested.String("f64"), leafOf([]float64{math.Pi, math.Copysign(0, -1), math.SmallestNonzeroFloat64}),
		nested.String("nan"), leafOf([]float32{float32(math.NaN()), math.Float32frombits(0xffc00001), math.Float32frombits(0x7fa00000)}),
		nested.String("f16"), leafOf([]tensor.Float16{0, 0x3555, 0x7bff, 0xfc00, 0x7e00, 0x7e01, 0x0001, 0x8000}, 4, 2),
		nested.String("bf16"), leafOf([]tensor.BFloat16{0, 0x3eab, 0x7f7f, 0xff80, 0x7fc0, 0xffc1, 0x0001}),
		nested.String("f8"), leafOf([]tensor.Float8E4M3FN{0, 1, 0x7f, 0xff}),
		nested.String("f4"), leafOf([]tensor.Float4E2M1FNx2{0x12, 0xfe}, 1, 2),
		nested.String("i8"), leafOf([]int8{-128, 127}), nested.String("u8"), leafOf([]uint8{0, 255}),
		nested.String("i16"), leafOf([]int16{-32768, 32767}), nested.String("u16"), leafOf([]uint16{0, 65535}),
		nested.String("i32"), leafOf([]int32{math.MinInt32, math.MaxInt32}), nested.String("u32"), leafOf([]uint32{0, math.MaxUint32}),
		nested.String("i64"), leafOf([]int64{math.MinInt64, math.MaxInt64}), nested.String("u64"), leafOf([]uint64{0, math.MaxUint64}),
		nested.String("bool"), leafOf([]bool{true, false, true}),
		nested.String("c64"), leafOf([]complex64{complex(1, -2), complex(float32(math.Inf(-1)), 0.1)}),
		nested.String("scalar"), leafOf([]float32{7}, []int{}...), nested.String("empty"), leafOf([]float32{}, 0, 3),
		nested.String("packed"), nested.F32s{Array: tensor.Array[float32]{Shape: []int{2}, Data: []float32{1, 2}}},
	)
	state.Attrs = mapOf("collections.OrderedDict", nested.String(""), mapOf("dict", nested.String("version"), nested.Int(1)))
	return mapOf("dict",
		nested.String("state"), state, nested.Int(3), nested.String("int key"), nested.Bool(true), nested.None{},
		nested.NewList("tuple", nested.Int(1), nested.String("x")), nested.NewList("list", nested.Bool(false), nested.NewList("tuple")),
		nested.String("numbers"), nested.NewList("list", nested.Int(math.MinInt64), nested.BigInt{Int: wide}, nested.Float(1), nested.Float(1e300),
			nested.Float(math.NaN()), nested.Float(math.Inf(-1)), nested.Float(math.Copysign(0, -1)), nested.Complex(complex(1.5, math.Inf(1)))),
		nested.String("texts"), nested.NewList("list", nested.String("ünï\x00\"\\\u2028"), nested.String("lone \xed\xa0\x80"), nested.String("\xff\xfe"),
			nested.Bytes("\x00\xff"), nested.ByteArray("ab"), nested.Symbol{Class: "torch.dtype", Text: "torch.float16"}),
		nested.String("$first"), mapOf("dict", nested.String("$dollar"), nested.Int(1)),
		nested.String("odd"), &nested.Opaque{Class: "argparse.Namespace", Reason: "class", Members: mapOf("dict", nested.String("w"), leafOf([]int8{1}))},
		nested.String("none"), &nested.Opaque{Class: "a.B", Reason: "call"},
		nested.String("set"), nested.NewList("set", nested.Int(1)), nested.String("size"), nested.NewList("torch.Size", nested.Int(2)),
		nested.Symbol{Class: "type", Text: "builtins.int"}, nested.Component("values"),
	)
}

// describe spells a tree, tensors by the hash of their bytes.
func describe(t testing.TB, v nested.Value) string {
	t.Helper()
	switch v := v.(type) {
	case nested.Leaf:
		x, h := v.AsTensor(), sha256.New()
		if _, err := x.WriteTo(h); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s%v %x", x.DType(), x.Shape(), h.Sum(nil))
	case *nested.Map:
		s := v.Class + "{"
		for key, value := range v.All() {
			s += describe(t, key) + ": " + describe(t, value) + "\n"
		}
		if v.Attrs != nil {
			s += "attrs " + describe(t, v.Attrs)
		}
		return s + "}"
	case *nested.List:
		s := v.Class + "["
		for _, item := range v.Items {
			s += describe(t, item) + ", "
		}
		return s + "]"
	case *nested.Opaque:
		s := "opaque " + v.Class + " " + v.Reason
		if v.Members != nil {
			s += describe(t, v.Members)
		}
		return s
	case nested.BigInt:
		return v.Int.String()
	case nested.Float:
		return fmt.Sprintf("float %x", math.Float64bits(float64(v)))
	default:
		return fmt.Sprintf("%T %q", v, fmt.Sprint(v))
	}
}

func TestEverythingComesBack(t *testing.T) {
	root := everything()
	want := describe(t, root)
	for _, target := range targets {
		t.Run(target.Name(), func(t *testing.T) {
			h := checkpoint.RecordHeader{Type: "pkg.Model", Precision: "half", Writer: "wick test"}
			c, err := open(t.Context(), unpack(t, save(t, target, root, h)))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if got := describe(t, c.Root); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			told(t, c, h)
		})
	}
}

func readAll(c *checkpoint.Checkpoint) error {
	for _, leaf := range c.Tensors() {
		if _, err := leaf.WriteTo(io.Discard); err != nil {
			return errors.Join(err, c.Close())
		}
	}
	return c.Close()
}
