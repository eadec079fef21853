package record_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/wick-ml/wick/checkpoint"
	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/record"
	"github.com/wick-ml/wick/safetensors"
	"github.com/wick-ml/wick/tensor"
)

// trees draws trees of every kind of value, no deeper than depth.
func trees(depth int) *rapid.Generator[nested.Value] {
	return rapid.Custom(func(t *rapid.T) nested.Value {
		kinds := 12
		if depth > 0 {
			kinds = 16
		}
		switch rapid.IntRange(0, kinds).Draw(t, "kind") {
		case 0:
			return nested.None{}
		case 1:
			return nested.Bool(rapid.Bool().Draw(t, "bool"))
		case 2:
			return nested.Int(rapid.Int64().Draw(t, "int"))
		case 3:
			return nested.Float(rapid.Float64().Draw(t, "float"))
		case 4:
			return nested.String(rapid.String().Draw(t, "text"))
		case 5:
			return nested.Bytes(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		case 6:
			n := new(big.Int).Lsh(big.NewInt(rapid.Int64Range(1, math.MaxInt64).Draw(t, "big")), 64)
			return nested.BigInt{Int: n}
		case 7:
			return nested.Symbol{Class: "torch.device", Text: rapid.StringMatching(`[a-z]+:[0-9]`).Draw(t, "device")}
		case 8:
			return nested.Complex(complex(rapid.Float64().Draw(t, "re"), rapid.Float64().Draw(t, "im")))
		case 9:
			return packedLeaf(t, rapid.SliceOf(rapid.Float32()).Draw(t, "f32"))
		case 10:
			return packedLeaf(t, rapid.SliceOf(rapid.Custom(func(t *rapid.T) tensor.Float16 {
				return tensor.Float16(rapid.Uint16().Draw(t, "half"))
			})).Draw(t, "f16"))
		case 11:
			return packedLeaf(t, rapid.SliceOf(rapid.Int16()).Draw(t, "i16"))
		case 12:
			return packedLeaf(t, rapid.SliceOf(rapid.Custom(func(t *rapid.T) tensor.BFloat16 {
				return tensor.BFloat16(rapid.Uint16().Draw(t, "brain"))
			})).Draw(t, "bf16"))
		case 13, 14:
			return drawList(t, depth)
		default:
			return drawMap(t, depth)
		}
	})
}

// packedLeaf gives a vector one or two dimensions.
func packedLeaf[T tensor.Element](t *rapid.T, data []T) nested.Value {
	shape := []int{len(data)}
	if len(data)%2 == 0 && rapid.Bool().Draw(t, "matrix") {
		shape = []int{len(data) / 2, 2}
	}
	return &nested.Tensor{Class: "torch.Tensor", Tensor: tensor.Of(data, shape...)}
}

func drawList(t *rapid.T, depth int) nested.Value {
	class := rapid.SampledFrom([]string{"list", "tuple", "set", "torch.Size"}).Draw(t, "class")
	return nested.NewList(class, rapid.SliceOfN(trees(depth-1), 0, 4).Draw(t, "items")...)
}

func drawMap(t *rapid.T, depth int) nested.Value {
	m := nested.NewMap(rapid.SampledFrom([]string{"dict", "collections.OrderedDict", "collections.Counter"}).Draw(t, "class"))
	for range rapid.IntRange(0, 4).Draw(t, "keys") {
		var key nested.Value = nested.String(rapid.StringMatching(`[$a-c]{0,2}`).Draw(t, "key"))
		if rapid.Bool().Draw(t, "number") {
			key = nested.Int(rapid.IntRange(0, 3).Draw(t, "key"))
		}
		if err := m.Set(key, trees(depth-1).Draw(t, "value")); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// What was written comes back, bit for bit, in every format that keeps all.
func TestTreesComeBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		root := trees(3).Draw(rt, "tree")
		want := describe(t, root)
		for _, target := range []checkpoint.Target{record.CBORTarget{}, record.JSONTarget{}, safetensors.Target{}} {
			if _, _, err := checkpoint.Flatten(root, checkpoint.Limits{}); err != nil && target.Name() == "safetensors" {
				continue // two tensors of one flat name
			}
			c, err := open(t.Context(), save(t, target, root, checkpoint.RecordHeader{}))
			if err != nil {
				rt.Fatalf("%s: %v", target.Name(), err)
			}
			if got := describe(t, c.Root); got != want {
				rt.Fatalf("%s: got\n%s\nwant\n%s", target.Name(), got, want)
			}
		}
	})
}
