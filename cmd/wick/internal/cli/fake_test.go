package cli

import (
	"bytes"
	"context"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// outcome is what one run of the command did.
type outcome struct {
	code     int
	out, err string
}

// runTrees runs a command line in which FILE arguments are trees in memory.
func runTrees(ctx context.Context, trees map[string]nested.Value, args ...string) outcome {
	return runTreesAt(ctx, 0, trees, args...)
}

// runTreesAt does so on a terminal of so many columns, 0 for none.
func runTreesAt(ctx context.Context, columns int, trees map[string]nested.Value, args ...string) outcome {
	var out, errs bytes.Buffer
	a := &app{streams: newStreams(strings.NewReader(""), &out, &errs), getenv: func(string) string { return "" }}
	a.width = columns
	a.open = func(_ context.Context, name string, o openOptions) (*checkpoint.Checkpoint, error) {
		root, ok := trees[name]
		if !ok {
			return nil, missingFile(name)
		}
		info := checkpoint.Info{Name: name, Format: "zip", Producer: "torch 2.15.0"}
		return checkpoint.New(root, info, &checkpoint.Env{Limits: o.limits.Default()}, nil)
	}
	code := a.run(ctx, args)
	return outcome{code, out.String(), errs.String()}
}

// mapOf builds a map from keys and values in turn.
func mapOf(t *testing.T, pairs ...nested.Value) *nested.Map {
	t.Helper()
	m := nested.NewMap("dict")
	for i := 0; i < len(pairs); i += 2 {
		if err := m.Set(pairs[i], pairs[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func str(s string) nested.String { return nested.String(s) }

// lazy wraps a tensor as a reader of files does.
func lazy(t *tensor.Tensor) *nested.Tensor { return &nested.Tensor{Tensor: t, Class: "torch.Tensor"} }

// storage returns n little-endian float32 0, 1, 2 … as a record called name.
func storage(name string, n int) *tensor.Storage {
	b := make([]byte, 0, 4*n)
	for i := range n {
		u := math.Float32bits(float32(i))
		b = append(b, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
	}
	return tensor.NewStorage(tensor.StorageSpec{Name: name, Size: int64(len(b)), Memory: b})
}

// strided makes a float32 tensor over a storage.
func strided(t *testing.T, s *tensor.Storage, shape, strides []int64, offset int64) *nested.Tensor {
	t.Helper()
	x, err := tensor.New(tensor.Spec{Storage: s, DType: tensor.F32, Shape: shape, Strides: strides, Offset: offset})
	if err != nil {
		t.Fatal(err)
	}
	return lazy(x)
}

// model is a small tree with most things that a checkpoint can hold.
func model(t *testing.T) nested.Value {
	t.Helper()
	s := storage("data/0", 12)
	huge, ok := new(big.Int).SetString("1180591620717411303424", 10)
	if !ok {
		t.Fatal("not a number")
	}
	state := mapOf(t,
		str("fc.weight"), strided(t, s, []int64{3, 4}, nil, 0),
		str("fc.tied"), strided(t, s, []int64{4, 3}, []int64{1, 4}, 0),
		str("bias"), strided(t, storage("data/1", 2), []int64{2}, nil, 0),
		str("meta"), lazy(tensor.Unavailable(tensor.F16, []int{2, 2}, fault.New(fault.NoData, "meta"))),
	)
	return mapOf(t,
		str("state"), state,
		str("epoch"), nested.Int(3),
		str("seed"), nested.BigInt{Int: huge},
		str("loss"), nested.Float(math.NaN()),
		str("lr"), nested.Float(0.1),
		str("best"), nested.None{},
		str("on"), nested.Bool(true),
		str("z"), nested.Complex(1.5-2i),
		str("rng"), nested.Bytes("\x00\xff"),
		str("caf\xe9"), nested.String("gr\xfc\xdfe"),
		str("\xed\xa0\x80"), nested.String("層"),
		nested.NewList("tuple", nested.Int(1), str("a")), nested.Symbol{Class: "torch.dtype", Text: "torch.float16"},
		nested.None{}, nested.NewList("list"),
		nested.Int(0), nested.NewList("list", nested.Int(7)),
		str("args"), &nested.Opaque{Class: "argparse.Namespace", Reason: "class", Members: mapOf(t, str("depth"), nested.Int(18))},
	)
}
