// Package swaps exchanges weights, for tests that must notice it.
package swaps

import (
	"fmt"
	"iter"

	"github.com/wick-ml/wick/nested"
	"github.com/wick-ml/wick/tensor"
)

// All yields copies of a state dict in which two tensors have changed places, with the names of the two: every tensor
// of floats and the next one of the same shape. The tensors themselves are not copied.
func All(root nested.Value) iter.Seq2[string, nested.Value] {
	return func(yield func(string, nested.Value) bool) {
		dict, ok := root.(*nested.Map)
		if !ok {
			return
		}
		last := map[string]nested.Entry{} // by shape
		for key, value := range dict.All() {
			leaf, ok := value.(nested.Leaf)
			if !ok || leaf.AsTensor().DType().Class() != tensor.FloatClass {
				continue
			}
			shape := tensor.ShapeString(leaf.AsTensor().Shape())
			if before, ok := last[shape]; ok {
				names := fmt.Sprintf("%s and %s", nested.KeyName(before.Key), nested.KeyName(key))
				if !yield(names, swapped(dict, before, nested.Entry{Key: key, Value: value})) {
					return
				}
			}
			last[shape] = nested.Entry{Key: key, Value: value}
		}
	}
}

// swapped returns dict with the values of two entries exchanged.
func swapped(dict *nested.Map, a, b nested.Entry) nested.Value {
	out := nested.NewMap(dict.Class)
	for key, value := range dict.All() {
		switch key {
		case a.Key:
			value = b.Value
		case b.Key:
			value = a.Value
		}
		if err := out.Set(key, value); err != nil {
			panic(err) // the key was one of a map already
		}
	}
	return out
}
