package nested_test

import (
	"fmt"
	"log"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// sample is {"weights": {"w": tensor([1., 2.])}, "betas": [0.9, 0.999], 0: None}.
func sample() *nested.Map {
	weights := nested.NewMap("collections.OrderedDict")
	root := nested.NewMap("dict")
	for _, err := range []error{
		weights.Set(nested.String("w"), nested.F32s{Array: tensor.Array[float32]{Shape: []int{2}, Data: []float32{1, 2}}}),
		root.Set(nested.String("weights"), weights),
		root.Set(nested.String("betas"), nested.NewList("list", nested.Float(0.9), nested.Float(0.999))),
		root.Set(nested.Int(0), nested.None{}),
	} {
		if err != nil {
			log.Fatal(err)
		}
	}
	return root
}

// A map keeps the order and the types of its keys.
func ExampleNewMap() {
	m := nested.NewMap("dict")
	fmt.Println(m.Set(nested.Int(0), nested.None{}), m.Len())
	for key, value := range sample().All() {
		fmt.Println(nested.TypeName(key), nested.KeyName(key), nested.TypeName(value))
	}
	// Output:
	// <nil> 1
	// str weights collections.OrderedDict
	// str betas list
	// int 0 NoneType
}

func ExampleNewList() {
	list := nested.NewList("tuple", nested.Int(1), nested.String("a"))
	fmt.Println(nested.Repr(list))
	// Output: (1, 'a')
}

// Walk visits everything that has a name, in the order of the file.
func ExampleWalk() {
	err := nested.Walk(sample(), nested.WalkLimits{}, func(path nested.Path, v nested.Value) error {
		if leaf, ok := v.(nested.Leaf); ok {
			fmt.Println(path, leaf.AsTensor().DType(), leaf.AsTensor().Shape())
			return nil
		}
		fmt.Println(path, nested.Repr(v))
		return nil
	})
	fmt.Println(err)
	// Output:
	// weights.w float32 [2]
	// betas.0 0.9
	// betas.1 0.999
	// 0 None
	// <nil>
}

func ExampleNearest() {
	fmt.Println(nested.Nearest("layer1.wieght", []string{"layer1.weight", "layer2.bias"}))
	// Output: layer1.weight
}

// Repr and TypeName speak Python.
func ExampleRepr() {
	for _, v := range []nested.Value{nested.Bool(true), nested.Float(1e22), nested.Bytes("\x00a"), nested.Complex(1 - 2i)} {
		fmt.Println(nested.TypeName(v), nested.Repr(v))
	}
	// Output:
	// bool True
	// float 1e+22
	// bytes b'\x00a'
	// complex (1-2j)
}

// The exact path tells apart what has the same flat name.
func ExampleKeyName() {
	fmt.Println(nested.KeyName(nested.Int(0)), nested.KeyName(nested.String("0")), nested.KeyName(nested.None{}))
	fmt.Println(nested.Path{nested.String("a.b"), nested.Int(0)})
	// Output:
	// 0 0 None
	// a.b.0
}

// Rewrite replaces values wherever they are and leaves the tree as it was.
func ExampleRewrite() {
	root := sample()
	halved, err := nested.Rewrite(root, func(v nested.Value) (nested.Value, error) {
		if f, ok := v.(nested.Float); ok {
			return f / 2, nil
		}
		return nil, nil // kept
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, tree := range []nested.Value{root, halved} {
		betas, _ := tree.(*nested.Map).Lookup("betas")
		fmt.Println(nested.Repr(betas))
	}
	// Output:
	// [0.9, 0.999]
	// [0.45, 0.4995]
}
