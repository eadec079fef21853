package arith_test

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/wick-ml/wick/arith"
	"github.com/wick-ml/wick/fault"
	"github.com/wick-ml/wick/nn"
	"github.com/wick-ml/wick/pytorch"
	"github.com/wick-ml/wick/serde"
	"github.com/wick-ml/wick/tensor"
)

var torches = []string{"1.13", "2.15"}

// read fills v from one case of a file that torch wrote.
func read(t *testing.T, stem, torch, name string, v any) {
	t.Helper()
	c, err := pytorch.Open(ctx, filepath.Join("testdata", stem+"-torch"+torch+".pt"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := serde.Unmarshal(ctx, c.Root, v, serde.Key(name)); err != nil {
		t.Fatal(name, err)
	}
}

// ulp is the distance to the next number of T.
func ulp[T arith.Real](x float64) float64 {
	bits, least := map[tensor.DType]int{tensor.F64: 52, tensor.F32: 23, tensor.F16: 10, tensor.BF16: 7}[tensor.DTypeOf[T]()], -126
	_, exp := math.Frexp(math.Abs(x))
	return math.Ldexp(1, max(exp-1, least)-bits)
}

func values[T arith.Real](t *testing.T, a tensor.Array[T]) []float64 {
	t.Helper()
	v, err := tensor.Values[float64](ctx, a.Tensor())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// near compares with torch, in units of the last place of each size.
func near[T arith.Real](t *testing.T, what string, got, want tensor.Array[T], size func(i int) float64, units float64) {
	t.Helper()
	if fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) {
		t.Fatalf("%s: shape %v, torch has %v", what, got.Shape, want.Shape)
	}
	g, w := values(t, got), values(t, want)
	for i := range w {
		if off := math.Abs(g[i]-w[i]) / ulp[T](size(i)); !(off <= units) {
			t.Errorf("%s: element %d is %g, torch has %g, %.1f units off", what, i, g[i], w[i], off)
		}
	}
}

type foldCase[T arith.Real] struct {
	Layer     nn.Conv2d[T]
	Norm      nn.BatchNorm[T]
	Eps       float64
	Transpose bool
	Folded    nn.Conv2d[T]
}

func testFold[T arith.Real](t *testing.T, torch, name string) {
	var c foldCase[T]
	read(t, "folded", torch, name, &c)
	had := c.Layer
	fold := arith.FoldBatchNorm[T]
	if c.Transpose {
		fold = arith.FoldBatchNormTransposed[T]
	}
	before := append([]T(nil), had.Weight.Data...)
	if err := fold(&c.Layer.Weight, &c.Layer.Bias, &c.Norm, c.Eps); err != nil {
		t.Fatal(err)
	}
	want := values(t, c.Folded.Weight)
	near(t, "weight", c.Layer.Weight, c.Folded.Weight, func(i int) float64 { return want[i] }, 4)
	near(t, "bias", c.Layer.Bias, c.Folded.Bias, func(i int) float64 { return largestTerm(t, &c, had.Bias, i) }, 4)
	for i := range before {
		if before[i] != had.Weight.Data[i] {
			t.Fatal("the slices that were there are changed")
		}
	}
}

// largestTerm is the largest number that a folded bias is the sum of.
func largestTerm[T arith.Real](t *testing.T, c *foldCase[T], bias tensor.Array[T], i int) float64 {
	scale := values(t, c.Norm.Weight)[i] / math.Sqrt(values(t, c.Norm.RunningVar)[i]+c.Eps)
	terms := []float64{values(t, c.Norm.RunningMean)[i] * scale, values(t, c.Norm.Bias)[i]}
	if bias.Data != nil {
		terms = append(terms, values(t, bias)[i]*scale)
	}
	largest := 0.0
	for _, x := range terms {
		largest = max(largest, math.Abs(x))
	}
	return largest
}

func TestFoldBatchNormAgreesWithTorch(t *testing.T) {
	for _, torch := range torches {
		for _, name := range []string{"conv1d", "conv2d", "conv2d_no_bias", "conv3d", "conv_transpose2d"} {
			t.Run(torch+" "+name, func(t *testing.T) { testFold[float32](t, torch, name) })
		}
		t.Run(torch+" double", func(t *testing.T) { testFold[float64](t, torch, "conv2d_double") })
		t.Run(torch+" bfloat16", func(t *testing.T) { testFold[tensor.BFloat16](t, torch, "conv2d_bfloat16") })
	}
}

func testWeightNorm[T arith.Real](t *testing.T, torch, name string) {
	var c struct {
		G, V, Weight tensor.Array[T]
		Dim          int
	}
	read(t, "weight_norm", torch, name, &c)
	got, err := arith.WeightNorm(c.G, c.V, c.Dim)
	if err != nil {
		t.Fatal(err)
	}
	want := values(t, c.Weight)
	near(t, "weight", got, c.Weight, func(i int) float64 { return want[i] }, 8)
}

func TestWeightNormAgreesWithTorch(t *testing.T) {
	for _, torch := range torches {
		for _, name := range []string{"linear", "linear_dim1", "linear_whole", "conv1d", "conv_transpose1d", "lstm"} {
			t.Run(torch+" "+name, func(t *testing.T) { testWeightNorm[float32](t, torch, name) })
		}
		t.Run(torch+" double", func(t *testing.T) { testWeightNorm[float64](t, torch, "double") })
		t.Run(torch+" bfloat16", func(t *testing.T) { testWeightNorm[tensor.BFloat16](t, torch, "bfloat16") })
	}
}

func TestShapesThatDoNotFit(t *testing.T) {
	array := func(shape ...int) tensor.Array[float32] {
		n := 1
		for _, s := range shape {
			n *= s
		}
		return tensor.Array[float32]{Shape: shape, Data: make([]float32, n)}
	}
	norm := func(n int) *nn.BatchNorm[float32] {
		return &nn.BatchNorm[float32]{Weight: array(n), Bias: array(n), RunningMean: array(n), RunningVar: array(n)}
	}
	uneven := norm(4)
	uneven.Bias = array(3)
	for what, c := range map[string]struct {
		weight, bias tensor.Array[float32]
		norm         *nn.BatchNorm[float32]
	}{
		"fewer channels":    {array(3, 2), array(3), norm(4)},
		"a scalar":          {array(), array(), norm(1)},
		"a short bias":      {array(4, 2), array(3), norm(4)},
		"an uneven norm":    {array(4, 2), array(4), uneven},
		"missing elements":  {tensor.Array[float32]{Shape: []int{4, 2}, Data: make([]float32, 7)}, array(4), norm(4)},
		"transposed layers": {array(2, 4), array(2), norm(4)},
	} {
		had := c.weight
		if err := arith.FoldBatchNorm(&c.weight, &c.bias, c.norm, 1e-5); !errors.Is(err, fault.ErrMismatch) {
			t.Errorf("%s: %v", what, err)
		}
		if len(had.Data) > 0 && &had.Data[0] != &c.weight.Data[0] {
			t.Errorf("%s: the weight was changed", what)
		}
	}
	for what, c := range map[string]struct {
		g, v tensor.Array[float32]
		dim  int
	}{
		"fewer lengths": {array(2, 1), array(3, 4), 0}, "another dimension": {array(3, 1), array(3, 4), 1},
		"no dimension": {array(3), array(3, 4), 2}, "below": {array(3), array(3, 4), -2}, "not whole": {array(3), array(3, 4), -1},
	} {
		if _, err := arith.WeightNorm(c.g, c.v, c.dim); !errors.Is(err, fault.ErrMismatch) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func ExampleFoldBatchNorm() {
	one := func(x float32) tensor.Array[float32] {
		return tensor.Array[float32]{Shape: []int{1}, Data: []float32{x}}
	}
	conv := nn.Conv1d[float32]{Weight: tensor.Array[float32]{Shape: []int{1, 1, 2}, Data: []float32{2, 4}}}
	norm := nn.BatchNorm1d[float32]{BatchNorm: nn.BatchNorm[float32]{Weight: one(3), Bias: one(1), RunningMean: one(10), RunningVar: one(4)}}
	if err := arith.FoldBatchNorm(&conv.Weight, &conv.Bias, &norm.BatchNorm, 0); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(conv.Weight.Data, conv.Bias.Data)
	// Output: [3 6] [-14]
}

func ExampleWeightNorm() {
	g := tensor.Array[float32]{Shape: []int{1, 1}, Data: []float32{10}}
	v := tensor.Array[float32]{Shape: []int{1, 2}, Data: []float32{3, 4}}
	w, err := arith.WeightNorm(g, v, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Shape, w.Data)
	// Output: [1 2] [6 8]
}
