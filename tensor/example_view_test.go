//go:build !nounsafe

package tensor_test

import (
	"errors"
	"fmt"

	"github.com/wick-ml/wick/tensor"
)

// View aliases memory that the source lends, where the elements lie there as
// they are wanted.
func ExampleView() {
	data := []float32{1, 2, 3}
	view := try(tensor.View[float32](tensor.Of(data, 3)))
	data[0] = 9
	fmt.Println(view)
	_, err := tensor.View[float32](try(matrix().Permute(1, 0)))
	fmt.Println(errors.Is(err, tensor.ErrNotViewable))
	// Output:
	// [9 2 3]
	// true
}
